//! The packets: what a bottleneck sees in its day, from a fixed seed.

use suimon_algorithms::queue::Ecn;
use suimon_algorithms::random::RandomStream;
use suimon_units::{Bytes, Duration, Rate};

use super::{MS, Packet};

/// The arrivals for a while: `load` times the link's rate from `flows` flows, in bursts of up to `burst`
/// packets.
struct Phase {
    lasts: Duration,
    load: f64,
    flows: u64,
    burst: u64,
}

const fn phase(lasts_ms: u64, load: f64, flows: u64, burst: u64) -> Phase {
    Phase { lasts: Duration::from_millis(lasts_ms), load, flows, burst }
}

/// Calm, overload of every strength, bursts, idleness short and long, and back.
const PHASES: [Phase; 14] = [
    phase(500, 0.6, 3, 1),
    phase(3_000, 1.15, 5, 2),
    phase(400, 0.5, 5, 1),
    phase(2_500, 1.3, 12, 4),
    phase(300, 0.0, 1, 1),
    phase(200, 6.0, 2, 50),
    phase(1_500, 0.95, 40, 10),
    phase(2_000, 2.5, 3, 1),
    phase(5_000, 0.01, 2, 1),
    phase(3_000, 1.05, 1, 1),
    phase(60_000, 0.0, 1, 1),
    phase(1_000, 0.9, 200, 30),
    phase(15_000, 1.05, 9, 3),
    phase(2_000, 1.6, 20, 8),
];

/// How a flow's packets are marked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Marks {
    /// Not at all.
    None,
    /// Flows in turn: not, ECT(0), ECT(1), and now and then a packet that was marked before.
    Mixed,
}

/// A day at a link of `rate`.
pub(super) fn day(seed: u64, rate: Rate, marks: Marks) -> Vec<Packet> {
    let mut random = RandomStream::new(seed, "traffic");
    let mut packets: Vec<Packet> = Vec::new();
    let (mut now, mut begin) = (0, 0);
    // Fast links see the same phases for less long.
    let shrink = (rate.as_bps_f64() / 10e6).max(1.0);
    for phase in PHASES {
        let end = begin + phase.lasts.mul_f64(1.0 / shrink).as_nanos();
        now = begin.max(now);
        while phase.load > 0.0 && now < end {
            let flow = random.below(phase.flows) as u32;
            let mut bytes = 0;
            for _ in 0..=random.below(phase.burst) {
                let size = [40, 576, 1_500, 1_500, 1_500, 40 + random.below(1_461)][random.below(6) as usize];
                bytes += size;
                packets.push(Packet {
                    id: packets.len() as u64,
                    flow,
                    size,
                    ecn: ecn(flow, marks, &mut random),
                    tstamp: now,
                });
            }
            let gap = rate.transmission_time(Bytes::new(bytes)).mul_f64(1.0 / phase.load);
            now += random.duration_between(gap / 2, gap / 2 + gap).as_nanos();
        }
        begin = end;
    }
    assert!(packets.len() > 2_000 && begin > MS.as_nanos(), "{} packets", packets.len());
    packets
}

fn ecn(flow: u32, marks: Marks, random: &mut RandomStream) -> Ecn {
    match marks {
        Marks::None => Ecn::NotCapable,
        Marks::Mixed => match flow % 3 {
            0 => Ecn::NotCapable,
            _ if random.below(100) == 0 => Ecn::CongestionExperienced,
            1 => Ecn::Capable,
            _ => Ecn::L4s,
        },
    }
}
