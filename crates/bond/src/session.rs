//! A session: streams over an aggregate over paths, without I/O.
//!
//! Bytes that a path's kernel acknowledged may still be lost with it, so bytes are kept until the other end's
//! *program* has said that it has them. A session outlives its connections: a path may go and come back as
//! often as it likes, and a session without any path waits.

use suimon_aggregation::{AggregateReceiver, AggregateSender, Feedback, LATE, Suspicion, Urgency};
use suimon_algorithms::estimate::shared_bottleneck::SharedBottlenecks;
use suimon_algorithms::path::{PathId, PathStatus};
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

use crate::frame::{DATA_HEADER, Frame, MAX_PATHS, RECORD, Received, data_header};
use crate::mux::{Class, Mux, MuxLimits, ServiceClass, Violation};
use crate::ring::Ring;

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// The scheduler, which chooses the path of each chunk.
    pub scheduler: AlgorithmSpec,
    /// Bytes that are held for reordering.
    pub reorder_buffer: Bytes,
    /// Bytes that are kept until the other end has them.
    pub send_buffer: Bytes,
    /// Bounds of the streams.
    pub mux: MuxLimits,
}

/// One end of a session.
#[derive(Debug)]
pub struct Session {
    /// The streams of the session.
    pub mux: Mux,
    sender: AggregateSender,
    receiver: AggregateReceiver,
    /// From the first byte that the other end may lack to the last produced.
    outbox: Ring,
    send_buffer: Bytes,
    reorder_buffer: Bytes,
    /// Ranges that may wait for others: what remembers them takes less memory than the reorder buffer.
    most_pieces: usize,
    paths: [Path; MAX_PATHS],
    feedback_at: Option<Instant>,
    /// The second path for feedback that just went over a silent one.
    repeat_over: Option<PathId>,
    /// Bytes that came since the last feedback.
    unreported: u64,
    duplicates: Bytes,
    /// Bytes of flows that go before all others.
    realtime: Bytes,
    /// The time of the last data of those, and of flows that begin or send little while other data is under way.
    urgent_at: Option<Instant>,
    bottlenecks: SharedBottlenecks,
}

/// What a connection is for, beside bulk data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Real-time data is sent, or that of flows that begin or send little while other data is under way.
    pub is_urgent: bool,
    /// Its path goes through the bottleneck of a shorter one, which competes there with others for both.
    pub is_second: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Path {
    up: bool,
    attempt: u32,
    status: Option<PathStatus>,
    /// Bytes of data that came over this connection, up to the first that is missing of what it was given.
    received: u64,
    /// Bytes of data that were given to it.
    given: u64,
    /// Bytes of data that the other end has of it.
    delivered: u64,
    /// The time when something came over it last.
    heard_at: Instant,
    /// The part of its segments that was lost of late.
    loss: Probability,
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionView {
    /// Bytes of the aggregate that this end has produced.
    pub produced: u64,
    /// Of these, bytes that the other end has in order.
    pub acknowledged: u64,
    /// Bytes that this end has in order.
    pub received: u64,
    /// Bytes that wait here for others of their streams.
    pub reorder_held: u64,
    /// Bytes that came twice.
    pub duplicates: u64,
    /// Bytes of real-time and redundant flows that this end has produced.
    pub realtime: u64,
    /// Bytes that this end gave to a second path too: of redundant flows, and of paths that were late.
    pub copied: u64,
    /// Bytes that streams hold here.
    pub streams_held: u64,
    /// Bytes kept until the other end has them.
    pub send_held: u64,
}

impl Session {
    /// A session of which nothing is known; a client `opens` streams.
    #[must_use]
    pub fn new(opens: bool, config: &SessionConfig) -> Self {
        let scheduler = config.scheduler.build_path();
        let mut sender = AggregateSender::new(scheduler, MAX_PATHS, Bytes::new(RECORD as u64), true);
        sender.set_suspicion(Suspicion::Late);
        Self {
            mux: Mux::new(opens, config.mux),
            sender,
            receiver: AggregateReceiver::new(config.reorder_buffer),
            outbox: Ring::default(),
            send_buffer: config.send_buffer,
            reorder_buffer: config.reorder_buffer,
            most_pieces: (config.reorder_buffer.get() / PIECE).max(MIN_PIECES) as usize,
            paths: [Path::default(); MAX_PATHS],
            feedback_at: None,
            repeat_over: None,
            unreported: 0,
            duplicates: Bytes::ZERO,
            realtime: Bytes::ZERO,
            urgent_at: None,
            bottlenecks: SharedBottlenecks::new(MAX_PATHS),
        }
    }

    /// The other end holds `reorder_buffer` bytes for reordering.
    pub fn on_peer_buffer(&mut self, reorder_buffer: Bytes) {
        self.sender.on_feedback(Feedback { next: 0, edge: reorder_buffer.get() });
    }

    /// The `attempt`-th connection over `path` is established.
    pub fn path_up(&mut self, now: Instant, path: PathId, attempt: u32) {
        if self.paths[path.0].up {
            self.path_down(now, path);
        }
        self.paths[path.0] = Path { up: true, attempt, heard_at: now, ..Path::default() };
        self.sender.path_up(now, path);
        self.feedback_at = Some(now);
    }

    /// The connection over `path` is gone; data that it may not have delivered goes over others.
    pub fn path_down(&mut self, now: Instant, path: PathId) {
        if std::mem::take(&mut self.paths[path.0].up) {
            self.sender.path_down(path);
            self.bottlenecks.forget(path.0);
            // The path's last feedback to the other end may be lost.
            self.feedback_at = Some(now);
        }
    }

    /// The latest reading of the connection over `path`, and whether its kernel `acknowledged` something since
    /// the one before.
    pub fn on_occupancy(&mut self, now: Instant, path: PathId, status: PathStatus, acknowledged: bool) {
        self.paths[path.0].status = Some(status);
        if let Some(rtt) = status.rtt {
            self.bottlenecks.on_sample(now, path.0, rtt.srtt);
        }
        self.sender.on_occupancy(now, path, status, acknowledged);
    }

    /// The part of what this end sent over `path` of late that was lost.
    pub fn on_loss(&mut self, path: PathId, loss: Probability) {
        self.paths[path.0].loss = loss;
    }

    /// Data came over `path`.
    ///
    /// # Errors
    /// The other end broke the protocol.
    pub fn on_data(&mut self, now: Instant, path: PathId, start: u64, bytes: &[u8]) -> Result<(), Violation> {
        let end = start + bytes.len() as u64;
        if end > self.receiver.feedback().edge {
            return Err(Violation("data beyond the reorder buffer"));
        }
        let len = Bytes::new(bytes.len() as u64);
        let fresh = self.receiver.fresh(start, len);
        let arrived = self.receiver.on_chunk(start, len);
        if self.receiver.pieces() > self.most_pieces {
            return Err(Violation("data in more pieces than paths could make"));
        }
        self.duplicates += arrived.duplicate;
        self.paths[path.0].heard_at = now;
        self.unreported += bytes.len() as u64;
        let wait = if self.unreported >= REPORT_AFTER { MIN_WAIT } else { MAX_WAIT };
        self.feedback_at = Some(self.feedback_at.map_or(now + wait, |at| at.min(now + wait)));
        // Streams do not wait for each other: each has its own order.
        for part in fresh {
            self.mux.receive(&bytes[(part.start - start) as usize..(part.end - start) as usize])?;
        }
        if self.mux.early() > self.reorder_buffer.get() {
            return Err(Violation("data beyond the reorder buffer"));
        }
        if self.mux.pieces() > self.most_pieces {
            return Err(Violation("data in more pieces than paths could make"));
        }
        Ok(())
    }

    /// So many bytes of data have come over the connection of `path` in all, up to the first that is missing of what it was given. The
    /// other end knows by their number which they are.
    pub fn on_received(&mut self, path: PathId, bytes: u64) {
        self.paths[path.0].received = bytes;
    }

    /// Takes in the other end's feedback, which came over `path`.
    ///
    /// # Errors
    /// The feedback is about bytes that were never sent.
    pub fn on_feedback(
        &mut self,
        now: Instant,
        path: PathId,
        feedback: Feedback,
        received: &[Received],
    ) -> Result<(), Violation> {
        if feedback.next > self.outbox.end() {
            return Err(Violation("feedback on what was never sent"));
        }
        for received in received {
            let path = &mut self.paths[usize::from(received.path)];
            if !path.up || path.attempt != received.attempt || received.bytes <= path.delivered {
                continue;
            }
            if received.bytes > path.given {
                return Err(Violation("feedback on what was never sent"));
            }
            let news = Bytes::new(received.bytes - path.delivered);
            path.delivered = received.bytes;
            self.sender.on_delivered(now, PathId(usize::from(received.path)), news);
        }
        self.sender.on_feedback(feedback);
        self.sender.on_report(now, path);
        self.outbox.forget_before(feedback.next);
        self.mux.on_arrived(|place| self.sender.is_missing(place));
        Ok(())
    }

    /// Something came over `path`.
    pub fn on_heard(&mut self, now: Instant, path: PathId) {
        self.paths[path.0].heard_at = now;
    }

    /// Appends the next data frame to `out` and says which path it is for; `None` where it is better to wait.
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<PathId> {
        self.produce(now);
        let chunk = self.sender.next(now)?;
        let len = chunk.len.get();
        data_header(chunk.start, len as usize, out);
        self.outbox.copy(chunk.start, len as usize, out);
        self.paths[chunk.path.0].given += len;
        if !self.sender.is_urgent(chunk.start) {
            self.mux.on_sent(len as usize);
        }
        Some(chunk.path)
    }

    /// Whether data was sent of late that waits for no other. Frames of control do not count, nor does a flow that
    /// begins while no other data is under way.
    #[must_use]
    pub fn has_sent_urgent(&self, now: Instant) -> bool {
        self.urgent_at.is_some_and(|at| now.saturating_since(at) < URGENT_RECENTLY)
    }

    /// The part of the connection over `path`. Of paths through one bottleneck the shortest competes with others for all of them, so that
    /// together they take there what one connection takes (RFC 6356 §1, goal 2), and no less than the best of them alone (goal 1).
    #[must_use]
    pub fn part(&self, now: Instant, path: PathId) -> Part {
        let length = |path: PathId| (self.paths[path.0].status.and_then(|status| status.rtt_min), path);
        let goes_first = |other: PathId| {
            !self.sender.is_stalled(other) && length(other).0.is_some() && length(other) < length(path)
        };
        Part { is_urgent: self.has_sent_urgent(now), is_second: self.sharing(path).any(goes_first) }
    }

    /// Other paths through the bottleneck of `path`, as far as is known.
    pub fn sharing(&self, path: PathId) -> impl Iterator<Item = PathId> {
        let shares = move |other: &usize| *other != path.0 && self.bottlenecks.is_shared(path.0, *other);
        (0..MAX_PATHS).filter(shares).map(PathId)
    }

    /// Bytes that a path is given at once.
    #[must_use]
    pub fn chunk(&self) -> Bytes {
        self.sender.chunk()
    }

    /// Whether data waits for a path.
    #[must_use]
    pub fn has_data(&self) -> bool {
        self.mux.has_data() || self.sender.unassigned() > Bytes::ZERO
    }

    /// The feedback for the other end, and the path to send it over, once it is time. Where that path is silent, it may be cut, so the
    /// feedback goes over the next one too.
    pub fn feedback(&mut self, now: Instant) -> Option<(PathId, Frame<'static>)> {
        if let Some(path) = self.repeat_over.take().filter(|path| self.paths[path.0].up) {
            return Some((path, self.report()));
        }
        self.feedback_at.filter(|at| *at <= now)?;
        let path = self.quickest(now, |_| true)?;
        if now.saturating_since(self.paths[path.0].heard_at) > LATE {
            self.repeat_over = self.quickest(now, |other| other != path);
        }
        Some((path, self.report()))
    }

    /// The feedback for the other end.
    pub fn report(&mut self) -> Frame<'static> {
        self.feedback_at = None;
        self.unreported = 0;
        let up = self.paths.iter().enumerate().filter(|(_, path)| path.up);
        let received = up.map(|(index, path)| Received {
            path: index as u8,
            attempt: path.attempt,
            bytes: path.received,
        });
        Frame::Feedback(self.receiver.feedback(), received.collect())
    }

    /// The time to ask again though nothing happened.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let feedback = self.feedback_at.filter(|_| self.paths.iter().any(|path| path.up));
        [feedback, self.sender.next_wakeup()].into_iter().flatten().min()
    }

    /// Whether data is under way over `path` and none of it arrives.
    #[must_use]
    pub fn is_stalled(&self, path: PathId) -> bool {
        self.sender.is_stalled(path)
    }

    /// Whether all that was produced has arrived, and nothing waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.mux.has_data() && self.sender.is_complete()
    }

    /// The state of the session.
    #[must_use]
    pub fn view(&self) -> SessionView {
        SessionView {
            produced: self.outbox.end(),
            acknowledged: self.sender.acknowledged(),
            received: self.receiver.next(),
            reorder_held: self.mux.early(),
            duplicates: self.duplicates.get(),
            realtime: self.realtime.get(),
            copied: self.sender.copied().get(),
            streams_held: self.mux.held(),
            send_held: self.outbox.len() as u64,
        }
    }

    /// Bytes of data that came over the connection of `path`, and bytes given to it that the other end has.
    #[must_use]
    pub fn carried(&self, path: PathId) -> (u64, u64) {
        (self.paths[path.0].received, self.paths[path.0].delivered)
    }

    /// The path over which news arrives soonest, of those that have shown to work of late.
    fn quickest(&self, now: Instant, may: impl Fn(PathId) -> bool) -> Option<PathId> {
        let up = self.paths.iter().enumerate().filter(|(index, path)| path.up && may(PathId(*index)));
        up.min_by_key(|(index, path)| {
            let silent = now.saturating_since(path.heard_at) > HEARD_RECENTLY;
            let srtt = path.status.and_then(|status| status.rtt).map(|rtt| rtt.srtt);
            (self.sender.is_stalled(PathId(*index)), silent, srtt.unwrap_or(Duration::MAX))
        })
        .map(|(index, _)| PathId(index))
    }

    /// Takes from the streams as much as can be placed by now, and no more: what waits in them is still in turn.
    fn produce(&mut self, now: Instant) {
        let chunk = self.set_chunk(now);
        if let Some((class, urgency)) = self.urgent_class(now)
            && self.sender.path_for(now, Bytes::new(chunk), urgency).is_some()
            && self.has_room()
        {
            let before = self.outbox.end();
            // A short queue would only slow a download that begins alone, as nothing waits behind other data.
            if class != Class::Urgent || (self.mux.has_young() && self.sender.has_bulk()) {
                self.urgent_at = Some(now);
            }
            self.mux.produce(&mut self.outbox, chunk as usize, class);
            self.sender.produce_group(self.outbox.end(), urgency);
            if class != Class::Urgent {
                self.realtime += Bytes::new(self.outbox.end() - before);
            }
        }
        let wanted = self.wanted(chunk);
        let mut unassigned = self.sender.unassigned();
        while unassigned < wanted && self.has_room() {
            let before = self.outbox.end();
            if !self.mux.produce(&mut self.outbox, chunk as usize, Class::Bulk) {
                break;
            }
            self.sender.produce_group(self.outbox.end(), Urgency::None);
            unassigned += Bytes::new(self.outbox.end() - before);
        }
    }

    /// What goes first, of what waits for no other.
    fn urgent_class(&self, now: Instant) -> Option<(Class, Urgency)> {
        let classes = [
            (Class::Redundant, Urgency::Twice, self.mux.has_data_of(ServiceClass::Redundant)),
            (Class::Realtime, self.of_realtime(now), self.mux.has_data_of(ServiceClass::Realtime)),
            (Class::Urgent, Urgency::First, self.mux.has_urgent()),
        ];
        classes.into_iter().find(|(_, _, waits)| *waits).map(|(class, urgency, _)| (class, urgency))
    }

    /// Real-time data goes over two paths where its best one loses more than a call bears, and a copy comes before a retransmission.
    fn of_realtime(&self, now: Instant) -> Urgency {
        match self.sender.beaten_by_a_copy(now, self.sender.chunk()) {
            Some(best) if self.paths[best.0].loss.get() > TOLERABLE_LOSS => Urgency::Twice,
            _ => Urgency::First,
        }
    }

    fn has_room(&self) -> bool {
        (self.outbox.len() as u64) < self.send_buffer.get()
    }

    /// What is known of the paths that are up and make progress.
    fn known(&self) -> impl Iterator<Item = Known> {
        let moves = |(index, path): &(usize, &Path)| path.up && !self.sender.is_stalled(PathId(*index));
        self.paths.iter().enumerate().filter(moves).filter_map(|(_, path)| Known::of(&path.status?))
    }

    /// Fits the size of chunks to the paths. Beside urgent data they are as short as can be, as it waits for the one that its path
    /// sends.
    fn set_chunk(&mut self, now: Instant) -> u64 {
        let (least, wanted) = if self.has_sent_urgent(now) { (1, 1) } else { (MIN_SEGMENTS, LEAN_SEGMENTS) };
        let rate: Rate = self.known().map(|path| path.rate).sum();
        let mss = self.known().map(|path| path.mss).min().unwrap_or(ETHERNET_MSS);
        let room = self.known().map(|path| path.send_buffer.get() / mss).min().unwrap_or(u64::MAX);
        let most = (room / MIN_CHUNKS).clamp(least, MAX_SEGMENTS);
        let segments = (rate.amount_in(CHUNK_TIME).get() / mss).max(wanted).clamp(least, most);
        let chunk = (segments * mss).saturating_sub(OVERHEAD).clamp(1, RECORD as u64);
        self.sender.set_chunk(Bytes::new(chunk));
        chunk
    }

    /// The slowest with a chunk more, the others as they are: as far ahead as look-ahead may ask for.
    fn wanted(&self, chunk: u64) -> Bytes {
        let last = self.known().map(|path| path.delay(Bytes::new(chunk))).max().unwrap_or_default();
        let ahead =
            self.known().map(|path| path.rate.amount_in(last.saturating_sub(path.delay(Bytes::ZERO))).get());
        Bytes::new(ahead.sum::<u64>() + 3 * chunk)
    }
}

/// The measurements that decide how far ahead a path takes data.
struct Known {
    rate: Rate,
    buffered: Bytes,
    send_buffer: Bytes,
    rtt_min: Duration,
    mss: u64,
}

impl Known {
    fn of(status: &PathStatus) -> Option<Self> {
        let srtt = status.rtt?.srtt;
        let rate = status.delivery_rate.unwrap_or_else(|| Rate::of(status.cwnd, srtt));
        let rtt_min = status.rtt_min.unwrap_or(srtt);
        let PathStatus { buffered, send_buffer, mss, .. } = *status;
        Some(Self { rate, buffered, send_buffer, rtt_min, mss: mss.get().max(1) })
    }

    /// The delay until data taken now arrives, if the path takes `more`.
    fn delay(&self, more: Bytes) -> Duration {
        let drained = self.rate.transmission_time(self.buffered + more).min(MAX_DELAY);
        drained.max(self.rtt_min).saturating_sub(self.rtt_min / 2)
    }
}

/// A chunk takes about so long over all paths together: what comes behind it on its path waits for it.
const CHUNK_TIME: Duration = Duration::from_micros(1_500);
/// Fewer would cost more than two percent in headers.
const MIN_SEGMENTS: u64 = 2;
/// Fewer cost more than one percent in headers. A path with room for fewer than [`MIN_CHUNKS`] such chunks would lose more than that.
const LEAN_SEGMENTS: u64 = 4;
/// More do not fit a record of TLS.
const MAX_SEGMENTS: u64 = 11;
/// A send buffer that held fewer would be empty before this program sees that there is room.
const MIN_CHUNKS: u64 = 4;
/// The segment size of a connection that has not told its own.
const ETHERNET_MSS: u64 = 1448;
/// A record's head, type and tag (RFC 8446 §5.2) and a data frame's head.
const OVERHEAD: u64 = 22 + DATA_HEADER as u64;
/// No data is produced further ahead than this for a slow path's sake: what comes after it waits for it. Longer than one way over a
/// geostationary satellite (ITU-T G.114: 260 ms) with a queue.
const MAX_DELAY: Duration = Duration::from_millis(500);
/// Bytes of data that are reported soon; fewer are reported after a while.
const REPORT_AFTER: u64 = 8 * 1024;
const MIN_WAIT: Duration = Duration::from_millis(1);
const MAX_WAIT: Duration = Duration::from_millis(5);
/// Memory that remembers one range, at most: two numbers in a tree whose nodes are half full, and the tree's own.
const PIECE: u64 = 64;
/// Chunks that may be under way over the slower paths of a small buffer, when each is a stream's shortest frame.
const MIN_PIECES: u64 = 4_096;
/// A call that said nothing for so long is taken to be over, as is somebody's look at pages.
const URGENT_RECENTLY: Duration = Duration::from_secs(2);
/// The loss up to which real-time data goes over one path: the objective for real-time traffic of ITU-T Y.1541 (Table 1, classes 0 and 1).
const TOLERABLE_LOSS: f64 = 1e-3;
/// A path that carried something in this time is taken to work.
const HEARD_RECENTLY: Duration = Duration::from_millis(300);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::frame::decode;
    use crate::mux::{Event, StreamId};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};
    use suimon_algorithms::path::Rtt;
    use suimon_algorithms::registry::{Role, descriptions};

    const PATHS: usize = 3;

    pub(crate) fn config(scheduler: &str, reorder_buffer: u64) -> SessionConfig {
        SessionConfig {
            scheduler: AlgorithmSpec::parse(Role::Path, scheduler).unwrap(),
            reorder_buffer: Bytes::new(reorder_buffer),
            send_buffer: Bytes::new(200_000),
            mux: MuxLimits {
                streams: 8,
                window: 4_000,
                window_most: 64_000,
                pool: 200_000,
                queue: 100_000,
                packets: 10_000,
            },
        }
    }

    /// A connection: the bytes that each end wrote and the other has not yet read.
    #[derive(Debug, Default)]
    struct Pipe {
        up: bool,
        attempt: u32,
        /// From the client, and from the server.
        bytes: [VecDeque<u8>; 2],
        /// Data bytes among them, for the senders' send buffers.
        held: [u64; 2],
        /// Data bytes that each end has taken in.
        came: [u64; 2],
    }

    struct World {
        now: Instant,
        ends: [Session; 2],
        pipes: [Pipe; PATHS],
        partial: [[Vec<u8>; PATHS]; 2],
        heartbeat_at: Instant,
    }

    impl World {
        fn new(scheduler: &str, reorder_buffer: u64) -> Self {
            Self::with(&config(scheduler, reorder_buffer))
        }

        fn with(config: &SessionConfig) -> Self {
            let mut ends = [Session::new(true, config), Session::new(false, config)];
            for end in &mut ends {
                end.on_peer_buffer(config.reorder_buffer);
                end.mux.on_peer_limits(config.mux.window, config.mux.streams);
            }
            Self {
                now: Instant::ZERO,
                ends,
                pipes: Default::default(),
                partial: Default::default(),
                heartbeat_at: Instant::ZERO,
            }
        }

        fn break_path(&mut self, path: usize) {
            if std::mem::take(&mut self.pipes[path].up) {
                self.pipes[path].bytes = Default::default();
                self.pipes[path].held = [0; 2];
                self.pipes[path].came = [0; 2];
                for end in 0..2 {
                    self.ends[end].path_down(self.now, PathId(path));
                    self.partial[end][path].clear();
                }
            }
        }

        fn mend_path(&mut self, path: usize) {
            if !self.pipes[path].up {
                self.pipes[path].up = true;
                self.pipes[path].attempt += 1;
                for end in &mut self.ends {
                    end.path_up(self.now, PathId(path), self.pipes[path].attempt);
                }
            }
        }

        /// Path `path` carries `bytes` each way.
        fn deliver(&mut self, path: usize, bytes: usize) {
            for from in 0..2 {
                let pipe = &mut self.pipes[path];
                let count = bytes.min(pipe.bytes[from].len());
                let part: Vec<u8> = pipe.bytes[from].drain(..count).collect();
                pipe.held[from] = pipe.held[from].saturating_sub(count as u64);
                let to = 1 - from;
                self.partial[to][path].extend(part);
                let mut inbox = std::mem::take(&mut self.partial[to][path]);
                let mut at = 0;
                while let Some((frame, len)) = decode(&inbox[at..]).unwrap() {
                    match frame {
                        Frame::Data { start, bytes } => {
                            self.ends[to].on_data(self.now, PathId(path), start, bytes).unwrap();
                            self.pipes[path].came[to] += bytes.len() as u64;
                            self.ends[to].on_received(PathId(path), self.pipes[path].came[to]);
                        }
                        Frame::Feedback(feedback, received) => {
                            self.ends[to].on_feedback(self.now, PathId(path), feedback, &received).unwrap();
                        }
                        other => panic!("{other:?}"),
                    }
                    at += len;
                }
                inbox.drain(..at);
                self.partial[to][path] = inbox;
            }
        }

        /// Reads the connections of an end, as a driver does.
        fn look(&mut self, from: usize) {
            for (index, pipe) in self.pipes.iter().enumerate().filter(|(_, pipe)| pipe.up) {
                let srtt = Duration::from_millis(10 + 90 * index as u64);
                let status = PathStatus {
                    buffered: Bytes::new(pipe.held[from]),
                    unsent: Bytes::ZERO,
                    send_buffer: Bytes::new(30_000),
                    cwnd: Bytes::new(14_480),
                    mss: Bytes::new(1_448),
                    rtt: Some(Rtt { srtt, rttvar: Duration::ZERO }),
                    rtt_min: Some(srtt),
                    delivery_rate: None,
                    is_recovering: false,
                };
                self.ends[from].on_occupancy(self.now, PathId(index), status, false);
            }
        }

        fn transmit(&mut self) {
            let beats = self.now >= self.heartbeat_at;
            if beats {
                self.heartbeat_at = self.now + Duration::from_millis(500);
            }
            for from in 0..2 {
                let report = beats.then(|| {
                    let mut bytes = Vec::new();
                    self.ends[from].report().encode(&mut bytes);
                    bytes
                });
                for pipe in self.pipes.iter_mut().filter(|pipe| pipe.up) {
                    pipe.bytes[from].extend(report.iter().flatten());
                    pipe.held[from] += report.as_ref().map_or(0, |report| report.len() as u64);
                }
                self.look(from);
                let mut frame = Vec::new();
                loop {
                    frame.clear();
                    let path = match self.ends[from].feedback(self.now) {
                        Some((path, report)) => {
                            report.encode(&mut frame);
                            path
                        }
                        None => match self.ends[from].transmit(self.now, &mut frame) {
                            Some(path) => path,
                            None => break,
                        },
                    };
                    let pipe = &mut self.pipes[path.0];
                    assert!(pipe.up, "nothing goes over a path that is down");
                    pipe.bytes[from].extend(&frame);
                    pipe.held[from] += frame.len() as u64;
                }
            }
        }

        fn events(&mut self, end: usize) -> Vec<Event> {
            std::iter::from_fn(|| self.ends[end].mux.poll_event()).collect()
        }
    }

    /// The `index`th byte of a stream in a direction.
    fn byte(stream: StreamId, end: usize, index: usize) -> u8 {
        (index * 31 + index / 251 + stream as usize * 7 + end * 101) as u8
    }

    #[derive(Debug, Clone)]
    enum Step {
        Deliver { path: usize, bytes: usize },
        Break { path: usize },
        Mend { path: usize },
        Wait { ms: u64 },
        Write { end: usize, stream: u32, bytes: usize },
        Read { end: usize, stream: u32 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..PATHS, 1..9_000_usize).prop_map(|(path, bytes)| Step::Deliver { path, bytes }),
            1 => (0..PATHS).prop_map(|path| Step::Break { path }),
            2 => (0..PATHS).prop_map(|path| Step::Mend { path }),
            2 => (1..400_u64).prop_map(|ms| Step::Wait { ms }),
            5 => (0..2_usize, 0..STREAMS, 1..20_000_usize)
                .prop_map(|(end, stream, bytes)| Step::Write { end, stream, bytes }),
            5 => (0..2_usize, 0..STREAMS).prop_map(|(end, stream)| Step::Read { end, stream }),
        ]
    }

    const STREAMS: u32 = 3;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

        /// Whatever paths do: each stream brings all written data, once, in order, in both
        /// directions, and no end holds more than it may.
        #[test]
        fn streams_survive_what_paths_do(
            steps in prop::collection::vec(step(), 1..200),
            reorder_buffer in 20_000..60_000_u64,
        ) {
            for scheduler in descriptions(Role::Path) {
                let mut world = World::new(scheduler.name, reorder_buffer);
                for stream in 0..STREAMS {
                    prop_assert_eq!(world.ends[0].mux.open(ServiceClass::Default, &"x:1".parse().unwrap()), Some(stream));
                }
                let mut written = BTreeMap::new();
                let mut read: BTreeMap<(usize, u32), usize> = BTreeMap::new();
                let mut ended = 0;
                let quiet = [Step::Mend { path: 0 }, Step::Wait { ms: 1 }].into_iter().chain((0..400).flat_map(|_| {
                    let reads = (0..2).flat_map(|end| (0..STREAMS).map(move |stream| Step::Read { end, stream }));
                    [Step::Deliver { path: 0, bytes: 40_000 }].into_iter().chain(reads)
                }));
                let all: Vec<_> = steps.iter().cloned().chain(quiet).collect();
                for (index, step) in all.into_iter().enumerate() {
                    match step {
                        Step::Deliver { path, bytes } => world.deliver(path, bytes),
                        Step::Break { path } => world.break_path(path),
                        Step::Mend { path } => world.mend_path(path),
                        Step::Wait { ms } => world.now += Duration::from_millis(ms),
                        Step::Write { end, stream, bytes } => {
                            let done = written.entry((end, stream)).or_insert(0);
                            if let Ok(room) = world.ends[end].mux.room(stream) {
                                let count = room.min(bytes);
                                let data: Vec<_> = (*done..*done + count).map(|i| byte(stream, end, i)).collect();
                                world.ends[end].mux.write(stream, &data).unwrap();
                                *done += count;
                            }
                        }
                        Step::Read { end, stream } => {
                            if let Ok(Some(bytes)) = world.ends[end].mux.take(stream) {
                                let from = read.entry((1 - end, stream)).or_insert(0);
                                for (offset, got) in bytes.iter().enumerate() {
                                    prop_assert_eq!(*got, byte(stream, 1 - end, *from + offset));
                                }
                                *from += bytes.len();
                                world.ends[end].mux.consumed(stream, bytes.len());
                            } else if let Ok(None) = world.ends[end].mux.take(stream) {
                                ended |= 1 << (end as u32 * STREAMS + stream);
                            }
                        }
                    }
                    if index == steps.len() {
                        for end in 0..2 {
                            for stream in 0..STREAMS {
                                world.ends[end].mux.end(stream);
                            }
                        }
                    }
                    world.now += Duration::from_millis(2);
                    world.transmit();
                    for end in 0..2 {
                        for event in world.events(end) {
                            prop_assert!(!matches!(event, Event::Reset(_)));
                        }
                        let view = world.ends[end].view();
                        prop_assert!(view.reorder_held <= reorder_buffer);
                        prop_assert!(view.send_held <= 200_000 + 70_000);
                    }
                }
                // A stream that the server never heard of cannot be written there.
                written.retain(|_, count| *count > 0);
                read.retain(|_, count| *count > 0);
                prop_assert_eq!(&read, &written, "{}", scheduler.name);
                prop_assert_eq!(ended & 0b111_000, 0b111_000, "every end comes: {}", scheduler.name);
                prop_assert!(world.ends[0].is_idle() && world.ends[1].is_idle(), "{}", scheduler.name);
            }
        }
    }

    /// Ten thousand streams are open at once, over paths of which one breaks now and then, and each brings what was written.
    #[test]
    fn ten_thousand_streams_at_once_each_bring_their_own() {
        const STREAMS: u32 = 10_000;
        let mut config = config("look-ahead", 1_000_000);
        config.mux = MuxLimits { streams: STREAMS, pool: 1_000_000, ..config.mux };
        let mut world = World::with(&config);
        (0..PATHS).for_each(|path| world.mend_path(path));
        for stream in 0..STREAMS {
            assert_eq!(world.ends[0].mux.open(ServiceClass::Default, &"x:1".parse().unwrap()), Some(stream));
            let bytes: Vec<_> = (0..300).map(|index| byte(stream, 0, index)).collect();
            world.ends[0].mux.write(stream, &bytes).unwrap();
        }
        assert_eq!(world.ends[0].mux.open(ServiceClass::Default, &"x:1".parse().unwrap()), None);
        let mut came = vec![0; STREAMS as usize];
        for round in 0..4_000 {
            if round % 50 == 10 {
                world.break_path(round / 50 % PATHS);
            }
            (0..PATHS).for_each(|path| world.deliver(path, 20_000));
            if round % 50 == 30 {
                (0..PATHS).for_each(|path| world.mend_path(path));
            }
            world.now += Duration::from_millis(2);
            world.transmit();
            for event in world.events(1) {
                let Event::Readable(stream) = event else { continue };
                let bytes = world.ends[1].mux.take(stream).unwrap().unwrap();
                let place = &mut came[stream as usize];
                assert!(bytes.iter().enumerate().all(|(at, got)| *got == byte(stream, 0, *place + at)));
                *place += bytes.len();
                world.ends[1].mux.consumed(stream, bytes.len());
            }
        }
        assert!(
            came.iter().all(|count| *count == 300),
            "{} bytes are missing",
            3_000_000 - came.iter().sum::<usize>()
        );
        assert_eq!(world.ends[1].mux.open_streams(), STREAMS as usize, "all are open still");
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let mux = prop::collection::vec(prop_oneof![3 => 0..8_u8, 1 => any::<u8>()], 1..60);
        let data = (0..4_u64, mux.clone()).prop_map(|(at, bytes)| {
            let mut frame = Vec::new();
            Frame::Data { start: at * at * at * 100, bytes: &bytes }.encode(&mut frame);
            frame
        });
        let feedback = (0..3_u64, 0..70_000_u64, 0..3_u8, 0..9_u64).prop_map(|(next, edge, path, bytes)| {
            let mut frame = Vec::new();
            let received = Received { path, attempt: 1, bytes };
            Frame::Feedback(Feedback { next, edge: next + edge }, vec![received]).encode(&mut frame);
            frame
        });
        prop_oneof![8 => data, 1 => feedback, 1 => mux]
    }

    proptest! {
        /// As the fuzz target: taken or refused, never a panic, never more held than was granted.
        #[test]
        fn whatever_comes_is_taken_or_refused(pieces in prop::collection::vec(piece(), 1..40)) {
            let mut session = Session::new(false, &config("look-ahead", 3_000));
            session.on_peer_buffer(Bytes::new(3_000));
            session.path_up(Instant::ZERO, PathId(0), 1);
            let bytes = pieces.concat();
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
                prop_assert!(view.reorder_held <= 3_000);
                prop_assert!(view.streams_held <= 8 * 4_000);
                if taken.is_err() {
                    break;
                }
            }
        }
    }

    /// Connects both ends by path 0 and takes the client's first frame.
    fn first_frame() -> (World, Vec<u8>) {
        let mut world = World::new("look-ahead", 50_000);
        world.mend_path(0);
        world.ends[0].mux.open(ServiceClass::Default, &"x:1".parse().unwrap()).unwrap();
        world.ends[0].mux.write(0, &[1; 3_000]).unwrap();
        world.transmit();
        let bytes = world.pipes[0].bytes[0].iter().copied().collect();
        (world, bytes)
    }

    #[test]
    fn data_beyond_the_reorder_buffer_and_feedback_on_what_was_never_sent_are_violations() {
        let (mut world, _) = first_frame();
        let server = &mut world.ends[1];
        // The frame of an empty packet.
        let frame = [7, 0, 0, 0];
        assert!(server.on_data(Instant::ZERO, PathId(0), 49_997, &frame).is_err());
        assert!(server.on_data(Instant::ZERO, PathId(0), 49_996, &frame).is_ok());
        let feedback = |next| Feedback { next, edge: next + 1 };
        assert!(server.on_feedback(Instant::ZERO, PathId(0), feedback(1), &[]).is_err());
        let received = Received { path: 0, attempt: 1, bytes: 1 };
        assert!(server.on_feedback(Instant::ZERO, PathId(0), feedback(0), &[received]).is_err());
        let stale = Received { attempt: 0, ..received };
        assert!(server.on_feedback(Instant::ZERO, PathId(0), feedback(0), &[stale]).is_ok());
    }

    /// A client and a server with a stream that both know, beside one that fills both paths.
    fn busy() -> (World, StreamId) {
        let config = config("least-buffered", 100_000);
        let mut world =
            World::with(&SessionConfig { mux: MuxLimits { window: 60_000, ..config.mux }, ..config });
        let [bulk, small] = [0, 1].map(|path| {
            world.mend_path(path);
            world.ends[0].mux.open(ServiceClass::Default, &"x:1".parse().unwrap()).unwrap()
        });
        for _ in 0..3 {
            world.transmit();
            (0..2).for_each(|path| world.deliver(path, 1_000));
            world.now += Duration::from_millis(10);
        }
        world.ends[0].mux.write(bulk, &[0; 60_000]).unwrap();
        // A segment at a time: of what begins over the quick path, and of the rest over both.
        (0..18).for_each(|_| world.transmit());
        let held = [0, 1].map(|path| world.pipes[path].held[0]);
        assert!(held.iter().all(|held| *held > 0), "both are busy: {held:?}");
        (world, small)
    }

    #[test]
    fn a_gap_on_one_path_delays_no_stream_that_has_no_data_in_it() {
        let (mut world, small) = busy();
        world.ends[0].mux.write(small, &[7; 500]).unwrap();
        let mut sent = Vec::new();
        world.ends[0].transmit(world.now, &mut sent).unwrap();
        let Ok(Some((Frame::Data { start, bytes }, _))) = decode(&sent) else { panic!("data") };
        // All that was sent before it is missing.
        let before = world.ends[1].view().received;
        assert!(start > before + 10_000, "{start}, {before}");
        world.ends[1].on_data(world.now, PathId(1), start, bytes).unwrap();
        assert_eq!(world.ends[1].mux.take(small), Ok(Some(vec![7; 500])));
        assert_eq!(world.ends[1].view().reorder_held, 0, "nothing waits for others");
        // Nor is it taken twice.
        world.ends[1].on_data(world.now, PathId(0), start, bytes).unwrap();
        assert_eq!(world.ends[1].mux.take(small), Ok(Some(Vec::new())));
    }

    /// As over QUIC, where a chunk that was lost is sent again while others pass it.
    #[test]
    fn a_connection_that_ends_with_a_gap_behind_which_data_came_loses_nothing() {
        let config = config("lowest-rtt", 50_000);
        let mut world =
            World::with(&SessionConfig { mux: MuxLimits { window: 60_000, ..config.mux }, ..config });
        for path in 0..2 {
            world.mend_path(path);
        }
        let stream = world.ends[0].mux.open(ServiceClass::Default, &"x:1".parse().unwrap()).unwrap();
        for _ in 0..3 {
            world.transmit();
            (0..2).for_each(|path| world.deliver(path, 10_000));
            world.now += Duration::from_millis(10);
        }
        world.ends[0].mux.write(stream, &[7; 8_000]).unwrap();
        let chunks = [0, 1].map(|_| {
            world.look(0);
            written(&mut world).unwrap()
        });
        let [(_, first, _), (path, start, bytes)] = &chunks;
        assert!(chunks.iter().all(|chunk| chunk.0 == PathId(0)), "over the quick path");
        world.ends[1].on_data(world.now, *path, *start, bytes).unwrap();
        world.ends[1].on_received(*path, world.pipes[0].came[1]);
        let Frame::Feedback(feedback, received) = world.ends[1].report() else { panic!("feedback") };
        world.ends[0].on_feedback(world.now, PathId(0), feedback, &received).unwrap();
        world.break_path(0);
        world.look(0);
        let again = written(&mut world).map(|(path, start, _)| (path, start));
        assert_eq!(again, Some((PathId(1), *first)));
    }

    #[test]
    fn feedback_goes_over_a_second_path_too_where_the_quickest_is_silent() {
        for (silent_ms, wanted) in [(10, &[0][..]), (30, &[0, 1])] {
            let mut world = World::new("look-ahead", 50_000);
            for path in [0, 1] {
                world.mend_path(path);
            }
            world.transmit();
            world.look(1);
            let (end, now) = (&mut world.ends[1], world.now + Duration::from_millis(silent_ms));
            end.on_heard(world.now, PathId(0));
            end.on_heard(now, PathId(1));
            end.on_data(now, PathId(1), 0, &[7, 0, 0, 0]).unwrap();
            let paths: Vec<_> =
                std::iter::from_fn(|| end.feedback(now + MAX_WAIT)).map(|(path, _)| path.0).collect();
            assert_eq!(paths, wanted, "silent for {silent_ms} ms");
        }
    }

    #[test]
    fn a_young_stream_goes_before_all_that_waits() {
        let (mut world, small) = busy();
        world.ends[0].mux.write(small, &[7; 500]).unwrap();
        let mut frame = Vec::new();
        // Whatever is under way, nothing waits unsent.
        let path = world.ends[0].transmit(world.now, &mut frame).unwrap();
        assert_eq!(path, PathId(0), "the quick one");
        assert!(frame.ends_with(&[7; 500]));
    }

    /// The data frame that an end would write next, and its path.
    fn written(world: &mut World) -> Option<(PathId, u64, Vec<u8>)> {
        let mut frame = Vec::new();
        let path = world.ends[0].transmit(world.now, &mut frame)?;
        let Ok(Some((Frame::Data { start, bytes }, _))) = decode(&frame) else { panic!("data") };
        Some((path, start, bytes.to_vec()))
    }

    #[test]
    fn real_time_data_goes_before_all_that_waits_however_much_there_was_before() {
        let (mut world, small) = busy();
        // More than a quantum, within the reorder buffer.
        for _ in 0..20 {
            world.ends[0].mux.write(small, &[7; 500]).unwrap();
            world.ends[0].mux.send_packet(ServiceClass::Realtime, &[9; 1_000]);
            let (path, start, bytes) = written(&mut world).unwrap();
            assert!(bytes.ends_with(&[9; 1_000]), "the datagram alone");
            assert_eq!((path, bytes.len()), (PathId(0), 1_004), "over the quick path");
            world.ends[1].on_data(world.now, path, start, &bytes).unwrap();
            world.transmit();
            world.look(0);
        }
        let realtime = world.ends[0].view().realtime;
        assert_eq!((realtime, world.ends[0].view().copied), (20 * 1_004, 0));
    }

    /// What is produced is in order, and data that becomes ready later waits for it.
    #[test]
    fn no_more_is_produced_ahead_for_the_sake_of_a_path_that_has_stalled() {
        let (mut world, _) = busy();
        let produced = world.ends[0].view().produced;
        // Path 1 has stalled with all that it holds, path 0 goes on.
        for _ in 0..300 {
            world.now += Duration::from_millis(1);
            world.ends[0].on_heard(world.now, PathId(0));
            world.deliver(0, 60);
            world.transmit();
        }
        assert!(world.ends[0].is_stalled(PathId(1)));
        let view = world.ends[0].view();
        let carried = view.acknowledged.max(produced) - produced;
        assert!(view.produced - produced < carried + 20_000, "{view:?}");
    }

    /// Paths of 20, 50 and 80 ms, all with a queue that fills in 3 s and drains at once; that of the third in 4 s.
    #[test]
    fn of_paths_through_one_bottleneck_the_shortest_one_that_moves_competes() {
        let mut world = World::new("look-ahead", 100_000);
        (0..PATHS).for_each(|path| world.mend_path(path));
        let session = &mut world.ends[0];
        let mut now = Instant::ZERO;
        for _ in 0..3_000 {
            now += Duration::from_millis(10);
            for (path, (rtt_ms, period)) in [(50, 3.0), (20, 3.0), (80, 4.1)].into_iter().enumerate() {
                let queue = Duration::from_secs_f64(0.030 * (now.as_secs_f64() / period).fract());
                let rtt_min = Duration::from_millis(rtt_ms);
                let rtt = Some(Rtt { srtt: rtt_min + queue, rttvar: Duration::ZERO });
                let status = PathStatus { rtt, rtt_min: Some(rtt_min), ..PathStatus::default() };
                session.on_occupancy(now, PathId(path), status, true);
            }
        }
        let second = |session: &Session| [0, 1, 2].map(|path| session.part(now, PathId(path)).is_second);
        assert_eq!(second(session), [true, false, false]);
        assert_eq!(session.sharing(PathId(0)).collect::<Vec<_>>(), [PathId(1)]);
        session.path_down(now, PathId(1));
        assert_eq!(second(session), [false, false, false]);
    }

    #[test]
    fn what_begins_is_urgent_where_other_data_is_under_way() {
        let (mut world, small) = busy();
        assert!(!world.ends[0].has_sent_urgent(world.now), "the download began alone");
        world.ends[0].mux.write(small, &[7; 500]).unwrap();
        let _ = written(&mut world);
        assert!(world.ends[0].has_sent_urgent(world.now));
    }

    #[test]
    fn heads_cost_a_hundredth_where_paths_have_room_and_a_chunk_is_a_segment_beside_what_is_urgent() {
        let (mut world, _) = busy();
        let rtt = Duration::from_millis(60);
        let with_room = |segments: u64| PathStatus {
            send_buffer: Bytes::new(segments * 1_448),
            mss: Bytes::new(1_448),
            rtt: Some(Rtt { srtt: rtt, rttvar: Duration::ZERO }),
            delivery_rate: Some(Rate::from_bps(3_000_000)),
            ..PathStatus::default()
        };
        let next_chunk = |world: &mut World, status| {
            for path in 0..2 {
                world.ends[0].on_occupancy(world.now, PathId(path), status, true);
            }
            let _ = written(world);
            world.ends[0].chunk().get()
        };
        let lean = next_chunk(&mut world, with_room(40));
        assert!(OVERHEAD * 100 <= lean, "{lean}");
        let cramped = next_chunk(&mut world, with_room(8));
        assert!(cramped < lean && cramped * MIN_CHUNKS <= 8 * 1_448, "{cramped}");
        world.ends[0].mux.send_packet(ServiceClass::Realtime, &[9; 1_000]);
        let _ = next_chunk(&mut world, with_room(40));
        assert_eq!(next_chunk(&mut world, with_room(40)) + OVERHEAD, 1_448);
    }

    #[test]
    fn real_time_data_goes_over_two_paths_while_its_best_one_loses_and_a_copy_beats_a_retransmission() {
        for (loss, second_rtt_ms, copied) in [(0.001, 15, 0), (0.01, 15, 1_004), (0.01, 100, 0)] {
            let (mut world, _) = busy();
            for (path, rtt_ms) in [(PathId(0), 10), (PathId(1), second_rtt_ms)] {
                let rtt = Duration::from_millis(rtt_ms);
                let status = PathStatus {
                    send_buffer: Bytes::new(30_000),
                    cwnd: Bytes::new(14_480),
                    mss: Bytes::new(1_448),
                    rtt: Some(Rtt { srtt: rtt, rttvar: Duration::ZERO }),
                    rtt_min: Some(rtt),
                    ..PathStatus::default()
                };
                world.ends[0].on_occupancy(world.now, path, status, true);
            }
            world.ends[0].on_loss(PathId(0), Probability::clamped(loss));
            world.ends[0].mux.send_packet(ServiceClass::Realtime, &[9; 1_000]);
            let (path, _, bytes) = written(&mut world).unwrap();
            assert_eq!((path, bytes.len()), (PathId(0), 1_004));
            let _ = written(&mut world);
            assert_eq!(world.ends[0].view().copied, copied, "{loss}, {second_rtt_ms} ms");
        }
    }

    #[test]
    fn redundant_datagrams_go_over_two_paths_and_come_once() {
        let (mut world, _) = busy();
        world.ends[0].mux.send_packet(ServiceClass::Redundant, &[9; 1_000]);
        let [first, second] = [0; 2].map(|_| written(&mut world).unwrap());
        assert_eq!([first.0, second.0], [PathId(0), PathId(1)]);
        assert_eq!((first.1, &first.2), (second.1, &second.2));
        world.events(1);
        for (path, start, bytes) in [second, first] {
            world.ends[1].on_data(world.now, path, start, &bytes).unwrap();
        }
        assert_eq!(world.events(1), [Event::Packet(ServiceClass::Redundant, vec![9; 1_000])]);
        assert_eq!(world.ends[0].view().copied, 1_004);
    }

    #[test]
    fn a_session_without_paths_waits_and_goes_on() {
        let (mut world, _) = first_frame();
        world.break_path(0);
        for _ in 0..100 {
            world.now += Duration::from_millis(100);
            world.transmit();
        }
        assert_eq!(world.ends[1].view().received, 0);
        world.mend_path(1);
        for _ in 0..5 {
            world.transmit();
            world.deliver(1, 100_000);
            world.now += Duration::from_millis(10);
        }
        assert_eq!(world.ends[1].mux.take(0), Ok(Some(vec![1; 3_000])));
        assert!(world.ends[0].is_idle());
    }
}
