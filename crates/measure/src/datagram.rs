//! The datagrams of probes: a question and its answer have the same length, so that nobody gets more than was sent.

use crate::protocol::Cookie;

/// The length of each, in bytes.
pub const LENGTH: usize = 32;
/// The same with the headers of UDP and of IPv4 or IPv6.
#[must_use]
pub const fn on_the_wire(is_ipv6: bool) -> u64 {
    LENGTH as u64 + 8 + if is_ipv6 { 40 } else { 20 }
}

const QUESTION: [u8; 4] = *b"suiq";
const ANSWER: [u8; 4] = *b"suia";

/// A datagram: the session's cookie, the probe's number, and in an answer the time at the server in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// The session's.
    pub cookie: Cookie,
    /// The probe's, from zero on.
    pub number: u32,
    /// When the server answered, in microseconds of its clock; zero in a question.
    pub server_us: u64,
}

impl Datagram {
    /// The bytes of a question.
    #[must_use]
    pub fn question(&self) -> [u8; LENGTH] {
        self.with(QUESTION)
    }

    /// The bytes of an answer.
    #[must_use]
    pub fn answer(&self) -> [u8; LENGTH] {
        self.with(ANSWER)
    }

    fn with(&self, kind: [u8; 4]) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&kind);
        bytes[4..20].copy_from_slice(&self.cookie);
        bytes[20..24].copy_from_slice(&self.number.to_be_bytes());
        bytes[24..].copy_from_slice(&self.server_us.to_be_bytes());
        bytes
    }

    /// What a question asks, where `bytes` are one.
    #[must_use]
    pub fn asked(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes, QUESTION)
    }

    /// What an answer says, where `bytes` are one.
    #[must_use]
    pub fn answered(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes, ANSWER)
    }

    fn read(bytes: &[u8], kind: [u8; 4]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        if bytes[..4] != kind {
            return None;
        }
        Some(Self {
            cookie: bytes[4..20].try_into().ok()?,
            number: u32::from_be_bytes(bytes[20..24].try_into().ok()?),
            server_us: u64::from_be_bytes(bytes[24..].try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_reads_as_what_it_is_and_as_nothing_else() {
        let datagram = Datagram { cookie: [7; 16], number: 9, server_us: 1 << 40 };
        assert_eq!(Datagram::asked(&datagram.question()), Some(datagram));
        assert_eq!(Datagram::answered(&datagram.answer()), Some(datagram));
        assert_eq!(Datagram::asked(&datagram.answer()), None);
        assert_eq!(Datagram::answered(&datagram.question()), None);
        assert_eq!(Datagram::asked(&datagram.question()[..LENGTH - 1]), None);
        assert_eq!(Datagram::asked(&[datagram.question().as_slice(), &[0]].concat()), None);
    }
}
