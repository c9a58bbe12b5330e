//! The datagrams of probes, where a question and its answer have the same length, so that nobody gets more than was sent; and
//! those of recordings, of which data is as long as the line takes and the others are as long as probes.

use crate::arrivals::PACKET;
use crate::protocol::Cookie;

/// The length of each but data, in bytes.
pub const LENGTH: usize = 32;
/// The same with the headers of UDP and of IPv4 or IPv6.
#[must_use]
pub const fn on_the_wire(is_ipv6: bool) -> u64 {
    LENGTH as u64 + 8 + if is_ipv6 { 40 } else { 20 }
}

/// What a datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A probe, from the client.
    Question,
    /// The answer to it, with the server's time.
    Answer,
    /// The client wants data, and is there.
    Call,
    /// Data of a recording, with the sender's time; longer than the others.
    Data,
    /// Data arrived, with its number and the sender's time.
    Acknowledgement,
}

impl Kind {
    const ALL: [(Self, [u8; 4]); 5] = [
        (Self::Question, *b"suiq"),
        (Self::Answer, *b"suia"),
        (Self::Call, *b"suic"),
        (Self::Data, *b"suid"),
        (Self::Acknowledgement, *b"suik"),
    ];
}

/// The length of data as payload of UDP, so that it has `PACKET` bytes of IP.
#[must_use]
pub const fn data_length(is_ipv6: bool) -> usize {
    (PACKET - 8 - if is_ipv6 { 40 } else { 20 }) as usize
}

/// A datagram: the session's cookie, a number, and a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// The session's.
    pub cookie: Cookie,
    /// The probe's or the data's, from zero on.
    pub number: u32,
    /// A time that the kind tells, in microseconds; zero in a question.
    pub time_us: u64,
}

impl Datagram {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self, kind: Kind) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let (_, name) = Kind::ALL[kind as usize];
        bytes[..4].copy_from_slice(&name);
        bytes[4..20].copy_from_slice(&self.cookie);
        bytes[20..24].copy_from_slice(&self.number.to_be_bytes());
        bytes[24..].copy_from_slice(&self.time_us.to_be_bytes());
        bytes
    }

    /// The bytes of data, filled up to its length.
    pub(crate) fn data(&self, is_ipv6: bool) -> Vec<u8> {
        let mut bytes = self.bytes(Kind::Data).to_vec();
        bytes.resize(data_length(is_ipv6), 0);
        bytes
    }

    /// What `bytes` are, where they are one of these.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<(Kind, Self)> {
        let head: &[u8; LENGTH] = bytes.first_chunk()?;
        let (kind, _) = Kind::ALL.into_iter().find(|(_, name)| head[..4] == *name)?;
        let is_whole = match kind {
            Kind::Data => [false, true].map(data_length).contains(&bytes.len()),
            _ => bytes.len() == LENGTH,
        };
        let datagram = Self {
            cookie: head[4..20].try_into().ok()?,
            number: u32::from_be_bytes(head[20..24].try_into().ok()?),
            time_us: u64::from_be_bytes(head[24..].try_into().ok()?),
        };
        is_whole.then_some((kind, datagram))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_reads_as_what_it_is_and_as_nothing_else() {
        let datagram = Datagram { cookie: [7; 16], number: 9, time_us: 1 << 40 };
        for (kind, _) in Kind::ALL {
            let mut bytes = datagram.bytes(kind).to_vec();
            let is_data = kind == Kind::Data;
            assert_eq!(Datagram::read(&bytes), (!is_data).then_some((kind, datagram)));
            bytes.push(0);
            assert_eq!(Datagram::read(&bytes), None);
            assert_eq!(Datagram::read(&bytes[..31]), None);
        }
        for is_ipv6 in [false, true] {
            let data = datagram.data(is_ipv6);
            assert_eq!(Datagram::read(&data), Some((Kind::Data, datagram)));
            assert_eq!(data.len() as u64 + on_the_wire(is_ipv6) - LENGTH as u64, PACKET);
        }
        assert_eq!(Datagram::read(b"suiz and something else that is long"), None);
    }
}
