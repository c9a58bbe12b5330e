//! What crossed a link, and what happened to each packet, written to files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use suimon_algorithms::queue::DropReason;
use suimon_capture::CaptureWriter;
use suimon_emulator::{Fate, PacketRecord, PacketRecords, WirePacket};
use suimon_linux::Clock;
use suimon_units::Instant;

use crate::error::CliError;

/// The error of a file at `path`, with the file's name.
pub(super) fn named(path: &Path) -> impl Fn(std::io::Error) -> std::io::Error {
    move |error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Writes records as they come, on a thread of its own.
pub(super) struct Recorder {
    thread: JoinHandle<std::io::Result<u64>>,
}

/// The files that were asked for.
pub(super) struct Files {
    capture: Option<(PathBuf, CaptureWriter<BufWriter<File>>)>,
    log: Option<(PathBuf, BufWriter<File>)>,
    /// The name of each direction of each link.
    names: Vec<String>,
}

const COLUMNS: &str = "time_s,link,packet,event,waited_us,late_us,marked,size_bytes,flow";

impl Files {
    /// Makes the files; `names` are those of the directions, two a link.
    pub(super) fn create(
        capture: Option<&Path>,
        log: Option<&Path>,
        names: Vec<String>,
    ) -> Result<Self, CliError> {
        let create = |path: &Path| File::create(path).map(BufWriter::new).map_err(named(path));
        // One for all, since tcpdump reads no more of raw IP: comments tell the ways apart.
        let capture = match capture {
            Some(path) => {
                let writer = CaptureWriter::new(create(path)?, &["links"]).map_err(named(path))?;
                Some((path.to_owned(), writer))
            }
            None => None,
        };
        let mut log = log.map(|path| Ok::<_, std::io::Error>((path.to_owned(), create(path)?))).transpose()?;
        if let Some((path, log)) = &mut log {
            writeln!(log, "{COLUMNS}").map_err(named(path))?;
        }
        Ok(Self { capture, log, names })
    }

    fn write(&mut self, clock: Clock, record: &PacketRecord) -> std::io::Result<()> {
        let direction = 2 * record.link + record.direction;
        if let (Some((path, capture)), Fate::Delivered { late }) = (&mut self.capture, record.fate) {
            let at = clock.calendar(record.at + late);
            capture.write(0, at, &record.packet, &self.names[direction]).map_err(named(path))?;
        }
        if let Some((path, log)) = &mut self.log {
            let (event, waited, late, marked) = match record.fate {
                Fate::Arrived => ("arrived", None, None, false),
                Fate::Sent { waited, marked } => ("sent", Some(waited), None, marked),
                Fate::Dropped(DropReason::Overflow) => ("dropped-overflow", None, None, false),
                Fate::Dropped(DropReason::Early) => ("dropped-early", None, None, false),
                Fate::Dropped(DropReason::Link) => ("lost-on-link", None, None, false),
                Fate::Delivered { late } => ("delivered", None, Some(late), false),
            };
            let micros = |time: Option<suimon_units::Duration>| {
                time.map_or(String::new(), |time| format!("{:.3}", time.as_nanos() as f64 / 1e3))
            };
            let flow =
                WirePacket::new(&record.packet, Instant::ZERO, 0).map(|packet| packet.key().to_string());
            writeln!(
                log,
                "{:.9},{},{},{event},{},{},{},{},{}",
                record.at.as_secs_f64(),
                self.names[direction],
                record.number,
                micros(waited),
                micros(late),
                u8::from(marked),
                record.packet.len(),
                flow.unwrap_or_default(),
            )
            .map_err(named(path))?;
        }
        Ok(())
    }

    fn write_all(mut self, clock: Clock, records: &PacketRecords) -> std::io::Result<u64> {
        while let Some(record) = records.next() {
            self.write(clock, &record)?;
        }
        if let Some((path, capture)) = &mut self.capture {
            capture.flush().map_err(named(path))?;
        }
        if let Some((path, log)) = &mut self.log {
            log.flush().map_err(named(path))?;
        }
        Ok(records.missed())
    }
}

impl Recorder {
    pub(super) fn start(files: Files, clock: Clock, records: PacketRecords) -> Result<Self, CliError> {
        let write = move || files.write_all(clock, &records);
        Ok(Self { thread: std::thread::Builder::new().name("record".to_owned()).spawn(write)? })
    }

    /// Waits until all is written, after the links have ended; how many records are missing.
    pub(super) fn finish(self) -> Result<u64, CliError> {
        Ok(self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    }
}
