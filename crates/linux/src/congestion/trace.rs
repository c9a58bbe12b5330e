//! Every event of an algorithm's connections, as they come.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};

use super::error::CongestionError;
use super::{Loaded, Record, load};

/// A reader of events. The programs write none once it is dropped.
#[derive(Debug)]
pub struct Trace {
    tracer: MapHandle,
    totals: MapHandle,
    lost_before: u64,
    ring: RingBuffer<'static>,
    records: Receiver<Record>,
}

const KEY: [u8; 4] = [0; 4];

impl Trace {
    /// Begins to read.
    ///
    /// # Errors
    /// Where another process does, or the pins cannot be opened.
    pub fn begin(one: &Loaded) -> Result<Self, CongestionError> {
        let map = |file| {
            let path = one.folder.join(file);
            MapHandle::from_pinned_path(&path).map_err(|error| of_path(&path, &error))
        };
        let (tracer, totals, events) = (map(load::TRACER)?, map(load::TOTALS)?, map(load::EVENTS)?);
        let reader = word(&tracer).unwrap_or_default() as u32;
        if reader != 0 && reader != std::process::id() && Path::new(&format!("/proc/{reader}")).exists() {
            return Err(CongestionError::AlreadyTraced(reader));
        }
        let (sender, records) = channel();
        let mut builder = RingBufferBuilder::new();
        let deliver = move |bytes: &[u8]| {
            if let Some(record) = Record::read(bytes) {
                // Received until this reader is dropped, and the ring with it.
                let _ = sender.send(record);
            }
            0
        };
        let path = one.folder.join(load::EVENTS);
        builder.add(&events, deliver).map_err(|error| of_path(&path, &error))?;
        let ring = builder.build().map_err(|error| of_path(&path, &error))?;
        // Records that nobody read before are nobody's.
        ring.consume().map_err(|error| of_path(&path, &error))?;
        records.try_iter().for_each(drop);
        let lost_before = lost(&totals);
        let trace = Self { tracer, totals, lost_before, ring, records };
        trace.set_tracer(std::process::id()).map_err(|error| of_path(&path, &error))?;
        Ok(trace)
    }

    /// The records that came in; waits for the first at most so long.
    pub fn wait(&self, at_most: Duration) -> Vec<Record> {
        // An interrupted wait is a short one.
        let _ = self.ring.poll(at_most);
        self.records.try_iter().collect()
    }

    /// The number of events that found no room since the trace began.
    #[must_use]
    pub fn lost(&self) -> u64 {
        lost(&self.totals).saturating_sub(self.lost_before)
    }

    fn set_tracer(&self, process: u32) -> libbpf_rs::Result<()> {
        self.tracer.update(&KEY, &process.to_ne_bytes(), MapFlags::ANY)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // Unloaded meanwhile, nobody looks at it any more.
        let _ = self.set_tracer(0);
    }
}

fn of_path(path: &Path, error: &libbpf_rs::Error) -> CongestionError {
    CongestionError::file(path, std::io::Error::other(format!("{error:#}")))
}

/// The first word of a map of variables.
fn word(map: &MapHandle) -> Option<u64> {
    let value = map.lookup(&KEY, MapFlags::ANY).ok()??;
    let mut bytes = [0; 8];
    let length = value.len().min(8);
    bytes[..length].copy_from_slice(&value[..length]);
    Some(u64::from_ne_bytes(bytes))
}

/// `totals.events_lost`, behind `totals.connections`.
fn lost(totals: &MapHandle) -> u64 {
    let value = totals.lookup(&KEY, MapFlags::ANY).ok().flatten();
    let bytes = value.and_then(|value| value.get(8..16)?.try_into().ok());
    bytes.map(u64::from_ne_bytes).unwrap_or_default()
}
