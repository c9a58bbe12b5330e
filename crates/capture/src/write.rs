//! Captures, written: pcapng with nanoseconds, readable by programs that read captures.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// Writes IP packets to a pcapng file (draft-ietf-opsawg-pcapng).
#[derive(Debug)]
pub struct CaptureWriter<W: Write> {
    to: W,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// `LINKTYPE_RAW`: packets begin with an IP header.
const RAW_IP: u16 = 101;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;
/// Ten to the power of minus nine seconds.
const NANOSECONDS: u8 = 9;

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture of packets on these `interfaces`, called by name.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn new(mut to: W, interfaces: &[&str]) -> io::Result<Self> {
        let mut header = Vec::new();
        header.extend(0x1a2b_3c4d_u32.to_ne_bytes());
        header.extend(1_u16.to_ne_bytes());
        header.extend(0_u16.to_ne_bytes());
        // How long the section is remains unsaid.
        header.extend((-1_i64).to_ne_bytes());
        write_block(&mut to, SECTION_HEADER, &header)?;
        for name in interfaces {
            let mut interface = Vec::new();
            interface.extend(RAW_IP.to_ne_bytes());
            interface.extend([0; 2]);
            interface.extend(0_u32.to_ne_bytes());
            add_option(&mut interface, OPTION_NAME, name.as_bytes());
            add_option(&mut interface, OPTION_RESOLUTION, &[NANOSECONDS]);
            add_option(&mut interface, OPTION_END, &[]);
            write_block(&mut to, INTERFACE, &interface)?;
        }
        Ok(Self { to })
    }

    /// Adds the IP `packet`, seen `at` that time on the interface of that index, with a comment unless it is empty.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&mut self, interface: u32, at: SystemTime, packet: &[u8], comment: &str) -> io::Result<()> {
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.write_start(interface, since, packet, packet.len() as u32, comment)
    }

    /// Adds the `start` of an IP packet of `length` bytes, seen so long after the capture's epoch on the interface of that
    /// index, with a comment unless it is empty.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write_start(
        &mut self,
        interface: u32,
        at: Duration,
        start: &[u8],
        length: u32,
        comment: &str,
    ) -> io::Result<()> {
        let (nanos, packet) = (at.as_nanos() as u64, start);
        let mut block = Vec::with_capacity(packet.len() + 64);
        block.extend(interface.to_ne_bytes());
        block.extend(((nanos >> 32) as u32).to_ne_bytes());
        block.extend((nanos as u32).to_ne_bytes());
        block.extend((packet.len() as u32).to_ne_bytes());
        block.extend(length.to_ne_bytes());
        block.extend(packet);
        pad(&mut block);
        if !comment.is_empty() {
            add_option(&mut block, OPTION_COMMENT, comment.as_bytes());
            add_option(&mut block, OPTION_END, &[]);
        }
        write_block(&mut self.to, ENHANCED_PACKET, &block)
    }

    /// Writes all out that is still in memory.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}

fn add_option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    block.extend(code.to_ne_bytes());
    block.extend((value.len() as u16).to_ne_bytes());
    block.extend(value);
    pad(block);
}

fn write_block(to: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let length = (body.len() as u32 + 12).to_ne_bytes();
    to.write_all(&[kind.to_ne_bytes(), length].concat())?;
    to.write_all(body)?;
    to.write_all(&length)
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;
    use crate::Capture;

    #[test]
    fn what_is_written_reads_back() {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(53, 80)
            .write(&mut packet, &[1, 2, 3])
            .unwrap();
        let mut file = Vec::new();
        let mut writer = CaptureWriter::new(&mut file, &["up", "down"]).unwrap();
        let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for (nanos, comment) in [(0, ""), (123_456_789, "marked")] {
            writer.write(1, began + Duration::from_nanos(nanos), &packet, comment).unwrap();
        }
        writer.flush().unwrap();
        let mut capture = Capture::new("test", io::Cursor::new(file)).unwrap();
        let first = capture.next_packet().unwrap().unwrap();
        let second = capture.next_packet().unwrap().unwrap();
        assert_eq!(second.time.saturating_since(first.time).as_nanos(), 123_456_789);
        assert_eq!(second.endpoints.source.to_string(), "10.0.0.1:53");
        assert!(capture.next_packet().unwrap().is_none());
        assert!(capture.cut_off().is_none());
    }
}
