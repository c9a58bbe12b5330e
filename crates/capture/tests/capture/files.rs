//! Captures made by hand.

use std::io::{self, Cursor, Read};

use suimon_capture::{Capture, CaptureError, Packet};

/// Bytes of a number in the order that a capture is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }
}

/// A frame: microseconds, the captured bytes, and its length.
pub(crate) type Frame = (u64, Vec<u8>, u32);

/// A whole frame at `micros`.
pub(crate) fn whole(micros: u64, data: &[u8]) -> Frame {
    (micros, data.to_vec(), data.len() as u32)
}

/// A pcap file with times in microseconds.
pub(crate) fn pcap(order: Order, link_type: u32, frames: &[Frame]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(order.u32(0xa1b2_c3d4));
    file.extend([order.u16(2), order.u16(4)].concat());
    for field in [0, 0, 65_535, link_type] {
        file.extend(order.u32(field));
    }
    for (micros, data, length) in frames {
        for field in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, data.len() as u32, *length] {
            file.extend(order.u32(field));
        }
        file.extend(data);
    }
    file
}

/// A block of a pcapng file.
pub(crate) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = order.u32((12 + body.len() + padding) as u32);
    [&order.u32(kind)[..], &length, body, &[0; 4][..padding], &length].concat()
}

/// The header of a pcapng section.
pub(crate) fn section(order: Order) -> Vec<u8> {
    let body = [&order.u32(0x1a2b_3c4d)[..], &order.u16(1), &order.u16(0), &[0xff; 8]].concat();
    block(order, 0x0a0d_0d0a, &body)
}

/// An interface with options, each a code and its value.
pub(crate) fn interface(order: Order, link_type: u16, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = [&order.u16(link_type)[..], &order.u16(0), &order.u32(0)].concat();
    for (code, value) in options {
        body.extend([order.u16(*code), order.u16(value.len() as u16)].concat());
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    if !options.is_empty() {
        body.extend([0; 4]);
    }
    block(order, 1, &body)
}

/// A packet of an interface, at `ticks` of its clock.
pub(crate) fn enhanced(order: Order, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for field in [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, data.len() as u32] {
        body.extend(order.u32(field));
    }
    body.extend(data);
    block(order, 6, &body)
}

/// A source that gives a few bytes at a time, as a pipe may.
struct Trickle(Cursor<Vec<u8>>);

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let few = into.len().min(7);
        self.0.read(&mut into[..few])
    }
}

/// The packets of a capture, and the capture at its end.
pub(crate) fn read(file: &[u8]) -> Result<(Vec<Packet>, Capture), CaptureError> {
    let mut capture = Capture::new("a.pcap", Trickle(Cursor::new(file.to_vec())))?;
    let mut packets = Vec::new();
    while let Some(packet) = capture.next_packet()? {
        packets.push(packet);
    }
    Ok((packets, capture))
}

/// The message of a capture that is refused.
pub(crate) fn refused(file: &[u8]) -> String {
    match read(file) {
        Ok((packets, _)) => panic!("it was read: {packets:?}"),
        Err(error) => error.to_string(),
    }
}
