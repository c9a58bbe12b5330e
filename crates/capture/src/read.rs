//! The packets of a capture, one after another.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use suimon_units::Instant;

use crate::container::{Container, Next};
use crate::decode::{ACCEPTED, decode, knows};
use crate::error::{CaptureError, CaptureProblem};
use crate::packet::Packet;
use crate::skipped::Skipped;

/// A capture that is being read. Memory does not grow with its length.
pub struct Capture {
    name: String,
    container: Container,
    /// Time of the first packet, on the capture's clock.
    epoch_nanos: Option<i128>,
    latest: Instant,
    frames: u64,
    skipped: Skipped,
    out_of_order: u64,
    cut_off: Option<CutOff>,
}

/// Where a capture ends that was not closed, as after a kill or on a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOff {
    /// Whole packets before.
    pub packets: u64,
    /// Where the packet that is cut off begins, in bytes from the start of the file.
    pub offset: u64,
}

impl Capture {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read or is no capture.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::new(name, file),
            Err(error) => Err(CaptureError { file: name, problem: error.into() }),
        }
    }

    /// Reads a capture from `source`, which messages call `name`.
    ///
    /// # Errors
    /// When it cannot be read or is no capture.
    pub fn new(name: impl Into<String>, source: impl Read + Send + 'static) -> Result<Self, CaptureError> {
        let name = name.into();
        let opened = Container::open(source).and_then(|container| match container.link_type() {
            Some(link_type) if !knows(link_type) => {
                Err(CaptureProblem::LinkType { link_type, accepted: ACCEPTED })
            }
            _ => Ok(container),
        });
        match opened {
            Err(problem) => Err(CaptureError { file: name, problem }),
            Ok(container) => Ok(Self {
                name,
                container,
                epoch_nanos: None,
                latest: Instant::ZERO,
                frames: 0,
                skipped: Skipped::default(),
                out_of_order: 0,
                cut_off: None,
            }),
        }
    }

    /// The next TCP or UDP packet, or `None` at the end. Other packets are skipped and counted.
    ///
    /// # Errors
    /// When the file cannot be read on, or is damaged where no next packet can be found.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, CaptureError> {
        loop {
            let next = match self.container.next(self.frames) {
                Ok(next) => next,
                Err(problem) => return Err(CaptureError { file: self.name.clone(), problem }),
            };
            let frame = match next {
                Next::Frame(frame) => frame,
                Next::Skipped(reason) => {
                    self.frames += 1;
                    self.skipped.count(reason);
                    continue;
                }
                Next::End { cut_off_at } => {
                    self.cut_off = cut_off_at.map(|offset| CutOff { packets: self.frames, offset });
                    return Ok(None);
                }
            };
            self.frames += 1;
            let epoch = *self.epoch_nanos.get_or_insert(frame.nanos);
            let since = u64::try_from((frame.nanos - epoch).max(0)).unwrap_or(u64::MAX);
            let time = Instant::from_nanos(since);
            let headers = match decode(&frame) {
                Ok(headers) => headers,
                Err(reason) => {
                    self.skipped.count(reason);
                    continue;
                }
            };
            if time < self.latest || frame.nanos < epoch {
                self.out_of_order += 1;
            }
            self.latest = self.latest.max(time);
            return Ok(Some(Packet {
                number: self.frames,
                time: self.latest,
                endpoints: headers.endpoints,
                size: headers.size,
                payload: headers.payload,
                ecn: headers.ecn,
                tcp: headers.tcp,
            }));
        }
    }

    /// Frames read so far, skipped ones included.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Frames that were skipped, by reason.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Packets whose time was earlier than that of the packet before; they count as simultaneous with it.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Where the capture is cut off; known once all packets were read.
    #[must_use]
    pub fn cut_off(&self) -> Option<CutOff> {
        self.cut_off
    }

    /// Bytes of the file that were read so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.container.position()
    }
}
