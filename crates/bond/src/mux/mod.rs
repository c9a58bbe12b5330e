//! Streams within the aggregate: many flows of bytes in one, each with its own order and its own credit.
//!
//! An end sends no more of a stream than the other end has granted, and grants no more than it is ready to
//! keep. So whatever arrives is taken from the aggregate at once, in the order in which it arrives: a stream that nobody reads,
//! or of which something is missing, holds up no other.

use std::collections::{BTreeMap, HashMap, VecDeque};

mod class;
mod event;
mod packets;
mod receive;
mod send;
mod stream;
mod turns;
mod wire;

use rangemap::RangeSet;
use strum::EnumCount;
use suimon_service::Target;

pub use class::{Class, ServiceClass};
use event::Events;
pub(crate) use event::PACKETS;
pub use event::{Event, ResetReason, Violation};
use send::Lane;
use stream::Stream;
use turns::{Flow, Waiting};
use wire::{PACKET_HEAD, head, kind, placed};

/// A stream's number. Clients open streams and count them up.
pub type StreamId = u32;

/// The memory that streams may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MuxLimits {
    /// Streams that may be open at once.
    pub streams: u32,
    /// Bytes of each stream that are taken unasked.
    pub window: u32,
    /// Bytes of one stream that are taken at most, if its reader keeps up.
    pub window_most: u64,
    /// Bytes that all streams together may be granted beyond `window` each.
    pub pool: u64,
    /// Bytes that wait to be sent, over all streams.
    pub queue: u64,
    /// IP packets of each class that wait to be sent, in bytes.
    pub packets: u64,
}

/// The streams of a session.
#[derive(Debug)]
pub struct Mux {
    opens: bool,
    limits: MuxLimits,
    /// The other end's limits: bytes of a new stream before any credit, and the number of streams.
    peer_window: u64,
    peer_streams: u32,
    streams: HashMap<StreamId, Stream>,
    /// The next number of our own.
    next: StreamId,
    /// The numbers that the other end has used.
    heard: RangeSet<StreamId>,
    /// Streams that the other end may not have heard of, with the place in the aggregate of what tells it.
    opening: BTreeMap<StreamId, u64>,
    /// Those of them that have been reset since.
    late_resets: BTreeMap<StreamId, ResetReason>,
    /// Streams and datagrams of each class.
    lanes: [Lane; ServiceClass::COUNT],
    /// Frames that go before data: at most one of each kind a stream.
    control: BTreeMap<(StreamId, Control), Vec<u8>>,
    queued: u64,
    /// Granted beyond the first window.
    pool_used: u64,
    /// Bytes that came early in their streams, and the pieces that they are.
    early: u64,
    pieces: usize,
    events: Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Control {
    Open,
    Opened,
    Credit,
    Blocked,
    Reset,
}

impl Mux {
    /// No streams. A client `opens` them.
    #[must_use]
    pub fn new(opens: bool, limits: MuxLimits) -> Self {
        Self {
            opens,
            limits,
            peer_window: 0,
            peer_streams: 0,
            streams: HashMap::new(),
            next: 0,
            heard: RangeSet::new(),
            opening: BTreeMap::new(),
            late_resets: BTreeMap::new(),
            lanes: Default::default(),
            control: BTreeMap::new(),
            queued: 0,
            pool_used: 0,
            early: 0,
            pieces: 0,
            events: Events::default(),
        }
    }

    /// The other end takes `window` bytes of each new stream, and `streams` streams.
    pub fn on_peer_limits(&mut self, window: u32, streams: u32) {
        self.peer_window = u64::from(window);
        self.peer_streams = streams;
        self.events.push(Event::Room);
    }

    /// Streams that are open.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Bytes that streams hold: received and not read, or not sent yet.
    #[must_use]
    pub fn held(&self) -> u64 {
        let unread: u64 = self.streams.values().map(|stream| stream.inbox.next - stream.consumed).sum();
        unread + self.early + self.queued + self.lanes.iter().map(Lane::packet_bytes).sum::<u64>()
    }

    /// Bytes that came early in their streams and wait for others.
    #[must_use]
    pub fn early(&self) -> u64 {
        self.early
    }

    /// The separate pieces that these bytes are.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Opens a stream of a class to `target`; `None` where there are as many as may be.
    pub fn open(&mut self, class: ServiceClass, target: &Target) -> Option<StreamId> {
        let open = self.streams.values().filter(|stream| !stream.is_done()).count();
        if open >= self.peer_streams as usize || self.next == StreamId::MAX {
            return None;
        }
        let id = self.next;
        self.next += 1;
        let mut frame = head(kind::OPEN, id);
        frame.push(class as u8);
        frame.push(target.as_str().len() as u8);
        frame.extend_from_slice(target.as_str().as_bytes());
        self.control.insert((id, Control::Open), frame);
        let stream = Stream { unknown: true, ..self.new_stream(class) };
        self.streams.insert(id, stream);
        Some(id)
    }

    /// Takes up a stream that the other end opened.
    pub fn accept(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(|stream| stream.reset.is_none()) {
            self.control.insert((id, Control::Opened), head(kind::OPENED, id));
        }
    }

    /// Whether the other end has taken the stream up.
    ///
    /// # Errors
    /// Where the stream has ended early.
    pub fn is_opened(&self, id: StreamId) -> Result<bool, ResetReason> {
        let stream = self.live(id)?;
        Ok(stream.opened)
    }

    /// How many bytes [`write`](Self::write) would take; where none, [`Event::Writable`] says when to ask again.
    ///
    /// # Errors
    /// Where the stream has ended early.
    pub fn room(&mut self, id: StreamId) -> Result<usize, ResetReason> {
        let share = self.share();
        let stream = self.streams.get_mut(&id).ok_or(ResetReason::SessionLost)?;
        if let Some(reason) = stream.reset {
            return Err(reason);
        }
        // Little by little would be many small frames.
        let room = share - stream.queue.len().min(share);
        let room = if room * 2 < share { 0 } else { room };
        stream.writer_waits = room == 0;
        Ok(room)
    }

    /// Queues `bytes`, no more than [`room`](Self::room) said.
    ///
    /// # Errors
    /// Where the stream has ended early.
    pub fn write(&mut self, id: StreamId, bytes: &[u8]) -> Result<(), ResetReason> {
        let stream = self.streams.get_mut(&id).ok_or(ResetReason::SessionLost)?;
        if let Some(reason) = stream.reset.or(stream.ending.then_some(ResetReason::Aborted)) {
            return Err(reason);
        }
        stream.queue.extend(bytes);
        self.queued += bytes.len() as u64;
        self.take_turn(id);
        Ok(())
    }

    /// Nothing more will be written.
    pub fn end(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.ending = true;
            self.take_turn(id);
        }
    }

    /// Takes what has arrived, if anything; `None` at the end.
    ///
    /// # Errors
    /// Where the stream has ended early.
    pub fn take(&mut self, id: StreamId) -> Result<Option<Vec<u8>>, ResetReason> {
        let stream = self.streams.get_mut(&id).ok_or(ResetReason::SessionLost)?;
        if !stream.inbox.buffer.is_empty() {
            return Ok(Some(std::mem::take(&mut stream.inbox.buffer)));
        }
        if stream.ended() {
            return Ok(None);
        }
        stream.reset.map_or(Ok(Some(Vec::new())), Err)
    }

    /// `count` of the bytes taken have been passed on, so as many more may come.
    pub fn consumed(&mut self, id: StreamId, count: usize) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.consumed += count as u64;
        let due = stream.granted - stream.consumed <= stream.window / 2;
        if self.grow(id) || due {
            self.grant(id);
        }
    }

    /// Tells the other end how much of a stream it may send.
    fn grant(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.length.is_some() || stream.reset.is_some() {
            return;
        }
        stream.granted = stream.consumed + stream.window;
        let frame = placed(kind::CREDIT, id, stream.granted);
        self.control.insert((id, Control::Credit), frame);
    }

    /// The other end would send more of a stream than its window lets it.
    fn want_more(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.wanted = true;
        if self.grow(id) {
            self.grant(id);
        }
    }

    /// Where the other end would send more: the window grows, if the reader keeps up and memory allows.
    fn grow(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        if !stream.wanted || !stream.reader_keeps_up() {
            return false;
        }
        stream.wanted = false;
        let more = stream.window.min(self.limits.window_most.saturating_sub(stream.window));
        let grows = more > 0 && self.pool_used + more <= self.limits.pool;
        if grows {
            self.pool_used += more;
            stream.window += more;
        }
        grows
    }

    /// Ends a stream early.
    pub fn reset(&mut self, id: StreamId, reason: ResetReason) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.is_done() {
            return;
        }
        self.abandon(id, reason);
        self.events.push(Event::Reset(id));
        // The other end hears of a number that it was never told of, so that none is left out.
        self.control.remove(&(id, Control::Open));
        self.unsay(id);
        if self.opening.contains_key(&id) {
            self.late_resets.insert(id, reason);
        } else {
            self.say_reset(id, reason);
        }
    }

    fn say_reset(&mut self, id: StreamId, reason: ResetReason) {
        let mut frame = head(kind::RESET, id);
        frame.push(reason as u8);
        self.control.insert((id, Control::Reset), frame);
    }

    /// Nobody will ask for the stream any more; one that has not ended is reset.
    pub fn release(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.released = true;
        // Written data is still sent, if the other end has finished or will be told the end.
        let ends_well = stream.is_done() || (stream.ending && stream.ended());
        if !ends_well {
            self.reset(id, ResetReason::Aborted);
        }
        self.forget_if_done(id);
    }

    /// Of the aggregate, what lies at a place for which `is_missing` is false has arrived.
    pub fn on_arrived(&mut self, is_missing: impl Fn(u64) -> bool) {
        let known: Vec<_> =
            self.opening.iter().filter(|(_, place)| !is_missing(**place)).map(|(id, _)| *id).collect();
        known.into_iter().for_each(|id| self.heard_of(id));
    }

    /// The other end has heard of a stream of this end, so that more of it may go.
    fn heard_of(&mut self, id: StreamId) {
        if self.opening.remove(&id).is_none() {
            return;
        }
        if let Some(reason) = self.late_resets.remove(&id) {
            return self.say_reset(id, reason);
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.unknown = false;
            self.take_turn(id);
        }
    }

    /// The next event that no call has returned yet.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Bytes that each stream may have waiting to be sent.
    fn share(&self) -> usize {
        (self.limits.queue / self.streams.len().max(1) as u64).clamp(MIN_QUEUE, MAX_QUEUE) as usize
    }

    fn new_stream(&self, class: ServiceClass) -> Stream {
        Stream::new(class, self.peer_window, u64::from(self.limits.window))
    }

    fn live(&self, id: StreamId) -> Result<&Stream, ResetReason> {
        let stream = self.streams.get(&id).ok_or(ResetReason::SessionLost)?;
        stream.reset.map_or(Ok(stream), Err)
    }

    fn take_turn(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get(&id).filter(|stream| stream.waiting() == Waiting::Ready) {
            self.lanes[stream.class as usize].turns.wake(Flow::Stream(id));
        }
    }

    /// Drops the control frames of a stream that has ended early.
    fn unsay(&mut self, id: StreamId) {
        for control in [Control::Opened, Control::Credit, Control::Blocked] {
            self.control.remove(&(id, control));
        }
    }

    /// Drops the data that a stream would still have sent.
    fn abandon(&mut self, id: StreamId, reason: ResetReason) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.reset = Some(reason);
        self.queued -= stream.queue.len() as u64;
        stream.queue = VecDeque::new();
        self.early -= stream.inbox.held;
        self.pieces -= stream.inbox.pieces();
        stream.inbox.drop_early();
    }

    fn forget_if_done(&mut self, id: StreamId) {
        let done = self.streams.get(&id).is_some_and(|stream| stream.released && stream.is_done());
        if done {
            let stream = self.streams.remove(&id).expect("looked up just now");
            self.queued -= stream.queue.len() as u64;
            self.pool_used -= stream.window - u64::from(self.limits.window);
            self.control.remove(&(id, Control::Credit));
            self.events.push(Event::Room);
        }
    }
}

/// Bytes of a group at most: the longest packet.
pub(crate) const MAX_GROUP: usize = PACKET_HEAD + MAX_PACKET;
const MAX_PACKET: usize = u16::MAX as usize;
/// Bytes that one stream may have waiting to be sent: enough that its writer need not be quick.
const MAX_QUEUE: u64 = 256 * 1024;
const MIN_QUEUE: u64 = 4 * 1024;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Ring;
    use proptest::prelude::*;

    const LIMITS: MuxLimits = MuxLimits {
        streams: 4,
        window: 1_000,
        window_most: 8_000,
        pool: 10_000,
        queue: 20_000,
        packets: 4_000,
    };

    /// A client's and a server's end that know each other's limits.
    fn pair() -> (Mux, Mux) {
        let (mut client, mut server) = (Mux::new(true, LIMITS), Mux::new(false, LIMITS));
        client.on_peer_limits(LIMITS.window, LIMITS.streams);
        server.on_peer_limits(LIMITS.window, 0);
        (client, server)
    }

    /// Carries all that `from` would send to `to`.
    fn carry(from: &mut Mux, to: &mut Mux) {
        let mut groups = produce(from);
        while !groups.is_empty() {
            // What opens a stream has arrived, so that more of it may go.
            groups.iter().for_each(|group| to.receive(group).unwrap());
            from.on_arrived(|_| false);
            groups = produce(from);
        }
    }

    /// All groups that `from` would send.
    fn produce(from: &mut Mux) -> Vec<Vec<u8>> {
        let (mut ring, mut groups) = (Ring::default(), Vec::new());
        let classes = [Class::Redundant, Class::Realtime, Class::Urgent, Class::Bulk];
        while classes.iter().any(|class| from.produce(&mut ring, 700, *class)) {
            let mut group = Vec::new();
            ring.copy(ring.start(), ring.len(), &mut group);
            ring.forget_before(ring.end());
            groups.push(group);
        }
        groups
    }

    fn events(mux: &mut Mux) -> Vec<Event> {
        std::iter::from_fn(|| mux.poll_event()).collect()
    }

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    fn open(client: &mut Mux, server: &mut Mux) -> StreamId {
        let id = client.open(ServiceClass::Default, &target("example.org:80")).unwrap();
        carry(client, server);
        let open = Event::Open { stream: id, target: target("example.org:80") };
        assert!(events(server).contains(&open));
        server.accept(id);
        carry(server, client);
        assert!(client.is_opened(id).unwrap());
        id
    }

    #[test]
    fn what_is_written_before_the_other_end_knows_the_stream_goes_with_what_opens_it_or_waits() {
        for early in [true, false] {
            let (mut client, mut server) = pair();
            let id = client.open(ServiceClass::Default, &target("example.org:80")).unwrap();
            if early {
                client.write(id, b"early").unwrap();
            }
            let groups = produce(&mut client);
            assert_eq!(groups.len(), 1, "what opens it, and what was there");
            client.write(id, b" and late").unwrap();
            client.end(id);
            assert_eq!(produce(&mut client), [[0_u8; 0]; 0], "nothing may overtake it");
            server.receive(&groups[0]).unwrap();
            client.on_arrived(|_| false);
            carry(&mut client, &mut server);
            let expected = if early { &b"early and late"[..] } else { b" and late" };
            assert_eq!(server.take(id), Ok(Some(expected.to_vec())));
            assert_eq!(server.take(id), Ok(None));
        }
    }

    #[test]
    fn a_window_grows_before_it_is_used_up_behind_a_hole_and_not_for_a_reader_that_is_late() {
        for has_hole in [true, false] {
            let (mut client, mut server) = pair();
            let id = open(&mut client, &mut server);
            client.write(id, &[1; 900]).unwrap();
            let groups = produce(&mut client);
            assert_eq!(groups.len(), 2, "of which the first has more than half of the window");
            let first = usize::from(has_hole);
            server.receive(&groups[first]).unwrap();
            server.receive(&groups[1 - first]).unwrap();
            client.write(id, &[1; 900]).unwrap();
            produce(&mut server).iter().for_each(|group| client.receive(group).unwrap());
            let sent: usize = produce(&mut client).iter().map(Vec::len).sum();
            assert_eq!(sent > 900, has_hole, "{sent} bytes more");
            let _ = server.take(id);
            server.consumed(id, 900);
            assert_eq!(server.streams[&id].window, if has_hole { 2_000 } else { 1_000 });
        }
    }

    #[test]
    fn a_stream_that_nobody_reads_holds_up_no_other() {
        let (mut client, mut server) = pair();
        let (stuck, free) = (open(&mut client, &mut server), open(&mut client, &mut server));
        client.write(stuck, &[1; 3_000]).unwrap();
        client.write(free, &[2; 3_000]).unwrap();
        client.end(free);
        let mut read = 0;
        for _ in 0..5 {
            carry(&mut client, &mut server);
            if let Some(bytes) = server.take(free).unwrap() {
                assert!(bytes.iter().all(|byte| *byte == 2));
                server.consumed(free, bytes.len());
                read += bytes.len();
            }
            carry(&mut server, &mut client);
        }
        assert_eq!(read, 3_000);
        assert_eq!(server.take(free), Ok(None));
        assert_eq!(server.take(stuck).unwrap().unwrap().len(), 1_000, "its first window and no more");
    }

    #[test]
    fn a_reader_that_keeps_up_is_granted_more_and_all_of_them_no_more_than_the_pool() {
        let (mut client, mut server) = pair();
        let ids: Vec<_> = (0..4).map(|_| open(&mut client, &mut server)).collect();
        for _ in 0..30 {
            for id in &ids {
                let room = client.room(*id).unwrap();
                client.write(*id, &vec![0; room]).unwrap();
            }
            carry(&mut client, &mut server);
            for id in &ids {
                let count = server.take(*id).unwrap().unwrap().len();
                server.consumed(*id, count);
            }
            carry(&mut server, &mut client);
        }
        let windows: Vec<_> = ids.iter().map(|id| server.streams[id].window).collect();
        assert!(windows.iter().sum::<u64>() <= 4 * 1_000 + LIMITS.pool, "{windows:?}");
        assert!(windows.iter().any(|window| *window >= 4_000), "{windows:?}");
        // Then nobody reads: no more than the windows comes.
        for _ in 0..30 {
            for id in &ids {
                let room = client.room(*id).unwrap();
                client.write(*id, &vec![0; room]).unwrap();
            }
            carry(&mut client, &mut server);
        }
        assert!(server.held() <= 4 * 1_000 + LIMITS.pool, "{}", server.held());
        for id in ids {
            server.release(id);
        }
        assert_eq!(server.pool_used, 0);
    }

    #[test]
    fn one_stream_too_many_is_reset_and_counts_again_when_one_has_gone() {
        let (mut client, mut server) = pair();
        client.on_peer_limits(LIMITS.window, 9);
        let ids: Vec<_> = (0..4).map(|_| open(&mut client, &mut server)).collect();
        let late = client.open(ServiceClass::Default, &target("late:1")).unwrap();
        carry(&mut client, &mut server);
        carry(&mut server, &mut client);
        assert_eq!(client.is_opened(late), Err(ResetReason::Busy));
        client.release(ids[0]);
        carry(&mut client, &mut server);
        open(&mut client, &mut server);
    }

    #[test]
    fn a_reset_reaches_the_other_end_and_leaves_nothing() {
        let (mut client, mut server) = pair();
        let id = open(&mut client, &mut server);
        client.write(id, &[0; 500]).unwrap();
        carry(&mut client, &mut server);
        server.reset(id, ResetReason::Unreachable);
        carry(&mut server, &mut client);
        assert_eq!(client.write(id, &[0]), Err(ResetReason::Unreachable));
        client.release(id);
        server.release(id);
        carry(&mut server, &mut client);
        assert_eq!((client.open_streams(), server.open_streams()), (0, 0));
        assert_eq!((client.held(), server.held()), (0, 0));
    }

    #[test]
    fn a_target_that_is_none_costs_its_stream_and_no_other() {
        let (mut client, mut server) = pair();
        let id = open(&mut client, &mut server);
        for (late, bytes) in [(9, &b"a\nb:1"[..]), (10, b"b\xc3\xbc:1"), (11, b"\xff:1")] {
            let head = [1, 0, 0, 0, late, 0, bytes.len() as u8];
            server.receive(&[&head[..], bytes].concat()).unwrap();
            assert_eq!(events(&mut server), [], "nobody is asked to reach it");
            let told = produce(&mut server);
            assert_eq!(told, [[kind::RESET, 0, 0, 0, late, ResetReason::UnknownName as u8]]);
        }
        assert_eq!(server.open_streams(), 1, "a refused stream takes no memory");
        client.write(id, b"goes on").unwrap();
        carry(&mut client, &mut server);
        assert_eq!(events(&mut server), [Event::Readable(id)]);
    }

    #[test]
    fn what_no_end_may_do_is_refused() {
        let refused = |bytes: &[u8]| {
            let (mut client, mut server) = pair();
            open(&mut client, &mut server);
            server.receive(bytes).unwrap_err().to_string()
        };
        assert_eq!(refused(&[9]), "an unknown frame in the aggregate");
        let data = |id: StreamId, place: u64, bytes: &[u8]| {
            [&placed(kind::DATA, id, place)[..], &(bytes.len() as u16).to_be_bytes(), bytes].concat()
        };
        let end = |id: StreamId, place| placed(kind::END, id, place);
        assert_eq!(refused(&data(7, 0, b"x")), "a stream that was never opened");
        assert_eq!(refused(&end(7, 0)), "a stream that was never opened");
        assert_eq!(refused(&[1, 0, 0, 0, 0, 0, 1, b'x']), "a stream that it may not open");
        assert_eq!(refused(&[1, 0, 0, 0, 9, 3, 1, b'x']), "an unknown class of service");
        assert_eq!(refused(&[7, 3, 0, 1, b'x']), "an unknown class of service");
        assert_eq!(refused(&[6, 0, 0, 0, 0, 99]), "an unknown reason to reset a stream");
        assert_eq!(refused(&data(0, 0, &[0; 2_000])), "data beyond a stream's credit or end");
        assert_eq!(refused(&data(0, 1_000, b"x")), "data beyond a stream's credit or end");
        assert_eq!(refused(&[end(0, 5), data(0, 5, b"x")].concat()), "data beyond a stream's credit or end");
        assert_eq!(refused(&[data(0, 5, b"x"), end(0, 5)].concat()), "data beyond a stream's credit or end");
        assert_eq!(refused(&end(0, 1_001)), "data beyond a stream's credit or end");
        assert_eq!(refused(&[end(0, 5), end(0, 5)].concat()), "a second end of a stream");
        assert_eq!(refused(&data(0, 1 << 62, b"x")), "a place in a stream beyond 2^62");
        assert_eq!(refused(&data(0, 0, b"water")[..18]), "a frame that is cut off");
    }

    #[test]
    fn packets_wait_up_to_a_bound_and_come_whole() {
        let (mut client, mut server) = pair();
        let sent = (0..9).filter(|_| client.send_packet(ServiceClass::Default, &[4; 1_000])).count();
        assert_eq!(sent, 4);
        carry(&mut client, &mut server);
        let packets = events(&mut server)
            .into_iter()
            .filter(|event| *event == Event::Packet(ServiceClass::Default, vec![4; 1_000]));
        assert_eq!(packets.count(), 4);
        assert!(client.send_packet(ServiceClass::Default, &[4; 1_000]));
    }

    proptest! {
        #[test]
        fn random_bytes_neither_panic_nor_hold_more_than_they_may(
            bytes in prop::collection::vec(prop_oneof![0..8_u8, any::<u8>()], 0..400),
        ) {
            let (mut client, mut server) = pair();
            open(&mut client, &mut server);
            let _ = server.receive(&bytes);
            prop_assert!(server.held() <= 4 * u64::from(LIMITS.window));
            prop_assert!(server.open_streams() <= 64);
        }
    }

    #[test]
    fn frames_that_tell_nothing_new_take_no_memory() {
        let (mut client, mut server) = pair();
        let id = client.open(ServiceClass::Default, &"here:1".parse().unwrap()).unwrap();
        carry(&mut client, &mut server);
        let mut packet = vec![kind::PACKET, 0, 0, 100];
        packet.extend([0; 100]);
        for _ in 0..10_000 {
            server.receive(&[&placed(kind::DATA, id, 0)[..], &[0, 0]].concat()).unwrap();
            server.receive(&head(kind::OPENED, id)).unwrap();
            server.receive(&head(kind::BLOCKED, id)).unwrap();
            server.receive(&packet).unwrap();
        }
        let events = std::iter::from_fn(|| server.poll_event()).count();
        assert!(events < 300, "{events} events");
    }

    #[test]
    fn streams_that_are_opened_and_reset_take_no_more_memory_than_those_that_may_be_open() {
        let (_, mut server) = pair();
        let mut refused = 0;
        for id in 0..1_000 {
            let open = [&head(kind::OPEN, id)[..], b"\x00\x06here:1"].concat();
            server.receive(&open).unwrap();
            let _ = server.receive(&[&head(kind::RESET, id)[..], &[0]].concat());
            refused += u32::from(server.open_streams() == 2 * LIMITS.streams as usize);
        }
        assert_eq!(server.open_streams(), 2 * LIMITS.streams as usize, "until their users let go");
        assert!(refused > 900);
        let last = [&head(kind::OPEN, StreamId::MAX)[..], b"\x00\x06here:1"].concat();
        assert!(server.receive(&last).is_err(), "no number is left behind it");
    }
}
