//! The arithmetic of FS-AT in `bpf/fs_at.h`, compiled for this machine, against the Rust one: the same to the byte,
//! whatever comes. Needs a C compiler, not root.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use suimon_algorithms::congestion::fs_at::{FsAt, Mode};
use suimon_algorithms::congestion::reno::Reno;
use suimon_algorithms::congestion::{
    Ack, AckCounting, Congestion, CongestionControl, CongestionKind, Limits,
};
use suimon_algorithms::probe::Probe;
use suimon_units::{Bytes, Duration, Instant};

#[derive(Debug, Clone)]
enum Step {
    Ack { after_us: u64, rtt_us: u32, delivered: u64, flight_size: u64, snd_wnd: u64, app_limited: bool },
    Path,
}

/// Up to the bytes that a link of 100 Gbit/s holds over a second, most often as a phone's.
fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..200_000_u64, 2 => 0..20_000_000_u64, 1 => 0..12_500_000_000_u64]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ack = (
        0..60_000_u64,
        prop_oneof![1 => Just(0), 4 => 1..400_000_u32],
        bytes(),
        bytes(),
        bytes(),
        prop::bool::weighted(0.1),
    );
    let ack = ack.prop_map(|(after_us, rtt_us, delivered, flight_size, snd_wnd, app_limited)| Step::Ack {
        after_us,
        rtt_us,
        delivered,
        flight_size,
        snd_wnd,
        app_limited,
    });
    prop::collection::vec(prop_oneof![60 => ack, 1 => Just(Step::Path)], 1..300)
}

#[derive(Default)]
struct Inner {
    target: u64,
    space: u64,
    rtt_min_us: u64,
}

impl Probe for Inner {
    fn value(&mut self, name: &'static str, value: f64) {
        match name {
            "target_bytes" => self.target = value as u64,
            "space_bytes" => self.space = value as u64,
            "rtt_min_ms" => self.rtt_min_us = (value * 1e3).round() as u64,
            _ => {}
        }
    }
}

/// Whether it would take a loss now for the radio's, by a copy that nothing else happens to.
fn judges_radio(script: &[Step], cwnd: u64) -> bool {
    let (mut fs_at, mut limits) = play(script, cwnd, |_| ());
    let event = Congestion {
        now: Instant::ZERO,
        kind: CongestionKind::Loss,
        flight_size: Bytes::new(1_448),
        used_window: Bytes::new(1_448),
        snd_nxt: 0,
        mss: Bytes::new(1_448),
    };
    fs_at.on_congestion(&event, &mut limits);
    !fs_at.passed_on()
}

fn play(script: &[Step], cwnd: u64, mut each: impl FnMut(&FsAt<Reno>)) -> (FsAt<Reno>, Limits) {
    let mut fs_at = FsAt::new(Reno::default(), Mode::Printed, false, Bytes::new(8_000));
    let mut limits = Limits::initial(Bytes::new(cwnd));
    fs_at.on_established(Instant::ZERO, &mut limits);
    let mut now = Instant::ZERO;
    for step in script {
        match *step {
            Step::Ack { after_us, rtt_us, delivered, flight_size, snd_wnd, app_limited } => {
                now += Duration::from_micros(after_us);
                let ack = Ack {
                    newly_acked: Bytes::ZERO,
                    rtt: (rtt_us > 0).then(|| Duration::from_micros(u64::from(rtt_us))),
                    flight_size: Bytes::new(flight_size),
                    prior_flight_size: Bytes::new(flight_size),
                    snd_wnd: Bytes::new(snd_wnd),
                    app_limited,
                    in_recovery: true,
                    counting: AckCounting::PerAck,
                    ..Ack::new(now, Bytes::new(delivered), Bytes::new(1_448))
                };
                fs_at.on_ack(&ack, &mut limits);
            }
            Step::Path => fs_at.forget_path(),
        }
        each(&fs_at);
    }
    (fs_at, limits)
}

/// The C one's answers: target, space, shortest round-trip time, and its judgement of a loss.
fn kernels(program: &Path, script: &[Step], cwnd: u64) -> Vec<(u64, u64, u64, bool)> {
    let mut text = format!("{cwnd}\n");
    let mut now = 0;
    for step in script {
        match step {
            Step::Ack { after_us, rtt_us, delivered, flight_size, snd_wnd, app_limited } => {
                now += after_us;
                let limited = u8::from(*app_limited);
                text += &format!("a {now} {rtt_us} {delivered} {flight_size} {snd_wnd} {limited}\n");
            }
            Step::Path => text += "p\n",
        }
    }
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let read = |line: &str| {
        let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        (words[0], words[1], words[2], words[3] == 1)
    };
    String::from_utf8(output.stdout).unwrap().lines().map(read).collect()
}

#[test]
fn the_kernels_arithmetic_is_the_rust_ones_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("fs_at_host");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/test/fs_at_host.c");
    let flags = ["-std=gnu11", "-O2", "-Wall", "-Werror", "-Wno-unused-parameter", "-o"];
    let done = Command::new("cc").args(flags).arg(&program).arg(&source).status();
    if done.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        eprintln!("skipped: no C compiler");
        return;
    }
    assert!(done.unwrap().success());
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let mut controlled = 0_usize;
    let result = std::cell::RefCell::new(&mut controlled);
    proptest!(config, |(script in steps(), cwnd in 0..1_000_000_u64)| {
        let kernels = kernels(&program, &script, cwnd);
        let mut ours = Vec::new();
        play(&script, cwnd, |fs_at| {
            let mut inner = Inner::default();
            fs_at.probe(&mut inner);
            ours.push((inner.target, inner.space, inner.rtt_min_us));
        });
        prop_assert_eq!(kernels.len(), ours.len());
        for (kernel, ours) in kernels.iter().zip(&ours) {
            prop_assert_eq!((kernel.0, kernel.1, kernel.2), *ours);
        }
        prop_assert_eq!(kernels.last().unwrap().3, judges_radio(&script, cwnd));
        **result.borrow_mut() += kernels.iter().filter(|one| one.0 > 0).count();
    });
    assert!(controlled > 1_000, "control was on for {controlled} acknowledgements only");
}
