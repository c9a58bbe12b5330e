//! One stream: data that waits to be sent, data that came, and the credit of both directions.

use std::collections::VecDeque;

use super::ResetReason;

#[derive(Debug)]
pub(super) struct Stream {
    /// Waits to be sent.
    pub(super) queue: VecDeque<u8>,
    pub(super) sent: u64,
    /// The credit that the other end has granted, as a position in the stream.
    pub(super) limit: u64,
    /// The limit that the other end was last told to be too low.
    pub(super) blocked_at: Option<u64>,
    pub(super) ending: bool,
    pub(super) end_sent: bool,
    pub(super) in_turn: bool,
    /// The writer was told that there is no room.
    pub(super) writer_waits: bool,
    /// Received, and not taken.
    pub(super) buffer: Vec<u8>,
    pub(super) received: u64,
    /// Taken and passed on.
    pub(super) consumed: u64,
    pub(super) granted: u64,
    pub(super) window: u64,
    /// The other end has said that it would send more.
    pub(super) wanted: bool,
    pub(super) ended: bool,
    pub(super) opened: bool,
    pub(super) reset: Option<ResetReason>,
    /// Nobody holds it any more.
    pub(super) released: bool,
}

impl Stream {
    /// A stream that may send `limit` bytes before any credit, and is granted `window`.
    pub(super) fn new(limit: u64, window: u64) -> Self {
        Self {
            queue: VecDeque::new(),
            sent: 0,
            limit,
            blocked_at: None,
            ending: false,
            end_sent: false,
            in_turn: false,
            writer_waits: false,
            buffer: Vec::new(),
            received: 0,
            consumed: 0,
            granted: window,
            window,
            wanted: false,
            ended: false,
            opened: false,
            reset: None,
            released: false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.reset.is_some() || (self.end_sent && self.ended)
    }

    pub(super) fn can_send(&self) -> bool {
        let data = !self.queue.is_empty() && self.sent < self.limit;
        let end = self.queue.is_empty() && self.ending && !self.end_sent;
        self.reset.is_none() && (data || end)
    }
}
