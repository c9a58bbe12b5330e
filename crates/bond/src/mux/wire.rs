//! Frames of the streams, in network byte order. Each names its stream and its place in it, so that frames may come in any order.
//!
//! | Frame | Type | Fields |
//! | --- | --- | --- |
//! | Open | 1 | stream 4, class of service 1, target 1 + n |
//! | Opened | 2 | stream 4 |
//! | Data | 3 | stream 4, offset 8, length 2, bytes |
//! | Credit | 4 | stream 4, limit 8 |
//! | End | 5 | stream 4, length of the stream 8 |
//! | Reset | 6 | stream 4, reason 1 |
//! | Packet | 7 | class of service 1, length 2, an IP packet |
//! | Blocked | 8 | stream 4: it has more to send than credit |

use strum::VariantArray;

use super::{ServiceClass, StreamId, Violation};

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

/// Bytes of a data frame before its data.
pub(super) const DATA_HEAD: usize = 15;
/// Bytes of a packet's frame before the packet.
pub(super) const PACKET_HEAD: usize = 4;

/// A frame that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamFrame<'a> {
    Open(StreamId, ServiceClass, &'a [u8]),
    Opened(StreamId),
    Data(StreamId, u64, &'a [u8]),
    Credit(StreamId, u64),
    End(StreamId, u64),
    Reset(StreamId, u8),
    Packet(ServiceClass, &'a [u8]),
    Blocked(StreamId),
}

/// The head of a frame of a stream.
pub(super) fn head(kind: u8, id: StreamId) -> Vec<u8> {
    let mut head = Vec::with_capacity(16);
    head.push(kind);
    head.extend_from_slice(&id.to_be_bytes());
    head
}

/// The head of a frame of a stream that has a place in it.
pub(super) fn placed(kind: u8, id: StreamId, place: u64) -> Vec<u8> {
    let mut head = head(kind, id);
    head.extend_from_slice(&place.to_be_bytes());
    head
}

/// The first frame of `bytes`, and what follows it.
pub(super) fn split(bytes: &[u8]) -> Result<(StreamFrame<'_>, &[u8]), Violation> {
    let mut reader = Reader(bytes);
    let frame = match reader.array::<1>()?[0] {
        kind::OPEN => {
            let (id, class) = (reader.id()?, reader.class()?);
            let len = usize::from(reader.array::<1>()?[0]);
            StreamFrame::Open(id, class, reader.take(len)?)
        }
        kind::OPENED => StreamFrame::Opened(reader.id()?),
        kind::DATA => {
            let (id, offset) = (reader.id()?, reader.place()?);
            let len = usize::from(u16::from_be_bytes(reader.array()?));
            StreamFrame::Data(id, offset, reader.take(len)?)
        }
        kind::CREDIT => StreamFrame::Credit(reader.id()?, reader.place()?),
        kind::END => StreamFrame::End(reader.id()?, reader.place()?),
        kind::RESET => StreamFrame::Reset(reader.id()?, reader.array::<1>()?[0]),
        kind::PACKET => {
            let class = reader.class()?;
            let len = usize::from(u16::from_be_bytes(reader.array()?));
            StreamFrame::Packet(class, reader.take(len)?)
        }
        kind::BLOCKED => StreamFrame::Blocked(reader.id()?),
        _ => return Err(Violation("an unknown frame in the aggregate")),
    };
    Ok((frame, reader.0))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Violation> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Violation("a frame that is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Violation> {
        Ok(self.take(N)?.try_into().expect("as many as asked for"))
    }

    fn id(&mut self) -> Result<StreamId, Violation> {
        self.array().map(u32::from_be_bytes)
    }

    fn class(&mut self) -> Result<ServiceClass, Violation> {
        let code = usize::from(self.array::<1>()?[0]);
        ServiceClass::VARIANTS.get(code).copied().ok_or(Violation("an unknown class of service"))
    }

    /// A place in a stream: far enough from the last one that sums with lengths do not overflow.
    fn place(&mut self) -> Result<u64, Violation> {
        let place = self.array().map(u64::from_be_bytes)?;
        if place >> 62 == 0 { Ok(place) } else { Err(Violation("a place in a stream beyond 2^62")) }
    }
}
