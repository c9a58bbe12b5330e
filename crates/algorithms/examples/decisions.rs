//! The cost of a decision: nanoseconds per packet, to take it in and to give it out, of each queue discipline
//! or of those named. `cargo run --release -p suimon-algorithms --example decisions -- codel pie`
//!
//! Packets of 32 flows fill a link of 100 Mbit/s by 120 %, so that the discipline has something to decide;
//! half the flows understand marks.

use std::time::Instant as Clock;

use suimon_algorithms::queue::{Buffer, Ecn, FlowId, Packet, QueueDiscipline};
use suimon_algorithms::random::RandomStream;
use suimon_algorithms::registry::{AlgorithmSpec, Role, build_queue, descriptions};
use suimon_units::{Bytes, Duration, Instant, Rate};

/// As large as the simulator's.
#[derive(Debug, Clone, Copy)]
struct Frame {
    flow: u32,
    size: u32,
    ecn: Ecn,
    _rest: [u64; 3],
}

impl Packet for Frame {
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_congestion_experienced(&mut self) {
        self.ecn = Ecn::CongestionExperienced;
    }
}

const FLOWS: u64 = 32;
const PACKETS: usize = 100_000;
/// The fastest counts: on a busy machine most are interrupted.
const ROUNDS: usize = 100;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let names = if named.is_empty() {
        descriptions(Role::Queue).iter().map(|d| d.name.to_owned()).collect()
    } else {
        named
    };
    let traffic = traffic();
    println!("{:24} {:>10} {:>9} {:>9} {:>9}", "discipline", "ns/packet", "sent", "marked", "dropped");
    for name in names {
        let spec = match AlgorithmSpec::parse(Role::Queue, &name) {
            Ok(spec) => spec,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(2);
            }
        };
        let mut best = f64::INFINITY;
        let mut counts = [0; 3];
        for _ in 0..ROUNDS {
            let random = RandomStream::new(1, "decisions");
            let mut queue = build_queue(&spec, Buffer::Packets(1_000), random).into_discipline();
            let begin = Clock::now();
            counts = pass(&mut *queue, &traffic);
            best = best.min(begin.elapsed().as_secs_f64() * 1e9 / PACKETS as f64);
        }
        let [sent, marked, dropped] = counts;
        println!("{name:24} {best:>10.1} {sent:>9} {marked:>9} {dropped:>9}");
    }
}

fn traffic() -> Vec<Frame> {
    let mut random = RandomStream::new(1, "traffic");
    let mut frame = || {
        let flow = random.below(FLOWS) as u32;
        let ecn = [Ecn::NotCapable, Ecn::Capable, Ecn::NotCapable, Ecn::L4s][flow as usize % 4];
        Frame { flow, size: 1_500, ecn, _rest: [0; 3] }
    };
    (0..PACKETS).map(|_| frame()).collect()
}

/// Six packets come while five go: how many were sent, marked and dropped.
fn pass(queue: &mut dyn QueueDiscipline<Frame>, traffic: &[Frame]) -> [u64; 3] {
    let rate = Rate::from_bps(100_000_000);
    queue.on_link_rate(Instant::ZERO, rate);
    let mut now = Instant::ZERO;
    let step = Duration::from_micros(100);
    let mut dropped = Vec::new();
    let [mut sent, mut marked, mut gone] = [0; 3];
    for (number, frame) in traffic.iter().enumerate() {
        queue.enqueue(now, *frame, &mut dropped);
        now += step;
        if number % 6 != 5
            && let Some(packet) = queue.dequeue(now, &mut dropped)
        {
            sent += 1;
            marked += u64::from(packet.ecn == Ecn::CongestionExperienced);
        }
        gone += dropped.len() as u64;
        dropped.clear();
    }
    [sent, marked, gone]
}
