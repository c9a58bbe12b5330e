//! Policies in integers beside their namesakes.

use alloc::collections::VecDeque;
use std::collections::BTreeMap;

use suimon_units::{Duration, Instant};

use super::*;
use crate::queue::{Backlog, FlowId};
use crate::registry::{Queue, build_queue};

const RATE: Rate = Rate::from_bps(10_000_000);
const BUFFER: Bytes = Bytes::new(150_000);

/// A queue whose senders do not slow down: what both policies see is the same, whatever their verdicts.
struct Line {
    now: Instant,
    waiting: VecDeque<(Instant, Bytes)>,
    random: Random,
    arrivals: u64,
}

impl Line {
    fn new() -> Self {
        Self {
            now: Instant::ZERO + Duration::from_secs(1),
            waiting: VecDeque::new(),
            random: Random::new(7),
            arrivals: 0,
        }
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.waiting.iter().fold(Bytes::ZERO, |sum, (_, size)| sum + *size);
        Backlog { packets: self.waiting.len() as u64, bytes }
    }

    /// The next arrival, and the departures before it with what is left then.
    fn next(&mut self, load: f64) -> (Arrival, Vec<(Instant, Bytes, Backlog)>) {
        let size = Bytes::new(if self.random.below(4) == 0 { 576 } else { 1_500 });
        let mean = RATE.transmission_time(Bytes::new(1_269)).mul_f64(1.0 / load);
        self.now += mean.mul_f64(self.random.below(2_000) as f64 / 1e3);
        let mut departures = Vec::new();
        while let Some((begins, size)) = self.waiting.front().copied()
            && begins <= self.now
        {
            self.waiting.pop_front();
            departures.push((begins, size, self.backlog()));
        }
        // Flow 1 sends half of all.
        let flow = FlowId(if self.random.below(2) == 0 { 1 } else { 2 + self.random.below(9) as u32 });
        let backlog = self.backlog();
        self.arrivals += 1;
        let opens_connection = self.arrivals.is_multiple_of(50);
        let empty = Arrival::at_empty_queue(self.now);
        let arrival = Arrival { flow, size, backlog, opens_connection, ecn: Ecn::Capable, ..empty };
        (arrival, departures)
    }

    fn join(&mut self, free_at: &mut Instant, size: Bytes) {
        let begins = self.now.max(*free_at);
        *free_at = begins + RATE.transmission_time(size);
        self.waiting.push_back((begins, size));
    }
}

/// Inner values by name.
type Inner = BTreeMap<&'static str, f64>;

#[derive(Default)]
struct Values(Inner);

impl Probe for Values {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.insert(name, value);
    }
}

fn values(policy: &dyn ArrivalPolicy) -> Inner {
    let mut values = Values::default();
    policy.probe(&mut values);
    values.0
}

fn integer(text: &str) -> Box<dyn ArrivalPolicy> {
    let (program, settings) = Program::read(text, RATE, BUFFER, 5).unwrap();
    program.policy(&settings).unwrap()
}

fn float(text: &str) -> Box<dyn ArrivalPolicy> {
    let buffer = crate::queue::Buffer::Bytes(BUFFER);
    let spec = AlgorithmSpec::parse(Role::Queue, text).unwrap();
    let random = crate::random::RandomStream::new(5, "queue");
    let queue = build_queue::<crate::queue::testing::TestPacket>(&spec, buffer, random);
    let Queue::Policy(mut policy) = queue else { panic!("{text} is no policy") };
    policy.on_link_rate(Instant::ZERO, RATE);
    policy
}

/// Marked, or dropped while there was room.
fn is_chosen(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Mark | Verdict::Drop(DropReason::Early))
}

/// Packets that each chose over the same packets at loads that let the queue fill and drain; and their inner values at the end of
/// each load.
fn beside(one: &mut dyn ArrivalPolicy, other: &mut dyn ArrivalPolicy) -> ([u64; 2], Vec<[Inner; 2]>) {
    let mut line = Line::new();
    let mut free_at = Instant::ZERO;
    let (mut marks, mut seen) = ([0, 0], Vec::new());
    for load in [0.5, 1.1, 0.97, 1.05, 0.6, 1.08, 0.99] {
        for _ in 0..3_000 {
            let (arrival, departures) = line.next(load);
            for (now, size, left) in departures {
                one.on_departure(now, size, left);
                other.on_departure(now, size, left);
            }
            marks[0] += u64::from(is_chosen(one.judge(&arrival)));
            marks[1] += u64::from(is_chosen(other.judge(&arrival)));
            if (arrival.backlog.bytes + arrival.size) <= BUFFER {
                line.join(&mut free_at, arrival.size);
            }
        }
        seen.push([values(one), values(other)]);
    }
    (marks, seen)
}

#[test]
fn policies_in_integers_estimate_and_mark_as_their_namesakes_do() {
    for (text, of_float, inner, tolerance) in [
        ("rtt-aqm:target=30kB", ":mark=arrival", "mark_probability", 0.03),
        ("rtt-aqm:target=30kB", ":mark=arrival", "flow_count", 0.15),
        ("rtt-aqm:target=30kB:rtt=40ms", ":mark=arrival", "representative_rtt_ms", 1e-9),
        ("red", "", "average_bytes", 0.05),
        ("ared:w_q=0.002", "", "max_p", 0.02),
        ("pie", "", "drop_probability", 0.02),
        ("rem:gamma=0.05", ":mark=arrival", "mark_probability", 0.02),
        ("dpd-qt", "", "heaviest_share", 0.03),
        ("even", "", "heaviest_share", 0.03),
        ("shyu", "", "mean_rtt_ms", 0.01),
    ] {
        let (marks, seen) = beside(&mut *integer(text), &mut *float(&format!("{text}{of_float}")));
        for values in &seen {
            let [ours, theirs] = values.each_ref().map(|values| values[inner]);
            let scale = match inner {
                "mark_probability" | "drop_probability" => 1.0,
                "average_bytes" => theirs.max(5_000.0),
                _ => theirs,
            };
            assert!((ours - theirs).abs() <= tolerance * scale, "{text}: {inner} {ours} {theirs}");
        }
        let [ours, theirs] = marks.map(|marks| marks as f64);
        assert!(theirs > 100.0 && (ours / theirs - 1.0).abs() < 0.1, "{text}: chosen {ours} {theirs}");
    }
}

#[test]
fn one_seed_gives_the_same_verdicts_twice() {
    for program in PROGRAMS {
        let (marks, _) = beside(&mut *integer(program.name), &mut *integer(program.name));
        assert_eq!(marks[0], marks[1], "{}", program.name);
    }
}

#[test]
fn a_packet_that_finds_no_room_is_dropped() {
    let mut policy = integer("rtt-aqm");
    for (bytes, fits) in [(148_500, true), (148_501, false)] {
        let now = Instant::ZERO + Duration::from_secs(1);
        let backlog = Backlog { packets: 99, bytes: Bytes::new(bytes) };
        let verdict =
            policy.judge(&Arrival { size: Bytes::new(1_500), backlog, ..Arrival::at_empty_queue(now) });
        assert_eq!(verdict != Verdict::Drop(DropReason::Overflow), fits, "{bytes}");
    }
}

/// Any number between the limits, mostly near one of them.
fn within((least, most): (u64, u64), random: &mut Random) -> u64 {
    let offset = match random.below(4) {
        0 => 0,
        1 => most - least,
        _ => ((u128::from(most - least) * u128::from(random.bits())) >> (32 + random.below(32))) as u64,
    };
    least + offset
}

/// Products that need more than 64 bits, and divisions by zero, end the test.
#[test]
fn any_settings_within_the_limits_judge_any_packets() {
    let mut random = Random::new(3);
    for round in 0..400 {
        let program = PROGRAMS[round % PROGRAMS.len()];
        let settings = Settings {
            bytes_per_second: within((1, MAX_RATE), &mut random),
            buffer_bytes: within((0, MAX_BUFFER), &mut random),
            seed: random.bits(),
            words: program.limits.map(|limits| within(limits, &mut random)),
        };
        let mut policy = program.policy(&settings).unwrap();
        let mut now = within((0, MAX_NOW_NS / 2), &mut random);
        for _ in 0..500 {
            now += within((0, MAX_NOW_NS >> 12), &mut random) >> random.below(48);
            let bytes = Bytes::new(within((0, MAX_BACKLOG), &mut random) >> random.below(16));
            let backlog = Backlog { packets: bytes.get().div_ceil(1_500), bytes };
            policy.judge(&Arrival {
                flow: FlowId(random.below(5) as u32),
                size: Bytes::new(within((1, MAX_SIZE), &mut random)),
                backlog,
                opens_connection: random.below(3) == 0,
                ..Arrival::at_empty_queue(Instant::from_nanos(now))
            });
        }
    }
}

#[test]
fn settings_beyond_the_limits_are_refused() {
    for program in PROGRAMS {
        let (_, settings) = Program::read(program.name, RATE, BUFFER, 1).unwrap();
        for (nth, (least, most)) in program.limits.into_iter().enumerate() {
            for beyond in least.checked_sub(1).into_iter().chain(most.checked_add(1)) {
                let mut settings = settings.clone();
                settings.words[nth] = beyond;
                let error = program.policy(&settings).unwrap_err().to_string();
                assert!(error.contains(&alloc::format!("word {nth}: {beyond}")), "{error}");
            }
        }
        let error = program.policy(&Settings { bytes_per_second: 0, ..settings }).unwrap_err().to_string();
        assert!(error.contains("rate: 0") && error.contains("accepted: 1 to"), "{error}");
    }
}

#[test]
fn what_has_no_program_is_refused_with_what_has() {
    for (text, problem) in [
        (
            "codel",
            "\"codel\" has no program for the kernel; accepted: rtt-aqm, dpd-qt, even, red, ared, pie, rem, sred, shyu",
        ),
        ("rtt-aqm:zombies=5", "the program of rtt-aqm takes no \"zombies\"; accepted: target, initial_rtt"),
        ("red:max_p=2", "max_p = \"2\" is not accepted"),
    ] {
        let error = Program::read(text, RATE, BUFFER, 1).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
