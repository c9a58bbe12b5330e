//! Events for the users of streams.

use std::collections::{HashSet, VecDeque};
use std::fmt;

use strum::VariantArray;

use suimon_service::Target;

use super::{ServiceClass, StreamId};

/// An event that a user of streams should know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The other end opens a stream to `target`.
    Open {
        /// The stream.
        stream: StreamId,
        /// The target of the stream.
        target: Target,
    },
    /// The other end has taken the stream up.
    Opened(StreamId),
    /// There is something to read, or the end.
    Readable(StreamId),
    /// There is room to write.
    Writable(StreamId),
    /// The stream ended early.
    Reset(StreamId),
    /// An IP packet came.
    Packet(ServiceClass, Vec<u8>),
    /// Streams may be opened again.
    Room,
}

/// Events that no call has returned yet. One that waits already is not added again, as it tells nothing new: so they take
/// no more memory than streams and [`PACKETS`] packets.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<Event>,
    /// Those of the queue that are neither an opening nor a packet.
    waiting: HashSet<Event>,
    packets: usize,
}

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        match &event {
            Event::Packet(..) if self.packets >= PACKETS => return,
            Event::Packet(..) => self.packets += 1,
            Event::Open { .. } => {}
            again if !self.waiting.insert(again.clone()) => return,
            _ => {}
        }
        self.queue.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.queue.pop_front();
        match &event {
            Some(Event::Packet(..)) => self.packets -= 1,
            Some(Event::Open { .. }) => {}
            Some(other) => drop(self.waiting.take(other)),
            // Memory that only a burst needed is given back.
            None if self.queue.capacity() > SPARE => *self = Self::default(),
            None => {}
        }
        event
    }
}

/// IP packets that wait to be taken, as many as there are places in the channel to those who take them; those that
/// nobody takes in time are lost.
pub(crate) const PACKETS: usize = 256;
/// Events for which memory is kept.
const SPARE: usize = 4_096;

/// Why a stream ended early, in the order of the numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum ResetReason {
    /// Either end gave up.
    Aborted,
    /// The target refused.
    Refused,
    /// The target cannot be reached.
    Unreachable,
    /// The target's name does not resolve.
    UnknownName,
    /// The server does not lead there.
    Forbidden,
    /// The target did not answer.
    TimedOut,
    /// Too many streams.
    Busy,
    /// The session is over.
    SessionLost,
}

impl fmt::Display for ResetReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aborted => "aborted",
            Self::Refused => "the target refused",
            Self::Unreachable => "the target cannot be reached",
            Self::UnknownName => "the target's name is unknown",
            Self::Forbidden => "the server does not lead there",
            Self::TimedOut => "the target did not answer",
            Self::Busy => "too many streams",
            Self::SessionLost => "the session is over",
        })
    }
}

impl std::error::Error for ResetReason {}

/// A breach of the protocol by the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation(pub(crate) &'static str);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Violation {}
