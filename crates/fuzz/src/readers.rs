//! The readers, and what each promises of any input.

use std::cell::RefCell;
use std::io::Cursor;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use suimon_aggregation::Feedback;
use suimon_algorithms::path::PathId;
use suimon_algorithms::queue::Packet;
use suimon_algorithms::queue::integer::{PROGRAMS, Program, Settings};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_bond::QuicDoor;
use suimon_bond::frame::{Frame, decode, decode_whole};
use suimon_bond::keys::PrivateKey;
use suimon_bond::mux::{Mux, MuxLimits, ServiceClass};
use suimon_bond::session::{Session, SessionConfig};
use suimon_capture::{Capture, Truth};
use suimon_emulator::{WirePacket, split};
use suimon_linux::congestion_trace;
use suimon_linux::queue_trace::{Head, Record, replay};
use suimon_measure::browser::{Look, Seen};
use suimon_measure::datagram::{Datagram, Kind};
use suimon_measure::protocol::{Hello, Refusal, Reply, Request, decode as message, encode};
use suimon_measure::{Direction, Line, Loaded, Probe, Recording, Sample, Span};
use suimon_scenario::trace::{Opportunities, RateSchedule};
use suimon_scenario::{Document, LinkSpec};
use suimon_service::Target;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::Reader;

/// Every reader of what comes from outside.
pub const READERS: [Reader; 14] = [
    Reader { name: "scenario", read: scenario, seeds: scenarios, words: SCENARIO_WORDS, weight: 16 },
    Reader { name: "link line", read: link_line, seeds: link_lines, words: LINK_WORDS, weight: 16 },
    Reader {
        name: "trace",
        read: trace,
        seeds: traces,
        words: &["\n", "#", " ", "ms", "Mbit", "inf", "-1"],
        weight: 12,
    },
    Reader { name: "capture", read: capture, seeds: captures, words: &[], weight: 6 },
    Reader { name: "bond frames", read: bond, seeds: bond_frames, words: &["SUIMON"], weight: 16 },
    Reader { name: "bond datagrams", read: datagrams, seeds: datagram_seeds, words: &[], weight: 6 },
    Reader { name: "bond streams", read: streams, seeds: stream_frames, words: &["host:80"], weight: 16 },
    Reader { name: "measure messages", read: messages, seeds: message_seeds, words: &[], weight: 16 },
    Reader { name: "recording", read: recording, seeds: recordings, words: RECORDING_WORDS, weight: 12 },
    Reader { name: "browser report", read: report, seeds: reports, words: RECORDING_WORDS, weight: 12 },
    Reader {
        name: "queue trace",
        read: queue_trace,
        seeds: queue_traces,
        words: RECORDING_WORDS,
        weight: 12,
    },
    Reader {
        name: "congestion trace",
        read: congestion_trace,
        seeds: congestion_traces,
        words: RECORDING_WORDS,
        weight: 12,
    },
    Reader { name: "packet", read: packet, seeds: packets, words: &[], weight: 16 },
    Reader { name: "terminal", read: terminal, seeds: terminals, words: TERMINAL_WORDS, weight: 12 },
];

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below `folder` of the project that end in `.extension`, in the order of their names.
fn files(folder: &str, extension: &str) -> Vec<Vec<u8>> {
    let mut folders = vec![project().join(folder)];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

const SCENARIO_WORDS: &[&str] = &[
    "[[link]]",
    "[[flow]]",
    "[matrix]",
    "seeds",
    "queue",
    "cc",
    "\"",
    "=",
    "[",
    "]",
    "{",
    "}",
    "\n",
    "ms",
    "Mbit",
    "unbounded",
    "off",
    "inf",
    "nan",
    "1e308",
    "-",
    ".",
    "'",
    "from",
    "to",
    "#",
];

/// Scenario files: a value or a refusal with a message.
fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // A scenario may have a million flows, for which memory is allowed.
    if text.split("count").skip(1).any(|rest| rest.chars().take(20).filter(char::is_ascii_digit).count() > 4)
    {
        return;
    }
    let read = Document::parse(text, "input").and_then(|document| {
        let plan = document.plan()?;
        for nth in [0, plan.points().saturating_sub(1)].into_iter().filter(|nth| *nth < plan.points()) {
            plan.point(nth)?;
        }
        Ok(())
    });
    if let Err(error) = read {
        assert!(!error.to_string().is_empty());
    }
}

fn scenarios() -> Vec<Vec<u8>> {
    ["scenarios", "papers"].into_iter().flat_map(|folder| files(folder, "toml")).collect()
}

const LINK_WORDS: &[&str] = &[
    "Mbit",
    "kbit",
    "ms",
    "s",
    "kB",
    "packets",
    "unbounded",
    "loss=",
    "jitter=",
    "reorder=",
    "%",
    "/",
    "trace=",
    "schedule=",
    "hsdpa ",
    "wifi ",
    "PA3",
    "10dB",
    "lte",
    ".down",
    " ",
    "-",
    "inf",
    "e9",
];

/// Links in one line.
fn link_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // Files that an input names are none of its own.
    if text.contains("trace=") || text.contains("schedule=") {
        return;
    }
    if let Ok(spec) = LinkSpec::parse_with_rtt(text, Duration::from_millis(40)) {
        let queue = AlgorithmSpec::parse(Role::Queue, "droptail").expect("the registry has it");
        let _ = spec.links(&queue);
    }
}

fn link_lines() -> Vec<Vec<u8>> {
    let lines = [
        "3.6Mbit 90ms 96kB",
        "10Mbit 20ms 100packets loss=1% jitter=1ms reorder=1%/10ms",
        "lte-driving 60ms",
        "hsdpa PA3 10dB 90ms",
        "wifi 802.11b 11Mbit 10ms",
        "1Gbit 1ms unbounded",
        "384kbit 90ms",
    ];
    lines.map(|line| line.as_bytes().to_vec()).to_vec()
}

/// Traces and schedules: one that reads is written as it reads.
fn trace(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(trace) = Opportunities::parse(text, "input") {
        assert_eq!(Opportunities::parse(&trace.to_text(), "input"), Ok(trace));
    }
    if let Err(error) = RateSchedule::parse(text, "input") {
        assert!(!error.to_string().is_empty());
    }
}

fn traces() -> Vec<Vec<u8>> {
    let mut seeds = files("traces", "down");
    seeds.push(b"0s 1Mbit\n1s 10Mbit\n2.5s 0bit\n".to_vec());
    seeds.push(b"1\n2\n2\n10\n".to_vec());
    seeds.push(b"time_s,rate_bps\n0,1000000\n1,2000000\n".to_vec());
    seeds
}

/// Packet captures: packets or a refusal that names the file.
fn capture(bytes: &[u8]) {
    let mut truth = Truth::new(8);
    let outcome = Capture::new("input", Cursor::new(bytes.to_vec())).and_then(|mut capture| {
        while let Some(packet) = capture.next_packet()? {
            assert!(packet.payload <= packet.size);
            truth.on_packet(&packet);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        assert!(error.to_string().starts_with("input: "));
    }
}

fn captures() -> Vec<Vec<u8>> {
    files("crates/capture/tests/data", "pcap")
}

const LIMITS: MuxLimits =
    MuxLimits { streams: 4, window: 1_000, window_most: 8_000, pool: 10_000, queue: 20_000, packets: 4_000 };

/// A connection of the bond: never more memory than was granted.
fn bond(bytes: &[u8]) {
    let config = SessionConfig {
        scheduler: AlgorithmSpec::parse(Role::Path, "look-ahead").expect("the registry has it"),
        reorder_buffer: Bytes::new(10_000),
        send_buffer: Bytes::new(10_000),
        mux: LIMITS,
    };
    let mut session = Session::new(false, &config);
    session.on_peer_buffer(config.reorder_buffer);
    session.path_up(Instant::ZERO, PathId(0), 1);
    let whole = decode_whole(bytes).is_ok();
    assert_eq!(whole, matches!(decode(bytes), Ok(Some((_, len))) if len == bytes.len()));
    let mut at = 0;
    while let Ok(Some((frame, len))) = decode(&bytes[at..]) {
        at += len;
        let taken = match frame {
            Frame::Data { start, bytes } => session.on_data(Instant::ZERO, PathId(0), start, bytes),
            Frame::Feedback(feedback, received) => {
                session.on_feedback(Instant::ZERO, PathId(0), feedback, &received)
            }
            _ => Ok(()),
        };
        let view = session.view();
        assert!(view.reorder_held <= 10_000);
        assert!(view.streams_held <= 4 * 1_000 + LIMITS.pool);
        if taken.is_err() {
            break;
        }
    }
}

/// Datagrams to the port of a bond's server, of which each has two bytes of length before it: nothing is kept of them, and nobody
/// gets more than it sent.
fn datagrams(bytes: &[u8]) {
    thread_local! {
        static DOOR: RefCell<QuicDoor> =
            RefCell::new(PrivateKey::generate().and_then(|key| QuicDoor::new(&key)).expect("a key"));
    }
    DOOR.with_borrow_mut(|door| {
        let mut rest = bytes;
        while let Some((len, after)) = rest.split_first_chunk() {
            let (datagram, after) = after.split_at(after.len().min(u16::from_be_bytes(*len).into()));
            let answered = door.take(SocketAddr::from(([192, 0, 2, 1], 443)), datagram);
            assert!(answered <= datagram.len(), "{answered} bytes for {}", datagram.len());
            assert_eq!(door.holds(), (0, 0));
            rest = after;
        }
    });
}

/// Packets that seem to begin a connection, to go on with one, and to speak another version (RFC 9000 §17).
fn datagram_seeds() -> Vec<Vec<u8>> {
    let of = |head: &[u8]| {
        let mut datagram = vec![0; 1_200];
        datagram[..head.len()].copy_from_slice(head);
        [&1_200_u16.to_be_bytes()[..], &datagram].concat()
    };
    let begins = of(&[0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x44, 0x90]);
    let goes_on = of(&[0x43, 1, 2, 3, 4, 5, 6, 7, 8]);
    let other = of(&[0xc3, 1, 2, 3, 4, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    vec![[&begins[..], &goes_on, &other].concat(), begins, goes_on, other]
}

fn encoded(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    bytes
}

fn bond_frames() -> Vec<Vec<u8>> {
    let streams = stream_frames().remove(0);
    let feedback = Feedback { next: 0, edge: 10_000 };
    let received = vec![suimon_bond::frame::Received { path: 0, attempt: 1, bytes: 0 }];
    vec![
        encoded(&[
            Frame::Data { start: 0, bytes: &streams },
            Frame::Feedback(feedback, received),
            Frame::Close,
        ]),
        encoded(&[
            Frame::Data { start: 14, bytes: &streams[14..] },
            Frame::Data { start: 0, bytes: &streams[..14] },
        ]),
        b"\x01SUIMON\0\x03".iter().copied().chain([7; 60]).collect(),
    ]
}

/// The streams within a bond, as a server and as a client.
fn streams(bytes: &[u8]) {
    for opens in [false, true] {
        let mut mux = Mux::new(opens, LIMITS);
        mux.on_peer_limits(LIMITS.window, LIMITS.streams);
        let target: Target = "host:80".parse().expect("a plain name");
        let _ = mux.open(ServiceClass::Default, &target).filter(|_| opens);
        // Frames are whole, so one group is all.
        for piece in [bytes, bytes] {
            let taken = mux.receive(piece);
            mux.on_arrived(|_| false);
            assert!(mux.early() <= mux.held() && mux.pieces() as u64 <= mux.early());
            if taken.is_err() {
                break;
            }
            assert!(mux.held() <= 4 * 1_000 + LIMITS.pool);
            assert!(mux.open_streams() <= 2 * LIMITS.streams as usize);
        }
        let events = std::iter::from_fn(|| mux.poll_event()).count();
        assert!(events <= 400, "{events} events");
    }
}

fn stream_frames() -> Vec<Vec<u8>> {
    let open = [&[1, 0, 0, 0, 0, 1, 7][..], b"host:80"].concat();
    let data = |place: u8| [&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, place, 0, 5][..], b"water"].concat();
    let credit = [4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0];
    let packet = [&[7, 2, 0, 20][..], &packets()[0][10..30]].concat();
    let (opened, blocked, reset) = ([2, 0, 0, 0, 0], [8, 0, 0, 0, 0], [6, 0, 0, 0, 0, 1]);
    let end = [5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10];
    vec![
        [&open[..], &data(0), &credit, &packet, &blocked, &data(5), &end].concat(),
        [&open[..], &data(5), &end, &data(0)].concat(),
        [&opened[..], &credit, &data(0), &reset, &blocked].concat(),
    ]
}

/// What a client and a server of a measurement say to each other: a message or a refusal, and a line of whatever a server
/// says that it saw.
fn messages(bytes: &[u8]) {
    let _ = message::<Hello>(bytes);
    let _ = message::<Request>(bytes);
    if let Some((kind, read)) = Datagram::read(bytes) {
        assert!(bytes.starts_with(&read.bytes(kind)));
    }
    let Ok(reply) = message::<Reply>(bytes) else { return };
    // The same again, where numbers take no more than they need.
    assert_eq!(message::<Reply>(&encode(&reply).expect("it was read")[2..]).ok().as_ref(), Some(&reply));
    if let Reply::Samples(samples) = reply {
        let own = loaded(Vec::new()).receiver;
        let _ = Line::of(&measured(Loaded { receiver: own, ..loaded(samples.clone()) }));
        let _ =
            Line::of(&measured(Loaded { sender: samples.clone(), receiver: samples, ..loaded(Vec::new()) }));
    }
}

/// A load whose sender saw this, and its receiver a steady flow.
fn loaded(sender: Vec<Sample>) -> Loaded {
    let look = |nth: u64| Sample {
        at_us: 100_000 * nth,
        received: 14_480 * nth,
        received_segments: 10 * nth,
        received_segment: 1_448,
        ..Sample::default()
    };
    Loaded {
        span: Span { from_us: 1_000_000, to_us: 3_000_000 },
        sender,
        receiver: (10..30).map(look).collect(),
    }
}

/// A recording with this load.
fn measured(load: Loaded) -> Recording {
    let probe = |nth: u64| {
        let sent_us = nth * 20_000;
        Probe { sent_us, answer: Some((sent_us + 5_000_000, sent_us + 20_000)) }
    };
    Recording {
        probes: (0..200).map(probe).collect(),
        idle: vec![Span { from_us: 0, to_us: 1_000_000 }, Span { from_us: 3_100_000, to_us: 4_000_000 }],
        upload: Some(load.clone()),
        download: Some(load),
        ..Recording::default()
    }
}

fn message_seeds() -> Vec<Vec<u8>> {
    let sample =
        Sample { flow: 1, at_us: 9_000_000, srtt_us: 70_000, segments: 9, ..loaded(Vec::new()).receiver[3] };
    let cookie = [7; 16];
    let content = |bytes: std::io::Result<Vec<u8>>| bytes.expect("it is short")[2..].to_vec();
    vec![
        content(encode(&Hello::Session)),
        content(encode(&Hello::Load { cookie, direction: Direction::Upload, flow: 3 })),
        content(encode(&Request::Report(Direction::Download))),
        content(encode(&Reply::Open { cookie, most_bytes: 1 << 40 })),
        content(encode(&Reply::Refused(Refusal::TooOften))),
        content(encode(&Reply::Samples(vec![sample; 30]))),
        Datagram { cookie, number: 8, time_us: 0 }.bytes(Kind::Question).to_vec(),
    ]
}

const RECORDING_WORDS: &[&str] = &["null", "0", "18446744073709551615", "[", "]", "{", "}", ",", "-1"];

/// What a browser reports of a line, beside what the server's sockets saw.
fn report(bytes: &[u8]) {
    if let Ok(seen) = serde_json::from_slice::<Seen>(bytes) {
        let look = |nth: u64| Look {
            sample: Sample {
                at_us: 6_000_000 + nth * 20_000,
                received_segments: nth * 10,
                ..Sample::default()
            },
            ..Look::default()
        };
        let looks = [0, 1].map(|_| (0..40).map(look).collect());
        let _ = seen.recording(looks, false).as_ref().and_then(Line::of);
    }
}

fn reports() -> Vec<Vec<u8>> {
    let probe =
        |nth: u64| format!("[{},[{},{}]]", nth * 20_000, nth * 20_000 + 5_000_000, nth * 20_000 + 20_000);
    let probes: Vec<_> = (0..100).map(probe).collect();
    let span = |from: u64, to: u64| format!("{{\"from_us\":{from},\"to_us\":{to}}}");
    let [idle, down, up] = [span(0, 500_000), span(1_000_000, 1_400_000), span(1_500_000, 1_900_000)];
    let text = format!(
        "{{\"probes\":[{}],\"idle\":[{idle}],\"download\":{down},\"upload\":{up}}}",
        probes.join(",")
    );
    vec![text.into_bytes()]
}

/// What `suimon measure --record` wrote: a line or none.
fn recording(bytes: &[u8]) {
    if let Ok(recording) = serde_json::from_slice::<Recording>(bytes) {
        let _ = Line::of(&recording);
    }
}

fn recordings() -> Vec<Vec<u8>> {
    let load = loaded(loaded(Vec::new()).receiver);
    vec![serde_json::to_vec(&measured(load)).expect("plain data")]
}

/// What `suimon queue trace --json` wrote: verdicts or a refusal with a message.
fn queue_trace(bytes: &[u8]) {
    match replay(bytes) {
        Ok(replayed) => assert!(replayed.differ <= replayed.packets),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A trace of each policy, of packets that find ever more before them.
fn queue_traces() -> Vec<Vec<u8>> {
    let of = |program: &Program| {
        let rate = Rate::from_bps(10_000_000);
        let (_, settings) = Program::read(program.name, rate, Bytes::new(150_000), 1).expect("its defaults");
        let Settings { bytes_per_second, buffer_bytes, seed, words } = settings;
        let head = Head { policy: program.name.to_owned(), bytes_per_second, buffer_bytes, seed, words };
        let mut trace = serde_json::to_vec(&head).expect("plain data");
        for number in 0..30 {
            let record = Record {
                number,
                now_ns: 1_000_000_000 + number * 700_000,
                backlog_bytes: number * 1_500,
                backlog_packets: number,
                size_bytes: 1_500,
                flow: number as u32 % 3,
                ecn: 2,
                opens_connection: 0,
                verdict: 0,
                segments: 1,
            };
            trace.push(b'\n');
            trace.extend(serde_json::to_vec(&record).expect("plain data"));
        }
        trace
    };
    PROGRAMS.iter().map(of).collect()
}

/// What `suimon cc trace fs-at-open --json` wrote: decisions or a refusal with a message.
fn congestion_trace(bytes: &[u8]) {
    match congestion_trace::replay(bytes) {
        Ok(replayed) => {
            assert!(replayed.acknowledgements + replayed.congestions <= replayed.events);
            assert_eq!(replayed.first.is_some(), replayed.differ > 0);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A connection through slow start and losses. Its decisions are made up.
fn congestion_traces() -> Vec<Vec<u8>> {
    let line = |number: u64| {
        let event = match number {
            0 => "start",
            20 => "loss",
            25 => "timeout",
            30 => "path",
            _ => "ack",
        };
        format!(
            "{{\"event\":\"{event}\",\"connection\":1,\"now_us\":{},\"rcv_bytes\":0,\"target_bytes\":0,\"space_bytes\":0,\
             \"rtt_min_us\":40000,\"cwnd_segments\":10,\"queued_half_segments\":0,\"dwnd_segments\":0,\"queueing_us\":0,\
             \"mode\":1,\"number\":{number},\"newly_acked\":1448,\"delivered\":1448,\"flight_size\":14480,\"snd_wnd\":96000,\
             \"rtt_us\":{},\"mss\":1448,\"snd_cwnd\":10,\"ssthresh\":2147483647,\"prior_flight_size\":15928,\
             \"outstanding\":14480,\"kernel_cwnd\":{},\"below\":0,\"decided\":10,\"local_port\":1,\"remote_port\":2,\
             \"ca_state\":0,\"app_limited\":0,\"radio\":0}}\n",
            1_000_000 + number * 300_000,
            40_000 + number * 1_000,
            if number == 0 { 10 } else { 0 },
        )
    };
    vec![(0..60).map(line).collect::<String>().into_bytes()]
}

/// Packets of an emulated link: what is one can be marked, and stays the same flow's.
fn packet(bytes: &[u8]) {
    let mut handed = bytes.to_vec();
    let mut scratch = Vec::new();
    let _ = split(&mut handed, &mut scratch, |packet| {
        if let Ok(mut packet) = WirePacket::new(packet, Instant::ZERO, 0) {
            packet.mark_congestion_experienced();
            let again = WirePacket::new(packet.ip(), Instant::ZERO, 0).expect("it was one");
            assert_eq!(packet.key(), again.key());
        }
    });
}

/// Packets as a device hands them over: a header of ten bytes, then TCP or UDP over IPv4 or IPv6.
fn packets() -> Vec<Vec<u8>> {
    let plain = [0; 10];
    // RFC 9293 §3.1 behind RFC 791 §3.1 and RFC 8200 §3; checksums are nobody's concern here.
    let segment = [0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0];
    let v4 = |protocol: u8, length: u8| {
        [0x45, 2, 0, 20 + length, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
    };
    let v6 = [
        &[0x60, 0x20, 0, 0, 0, 20, 6, 64][..],
        &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
    ]
    .concat();
    // Of type TCPv4 with a head of 40 bytes, in pieces of 100 (virtio, 5.1.6).
    let several = [1, 1, 40, 0, 100, 0, 20, 0, 16, 0];
    let long = [&v4(6, 120)[..], &segment, &[7; 200]].concat();
    vec![
        [&plain[..], &v4(6, 20), &segment].concat(),
        [&plain[..], &v4(17, 12), &[0, 53, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]].concat(),
        [&plain[..], &v6, &segment].concat(),
        [&several[..], &long].concat(),
    ]
}

const TERMINAL_WORDS: &[&str] = &[
    "\x1b[",
    "\x1b]",
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b[2J",
    "\x1b[999999999C",
    "\x1b[4294967295;1r",
    "\x1b[38;5;",
    "\x1b[38;2;1;2;3m",
    "\x1b7",
    "\x1b8",
    "\x1bc",
    "\r",
    "\n",
    "\t",
    "\x08",
    "\u{4e00}",
    "\u{301}",
    "\u{200d}",
];

/// A program's output on a terminal of changing size.
fn terminal(bytes: &[u8]) {
    let mut screen = vt100::Parser::new(vt100::Parser::DEFAULT_ROWS, vt100::Parser::DEFAULT_COLS, 100);
    for (nth, piece) in bytes.chunks(64).enumerate() {
        screen.process(piece);
        let side = |long: u16| std::num::NonZeroU16::new(long).expect("at least one");
        screen.set_size(side(1 + (nth as u16 * 7) % 30), side(1 + (nth as u16 * 11) % 90));
        let shown = screen.screen();
        let (row, column) = shown.cursor_position();
        let (rows, columns) = shown.size();
        assert!(row < rows.get() && column <= columns.get(), "the cursor is at {row}, {column}");
        let _ = shown.cell(row, column.min(columns.get() - 1)).map(|cell| cell.contents().len());
    }
}

fn terminals() -> Vec<Vec<u8>> {
    let texts = [
        "line 1\r\n\x1b[31mred\x1b[m line 2\r\n\x1b[1;1Hhome\x1b[K\x1b[5;10r\x1b[10;1H\n\n\x1bM",
        "\x1b[?1049h\x1b[2J\x1b[H\x1b[7mtop - 12:00\x1b[m\x1b[10;20Hcell\x1b[?25l\x1b[?1049l",
        "\u{4e00}\u{4e8c} wide, e\u{301}, \u{1f469}\u{200d}\u{1f4bb}\ttab\x08\x08\x1b[3@\x1b[2P\x1b[4L\x1b[2M",
        "\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\x1bPq#0;2;0;0;0\x1b\\",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
