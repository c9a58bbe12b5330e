//! The sketch of heavy flows against exact counts: with `--nocapture` it prints how often they agree.

use std::collections::{HashMap, VecDeque};

use suimon_algorithms::estimate::heaviest::Heaviest;
use suimon_algorithms::queue::FlowId;
use suimon_algorithms::random::RandomStream;
use suimon_units::{Bytes, Duration, Instant};

const WINDOW: Duration = Duration::from_millis(80);
/// Between packets: 500 Mbit/s of 1500 bytes.
const GAP: Duration = Duration::from_micros(24);

/// Exact counts over a window with a hard edge.
#[derive(Default)]
struct Exact {
    bytes: HashMap<FlowId, u64>,
    passed: VecDeque<(Instant, FlowId, u64)>,
}

impl Exact {
    fn on_packet(&mut self, now: Instant, flow: FlowId, size: Bytes) {
        *self.bytes.entry(flow).or_default() += size.get();
        self.passed.push_back((now, flow, size.get()));
        while self.passed.front().is_some_and(|(at, ..)| *at + WINDOW < now) {
            let (_, flow, size) = self.passed.pop_front().expect("there is a front");
            *self.bytes.get_mut(&flow).expect("it was counted") -= size;
        }
    }

    fn is_heaviest(&self, flow: Option<FlowId>) -> bool {
        let most = self.bytes.values().max();
        flow.is_some_and(|flow| self.bytes.get(&flow) == most)
    }
}

/// In which share of decisions, one every 503 packets, the sketch names the flow that exact counts do;
/// `flow` draws the flow of each packet.
fn agreement(packets: u64, mut flow: impl FnMut(u64, &mut RandomStream) -> u32) -> f64 {
    let mut random = RandomStream::new(1, "mix");
    let (mut sketch, mut exact) = (<Heaviest>::new(WINDOW), Exact::default());
    let (mut decisions, mut right) = (0.0, 0.0);
    for nth in 0..packets {
        let now = Instant::ZERO + GAP * nth;
        let flow = FlowId(flow(nth, &mut random));
        if now > Instant::ZERO + WINDOW && nth % 503 == 0 {
            decisions += 1.0;
            right += f64::from(u8::from(exact.is_heaviest(sketch.flow())));
        }
        let size = Bytes::new(1_500);
        sketch.on_packet(now, flow, size);
        exact.on_packet(now, flow, size);
    }
    right / decisions
}

const FLOWS: u64 = 10_000;
const PACKETS: u64 = 400_000;

/// Draws flow `k` of ten thousand with probability proportional to `1 / k^exponent`.
fn zipf(exponent: f64) -> impl FnMut(u64, &mut RandomStream) -> u32 {
    let mut sum = 0.0;
    let shares: Vec<f64> = (1..=FLOWS)
        .map(|k| {
            sum += libm::pow(k as f64, -exponent);
            sum
        })
        .collect();
    move |_, random| {
        let drawn = random.uniform() * sum;
        shares.partition_point(|share| *share < drawn) as u32
    }
}

#[test]
fn it_finds_the_heaviest_of_ten_thousand_flows() {
    let elephant = |share: f64| {
        move |_: u64, random: &mut RandomStream| {
            if random.uniform() < share { 0 } else { 1 + random.below(FLOWS - 1) as u32 }
        }
    };
    // A tenth of the packets come from flows of ten packets each, which never come back.
    let mut fleeting = zipf(1.0);
    let churn = move |nth: u64, random: &mut RandomStream| {
        if random.uniform() < 0.1 { 1_000_000 + (nth / 100) as u32 } else { fleeting(nth, random) }
    };
    for (mix, agreement) in [
        ("Zipf 1.0", agreement(PACKETS, zipf(1.0))),
        ("Zipf 0.8", agreement(PACKETS, zipf(0.8))),
        ("Zipf 1.2", agreement(PACKETS, zipf(1.2))),
        ("one flow with 2 % among equal ones", agreement(PACKETS, elephant(0.02))),
        ("Zipf 1.0 among fleeting flows", agreement(PACKETS, churn)),
    ] {
        println!("{mix}: {:.2} %", 100.0 * agreement);
        assert!(agreement >= 0.99, "{mix}: {agreement}");
    }
}

/// A flow with a third of the packets, another one every second: what the soft edge costs.
#[test]
fn it_follows_when_another_flow_becomes_the_heaviest() {
    let turns = |nth: u64, random: &mut RandomStream| {
        let turn = GAP * nth;
        let whose = (turn.as_nanos() / 1_000_000_000) as u32;
        if random.uniform() < 0.3 { 20_000 + whose } else { random.below(FLOWS) as u32 }
    };
    let agreement = agreement(PACKETS, turns);
    println!("30 %, another flow every second: {:.2} %", 100.0 * agreement);
    assert!(agreement >= 0.98, "{agreement}");
}

/// Where the heaviest is so only by a few packets, or by one, the soft edge has another than the hard.
#[test]
fn among_flows_that_are_nearly_equal_it_often_names_another_than_the_heaviest() {
    for (mix, agreement) in [
        ("Zipf 0.6", agreement(PACKETS, zipf(0.6))),
        ("equal flows", agreement(PACKETS, |_, random| random.below(FLOWS) as u32)),
    ] {
        println!("{mix}: {:.2} %", 100.0 * agreement);
        assert!((0.3..0.99).contains(&agreement), "{mix}: {agreement}");
    }
}
