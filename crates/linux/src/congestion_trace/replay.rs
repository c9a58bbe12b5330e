//! The open mode in Rust, fed with the events that the program in the kernel told.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use suimon_algorithms::congestion::fs_at_open::FsAtOpen;
use suimon_algorithms::congestion::{
    Ack, AckCounting, Congestion, CongestionControl, CongestionKind, Delivery, Limits,
};
use suimon_algorithms::probe::Probe;
use suimon_units::{Bytes, Duration, Instant};

use super::{Event, Line, Record};

/// The parameter `age` of the program in the kernel.
const AGE: Duration = Duration::from_secs(5);
/// The numbers of the modes that tell themselves in a probe.
const DRAINING: u32 = 3;
const COMPETING: u32 = 4;
const HOLDING: u32 = 5;

/// The number of the kernel's fast recovery (`TCP_CA_Recovery`).
const RECOVERY: u8 = 3;

/// The outcome of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Connections that were replayed.
    pub connections: usize,
    /// Their events.
    pub events: usize,
    /// Acknowledgements among these, each with a window that was decided.
    pub acknowledgements: usize,
    /// Losses, marks and timeouts, each with a threshold that was decided.
    pub congestions: usize,
    /// Events on which the decisions differ.
    pub differ: usize,
    /// The first of these.
    pub first: Option<Difference>,
    /// Events that could not be judged, since the trace lacks the beginning of their connection or an event before them.
    pub left_out: usize,
}

/// Two decisions on one event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("connection {connection}, event {number}: {what} is {kernel} in the kernel and {ours} here")]
pub struct Difference {
    /// The number of the connection.
    pub connection: u64,
    /// The number of the event in its connection.
    pub number: u32,
    /// The value.
    pub what: &'static str,
    /// As the kernel has it.
    pub kernel: u64,
    /// As Rust has it.
    pub ours: u64,
}

/// The reason that a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A line is none of a trace.
    #[error("line {line}: {source}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The reason.
        source: serde_json::Error,
    },
    /// Another algorithm's.
    #[error(
        "line {0}: this is no event of fs-at-open; accepted: what `suimon cc trace fs-at-open --json` writes"
    )]
    Other(usize),
    /// A segment size that no connection has.
    #[error("line {line}: mss: {mss}; accepted: 1 to 65535")]
    SegmentSize {
        /// The line's number, from 1.
        line: usize,
        /// As it was given.
        mss: u32,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Lets the open mode in Rust decide on the events of `trace`, and compares its decisions with those in the trace.
///
/// # Errors
/// The trace cannot be read, or no program of the open mode wrote it.
pub fn replay(trace: impl BufRead) -> Result<Replayed, ReplayError> {
    let mut replay = Replay::default();
    for (text, line) in trace.lines().zip(1..) {
        let parsed: Line =
            serde_json::from_str(&text?).map_err(|source| ReplayError::Line { line, source })?;
        let record = Record::from(parsed);
        if record.values.mode == 0 {
            return Err(ReplayError::Other(line));
        }
        if !(1..=65_535).contains(&record.mss) {
            return Err(ReplayError::SegmentSize { line, mss: record.mss });
        }
        replay.event(&record);
    }
    Ok(replay.outcome)
}

/// The open mode of all connections of a trace, in Rust.
#[derive(Debug, Default)]
pub struct Replay {
    connections: HashMap<u64, Connection>,
    /// What came of it so far.
    pub outcome: Replayed,
}

impl Replay {
    /// Decides on an event of any connection.
    pub fn event(&mut self, record: &Record) {
        let outcome = &mut self.outcome;
        if record.event() == Event::Start && record.number == 0 {
            outcome.connections += 1;
            outcome.events += 1;
            self.connections.insert(record.connection, Connection::begin(record));
            return;
        }
        // Without the start, or behind an event that is missing, nothing can be judged.
        let known = self.connections.get_mut(&record.connection);
        let Some(connection) = known.filter(|connection| connection.next == record.number) else {
            self.connections.remove(&record.connection);
            outcome.left_out += 1;
            return;
        };
        outcome.events += 1;
        match record.event() {
            Event::Ack => outcome.acknowledgements += 1,
            Event::Loss | Event::Mark | Event::Timeout => outcome.congestions += 1,
            Event::Start | Event::Undo | Event::Path | Event::End => {}
        }
        if let Some(difference) = connection.event(record) {
            outcome.differ += 1;
            outcome.first.get_or_insert(difference);
        }
        if record.event() == Event::End {
            self.connections.remove(&record.connection);
        }
    }
}

/// A connection's open mode in Rust.
#[derive(Debug)]
struct Connection {
    open: FsAtOpen<Told>,
    told: Told,
    limits: Limits,
    began_us: u64,
    snd_una: u64,
    next: u32,
}

impl Connection {
    /// The connection as its first record tells it.
    fn begin(record: &Record) -> Self {
        let told = Told::default();
        let mut open = FsAtOpen::new(told.clone(), true, AGE);
        let mut limits = Limits::initial(mss(record) * u64::from(record.kernel_cwnd));
        open.on_delivery(&delivery(record, Bytes::ZERO));
        open.on_established(Instant::ZERO, &mut limits);
        Self { open, told, limits, began_us: record.now_us, snd_una: 0, next: 1 }
    }

    /// Decides on an event, and gives the first value in which the kernel's decision differs.
    fn event(&mut self, record: &Record) -> Option<Difference> {
        self.next = record.number.saturating_add(1);
        if record.kernel_cwnd > 0 {
            self.limits.cwnd = mss(record) * u64::from(record.kernel_cwnd);
        }
        self.told.set(mss(record) * u64::from(record.below));
        let now = Instant::from_nanos(record.now_us.saturating_sub(self.began_us).saturating_mul(1_000));
        let kind = match record.event() {
            Event::Loss => Some(CongestionKind::Loss),
            Event::Mark => Some(CongestionKind::Ecn),
            Event::Timeout => Some(CongestionKind::Timeout),
            _ => None,
        };
        let decided = match (record.event(), kind) {
            (Event::Ack, _) => Some(self.acknowledge(record, now)),
            (_, Some(kind)) => Some(self.congestion(record, now, kind)),
            (Event::Undo, _) => {
                self.open.on_spurious(now, &mut self.limits);
                None
            }
            (Event::Path, _) => {
                self.open.forget_path(&self.limits);
                None
            }
            _ => None,
        };
        self.compare(record, decided)
    }

    fn acknowledge(&mut self, record: &Record, now: Instant) -> u64 {
        self.snd_una += u64::from(record.newly_acked);
        let ack = Ack {
            newly_acked: bytes(record.newly_acked),
            rtt: round_trip(record),
            snd_una: self.snd_una,
            snd_nxt: self.snd_una + u64::from(record.outstanding),
            flight_size: bytes(record.flight_size),
            prior_flight_size: bytes(record.prior_flight_size),
            snd_wnd: bytes(record.snd_wnd),
            app_limited: record.app_limited == 1,
            in_recovery: record.ca_state == RECOVERY,
            counting: AckCounting::Delivered,
            ..Ack::new(now, bytes(record.delivered), mss(record))
        };
        self.open.on_delivery(&delivery(record, Bytes::new(1)));
        self.open.on_ack(&ack, &mut self.limits);
        self.limits.cwnd.min(self.limits.space).whole(mss(record)).clamp(1, MOST_SEGMENTS)
    }

    fn congestion(&mut self, record: &Record, now: Instant, kind: CongestionKind) -> u64 {
        self.limits.ssthresh = mss(record) * u64::from(record.ssthresh);
        let flight_size = bytes(record.prior_flight_size);
        let event =
            Congestion { now, kind, flight_size, used_window: flight_size, snd_nxt: 0, mss: mss(record) };
        self.open.on_congestion(&event, &mut self.limits);
        self.limits.ssthresh.whole(mss(record)).min(MOST_SEGMENTS)
    }

    fn compare(&self, record: &Record, decided: Option<u64>) -> Option<Difference> {
        let mut inner = Inner::default();
        self.open.probe(&mut inner);
        let space = if self.limits.space == Bytes::MAX { 0 } else { self.limits.space.get() };
        let is_in = |mode| u64::from(record.values.mode == mode);
        let pairs = [
            ("the window in bytes", record.values.target_bytes, inner.window),
            ("space in bytes", record.values.space_bytes, space),
            ("rtt_min in us", record.values.rtt_min_us.into(), inner.rtt_min_us),
            ("the queueing delay in us", record.values.queueing_us.into(), inner.queueing_us),
            ("draining", is_in(DRAINING), inner.draining),
            ("competing", is_in(COMPETING), inner.competing),
            ("holding", is_in(HOLDING), inner.holding),
            ("cwnd in segments", record.values.cwnd_segments.into(), self.limits.cwnd.whole(mss(record))),
            ("an answer of the algorithm below that was not asked for", 0, self.told.rest()),
            ("the decision in segments", decided.map_or(0, |_| record.decided.into()), decided.unwrap_or(0)),
        ];
        let (what, kernel, ours) = pairs.into_iter().find(|(_, kernel, ours)| kernel != ours)?;
        Some(Difference { connection: record.connection, number: record.number, what, kernel, ours })
    }
}

/// The kernel's largest threshold.
const MOST_SEGMENTS: u64 = 0x7fff_ffff;

fn bytes(number: u32) -> Bytes {
    Bytes::new(number.into())
}

fn mss(record: &Record) -> Bytes {
    bytes(record.mss)
}

/// What the open mode takes from a sample of the delivery rate, behind `total` bytes: none are those of the handshake.
fn delivery(record: &Record, total: Bytes) -> Delivery {
    Delivery {
        total,
        total_when_sent: Bytes::ZERO,
        rate: None,
        app_limited: false,
        rtt: round_trip(record),
        ts_val: (record.ts_val > 0).then_some(record.ts_val),
        next_departure: Instant::ZERO,
    }
}

fn round_trip(record: &Record) -> Option<Duration> {
    (record.rtt_us > 0).then(|| Duration::from_micros(record.rtt_us.into()))
}

/// In place of the algorithm below: what the kernel's one answered.
#[derive(Debug, Clone, Default)]
struct Told(Arc<AtomicU64>);

impl Told {
    fn set(&self, answer: Bytes) {
        self.0.store(answer.get(), Ordering::Relaxed);
    }

    /// The answer, for which it was asked now.
    fn answer(&self) -> Option<Bytes> {
        let answer = self.0.swap(0, Ordering::Relaxed);
        (answer > 0).then_some(Bytes::new(answer))
    }

    /// The answer, if it was not asked for.
    fn rest(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl CongestionControl for Told {
    fn on_ack(&mut self, _ack: &Ack, limits: &mut Limits) {
        limits.cwnd = self.answer().unwrap_or(limits.cwnd);
    }

    fn on_congestion(&mut self, _event: &Congestion, limits: &mut Limits) {
        limits.ssthresh = self.answer().unwrap_or(Bytes::ZERO);
    }
}

/// The inner values of the open mode.
#[derive(Default)]
struct Inner {
    window: u64,
    rtt_min_us: u64,
    queueing_us: u64,
    draining: u64,
    competing: u64,
    holding: u64,
}

impl Probe for Inner {
    fn value(&mut self, name: &'static str, value: f64) {
        match name {
            "window_bytes" => self.window = value as u64,
            "rtt_min_ms" => self.rtt_min_us = (value * 1e3).round() as u64,
            "queueing_ms" => self.queueing_us = (value * 1e3).round() as u64,
            "draining" => self.draining = value as u64,
            "competing" => self.competing = value as u64,
            "holding" => self.holding = value as u64,
            _ => {}
        }
    }
}
