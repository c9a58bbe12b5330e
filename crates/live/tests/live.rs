//! Scenarios on real stacks, beside the simulator. Needs root, or the right to make namespaces and devices; skips
//! elsewhere.

use suimon_live::{KernelNames, Links, LiveError, Unobserved, behave_as_live, run, run_all};
use suimon_results::{EventKind, RunResult};
use suimon_scenario::{Document, Run, Scenario};
use suimon_testing::{assert_in_time, can_emulate, in_time};

fn runs(text: &str) -> Vec<Run> {
    Document::parse(text, "test").unwrap().runs().unwrap()
}

const LINK: &str = r#"
[[link]]
name = "bottleneck"
between = ["a", "b"]
rate = "10Mbit"
delay = "10ms"
buffer = "50kB"
queue = "red"
[link.reverse]
rate = "unlimited"

[[link]]
name = "access"
between = ["b", "c"]
rate = "1Gbit"
delay = "5ms"
reported = false
"#;

fn flow(name: &str, rest: &str) -> String {
    format!("[[flow]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"c\"\n{rest}\n")
}

fn column(result: &RunResult, name: &str) -> usize {
    result.flow_series[0]
        .columns
        .iter()
        .find(|column| column.name == name)
        .map_or(0, |column| column.values.len())
}

/// The same by the simulator, with each of twenty seeds.
fn simulated(run: &Run) -> Vec<RunResult> {
    let mut scenario = run.scenario.clone();
    behave_as_live(&mut scenario);
    let of_seed = |seed| suimon_simulator::run(&Scenario { seed, ..scenario.clone() }, &run.labels);
    (1..=20).map(of_seed).collect()
}

#[test]
fn live_runs_fill_the_tables_of_a_simulation_with_nearly_its_numbers() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let text = format!(
            "duration = \"10s\"\nwarmup = \"1s\"\nrecord_interval = \"100ms\"\n[[window]]\nname = \"w\"\nfrom = \"2s\"\nto = \"9s\"\nsample = \"1s\"\n\
         {LINK}{}{}",
            flow("one", "cc = \"reno\"\n[flow.stack]\necn = true"),
            flow("two", "cc = \"cubic\"\nstart = \"500ms\"\n[flow.stack]\necn = true"),
        );
        let run = &runs(&text)[0];
        let live = suimon_live::run(&run.scenario, &run.labels, &Unobserved).unwrap();
        let simulated = simulated(run);
        let names =
            |result: &RunResult| -> Vec<_> { result.flows.iter().map(|flow| flow.name.clone()).collect() };
        assert_eq!(names(&live), names(&simulated[0]));
        assert_eq!(live.queues[0].name, simulated[0].queues[0].name);
        // One run of this length differs from another by 2 to 3 % (standard deviation), as simulated.
        let is_nearly_the_mean = |of: &dyn Fn(&RunResult) -> f64| {
            let (of_live, mean) = (of(&live), simulated.iter().map(of).sum::<f64>() / simulated.len() as f64);
            assert_in_time!((of_live / mean - 1.0).abs() < 0.1, "{of_live} {mean}");
        };
        is_nearly_the_mean(&|result| result.queues[0].bytes.as_f64() / result.measured.as_secs_f64());
        is_nearly_the_mean(&|result| result.windows[0].goodput.as_bps_f64());
        // ECN is negotiated and answered: marks, and hardly a loss after slow start.
        let marked: u64 = live.flows.iter().map(|flow| flow.packets_marked).sum();
        assert_in_time!(marked > 5 && live.queues[0].marked >= marked, "{marked} {:?}", live.queues[0]);
        assert_in_time!(live.flows.iter().all(|flow| flow.packets_sent > 500), "{:?}", live.flows);
        // 10 ms each way of the link, 5 of links not emulated.
        let least = live.flows[0].rtt_min.unwrap().as_millis_f64();
        assert_in_time!((30.0..34.0).contains(&least), "{least}");
        assert_eq!((live.windows.len(), live.windows[0].window.as_str()), (1, "w"));
        for name in ["cwnd_bytes", "goodput_bps"] {
            assert_in_time!(column(&live, name) > 40, "{} of {name}", column(&live, name));
        }
        assert!(live.events.iter().any(|event| event.kind == EventKind::Started));
        assert_eq!(live.emulated[0].unseen, 0);
        assert_in_time!(live.emulated[0].packets > 3_000, "{:?}", live.emulated);
    });
}

#[test]
fn finite_transfers_datagrams_and_late_starts_end_a_run_early() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let text = format!(
            "duration = \"20s\"\nstop_when_complete = true\n{LINK}{}{}",
            flow("file", "size = \"500kB\"\ncc = \"cubic\"\nstart = \"300ms\""),
            flow("voice", "udp = { rate = \"1Mbit\", packet = \"500B\" }\nsize = \"100kB\""),
        );
        let results = run_all(&runs(&text), &KernelNames::new(), Links::Emulated, &Unobserved).unwrap();
        let flows = &results[0].flows;
        assert_in_time!(flows.iter().all(|flow| flow.completed.is_some()), "{flows:?}");
        assert_eq!(flows[0].delivered.get(), 500_000);
        // Datagrams come once or not at all, by what the queue does to them beside a file.
        let voice = &flows[1];
        assert_eq!(
            (voice.packets_sent, voice.delivered.get() + 500 * voice.packets_lost),
            (200, 100_000),
            "{voice:?}"
        );
        assert_in_time!(voice.delivered.get() >= 90_000, "{voice:?}");
        assert_in_time!(results[0].duration.as_secs_f64() < 5.0, "{}", results[0].duration);
    });
}

/// A gateway before each of two radios, of which one is half as fast.
const ROAD: &str = r#"
duration = "20s"
stop_when_complete = true
[[link]]
name = "server"
between = ["a", "exchange"]
rate = "1Gbit"
delay = "5ms"
reported = false
[[link]]
name = "feed"
between = ["exchange", "core"]
rate = "50Mbit"
[[link]]
name = "to-1"
between = ["core", "gateway-1"]
rate = "20Mbit"
delay = "2ms"
[[link]]
name = "to-2"
between = ["core", "gateway-2"]
rate = "20Mbit"
delay = "2ms"
[[link]]
name = "radio-1"
between = ["gateway-1", "c"]
rate = "4Mbit"
delay = "10ms"
buffer = "200kB"
[[link]]
name = "radio-2"
between = ["gateway-2", "c"]
rate = "2Mbit"
delay = "10ms"
buffer = "200kB"
[[aggregate]]
name = "file"
flows = ["file-1", "file-2"]
scheduler = "look-ahead"
reconnect = "off"
size = "1500kB"
"#;

/// A stream over both radios, through gateways or not, and a call beside it.
#[test]
fn a_stream_over_two_radios_arrives_whole_with_gateways_and_without() {
    if !can_emulate() {
        return;
    }
    for gateways in [false, true] {
        in_time(|| {
            let mut text = ROAD.to_owned();
            for radio in [1, 2] {
                let gateway =
                    format!("gateway = {{ node = \"gateway-{radio}\", cc = \"reno\", shared = false }}");
                let via = format!(
                    "via = [\"server\", \"feed\", \"to-{radio}\", \"radio-{radio}\"]\ncc = \"cubic\""
                );
                let rest = if gateways { format!("{via}\n{gateway}") } else { via };
                text += &flow(&format!("file-{radio}"), &rest);
            }
            text += &flow(
                "call",
                "via = [\"server\", \"feed\", \"to-1\", \"radio-1\"]\nudp = { rate = \"80kbit\", packet = \"200B\" }",
            );
            let run = &runs(&text)[0];
            let live = suimon_live::run(&run.scenario, &run.labels, &Unobserved).unwrap();
            let simulated = simulated(run);
            let file = &live.aggregates[0];
            assert_eq!((file.name.as_str(), file.delivered.get()), ("file", 1_500_000));
            let taken = |result: &RunResult| {
                result.aggregates[0].completed.map_or(f64::NAN, |at| at.as_nanos() as f64 / 1e9)
            };
            let (of_live, mean) = (taken(&live), simulated.iter().map(taken).sum::<f64>() / 20.0);
            // Behind gateways the simulated stream takes a fifth longer than the kernel's: docs/live.md.
            let least = if gateways { 0.7 } else { 0.9 };
            assert_in_time!((least..1.1).contains(&(of_live / mean)), "{gateways}: {of_live} s, {mean} s");
            let parts: Vec<_> = live.flows[..2].iter().map(|flow| flow.delivered.get()).collect();
            // A copy may still be on its way as the stream completes.
            let all = 1_500_000..=1_500_000 + file.duplicates.get();
            assert!(all.contains(&parts.iter().sum::<u64>()), "{parts:?} {}", file.duplicates);
            assert_in_time!(parts.iter().all(|part| *part > 300_000), "{parts:?}");
            let call = live.flows[2].datagrams.expect("datagrams arrived");
            // 17 ms of the way, and what waits at the first radio.
            assert_in_time!(
                call.packets > 50 && (17.0..450.0).contains(&call.p50.as_millis_f64()),
                "{call:?}"
            );
        });
    }
}

#[test]
fn what_real_hosts_do_not_have_is_refused_by_name() {
    let refused_on =
        |link: &str, flow: &str| match run_refused(&runs(&format!("duration = \"1s\"\n{link}{flow}"))[0]) {
            LiveError::Scenario { key, problem, .. } => (key, problem),
            other => panic!("{other}"),
        };
    let refusal = |flow: &str| refused_on(LINK, flow);
    let (key, problem) = refusal(&flow("f", "cc = \"prague\""));
    assert_eq!(key, "flow.f.cc");
    assert!(problem.contains("accepted:") && problem.contains("reno"), "{problem}");
    let (key, problem) = refusal(&flow("f", "cc = \"cubic/drs\""));
    assert_eq!((key.as_str(), problem.contains("accepted: fixed")), ("flow.f.receiver", true));
    let (key, _) = refusal(&flow("f", "cc = \"reno\"\n[flow.stack]\nheader = \"60B\""));
    assert_eq!(key, "flow.f.stack.header");
    let stream = "[[aggregate]]\nname = \"s\"\nflows = [\"f\"]\n";
    let (key, problem) = refusal(&(flow("f", "cc = \"reno\"") + stream));
    assert_eq!((key.as_str(), problem.contains("accepted: off")), ("aggregate.s.reconnect", true));
    // Links that decide nothing are none: the gateway is to be a host of its own.
    let link = LINK.replace("reported = false", "queue = \"red\"");
    let refusal = |flow: &str| refused_on(&link, flow);
    let gateway = "gateway = { node = \"b\", cc = \"reno\", receiver = \"fixed\" }";
    let (key, problem) = refusal(&flow("f", &format!("cc = \"reno\"\n{gateway}")));
    assert_eq!((key.as_str(), problem.contains("accepted: drs")), ("flow.f.gateway.receiver", true));
    let (key, _) = refusal(&flow("f", "cc = \"reno\"\ngateway = { node = \"b\", cc = \"prague\" }"));
    assert_eq!(key, "flow.f.gateway.cc");
}

fn run_refused(given: &Run) -> LiveError {
    run(&given.scenario, &given.labels, &Unobserved).expect_err("it was to be refused")
}

/// A router with RED, between a host that sends and one that receives.
#[cfg(feature = "bpf")]
const ROUTER: &str = r#"
duration = "4s"
[[window]]
name = "w"
from = "1s"
[[link]]
name = "bottleneck"
between = ["r1", "r2"]
rate = "10Mbit"
delay = "10ms"
buffer = "50kB"
queue = "red:min_th=8kB:max_th=40kB"
[link.reverse]
rate = "unlimited"
[[link]]
name = "near"
between = ["a", "r1"]
rate = "unlimited"
delay = "5ms"
reported = false
[[link]]
name = "far"
between = ["r2", "c"]
rate = "unlimited"
reported = false
"#;

#[cfg(feature = "bpf")]
#[test]
fn a_queue_of_the_kernel_marks_as_the_simulator_s_does() {
    if !suimon_linux::queue::checks().iter().all(|check| check.is_fine) {
        eprintln!("skipped: this machine loads no policies");
        return;
    }
    in_time(|| {
        let flows: String =
            (0..4).map(|nth| flow(&format!("f{nth}"), "cc = \"reno\"\nstack.ecn = true")).collect();
        let run = &runs(&format!("{ROUTER}{flows}"))[0];
        let live = match run_all(std::slice::from_ref(run), &KernelNames::new(), Links::Kernel, &Unobserved) {
            Ok(mut live) => live.remove(0),
            Err(LiveError::Discipline { command, source }) => {
                eprintln!("skipped: this kernel lacks \"{command}\" ({source})");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let simulated = &simulated(run)[0];
        let least = live.flows[0].rtt_min.unwrap().as_millis_f64();
        assert_in_time!((30.0..34.0).contains(&least), "{least}");
        let (window, of_simulator) = (&live.windows[0], &simulated.windows[0]);
        let goodput = window.goodput.as_bps_f64() / of_simulator.goodput.as_bps_f64();
        assert_in_time!((0.95..1.05).contains(&goodput), "{window:?} {of_simulator:?}");
        // A few seconds with four flows: chance is large.
        let queue = window.backlog_mean_bytes / of_simulator.backlog_mean_bytes;
        assert_in_time!((0.6..1.6).contains(&queue), "{window:?} {of_simulator:?}");
        assert_in_time!(window.marked > 10, "{window:?}");
        // Slow start overshoots the queue, which drops all above its threshold.
        let sent_again =
            |result: &RunResult| result.flows.iter().map(|flow| flow.retransmissions).sum::<u64>();
        let (of_kernel, of_simulator) = (sent_again(&live), sent_again(simulated));
        assert_in_time!(
            (of_simulator / 2..of_simulator * 2).contains(&of_kernel),
            "{of_kernel}, {of_simulator}"
        );
        assert!(live.emulated.is_empty());
    });
}

#[cfg(feature = "bpf")]
#[test]
fn links_of_the_kernel_refuse_what_devices_cannot_do() {
    let refusal = |scenario: &str| {
        let runs = runs(scenario);
        match run_all(&runs[..1], &KernelNames::new(), Links::Kernel, &Unobserved).unwrap_err() {
            LiveError::Scenario { key, problem, .. } => (key, problem),
            other => panic!("{other}"),
        }
    };
    let (key, problem) =
        refusal(&format!("{ROUTER}{}", flow("f", "cc = \"reno\"").replace("\"a\"", "\"r1\"")));
    assert!(key == "flow.f.from" && problem.contains("a further link before"), "{key}: {problem}");
    let both = flow("f", "cc = \"reno\"") + &flow("g", "cc = \"reno\"\nextra_delay = \"5ms\"");
    let (key, problem) = refusal(&format!("{ROUTER}{both}"));
    assert!(key == "flow.g.to" && problem.contains("a node for each round-trip time"), "{key}: {problem}");
    let lossy = ROUTER.replace("delay = \"10ms\"", "delay = \"10ms\"\nloss = \"1%\"");
    let (key, problem) = refusal(&format!("{lossy}{}", flow("f", "cc = \"reno\"")));
    assert!(key.starts_with("link.bottleneck") && problem.contains("accepted: rate"), "{key}: {problem}");
}
