//! The policies in `bpf/queue`, compiled for this machine, against those in Rust: the same verdict on each of 100 000
//! packets, or as many as `SUIMON_PACKETS` says, at loads that fill a queue and let it drain. Needs a C compiler, not root.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use suimon_algorithms::queue::integer::{Program, Random, Settings, Tables};
use suimon_algorithms::queue::policy::{Arrival, Verdict};
use suimon_algorithms::queue::{Backlog, DropReason, Ecn, FlowId};
use suimon_units::{Bytes, Instant, Rate};

fn packets_each() -> usize {
    std::env::var("SUIMON_PACKETS").map_or(100_000, |text| text.parse().expect("SUIMON_PACKETS is a number"))
}

/// A packet as `struct packet` of `bpf/queue/law.h` has it.
#[derive(Debug, Clone, Copy)]
struct Packet {
    now_ns: u64,
    backlog_bytes: u64,
    backlog_packets: u64,
    size: u64,
    flow: u32,
    ecn: u16,
    opens: u16,
}

impl Packet {
    fn bytes(&self) -> Vec<u8> {
        let words = [self.now_ns, self.backlog_bytes, self.backlog_packets, self.size];
        let mut bytes: Vec<_> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(self.flow.to_ne_bytes());
        bytes.extend(self.ecn.to_ne_bytes());
        bytes.extend(self.opens.to_ne_bytes());
        bytes
    }

    fn arrival(&self) -> Arrival {
        Arrival {
            now: Instant::from_nanos(self.now_ns),
            flow: FlowId(self.flow),
            size: Bytes::new(self.size),
            ecn: [Ecn::NotCapable, Ecn::L4s, Ecn::Capable, Ecn::CongestionExperienced][self.ecn as usize],
            opens_connection: self.opens != 0,
            backlog: Backlog { packets: self.backlog_packets, bytes: Bytes::new(self.backlog_bytes) },
        }
    }
}

/// Packets of many flows in bursts that come again, at a link whose load goes up and down; with pauses of minutes,
/// and now and then a queue and a size that no link would have. A crowd has so many times as many flows.
fn packets(rate: Rate, seed: u64, count: usize, crowd: u64) -> Vec<Packet> {
    let mut random = Random::new(seed);
    let mut waiting = VecDeque::new();
    let (mut now, mut free_at, mut backlog) = (1_000_000_000_u64, 0_u64, 0_u64);
    let (mut load, mut flows, mut burst) = (100, 1, (0_u32, 0_u64));
    let mut all = Vec::with_capacity(count);
    for number in 0..count {
        if number % 4_000 == 0 {
            (load, flows) =
                (40 + random.below(90), 1 + random.below(crowd * [2, 10, 300][number / 4_000 % 3]));
            now += if random.below(20) == 0 { random.below(200) * 1_000_000_000 } else { 0 };
        }
        if burst.1 == 0 {
            burst = ((random.below(flows) as u32).wrapping_mul(0x0123_4567), 1 + random.below(12));
        }
        burst.1 -= 1;
        let size = [40, 576, 1_500, 1_500, 1_500, 9_000][random.below(6) as usize];
        let each = rate.transmission_time(Bytes::new(size)).as_nanos();
        now += each * random.below(200) / load;
        while let Some((begins, size)) = waiting.front().copied()
            && begins <= now
        {
            waiting.pop_front();
            backlog -= size;
        }
        let odd = random.below(5_000) == 0;
        all.push(Packet {
            now_ns: now,
            backlog_bytes: if odd { random.bits() } else { backlog },
            backlog_packets: waiting.len() as u64,
            size,
            flow: burst.0,
            ecn: [0, 2, 2, 2, 1, 3][random.below(6) as usize],
            // A burst begins with the opening of its flow, now and then.
            opens: u16::from(number.is_multiple_of(60)),
        });
        if backlog < 300_000 {
            let begins = free_at.max(now);
            free_at = begins + each;
            backlog += size;
            waiting.push_back((begins, size));
        }
    }
    all
}

/// The verdicts of the program in C.
fn in_c(law: &str, settings: &Settings, packets: &[Packet]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("queue_host");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/test/queue_host.c");
    let define = format!("-DLAW=\"../queue/{law}.h\"");
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-Werror", &define])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .status();
    match compiled {
        Err(error) => {
            eprintln!("skipped: no C compiler ({error})");
            return None;
        }
        Ok(status) => assert!(status.success(), "{law}"),
    }
    let tables = Tables::default();
    let first = [settings.bytes_per_second, settings.buffer_bytes, settings.seed];
    let words = first.iter().chain(&settings.words).chain(tables.log2.iter()).chain(tables.exp2.iter());
    let mut input: Vec<_> = words.flat_map(|word| word.to_ne_bytes()).collect();
    input.extend(packets.iter().flat_map(Packet::bytes));
    let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let writer = thread::spawn(move || to.write_all(&input).unwrap());
    let mut verdicts = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut verdicts).unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    Some(verdicts)
}

fn number_of(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Pass => 0,
        Verdict::Mark => 1,
        Verdict::Drop(DropReason::Overflow) => 3,
        Verdict::Drop(_) => 2,
    }
}

#[test]
fn packets_get_the_same_verdicts_in_c_and_in_rust() {
    let count = packets_each();
    for (text, law, mbps) in [
        ("rtt-aqm:target=30kB", "rtt_aqm", 20),
        ("rtt-aqm:rtt=30ms:window=1ms:smoothing=1", "rtt_aqm", 1_000),
        ("red", "red_alone", 20),
        ("red:min_th=5kB:max_p=1:w_q=0.5", "red_alone", 1),
        ("dpd-qt", "dpd_qt", 20),
        ("pie", "pie", 20),
        ("pie:target=3ms:max_burst=0s:mark_ecnth=0.5", "pie", 100),
        ("ared", "ared", 20),
        ("ared:min_th=5kB:interval=1ms:top=0.9", "ared", 1_000),
        ("sred", "sred", 20),
        ("sred:p_max=1:hits=false", "sred", 1_000),
        ("rem", "rem", 20),
        ("rem:gamma=0.1:phi=1.1:period=1ms", "rem", 1_000),
        ("even", "even", 20),
        ("shyu", "shyu", 20),
        ("shyu:max_p=1", "shyu", 1_000),
        ("even:exponent=3:hold=5ms", "even", 1_000),
    ] {
        let rate = Rate::from_bps(mbps * 1_000_000);
        let (program, settings) = Program::read(text, rate, Bytes::new(250_000), 11).unwrap();
        // Of a few flows' packets SRED chooses hardly any.
        let crowd = if law == "sred" { 100 } else { 1 };
        let packets = packets(rate, 3 + mbps, count, crowd);
        let Some(theirs) = in_c(law, &settings, &packets) else { return };
        assert_eq!(theirs.len(), count);
        let mut policy = program.policy(&settings).unwrap();
        let mut counts = [0_u64; 4];
        for (number, (packet, theirs)) in packets.iter().zip(theirs).enumerate() {
            let ours = number_of(policy.judge(&packet.arrival()));
            assert_eq!(ours, theirs, "{text}: packet {number}, {packet:?}");
            counts[usize::from(ours)] += 1;
        }
        eprintln!("{text}: {counts:?}");
        // All kinds of verdicts came up.
        assert!(counts.iter().all(|of| *of > count as u64 / 10_000), "{text}: {counts:?}");
    }
}
