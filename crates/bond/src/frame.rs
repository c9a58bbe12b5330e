//! The wire format of one connection: frames, in network byte order.
//!
//! | Frame | Type | Fields |
//! | --- | --- | --- |
//! | Join | 1 | magic 6, version 3, session 16, nonce 8, path 1, attempt 4, reorder buffer 8, stream window 4, name 1 + n |
//! | Welcome | 2 | version 3, nonce 8, reorder buffer 8, stream window 4, streams 4 |
//! | Refuse | 3 | reason 1 |
//! | Data | 4 | first byte's aggregate sequence number 8, length 4, whole frames of streams |
//! | Feedback | 5 | next 8, edge 8, count 1, then for each path: path 1, attempt 4, bytes received 8 |
//! | Close | 6 | - |

use std::fmt;

use strum::VariantArray;
use suimon_aggregation::Feedback;

use crate::mux::MAX_GROUP;

/// Version of the protocol; ends that differ refuse each other. In version 1 the aggregate had one order for all streams; in
/// version 2 flows had no class of service.
pub const VERSION: u16 = 3;
/// Paths of a session at most.
pub const MAX_PATHS: usize = 16;
/// Data of one frame at most: the longest packet.
pub const MAX_DATA: usize = MAX_GROUP;
/// Data of one frame that with its header and TLS's own is one record.
pub const RECORD: usize = 16_384 - DATA_HEADER;
/// Bytes of a data frame before its data.
pub const DATA_HEADER: usize = 13;

const MAGIC: &[u8; 6] = b"SUIMON";

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The client's first: this connection shall be a path of a session.
    Join(Join),
    /// The server's answer.
    Welcome(Welcome),
    /// The server's other answer; it closes the connection.
    Refuse(Refusal),
    /// A part of the aggregate.
    Data {
        /// Aggregate sequence number of the first byte.
        start: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The data that has arrived at the other end.
    Feedback(Feedback, Vec<Received>),
    /// The session is over.
    Close,
}

/// The first message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// Drawn by the client when the session began.
    pub session: [u8; 16],
    /// Drawn by the server when the session began; zero where the client has not heard it yet.
    pub nonce: u64,
    /// The number of the path in the session.
    pub path: u8,
    /// Counts the connections over this path: a later one replaces an earlier one.
    pub attempt: u32,
    /// Bytes that the client holds for reordering.
    pub reorder_buffer: u64,
    /// Bytes of a new stream that the client takes unasked.
    pub window: u32,
    /// The interface's name, for people to read.
    pub name: String,
}

/// The server's answer to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Drawn by the server when the session began.
    pub nonce: u64,
    /// Bytes that the server holds for reordering.
    pub reorder_buffer: u64,
    /// Bytes of a new stream that the server takes unasked.
    pub window: u32,
    /// Streams that may be open at once.
    pub streams: u32,
}

/// Why a server does not take a connection in, in the order of the numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum Refusal {
    /// Another version of the protocol.
    Version,
    /// The session is not known (any more): the server was restarted, or nothing was heard for too long.
    UnknownSession,
    /// A later connection over this path has come before.
    Stale,
    /// The server has as many sessions as it may.
    Full,
}

/// The data that has arrived over one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The path.
    pub path: u8,
    /// The connection over this path, by its count.
    pub attempt: u32,
    /// Bytes of data, without headers.
    pub bytes: u64,
}

/// Bytes that no end of this protocol sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "it speaks another version of the protocol",
            Self::UnknownSession => "it does not know the session",
            Self::Stale => "a later connection over this path has come before",
            Self::Full => "it has as many sessions as it may have",
        })
    }
}

impl Frame<'_> {
    /// Appends the frame to `out`.
    ///
    /// # Panics
    /// With more data, paths or name than a frame takes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Join(join) => {
                assert!(join.name.len() <= MAX_NAME, "names are cut before");
                out.push(1);
                out.extend_from_slice(MAGIC);
                out.extend_from_slice(&VERSION.to_be_bytes());
                out.extend_from_slice(&join.session);
                out.extend_from_slice(&join.nonce.to_be_bytes());
                out.push(join.path);
                out.extend_from_slice(&join.attempt.to_be_bytes());
                out.extend_from_slice(&join.reorder_buffer.to_be_bytes());
                out.extend_from_slice(&join.window.to_be_bytes());
                out.push(join.name.len() as u8);
                out.extend_from_slice(join.name.as_bytes());
            }
            Self::Welcome(welcome) => {
                out.push(2);
                out.extend_from_slice(&VERSION.to_be_bytes());
                out.extend_from_slice(&welcome.nonce.to_be_bytes());
                out.extend_from_slice(&welcome.reorder_buffer.to_be_bytes());
                out.extend_from_slice(&welcome.window.to_be_bytes());
                out.extend_from_slice(&welcome.streams.to_be_bytes());
            }
            Self::Refuse(refusal) => {
                out.extend_from_slice(&[3, *refusal as u8]);
            }
            Self::Data { start, bytes } => {
                data_header(*start, bytes.len(), out);
                out.extend_from_slice(bytes);
            }
            Self::Feedback(feedback, received) => {
                assert!(received.len() <= MAX_PATHS, "a path is said once");
                out.push(5);
                out.extend_from_slice(&feedback.next.to_be_bytes());
                out.extend_from_slice(&feedback.edge.to_be_bytes());
                out.push(received.len() as u8);
                for received in received {
                    out.push(received.path);
                    out.extend_from_slice(&received.attempt.to_be_bytes());
                    out.extend_from_slice(&received.bytes.to_be_bytes());
                }
            }
            Self::Close => out.push(6),
        }
    }
}

/// Appends the head of a data frame, which its `len` bytes must follow.
///
/// # Panics
/// With more than [`MAX_DATA`] bytes.
pub fn data_header(start: u64, len: usize, out: &mut Vec<u8>) {
    assert!(len <= MAX_DATA, "longer than any packet");
    out.push(4);
    out.extend_from_slice(&start.to_be_bytes());
    out.extend_from_slice(&(len as u32).to_be_bytes());
}

/// The first frame in `bytes` and its length; `None` where its end is missing.
///
/// # Errors
/// The bytes begin no frame.
pub fn decode(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Malformed> {
    let mut reader = Reader { bytes, at: 0 };
    match reader.frame() {
        Ok(frame) => Ok(Some((frame, reader.at))),
        Err(Stop::Short) => Ok(None),
        Err(Stop::Malformed(problem)) => Err(Malformed(problem)),
    }
}

/// The only frame in `bytes`.
///
/// # Errors
/// The bytes are no frame, or a frame and more.
pub fn decode_whole(bytes: &[u8]) -> Result<Frame<'_>, Malformed> {
    match decode(bytes)? {
        Some((frame, len)) if len == bytes.len() => Ok(frame),
        Some(_) => Err(Malformed("more than a frame")),
        None => Err(Malformed("a frame without its end")),
    }
}

/// Longer names than Linux gives interfaces.
const MAX_NAME: usize = 64;

enum Stop {
    Short,
    Malformed(&'static str),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Stop> {
        let taken = self.bytes.get(self.at..self.at + len).ok_or(Stop::Short)?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        Ok(self.take(N)?.try_into().expect("as many as asked for"))
    }

    fn u8(&mut self) -> Result<u8, Stop> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, Stop> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Stop> {
        self.array().map(u64::from_be_bytes)
    }

    fn path(&mut self) -> Result<u8, Stop> {
        let path = self.u8()?;
        if usize::from(path) < MAX_PATHS { Ok(path) } else { Err(Stop::Malformed("a path beyond the last")) }
    }

    /// A sequence number: far enough from the last one that sums with lengths do not overflow.
    fn sequence(&mut self) -> Result<u64, Stop> {
        let sequence = self.u64()?;
        if sequence >> 62 == 0 { Ok(sequence) } else { Err(Stop::Malformed("a sequence number beyond 2^62")) }
    }

    fn version(&mut self) -> Result<bool, Stop> {
        self.array().map(|version| u16::from_be_bytes(version) == VERSION)
    }

    fn frame(&mut self) -> Result<Frame<'a>, Stop> {
        match self.u8()? {
            1 => self.join(),
            2 => {
                if !self.version()? {
                    return Err(Stop::Malformed("another version of the protocol"));
                }
                Ok(Frame::Welcome(Welcome {
                    nonce: self.u64()?,
                    reorder_buffer: self.sequence()?,
                    window: self.u32()?,
                    streams: self.u32()?,
                }))
            }
            3 => {
                let code = usize::from(self.u8()?);
                let refusal =
                    Refusal::VARIANTS.get(code).ok_or(Stop::Malformed("an unknown reason to refuse"))?;
                Ok(Frame::Refuse(*refusal))
            }
            4 => {
                let start = self.sequence()?;
                let len = self.u32()? as usize;
                if len == 0 || len > MAX_DATA {
                    return Err(Stop::Malformed("data of no length, or longer than any packet"));
                }
                Ok(Frame::Data { start, bytes: self.take(len)? })
            }
            5 => {
                let feedback = Feedback { next: self.sequence()?, edge: self.sequence()? };
                let count = usize::from(self.u8()?);
                if feedback.edge < feedback.next || count > MAX_PATHS {
                    return Err(Stop::Malformed("feedback that contradicts itself"));
                }
                let received = (0..count)
                    .map(|_| Ok(Received { path: self.path()?, attempt: self.u32()?, bytes: self.u64()? }));
                Ok(Frame::Feedback(feedback, received.collect::<Result<_, _>>()?))
            }
            6 => Ok(Frame::Close),
            _ => Err(Stop::Malformed("an unknown frame")),
        }
    }

    fn join(&mut self) -> Result<Frame<'a>, Stop> {
        if self.array::<6>()? != *MAGIC {
            return Err(Stop::Malformed("another protocol"));
        }
        if !self.version()? {
            return Err(Stop::Malformed("another version of the protocol"));
        }
        let join = Join {
            session: self.array()?,
            nonce: self.u64()?,
            path: self.path()?,
            attempt: self.u32()?,
            reorder_buffer: self.sequence()?,
            window: self.u32()?,
            name: {
                let len = usize::from(self.u8()?);
                if len > MAX_NAME {
                    return Err(Stop::Malformed("a name that is too long"));
                }
                let name = std::str::from_utf8(self.take(len)?);
                // Names go into logs and terminals.
                let plain = name.ok().filter(|name| name.chars().all(|c| c.is_ascii_graphic()));
                plain.ok_or(Stop::Malformed("a name that is no plain text"))?.to_owned()
            },
        };
        Ok(Frame::Join(join))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> Vec<Frame<'static>> {
        vec![
            Frame::Join(Join {
                session: [7; 16],
                nonce: 0,
                path: 2,
                attempt: 9,
                reorder_buffer: 1 << 20,
                window: 65_536,
                name: "wwan0".into(),
            }),
            Frame::Welcome(Welcome { nonce: 1, reorder_buffer: 2, window: 3, streams: 4 }),
            Frame::Refuse(Refusal::Stale),
            Frame::Data { start: 1 << 40, bytes: b"water" },
            Frame::Feedback(
                Feedback { next: 5, edge: 500 },
                vec![
                    Received { path: 0, attempt: 1, bytes: 2 },
                    Received { path: 15, attempt: 3, bytes: 1 << 33 },
                ],
            ),
            Frame::Close,
        ]
    }

    #[test]
    fn what_is_written_reads_back_and_what_is_cut_off_waits_for_more() {
        for frame in frames() {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            for len in 0..bytes.len() {
                assert_eq!(decode(&bytes[..len]), Ok(None), "{frame:?} up to {len}");
            }
            let len = bytes.len();
            bytes.extend_from_slice(b"more");
            assert_eq!(decode(&bytes), Ok(Some((frame.clone(), len))));
            assert_eq!(decode_whole(&bytes[..len]), Ok(frame));
            assert_eq!(decode_whole(&bytes).unwrap_err().to_string(), "more than a frame");
            assert_eq!(decode_whole(&bytes[..len - 1]).unwrap_err().to_string(), "a frame without its end");
        }
    }

    #[test]
    fn what_no_end_sends_is_refused() {
        let join = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            frames()[0].encode(&mut bytes);
            change(&mut bytes);
            decode(&bytes).unwrap_err().to_string()
        };
        assert_eq!(join(&|bytes| bytes[1] = b's'), "another protocol");
        assert_eq!(join(&|bytes| bytes[8] = 9), "another version of the protocol");
        assert_eq!(join(&|bytes| bytes[33] = 16), "a path beyond the last");
        assert_eq!(join(&|bytes| *bytes.last_mut().unwrap() = b'\n'), "a name that is no plain text");
        assert!(decode(b"GET / HTTP/1.1").is_err());
        assert!(decode(&[4, 255, 0, 0, 0, 0, 0, 0, 0, 0, 1]).is_err(), "a sequence number beyond 2^62");
        assert!(decode(&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err(), "no data");
        assert!(decode(&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 4]).is_err(), "longer than any packet");
    }

    proptest! {
        #[test]
        fn anything_is_a_frame_or_an_error_and_frames_write_as_they_were_read(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            if let Ok(Some((frame, len))) = decode(&bytes) {
                let mut again = Vec::new();
                frame.encode(&mut again);
                prop_assert_eq!(&again, &bytes[..len]);
            }
        }
    }
}
