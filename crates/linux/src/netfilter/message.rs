//! Messages of nfnetlink, written and read byte by byte.

/// `struct nlmsghdr` and `struct nfgenmsg`.
const HEADER: usize = 20;

/// A message under construction.
#[derive(Debug)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A message of `kind` (subsystem and number), for addresses of `family`, with `id` in network order beside it.
    pub(super) fn new(kind: u16, flags: u16, sequence: u32, family: u8, id: u16) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((libc::NLM_F_REQUEST as u16 | flags).to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend([family, 0]);
        bytes.extend(id.to_be_bytes());
        Self(bytes)
    }

    pub(super) fn add(mut self, attribute: Attribute) -> Self {
        self.0.extend(attribute.0);
        self
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// One attribute: `struct nlattr` with its value, padded.
#[derive(Debug, Clone)]
pub(super) struct Attribute(Vec<u8>);

impl Attribute {
    pub(super) fn bytes(kind: u16, value: &[u8]) -> Self {
        let length = 4 + value.len();
        let mut bytes = Vec::with_capacity(length.next_multiple_of(4));
        bytes.extend((length as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(length.next_multiple_of(4), 0);
        Self(bytes)
    }

    pub(super) fn number(kind: u16, value: u32) -> Self {
        Self::bytes(kind, &value.to_be_bytes())
    }

    pub(super) fn text(kind: u16, value: &str) -> Self {
        Self::bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    pub(super) fn nested(kind: u16, parts: impl IntoIterator<Item = Self>) -> Self {
        let value: Vec<u8> = parts.into_iter().flat_map(|part| part.0).collect();
        Self::bytes(kind | libc::NLA_F_NESTED as u16, &value)
    }
}

/// A message that came.
#[derive(Debug)]
pub(super) struct Received<'a> {
    pub(super) kind: u16,
    pub(super) sequence: u32,
    /// All after `struct nlmsghdr`.
    body: &'a [u8],
}

impl<'a> Received<'a> {
    /// The messages of a datagram.
    pub(super) fn all(mut datagram: &'a [u8]) -> Vec<Self> {
        let mut found = Vec::new();
        while let Some(length) = word(datagram, 0).map(|length| length as usize)
            && (16..=datagram.len()).contains(&length)
        {
            let kind = u16::from_ne_bytes([datagram[4], datagram[5]]);
            let sequence = word(datagram, 8).unwrap_or_default();
            found.push(Self { kind, sequence, body: &datagram[16..length] });
            datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        found
    }

    /// The error number of an answer; 0 for none.
    pub(super) fn error(&self) -> Option<i32> {
        let is_error = self.kind == libc::NLMSG_ERROR as u16;
        is_error.then(|| word(self.body, 0).unwrap_or_default().cast_signed().wrapping_neg())
    }

    /// The value of its attribute of this kind.
    pub(super) fn attribute(&self, kind: u16) -> Option<&'a [u8]> {
        let mut rest = self.body.get(HEADER - 16..)?;
        while rest.len() >= 4 {
            let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
            let of = u16::from_ne_bytes([rest[2], rest[3]]) & libc::NLA_TYPE_MASK as u16;
            let value = rest.get(4..length)?;
            if of == kind {
                return Some(value);
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        None
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_written_is_read() {
        let message = Message::new(0x0a01, 4, 7, 1, 9)
            .add(Attribute::text(1, "abc"))
            .add(Attribute::nested(2, [Attribute::number(1, 5)]))
            .finish();
        let twice = [message.clone(), message].concat();
        let all = Received::all(&twice);
        assert_eq!(all.len(), 2);
        assert_eq!((all[1].kind, all[1].sequence), (0x0a01, 7));
        assert_eq!(all[1].attribute(1), Some(&b"abc\0"[..]));
        assert_eq!(all[1].attribute(2).map(<[u8]>::len), Some(8));
        assert!(all[1].attribute(3).is_none() && all[1].error().is_none());
    }

    #[test]
    fn a_datagram_that_ends_early_is_read_as_far_as_it_goes() {
        let message = Message::new(3, 0, 1, 0, 0).add(Attribute::number(1, 5)).finish();
        for length in 0..message.len() {
            assert!(Received::all(&message[..length]).is_empty(), "{length}");
        }
        let mut wrong = message;
        // An attribute that is longer than its message, and one shorter than its header.
        for length in [200, 3, 0] {
            wrong[20] = length;
            assert!(Received::all(&wrong)[0].attribute(1).is_none(), "{length}");
        }
    }
}
