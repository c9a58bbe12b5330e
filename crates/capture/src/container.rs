//! Frames out of pcap and pcapng, one at a time and in bounded memory.

use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::{Arc, Mutex};

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{
    Block, InterfaceDescriptionBlock, LegacyPcapReader, OptionCode, PcapBlockOwned, PcapError, PcapNGReader,
};

use crate::error::CaptureProblem;
use crate::skipped::SkipReason;

/// Bytes read at once; more than a frame of any common length limit.
const BUFFER: usize = 1 << 16;
/// The largest pcapng block that is read: libpcap's limit. The limit bounds the memory that a length field can claim.
const MAX_BLOCK: usize = 16 << 20;
/// The largest frame of a pcap file: libpcap's `MAXIMUM_SNAPLEN`.
const MAX_FRAME: u32 = 262_144;
/// Bytes of a frame that are kept: more than any chain of headers that is read here.
const KEPT: usize = 512;
/// Interfaces of a pcapng section that are remembered; packets of further ones are skipped.
const MAX_INTERFACES: usize = 65_536;

/// A frame as it was captured.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    /// Since the epoch of the capture's clock.
    pub(crate) nanos: i128,
    pub(crate) link_type: i32,
    /// How long it was on the link.
    pub(crate) length: u32,
    /// Its beginning, as far as it was captured, and at most [`KEPT`] bytes.
    pub(crate) data: &'a [u8],
}

/// The next element of a capture.
pub(crate) enum Next<'a> {
    Frame(Frame<'a>),
    Skipped(SkipReason),
    /// The end; the place where the last block is cut off, if it is.
    End {
        cut_off_at: Option<u64>,
    },
}

/// Reads the frames of one capture.
pub(crate) struct Container {
    blocks: Box<dyn PcapReaderIterator + Send>,
    source_error: SourceError,
    format: Format,
    /// The beginning of the frame that was read last.
    kept: Vec<u8>,
    capacity: usize,
}

/// Why the source failed; the parser only tells that it did.
type SourceError = Arc<Mutex<Option<io::Error>>>;

enum Format {
    Pcap { link_type: i32, nanos_per_tick: u32 },
    PcapNg { big_endian: bool, interfaces: Vec<Interface> },
}

/// An interface of a pcapng section.
struct Interface {
    link_type: i32,
    /// `None` for a unit of time that is finer than 2^-63 s or 10^-19 s.
    clock: Option<Clock>,
}

/// The clock of an interface (draft-ietf-opsawg-pcapng §4.2, `if_tsresol` and `if_tsoffset`).
#[derive(Clone, Copy)]
struct Clock {
    ticks_per_second: u64,
    offset_seconds: i64,
}

impl Clock {
    fn nanos(self, ticks: u64) -> i128 {
        let nanos = u128::from(ticks) * NANOS_PER_SECOND as u128 / u128::from(self.ticks_per_second);
        nanos as i128 + i128::from(self.offset_seconds) * NANOS_PER_SECOND
    }
}

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// A frame or a description, without a loan of the parser's buffer.
enum Taken {
    Frame { nanos: i128, link_type: i32, length: u32 },
    Skipped(SkipReason),
    Other,
}

impl Container {
    /// Reads the header of `source`.
    pub(crate) fn open(source: impl Read + Send + 'static) -> Result<Self, CaptureProblem> {
        let source_error = SourceError::default();
        let mut source = Whole { inner: source, error: source_error.clone() };
        let mut head = vec![0; BUFFER];
        let length = match source.read(&mut head) {
            Ok(0) => return Err(CaptureProblem::Empty),
            Ok(length) => length,
            Err(error) => return Err(CaptureProblem::Read(error)),
        };
        head.truncate(length);
        let ng = is_pcapng(&head)?;
        let too_short = || CaptureProblem::HeaderCutOff { bytes: length as u64 };
        let rest = Whole { inner: Cursor::new(head).chain(source), error: source_error.clone() };
        let (blocks, format): (Box<dyn PcapReaderIterator + Send>, _) = if ng {
            let blocks = PcapNGReader::new(BUFFER, rest).map_err(|error| match error {
                PcapError::Incomplete(_) if length < BUFFER => too_short(),
                _ => damaged(0, 0, "no section header that can be read"),
            })?;
            (Box::new(blocks), Format::PcapNg { big_endian: false, interfaces: Vec::new() })
        } else {
            let mut blocks = LegacyPcapReader::new(BUFFER, rest).map_err(|_| too_short())?;
            let (size, format) = pcap_header(&mut blocks)?;
            blocks.consume(size);
            (Box::new(blocks), format)
        };
        Ok(Self { blocks, source_error, format, kept: Vec::with_capacity(KEPT), capacity: BUFFER })
    }

    /// Bytes of the capture that were read.
    pub(crate) fn position(&self) -> u64 {
        self.blocks.consumed() as u64
    }

    /// The link type of all frames, where the file has only one.
    pub(crate) fn link_type(&self) -> Option<i32> {
        match &self.format {
            Format::Pcap { link_type, .. } => Some(*link_type),
            Format::PcapNg { .. } => None,
        }
    }

    /// The next frame. `packets` is how many came before, for the message where this one is damaged.
    pub(crate) fn next(&mut self, packets: u64) -> Result<Next<'_>, CaptureProblem> {
        loop {
            let offset = self.blocks.consumed() as u64;
            let damaged = |what| Err(damaged(offset, packets, what));
            let grow = match self.blocks.next() {
                Ok((length, block)) => {
                    let read = self.format.take(&block, &mut self.kept);
                    self.blocks.consume(length);
                    match read {
                        Err(what) => return damaged(what),
                        Ok(Taken::Other) => continue,
                        Ok(Taken::Skipped(reason)) => return Ok(Next::Skipped(reason)),
                        Ok(Taken::Frame { nanos, link_type, length }) => {
                            return Ok(Next::Frame(Frame { nanos, link_type, length, data: &self.kept }));
                        }
                    }
                }
                Err(PcapError::Eof) => return Ok(Next::End { cut_off_at: None }),
                Err(PcapError::UnexpectedEof) => return Ok(Next::End { cut_off_at: Some(offset) }),
                Err(PcapError::Incomplete(_)) => false,
                Err(PcapError::BufferTooSmall) => true,
                Err(_) => return damaged("no block that can be read"),
            };
            if grow || self.blocks.data().len() >= self.capacity {
                if self.capacity >= self.format.longest() {
                    return damaged("a length that no capture has");
                }
                self.capacity *= 2;
                self.blocks.grow(self.capacity);
            }
            self.refill()?;
        }
    }

    fn refill(&mut self) -> Result<(), CaptureProblem> {
        if self.blocks.refill().is_ok() {
            return Ok(());
        }
        let error = self.source_error.lock().ok().and_then(|mut error| error.take());
        Err(CaptureProblem::Read(error.unwrap_or_else(|| io::Error::from(ErrorKind::Other))))
    }
}

fn damaged(offset: u64, packets: u64, what: &'static str) -> CaptureProblem {
    CaptureProblem::Damaged { offset, packets, what }
}

/// Whether `head` starts a pcapng capture, or else a pcap one.
fn is_pcapng(head: &[u8]) -> Result<bool, CaptureProblem> {
    let starts = |magic: &[u8]| head.starts_with(magic);
    if starts(&[0x1f, 0x8b]) {
        return Err(CaptureProblem::Compressed { program: "gzip" });
    }
    if starts(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Err(CaptureProblem::Compressed { program: "zstd" });
    }
    if starts(&[0xfd, b'7', b'z', b'X', b'Z']) {
        return Err(CaptureProblem::Compressed { program: "xz" });
    }
    if starts(&[0x0a, 0x0d, 0x0d, 0x0a]) {
        return Ok(true);
    }
    let pcap = [0xa1b2_c3d4_u32, 0xa1b2_3c4d, 0xa1b2_cd34];
    if pcap.iter().any(|magic| starts(&magic.to_le_bytes()) || starts(&magic.to_be_bytes())) {
        return Ok(false);
    }
    Err(CaptureProblem::NotACapture)
}

/// The header of a pcap file: its size and its format.
fn pcap_header(blocks: &mut impl PcapReaderIterator) -> Result<(usize, Format), CaptureProblem> {
    match blocks.next() {
        Ok((size, PcapBlockOwned::LegacyHeader(header))) => {
            let nanos_per_tick = if header.is_nanosecond_precision() { 1 } else { 1_000 };
            // The upper bits say how long the frames' check sequence is.
            let link_type = header.network.0 & 0x03ff_ffff;
            Ok((size, Format::Pcap { link_type, nanos_per_tick }))
        }
        _ => Err(damaged(0, 0, "no file header that can be read")),
    }
}

impl Format {
    /// Bytes of a file that may be in memory at once, so that one block fits.
    const fn longest(&self) -> usize {
        match self {
            Self::Pcap { .. } => 2 * MAX_FRAME as usize,
            Self::PcapNg { .. } => MAX_BLOCK,
        }
    }

    /// Reads `block`; the beginning of its frame goes to `kept`.
    fn take(&mut self, block: &PcapBlockOwned<'_>, kept: &mut Vec<u8>) -> Result<Taken, &'static str> {
        let mut keep = |data: &[u8]| {
            kept.clear();
            kept.extend_from_slice(&data[..data.len().min(KEPT)]);
        };
        match (self, block) {
            (Self::Pcap { link_type, nanos_per_tick }, PcapBlockOwned::Legacy(frame)) => {
                if frame.caplen > MAX_FRAME {
                    return Err("a length that no capture has");
                }
                keep(frame.data);
                let nanos = i128::from(frame.ts_sec) * NANOS_PER_SECOND
                    + i128::from(frame.ts_usec) * i128::from(*nanos_per_tick);
                Ok(Taken::Frame { nanos, link_type: *link_type, length: frame.origlen })
            }
            (Self::PcapNg { big_endian, interfaces }, PcapBlockOwned::NG(block)) => Ok(match block {
                Block::SectionHeader(header) => {
                    *big_endian = header.big_endian();
                    interfaces.clear();
                    Taken::Other
                }
                Block::InterfaceDescription(description) => {
                    if interfaces.len() < MAX_INTERFACES {
                        interfaces.push(Interface::new(description, *big_endian));
                    }
                    Taken::Other
                }
                Block::EnhancedPacket(packet) => match interfaces.get(packet.if_id as usize) {
                    None => Taken::Skipped(SkipReason::NoInterface),
                    Some(Interface { clock: None, .. }) => Taken::Skipped(SkipReason::NoTime),
                    Some(Interface { clock: Some(clock), link_type }) => {
                        keep(packet.packet_data());
                        let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                        Taken::Frame {
                            nanos: clock.nanos(ticks),
                            link_type: *link_type,
                            length: packet.origlen,
                        }
                    }
                },
                Block::SimplePacket(_) => Taken::Skipped(SkipReason::NoTime),
                _ => Taken::Other,
            }),
            _ => Ok(Taken::Other),
        }
    }
}

impl Interface {
    fn new(description: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Self {
        // The parser reads the offset as little-endian whatever the section is.
        let offset = description.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
        let offset = offset.and_then(|option| option.value.get(..8)).and_then(|bytes| bytes.try_into().ok());
        let offset_seconds =
            offset.map_or(0, if big_endian { i64::from_be_bytes } else { i64::from_le_bytes });
        let exponent = u32::from(description.if_tsresol & 0x7f);
        let ticks_per_second = if description.if_tsresol & 0x80 == 0 {
            10_u64.checked_pow(exponent)
        } else {
            2_u64.checked_pow(exponent)
        };
        Self {
            link_type: description.linktype.0,
            clock: ticks_per_second.map(|ticks_per_second| Clock { ticks_per_second, offset_seconds }),
        }
    }
}

/// Fills every read, as files do and pipes do not, and remembers why one failed.
struct Whole<R> {
    inner: R,
    error: SourceError,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.inner.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let told = io::Error::new(error.kind(), error.to_string());
                    if let Ok(mut slot) = self.error.lock() {
                        *slot = Some(error);
                    }
                    return Err(told);
                }
            }
        }
        Ok(filled)
    }
}
