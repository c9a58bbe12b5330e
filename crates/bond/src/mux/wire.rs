//! Frames of the streams, in network byte order, one behind the other in the aggregate.
//!
//! | Frame | Type | Fields |
//! | --- | --- | --- |
//! | Open | 1 | stream 4, target 1 + n |
//! | Opened | 2 | stream 4 |
//! | Data | 3 | stream 4, length 2, bytes |
//! | Credit | 4 | stream 4, limit 8 |
//! | End | 5 | stream 4 |
//! | Reset | 6 | stream 4, reason 1 |
//! | Packet | 7 | length 2, an IP packet |
//! | Blocked | 8 | stream 4: it has more to send than credit |

use super::{StreamId, Violation};

/// Types of frames.
pub(super) mod kind {
    pub(in crate::mux) const OPEN: u8 = 1;
    pub(in crate::mux) const OPENED: u8 = 2;
    pub(in crate::mux) const DATA: u8 = 3;
    pub(in crate::mux) const CREDIT: u8 = 4;
    pub(in crate::mux) const END: u8 = 5;
    pub(in crate::mux) const RESET: u8 = 6;
    pub(in crate::mux) const PACKET: u8 = 7;
    pub(in crate::mux) const BLOCKED: u8 = 8;
}

/// Where in a frame the aggregate was cut.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The head of a frame, or a packet, as far as it came.
    pub(super) head: Vec<u8>,
    /// Data of a stream that is still to come.
    pub(super) data: Option<(StreamId, usize)>,
}

/// The head of a frame of a stream.
pub(super) fn head(kind: u8, id: StreamId) -> Vec<u8> {
    let mut head = Vec::with_capacity(16);
    head.push(kind);
    head.extend_from_slice(&id.to_be_bytes());
    head
}

/// How many bytes a frame that begins with `head` lacks, as far as can be told; those of a data frame are not
/// part of it.
pub(super) fn missing(head: &[u8]) -> Result<usize, Violation> {
    let Some(kind) = head.first() else { return Ok(1) };
    let whole = match *kind {
        kind::OPEN => match head.get(5) {
            Some(len) => 6 + usize::from(*len),
            None => 6,
        },
        kind::OPENED | kind::END | kind::BLOCKED => 5,
        kind::DATA => 7,
        kind::CREDIT => 13,
        kind::RESET => 6,
        kind::PACKET => match head.get(1..3) {
            Some(len) => 3 + usize::from(u16::from_be_bytes([len[0], len[1]])),
            None => 3,
        },
        _ => return Err(Violation("an unknown frame in the aggregate")),
    };
    Ok(whole - head.len())
}
