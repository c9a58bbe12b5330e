//! Rate controllers of a shaper over recorded links, in front of a bottleneck that keeps flows apart.
//!
//! Bulk flows pass a shaper and then a link that plays a recording, whose queue has a place for each flow and no limit
//! on waiting. A probe never waits there, so that only the bulk flows' own packets tell how long theirs do.

use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;
use suimon_algorithms::estimate::round_trips::{Backward, Forward, RoundTrips};
use suimon_algorithms::queue::FlowId;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_results::{DelayHistogram, RunResult};
use suimon_scenario::trace::read_capacity;
use suimon_scenario::{Capacity, Document, Run};
use suimon_simulator::{TappedKind, TappedPacket, run_tapped};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::error::StudyError;
use crate::simulate::Observer;

/// What is to be simulated over each recording.
#[derive(Debug, Clone)]
pub struct Shaping {
    /// The controllers; beside them no shaper, a fixed rate and the rules of cake-autorate are simulated.
    pub shapers: Vec<String>,
    /// The policy of the shaper's queue.
    pub queue: String,
    /// Bulk flows.
    pub flows: u32,
    /// Their round-trip time without queues.
    pub rtt: Duration,
    /// The length of a run; that of the recording where not given.
    pub duration: Option<Duration>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shaped {
    /// The file of the recording.
    pub trace: String,
    /// The controller, or what stands in its place.
    pub shaper: String,
    /// Payload of the bulk flows that arrived.
    pub goodput_mbps: f64,
    /// That in relation to what the recording lets through, headers included.
    pub utilisation: f64,
    /// How long packets of the bulk flows waited, in both queues together.
    pub delay_p50_ms: f64,
    /// The same, 95th percentile.
    pub delay_p95_ms: f64,
    /// The same, 99th percentile.
    pub delay_p99_ms: f64,
}

/// Rates of a recording, each over a second of it: what a user would measure and set.
#[derive(Debug, Clone, Copy)]
struct Rates {
    low: Rate,
    median: Rate,
    high: Rate,
    mean: Rate,
}

/// Names of what stands in place of a controller.
const NONE: &str = "none";
const FIXED: &str = "fixed";
const CAKE_AUTORATE: &str = "cake-autorate";
/// When measuring begins.
const WARMUP: Duration = Duration::from_secs(5);

/// Simulates every combination; results come in the order of `traces`, and within one of the shapers.
///
/// # Errors
/// A recording or an algorithm is refused.
pub fn simulate_shaping(
    traces: &[impl AsRef<Path>],
    shaping: &Shaping,
    observer: &dyn Observer,
) -> Result<Vec<Shaped>, StudyError> {
    for shaper in &shaping.shapers {
        AlgorithmSpec::parse(Role::Shaper, shaper)
            .map_err(|error| StudyError::input("shaper", error.to_string()))?;
    }
    let mut runs = Vec::new();
    for trace in traces {
        let trace = trace.as_ref();
        let (rates, length) = rates(trace, &read_capacity(trace)?)?;
        let length = shaping.duration.unwrap_or(length).max(WARMUP * 2);
        let own = shaping.shapers.iter().map(String::as_str);
        for shaper in [NONE, FIXED, CAKE_AUTORATE].into_iter().chain(own) {
            let text = scenario(trace, shaper, shaping, rates, length);
            let run = Document::parse(&text, "shape.toml")?.runs()?.remove(0);
            runs.push((trace, shaper, rates, run));
        }
    }
    let one = |(trace, shaper, rates, run): (&Path, &str, Rates, Run)| {
        let (result, delays) = measure(&run, shaping.rtt);
        observer.advance(run.scenario.duration);
        row(trace, shaper, rates, &result, &delays)
    };
    Ok(runs.into_par_iter().map(one).collect())
}

/// How much simulated time an observer will be told of.
///
/// # Errors
/// A recording is refused.
pub fn duration_of_shaping(traces: &[impl AsRef<Path>], shaping: &Shaping) -> Result<Duration, StudyError> {
    let mut sum = Duration::ZERO;
    for trace in traces {
        let (_, length) = rates(trace.as_ref(), &read_capacity(trace.as_ref())?)?;
        sum += shaping.duration.unwrap_or(length).max(WARMUP * 2) * (3 + shaping.shapers.len() as u64);
    }
    Ok(sum)
}

fn rates(trace: &Path, capacity: &Capacity) -> Result<(Rates, Duration), StudyError> {
    let Capacity::Opportunities { times, period } = capacity else {
        let problem = "this is a schedule of rates; accepted: a recording in Mahimahi's format";
        return Err(StudyError::input(trace.display().to_string(), problem));
    };
    let seconds = (period.as_nanos() / 1_000_000_000).max(1) as usize;
    let mut counts = vec![0_u64; seconds];
    for time in times.iter() {
        if let Some(count) = counts.get_mut((time.as_nanos() / 1_000_000_000) as usize) {
            *count += 1;
        }
    }
    counts.sort_unstable();
    let at = |share: f64| {
        let count = counts[((seconds - 1) as f64 * share) as usize];
        Rate::of(Capacity::OPPORTUNITY * count, Duration::from_secs(1)).max(LOWEST)
    };
    let mean = Rate::of(Capacity::OPPORTUNITY * times.len() as u64, *period);
    Ok((Rates { low: at(0.05), median: at(0.5), high: at(0.95), mean }, *period))
}

/// No shaper is set lower.
const LOWEST: Rate = Rate::from_bps(100_000);

fn scenario(trace: &Path, shaper: &str, shaping: &Shaping, rates: Rates, length: Duration) -> String {
    let Rates { low, median, high, .. } = rates;
    let (capacity, queue) = match shaper {
        NONE => ("rate = \"unlimited\"".to_owned(), "droptail"),
        FIXED => (format!("rate = \"{}bit\"", median.as_bps()), shaping.queue.as_str()),
        CAKE_AUTORATE => {
            let [low, median, high] = [low, median, high].map(Rate::as_bps);
            let settings = format!("cake-autorate:min={low}bit:base={median}bit:max={high}bit");
            (format!("shaper = \"{settings}\""), "cake")
        }
        other => (format!("shaper = \"{other}\""), shaping.queue.as_str()),
    };
    let probes = if shaper == CAKE_AUTORATE { PROBES } else { "" };
    let (flows, rtt_ms) = (shaping.flows, shaping.rtt.as_millis_f64());
    format!(
        "name = \"shape\"\nduration = \"{seconds}s\"\nwarmup = \"5s\"\nrecord_interval = \"off\"\n\
         [[link]]\nname = \"access\"\nbetween = [\"senders\", \"router\"]\nrate = \"1Gbit\"\ndelay = \"1ms\"\n\
         [[link]]\nname = \"shaper\"\nbetween = [\"router\", \"modem\"]\n{capacity}\nqueue = \"{queue}\"\n\
         buffer = \"1MB\"\n[link.reverse]\nrate = \"unlimited\"\n\
         [[link]]\nname = \"bottleneck\"\nbetween = [\"modem\", \"net\"]\ntrace = {trace:?}\ndelay = \"{delay}ms\"\n\
         queue = \"fq-codel:target=1000s:interval=1000s\"\nbuffer = \"4MB\"\n[link.reverse]\nrate = \"unlimited\"\n\
         [[flow]]\nname = \"bulk\"\ncount = {flows}\nfrom = \"senders\"\nto = \"net\"\ncc = \"cubic-linux\"\n\
         profile = \"linux-6\"\nwindow = \"4MB\"\nstart = [\"0s\", \"1s\"]\n{probes}",
        seconds = length.as_secs_f64(),
        delay = rtt_ms / 2.0 - 1.0,
    )
}

/// Six reflectors, each asked every 0.3 s (cake-autorate's `defaults.sh`).
const PROBES: &str = "[[flow]]\nname = \"probe\"\nfrom = \"router\"\nto = \"net\"\n\
                      udp = { rate = \"10240bit\", packet = \"64B\", echo = true }\n";

/// Runs it, and measures how long each packet of the bulk flows waited on its way.
fn measure(run: &Run, rtt: Duration) -> (RunResult, DelayHistogram) {
    let mut delays = DelayHistogram::default();
    let mut trips = RoundTrips::new(4_096);
    let result = run_tapped(&run.scenario, &mut |packet| {
        let measured = on_tapped(&mut trips, packet);
        if packet.time >= Instant::ZERO + WARMUP {
            measured.into_iter().for_each(|measured| delays.record(measured.saturating_sub(rtt)));
        }
    });
    (result, delays)
}

/// Follows a packet at the sender. Gives a round-trip time where it tells one.
fn on_tapped(trips: &mut RoundTrips, packet: &TappedPacket) -> Option<Duration> {
    let &TappedPacket { time: now, seq, payload, .. } = packet;
    let flow = FlowId(packet.flow);
    match packet.kind {
        TappedKind::Data => {
            let (size, opens_connection) = (Bytes::new(u64::from(payload)), false);
            let seq = seq as u32;
            let resets = false;
            trips.on_forward(&Forward {
                now,
                flow,
                size,
                seq,
                payload,
                opens_connection,
                resets,
                ts_ecr: None,
            });
            None
        }
        TappedKind::Ack => {
            let sacked = packet.sack.iter().flatten().map(|(_, end)| *end as u32).max();
            trips.on_backward(&Backward { now, flow, ack: seq as u32, sacked, resets: false, ts_val: None })
        }
        _ => None,
    }
}

/// What the controllers miss of the bar: beside a fixed rate and the rules of cake-autorate, half of the 95th percentile of
/// the waiting time at 95 % of the goodput. Gives a sentence for each miss.
#[must_use]
pub fn misses(rows: &[Shaped]) -> Vec<String> {
    let rivals = |row: &Shaped| [FIXED, CAKE_AUTORATE].contains(&row.shaper.as_str());
    let mut misses = Vec::new();
    for row in rows.iter().filter(|row| row.shaper != NONE && !rivals(row)) {
        for rival in rows.iter().filter(|other| other.trace == row.trace && rivals(other)) {
            let Shaped { trace, shaper, .. } = row;
            if row.goodput_mbps < GOODPUT_SHARE * rival.goodput_mbps {
                let share = 100.0 * row.goodput_mbps / rival.goodput_mbps;
                misses.push(format!("{trace}: {shaper} has {share:.1} % of the goodput of {}", rival.shaper));
            }
            if row.delay_p95_ms > DELAY_SHARE * rival.delay_p95_ms {
                let share = 100.0 * row.delay_p95_ms / rival.delay_p95_ms;
                misses
                    .push(format!("{trace}: {shaper} has {share:.0} % of the p95 wait of {}", rival.shaper));
            }
        }
    }
    misses
}

/// The bar: so much of a rival's goodput, at so much of the 95th percentile of its waiting time.
const GOODPUT_SHARE: f64 = 0.95;
const DELAY_SHARE: f64 = 0.5;

fn row(trace: &Path, shaper: &str, rates: Rates, result: &RunResult, delays: &DelayHistogram) -> Shaped {
    let bulk = result.flows.iter().filter(|flow| flow.datagrams.is_none());
    let goodput = bulk.map(|flow| flow.goodput.as_bps_f64()).sum::<f64>();
    let sent = result.queues.iter().find(|queue| queue.name == "bottleneck");
    let ms = |share| delays.quantile(share).as_millis_f64();
    Shaped {
        trace: trace.file_name().unwrap_or(trace.as_os_str()).to_string_lossy().into_owned(),
        shaper: shaper.to_owned(),
        goodput_mbps: goodput / 1e6,
        utilisation: sent.and_then(|queue| queue.utilisation).unwrap_or(goodput / rates.mean.as_bps_f64()),
        delay_p50_ms: ms(0.5),
        delay_p95_ms: ms(0.95),
        delay_p99_ms: ms(0.99),
    }
}
