//! What client and server say to each other over TCP: each message is its length in two bytes, and its content in
//! postcard's format.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::arrivals::Arrivals;
use crate::recording::{Direction, Sample};

/// What a server knows a session by, and only its client besides.
pub type Cookie = [u8; 16];

/// The first bytes of each connection: the protocol and its version.
pub const PREFACE: [u8; 8] = *b"suimeas1";

/// The most that a message may take, in bytes.
pub const MAX_MESSAGE: usize = 8_192;
/// The most connections of a load.
pub const MAX_FLOWS: u8 = 32;
/// Looks at connections in one message.
pub const SAMPLES: usize = 64;
/// Milliseconds of a recording in one message.
pub const MILLISECONDS: usize = 2_000;

/// The first message of a connection, from the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hello {
    /// A session is wanted; this connection controls it.
    Session,
    /// This connection is one of a load.
    Load {
        /// The session's.
        cookie: Cookie,
        /// Who sends.
        direction: Direction,
        /// The connection's number, below [`MAX_FLOWS`].
        flow: u8,
    },
    /// A session is wanted that records the line; this connection controls it.
    Recording,
}

/// A message of the client in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The load in this direction is over: what did the server see?
    Report(Direction),
    /// What arrived of the recording's packets?
    Arrivals,
}

/// A message of the server in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The session is open.
    Open {
        /// What its other connections and its datagrams bring along.
        cookie: Cookie,
        /// The most bytes of payload that its loads may take.
        most_bytes: u64,
    },
    /// There will be no session.
    Refused(Refusal),
    /// Part of what the server saw.
    Samples(Vec<Sample>),
    /// There is no more.
    End,
    /// The next milliseconds of a recording.
    Arrivals(Arrivals),
}

/// Why a server refuses a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// As many measurements run as the server allows.
    #[error("the server measures for others now; try again in half a minute")]
    Busy,
    /// As many run for this address as the server allows.
    #[error("the server measures for this address already; try again in half a minute")]
    OfAddress,
    /// This address asked too often.
    #[error("this address asked the server too often; try again in a minute")]
    TooOften,
}

/// The bytes of `message`.
///
/// # Errors
/// Where it is longer than [`MAX_MESSAGE`].
pub fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let content = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let length = u16::try_from(content.len()).ok().filter(|length| usize::from(*length) <= MAX_MESSAGE);
    let length = length.ok_or_else(|| io::Error::other("a message is too long"))?;
    Ok([&length.to_be_bytes()[..], &content].concat())
}

/// The message whose content is `content`, all of it.
///
/// # Errors
/// Where it is none.
pub fn decode<T: DeserializeOwned>(content: &[u8]) -> io::Result<T> {
    let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    match postcard::take_from_bytes(content) {
        Ok((message, [])) => Ok(message),
        _ => Err(wrong("the other end sent what is no message of this version")),
    }
}

pub(crate) async fn send(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    to.write_all(&encode(message)?).await
}

pub(crate) async fn receive<T: DeserializeOwned>(from: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let length = usize::from(from.read_u16().await?);
    if length > MAX_MESSAGE {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the other end sent a message that is too long",
        ));
    }
    let mut content = vec![0; length];
    from.read_exact(&mut content).await?;
    decode(&content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_report_fits_a_message() {
        let longest = Sample {
            flow: u8::MAX,
            at_us: u64::MAX,
            srtt_us: u64::MAX,
            acknowledged: u64::MAX,
            segments: u64::MAX,
            retransmissions: u64::MAX,
            marked: u64::MAX,
            received: u64::MAX,
            received_segments: u64::MAX,
            received_segment: u64::MAX,
            has_timestamps: true,
        };
        let message = Reply::Samples(vec![longest; SAMPLES]);
        let bytes = encode(&message).unwrap();
        assert_eq!(decode::<Reply>(&bytes[2..]).unwrap(), message);
        assert!(encode(&Reply::Samples(vec![longest; 2 * SAMPLES])).is_err());
    }

    #[test]
    fn the_longest_part_of_a_recording_fits_a_message() {
        let most = Some(u16::MAX);
        let part =
            Arrivals { packets: vec![u16::MAX; MILLISECONDS], waits_ms: vec![most; MILLISECONDS / 100] };
        assert!(encode(&Reply::Arrivals(part)).is_ok());
    }

    #[test]
    fn what_is_left_over_or_missing_is_no_message() {
        let bytes = encode(&Hello::Session).unwrap();
        assert_eq!(decode::<Hello>(&bytes[2..]).unwrap(), Hello::Session);
        assert!(decode::<Hello>(&[&bytes[2..], &[0]].concat()).is_err());
        assert!(decode::<Hello>(&[1, 2, 3]).is_err());
        assert!(decode::<Hello>(&[]).is_err());
    }
}
