//! Estimators of round-trip times held to the senders' own measurements, over the flows of
//! `papers/rtt-aqm/estimators.toml`.

use suimon_algorithms::RandomStream;
use suimon_algorithms::estimate::Seen;
use suimon_algorithms::estimate::round_trips::{Backward, Forward, RoundTrips};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_scenario::Document;
use suimon_simulator::{Crossing, run_crossed};

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/rtt-aqm/estimators.toml");

/// For each round-trip time, in milliseconds, of so many estimates of `name` the median error as a share.
fn errors(name: &str) -> Vec<(f64, usize, f64)> {
    let spec = AlgorithmSpec::parse(Role::Estimator, name).unwrap();
    let runs = Document::read(SCENARIO).unwrap().runs().unwrap();
    let error = |run: suimon_scenario::Run| {
        let mut estimator = spec.build_estimator();
        let mut random = RandomStream::new(1, "test");
        let mut errors = Vec::new();
        let _ = suimon_simulator::run_watched(&run.scenario, "bottleneck", &mut |seen, truth| {
            let sample = estimator.on_packet(seen, &mut random);
            if let (Some(sample), Some(truth)) = (sample, truth) {
                errors.push((sample.rtt.as_secs_f64() / truth.as_secs_f64() - 1.0).abs());
            }
        });
        errors.sort_by(f64::total_cmp);
        let rtt = run.labels[0].1.trim_end_matches("ms").parse().unwrap();
        (rtt, errors.len(), errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN))
    };
    runs.into_iter().map(error).collect()
}

#[test]
fn adaptive_dt_is_within_a_tenth_from_5_to_500_ms() {
    for (rtt, estimates, error) in errors("bursts") {
        assert!(estimates > 10 && error < 0.1, "{rtt} ms: {estimates} estimates, {error}");
    }
}

/// §3.1.1: 10 ms is right at 60 and 130 ms, too long at 10 ms and too short at 300 ms.
#[test]
fn a_dt_of_10_ms_finds_60_and_130_ms_and_fails_at_10_and_300_ms() {
    let adaptive = errors("bursts:tries=1");
    for ((rtt, estimates, error), (_, possible, _)) in
        errors("bursts:dt=10ms:tries=1").into_iter().zip(adaptive)
    {
        let often = estimates * 20 > possible;
        match rtt {
            60.0 | 130.0 => assert!(often && error < 0.1, "{rtt} ms: {estimates} estimates, {error}"),
            10.0 => assert!(!often, "{rtt} ms: {estimates} estimates of {possible}"),
            300.0 => assert!(error > 0.5, "{rtt} ms: {error}"),
            _ => {}
        }
    }
}

#[test]
fn an_estimator_of_a_link_speaks_in_its_series_beside_the_truth() {
    let mut document = Document::read(SCENARIO).unwrap();
    document.set("duration", "20s").unwrap();
    document.set("link.bottleneck.estimator", "bursts").unwrap();
    let run = document.runs().unwrap().into_iter().find(|run| run.labels[0].1 == "60ms").unwrap();
    let result = suimon_simulator::run(&run.scenario, &[]);
    let series = &result.queue_series[0];
    let column = |name: &str| {
        &series
            .columns
            .iter()
            .find(|column| column.name == name)
            .unwrap_or_else(|| panic!("no {name}"))
            .values
    };
    let (estimated, truth) = (column("estimated_rtt_ms"), column("true_rtt_ms"));
    let mean = |values: &[f64]| {
        let late: Vec<f64> = values.iter().copied().skip(1_000).filter(|value| value.is_finite()).collect();
        assert!(late.len() > 500);
        late.iter().sum::<f64>() / late.len() as f64
    };
    let error = mean(estimated) / mean(truth) - 1.0;
    assert!(error.abs() < 0.05, "{error}");
    assert!(column("estimates").iter().sum::<f64>() > 20.0);
    assert!(column("estimator_bytes").iter().all(|bytes| (1.0..500.0).contains(bytes)));
}

/// CUBIC flows with delayed ACKs over 20 Mbit/s, seen by a router a quarter of the way from their senders: median errors of
/// both directions with and without timestamps, and the numbers of estimates of bursts that are far too short, all and checked.
fn at_a_router(rtt_ms: u32, flows: u32) -> ([f64; 2], [usize; 2]) {
    let text = format!(
        "name = \"router\"\nduration = \"15s\"\nrecord_interval = \"off\"\n\
         [[link]]\nname = \"near\"\nbetween = [\"s\", \"r1\"]\nrate = \"1Gbit\"\ndelay = \"{}us\"\n\
         [[link]]\nname = \"router\"\nbetween = [\"r1\", \"r2\"]\nrate = \"1Gbit\"\n\
         [[link]]\nname = \"line\"\nbetween = [\"r2\", \"d\"]\nrate = \"20Mbit\"\ndelay = \"{}us\"\n\
         buffer = \"100 packets\"\n[link.reverse]\nrate = \"unlimited\"\n\
         [[flow]]\nname = \"main\"\ncount = {flows}\nfrom = \"s\"\nto = \"d\"\ncc = \"cubic-linux\"\n\
         profile = \"linux-6\"\nstart = [\"0s\", \"1s\"]\n",
        rtt_ms * 125,
        rtt_ms * 375,
    );
    let run = Document::parse(&text, "router.toml").unwrap().runs().unwrap().remove(0);
    let estimator = |name| AlgorithmSpec::parse(Role::Estimator, name).unwrap().build_estimator();
    let mut bursts = [estimator("bursts"), estimator("bursts:check=handshake")];
    let mut trips = [RoundTrips::new(512), RoundTrips::new(512)];
    let mut random = RandomStream::new(1, "test");
    let (mut errors, mut short) = ([Vec::new(), Vec::new()], [0, 0]);
    let _ = run_crossed(&run.scenario, "router", &mut |crossing, truth| match *crossing {
        Crossing::Forward(packet) => {
            trips[0].on_forward(&packet);
            trips[1].on_forward(&Forward { ts_ecr: None, ..packet });
            let Forward { now, flow, size, opens_connection, .. } = packet;
            for (bursts, short) in bursts.iter_mut().zip(&mut short) {
                let sample = bursts.on_packet(&Seen { now, flow, size, opens_connection }, &mut random);
                *short +=
                    usize::from(sample.zip(truth).is_some_and(|(sample, truth)| sample.rtt < truth / 2));
            }
        }
        Crossing::Backward(packet) => {
            let packets = [packet, Backward { ts_val: None, ..packet }];
            for ((trips, packet), errors) in trips.iter_mut().zip(packets).zip(&mut errors) {
                let told = trips.on_backward(&packet).and_then(|_| trips.between_ends(packet.flow));
                let error =
                    told.zip(truth).map(|(rtt, truth)| (rtt.as_secs_f64() / truth.as_secs_f64() - 1.0).abs());
                errors.extend(error);
            }
        }
    });
    let median = |mut errors: Vec<f64>| {
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    };
    (errors.map(median), short)
}

#[test]
fn both_directions_tell_the_round_trip_time_with_and_without_timestamps() {
    for (rtt_ms, flows) in [(10, 1), (10, 100), (100, 4), (300, 1), (300, 20)] {
        let (errors, _) = at_a_router(rtt_ms, flows);
        assert!(errors.iter().all(|error| *error < 0.1), "{rtt_ms} ms, {flows} flows: {errors:?}");
    }
}

#[test]
fn pairs_of_packets_that_delayed_acks_let_go_are_not_taken_for_a_round_trip() {
    let (_, [all, checked]) = at_a_router(100, 2);
    assert!(all > 50 && checked == 0, "{all} too short, {checked} after the check");
}
