//! The arithmetic of the open mode in `bpf/fs_at_open.h`, compiled for this machine, against the Rust one: the same decisions,
//! whatever comes. Needs a C compiler, not root.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use suimon_linux::congestion_trace::replay;

const MSS: u64 = 1_448;
/// The kernel's number for fast recovery, in which some acknowledgements come; zero is none.
const RECOVERY: u8 = 3;
/// The program's number for the mode in which it competes.
const COMPETING: usize = 4;
/// That for the mode in which it neither drains nor competes.
const STEADY: u64 = 2;

/// Some seconds in which the queue stays or grows, and the flow and the losses stay as they are.
#[derive(Debug, Clone)]
struct Phase {
    acks: usize,
    gap_us: u64,
    rtt_us: u64,
    /// By so many percent it is longer in the end.
    growth: u64,
    /// Percent of the round trip that is left where others hold the queue while the flow drains.
    left: u64,
    /// Segments in flight.
    flight: u64,
    /// Of a thousand acknowledgements, how many meet another event than themselves.
    events: u64,
    /// The longest wait of acknowledgements on their way.
    wait_us: u64,
    /// The flow has the link for itself: the queue is what its own window makes it, at a rate that varies.
    alone: bool,
    seed: u64,
}

fn phases() -> impl Strategy<Value = Vec<Phase>> {
    let phase = (
        50..800_usize,
        prop_oneof![500..20_000_u64, 20_000..150_000_u64],
        prop_oneof![20_000..60_000_u64, 60_000..400_000_u64, 1..30_000_000_u64],
        prop_oneof![Just(0_u64), 1..400_u64],
        prop_oneof![Just(100_u64), 60..100_u64],
        1..200_u64,
        prop_oneof![3 => Just(0_u64), 1 => 1..100_u64],
        prop_oneof![Just(0_u64), 1..300_000_u64],
        any::<u64>(),
    );
    let phase = phase.prop_map(|(acks, gap_us, rtt_us, growth, left, flight, events, wait_us, seed)| Phase {
        acks,
        gap_us,
        rtt_us,
        growth,
        left,
        flight,
        events,
        wait_us,
        alone: false,
        seed,
    });
    prop::collection::vec(phase, 1..12)
}

/// A flow whose slow start ends with some segments, and others that then hold a queue until it has next to none.
fn squeezed() -> impl Strategy<Value = Vec<Phase>> {
    let alone = (4..60_u64, 50..400_u64, any::<u64>());
    let beside = (20_000..60_000_u64, 80_000..200_000_u64, 76..=100_u64, any::<u64>());
    (alone, beside).prop_map(|((flight, growth, seed), (gap_us, rtt_us, left, later))| {
        let alone = Phase {
            acks: 200,
            gap_us: 5_000,
            rtt_us: 40_000,
            growth,
            left: 100,
            flight,
            events: 0,
            wait_us: 0,
            alone: false,
            seed,
        };
        let beside =
            Phase { acks: 800, gap_us, rtt_us, growth: 0, left, flight: 2, seed: later, ..alone.clone() };
        vec![alone, beside]
    })
}

/// A flow on a link of its own, now and then with losses and with acknowledgements that wait.
fn alone() -> impl Strategy<Value = Vec<Phase>> {
    let phase = (200..3_000_u64, 10_000..60_000_u64, 8..60_u64, any::<u64>()).prop_flat_map(
        |(gap_us, rtt_us, flight, seed)| {
            let events = prop_oneof![3 => Just(0_u64), 1 => 1..4_u64];
            let wait_us = prop_oneof![3 => Just(0_u64), 1 => 1..3_000_u64];
            (events, wait_us).prop_map(move |(events, wait_us)| Phase {
                acks: 6_000,
                gap_us,
                rtt_us,
                growth: 0,
                left: 100,
                flight,
                events,
                wait_us,
                alone: true,
                seed,
            })
        },
    );
    prop::collection::vec(phase, 1..3)
}

/// A flow that loses while the queue is empty, then loses nothing, and then meets a queue or a few losses.
fn losing() -> impl Strategy<Value = Vec<Phase>> {
    // Over the longer path a queue may be short beside the path, and yet be over two milliseconds and over a segment's time.
    let path = (500..2_000_u64, prop_oneof![Just(40_000_u64), Just(100_000_u64)]);
    let before = (20..60_u64, 10..60_u64, 2_000..16_000_u64, any::<u64>());
    let after = (0..4_u64, 0..100_u64, 1_000..4_000_usize, any::<u64>());
    (path, before, after).prop_map(
        |((gap_us, path_us), (flight, events, calm_us, seed), (fewer, queue, acks, later))| {
            let loses = Phase {
                // A trial begins after five seconds, and its last ten rounds come later.
                acks: 5_200_000 / gap_us as usize,
                gap_us,
                rtt_us: path_us,
                growth: 0,
                left: 99,
                flight,
                events,
                wait_us: 0,
                alone: false,
                seed,
            };
            let calm = Phase { acks: 3_000, gap_us: calm_us, events: 0, seed: later, ..loses.clone() };
            let rtt_us = path_us + path_us / 8 * queue / 100;
            let last = Phase { acks, rtt_us, events: fewer, ..loses.clone() };
            vec![loses, calm, last]
        },
    )
}

/// A link that only this flow uses.
struct OwnLink {
    /// When the last segments of a window were acknowledged.
    acked: VecDeque<u64>,
    /// The time that a segment takes now.
    takes_us: u64,
}

impl OwnLink {
    /// When the next segment is acknowledged, and its round trip. It leaves as the one a window before it is acknowledged.
    fn next(&mut self, phase: &Phase, now: u64, draws: &mut Draws) -> (u64, u64) {
        if draws.one_in(20) {
            self.takes_us = phase.gap_us / 4 + draws.below(4 * phase.gap_us);
        }
        let is_full = self.acked.len() >= phase.flight as usize;
        let left = if is_full { self.acked.pop_front() } else { None }.unwrap_or(now);
        let at = (left + phase.rtt_us).max(now + self.takes_us);
        self.acked.push_back(at);
        (at, at - left)
    }
}

/// Numbers that look random (Steele, Lea, Flood: SplitMix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most.max(1)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// The peer's clock.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// It shows this at first.
    first: u32,
    /// Time of a tick; zero for no clock.
    tick_us: u64,
}

/// Most tick once in a millisecond; those that do so in four or ten, or in one microsecond, are told by it.
fn clocks() -> impl Strategy<Value = Clock> {
    let tick = prop_oneof![4 => Just(1_000_u64), 1 => Just(0_u64), 1 => Just(4_000_u64), 1 => Just(10_000_u64), 1 => Just(1_u64)];
    (prop_oneof![1..u32::MAX, u32::MAX - 100..u32::MAX], tick)
        .prop_map(|(first, tick_us)| Clock { first, tick_us })
}

/// The events of `phases` as the program reads them.
fn script(phases: &[Phase], cwnd: u64, handshake_us: u64, clock: Clock) -> String {
    let first = if clock.tick_us > 0 { clock.first } else { 0 };
    let mut text = format!("s {cwnd} {handshake_us} {first}\n");
    let (mut now, mut state) = (0_u64, 0);
    for phase in phases {
        let mut draws = Draws(phase.seed);
        let mut link = OwnLink { acked: VecDeque::new(), takes_us: phase.gap_us };
        for nth in 0..phase.acks as u64 {
            let mut own_rtt = None;
            if phase.alone {
                let (at, rtt) = link.next(phase, now, &mut draws);
                (now, own_rtt) = (at, Some(rtt));
            } else {
                now += draws.below(2 * phase.gap_us);
            }
            // Now and then as little as a drain leaves.
            let most = if draws.one_in(8) { 1 } else { phase.flight };
            let flight = (most + draws.below(3)) * MSS;
            let kernel = if draws.one_in(50) { 1 + draws.below(100) } else { 0 };
            if draws.below(1_000) < phase.events {
                let kind = ["l", "l", "l", "m", "t"][draws.below(5) as usize];
                let (ssthresh, below) = (2 + draws.below(0x7fff_fffd), 2 + draws.below(500));
                writeln!(text, "{kind} {now} {flight} {kernel} {ssthresh} {below}").unwrap();
            }
            if phase.events > 0 && draws.one_in(500) {
                writeln!(text, "p {now}").unwrap();
            }
            // Most often the whole queue, at times a part, as in a drain, or a short one, where others do not hold it.
            let queued = phase.rtt_us + phase.rtt_us * phase.growth * nth / (100 * phase.acks as u64);
            let rtt = own_rtt.unwrap_or_else(|| match draws.below(400) {
                0 if phase.left == 100 => queued / 2,
                1..10 => 0,
                10..18 => queued * phase.left / 100,
                _ => queued + draws.below(1 + queued / 50),
            });
            let wait = draws.below(1 + phase.wait_us);
            let rtt = if rtt > 0 { rtt + wait } else { 0 };
            let ticks = now.saturating_sub(wait).checked_div(clock.tick_us);
            let ts_val = ticks.map_or(0, |ticks| clock.first.wrapping_add(ticks as u32));
            let news = if draws.one_in(10) { 0 } else { draws.below(3) * MSS };
            let delivered = if draws.one_in(10) { draws.below(5) * MSS } else { news };
            let lost = if phase.events > 0 && draws.one_in(20) { draws.below(4) * MSS } else { 0 };
            let (prior, outstanding) = (flight + delivered + lost, flight + draws.below(3) * MSS);
            let limited = u8::from(draws.one_in(400));
            if draws.one_in(30) {
                state = RECOVERY - state;
            }
            let snd_wnd = draws.below(1 << 22);
            let below = if draws.one_in(2) { 0 } else { 1 + draws.below(1_000) };
            writeln!(
                text,
                "a {now} {rtt} {news} {delivered} {flight} {prior} {outstanding} {limited} {kernel} {below} {state} {ts_val} {snd_wnd}"
            )
            .unwrap();
        }
    }
    text
}

/// The C program, compiled into `folder`; none without a compiler.
fn compiled(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("fs_at_open_host");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/test/fs_at_open_host.c");
    let flags = ["-std=gnu11", "-O2", "-Wall", "-Werror", "-Wno-unused-parameter", "-o"];
    let done = Command::new("cc").args(flags).arg(&program).arg(&source).status();
    if done.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        eprintln!("skipped: no C compiler");
        return None;
    }
    assert!(done.unwrap().success());
    Some(program)
}

/// The trace that the C one writes.
fn trace(program: &Path, script: String) -> String {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Both decide the same over `cases` connections; gives the sum of what `count` finds in their traces.
fn decide_the_same<const N: usize>(
    cases: u32,
    phases: impl Strategy<Value = Vec<Phase>>,
    count: impl Fn(&str) -> [usize; N],
) -> [usize; N] {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else { return [usize::MAX; N] };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut met = [0_usize; N];
    let seen = std::cell::RefCell::new(&mut met);
    let handshake = prop_oneof![Just(0_u64), 1..200_000_u64];
    proptest!(config, |(phases in phases, cwnd in 1..100_u64, handshake in handshake, clock in clocks())| {
        let trace = trace(&program, script(&phases, cwnd, handshake, clock));
        let replayed = replay(trace.as_bytes()).unwrap();
        prop_assert_eq!(replayed.first, None);
        prop_assert_eq!(replayed.events, trace.lines().count());
        for (met, more) in seen.borrow_mut().iter_mut().zip(count(&trace)) {
            *met += more;
        }
    });
    met
}

/// The events that each mode met, by the program's numbers, which begin at one.
fn of_modes(trace: &str) -> [usize; 5] {
    [1, 2, 3, 4, 5].map(|mode| trace.matches(&format!("\"mode\":{mode},")).count())
}

/// The mode and the window with each acknowledgement.
fn steps(trace: &str) -> Vec<(u64, u64)> {
    let value = |line: &str, key: &str| -> u64 {
        let from = line.find(key).unwrap() + key.len();
        line[from..].split(',').next().unwrap().parse().unwrap()
    };
    let acks = trace.lines().filter(|line| line.contains("\"event\":\"ack\""));
    acks.map(|line| (value(line, "\"mode\":"), value(line, "\"target_bytes\":"))).collect()
}

/// Where the window falls with two acknowledgements in a row, FS-AT's limit rules: all else moves it down once a round.
fn of_falls(trace: &str) -> [usize; 1] {
    let steps = steps(trace);
    let falls = |two: &[(u64, u64)]| two[0].0 == STEADY && two[1].0 == STEADY && two[1].1 < two[0].1;
    [steps.windows(3).filter(|three| falls(&three[..2]) && falls(&three[1..])).count()]
}

/// Where the window falls by a sixteenth, a trial goes on.
fn of_yields(trace: &str) -> [usize; 1] {
    let steps = steps(trace);
    let yields =
        |two: &[(u64, u64)]| two[0].0 == STEADY && two[1].0 == STEADY && two[1].1 == two[0].1 - two[0].1 / 16;
    [steps.windows(2).filter(|two| yields(two)).count()]
}

#[test]
fn the_kernels_open_mode_decides_as_the_rust_one_in_every_mode() {
    let met = decide_the_same(300, phases(), of_modes);
    assert!(met.iter().all(|count| *count > 1_000), "events in each mode: {met:?}");
}

#[test]
fn the_kernels_open_mode_decides_as_the_rust_one_where_others_take_the_window() {
    let competing = decide_the_same(200, squeezed(), of_modes)[COMPETING - 1];
    assert!(competing > 1_000, "events of competition: {competing}");
}

#[test]
fn the_kernels_open_mode_decides_as_the_rust_one_where_a_trial_goes_on() {
    let [yields] = decide_the_same(60, losing(), of_yields);
    assert!(yields > 20, "rounds in which the flow gives way: {yields}");
}

#[test]
fn the_kernels_open_mode_decides_as_the_rust_one_where_the_flow_is_alone() {
    let [falls] = decide_the_same(40, alone(), of_falls);
    assert!(falls > 1_000, "acknowledgements with which FS-AT's limit fell: {falls}");
}

#[test]
fn a_decision_that_differs_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else { return };
    let phase = Phase {
        acks: 50,
        gap_us: 5_000,
        rtt_us: 40_000,
        growth: 0,
        left: 100,
        flight: 20,
        events: 0,
        wait_us: 0,
        alone: false,
        seed: 1,
    };
    let clock = Clock { first: 1, tick_us: 1_000 };
    let whole = trace(&program, script(&[phase], 10, 40_000, clock));
    let mut lines: Vec<_> = whole.lines().map(str::to_owned).collect();
    let at = lines[30].find("\"decided\":").unwrap() + "\"decided\":".len();
    lines[30].insert(at, '9');
    let told = replay(lines.join("\n").as_bytes()).unwrap();
    assert_eq!((told.differ, told.events), (1, 51));
    let text = told.first.unwrap().to_string();
    assert!(text.starts_with("connection 1, event 30: the decision in segments is 9"), "{text}");
    // Behind an event that is missing, nothing can be judged.
    lines.remove(20);
    let cut = replay(lines.join("\n").as_bytes()).unwrap();
    assert_eq!((cut.differ, cut.events, cut.left_out), (0, 20, 30));
    // From the middle on.
    let late = replay(lines[5..].join("\n").as_bytes()).unwrap();
    assert_eq!((late.events, late.left_out), (0, 45));
}

#[test]
fn what_no_program_wrote_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else { return };
    let line = trace(&program, "s 10 40000 0\n".to_owned());
    for (text, problem) in [
        ("{}".to_owned(), "line 1: missing field"),
        (
            format!("{line}{}", line.replace("\"mode\":1", "\"mode\":0")),
            "line 2: this is no event of fs-at-open",
        ),
        (line.replace("\"mss\":1448", "\"mss\":0"), "line 1: mss: 0; accepted: 1 to 65535"),
    ] {
        let error = replay(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
