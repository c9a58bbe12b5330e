//! Events for the users of streams.

use std::fmt;

use strum::VariantArray;

use super::{StreamId, Target};

/// An event that a user of streams should know.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    Packet(Vec<u8>),
    /// Streams may be opened again.
    Room,
}

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
