//! Every packet that a policy judges, as they come.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use zerocopy::FromBytes;

use super::Loaded;
use super::error::QueueError;
use super::load::{self, EVENTS, TRACER, map};
use crate::queue_trace::Record;

/// A reader of records. The program writes none once it is dropped.
#[derive(Debug)]
pub struct Trace {
    tracer: MapHandle,
    ring: RingBuffer<'static>,
    records: Receiver<Record>,
}

const KEY: [u8; 4] = [0; 4];

impl Trace {
    /// Begins to read, at whichever packet comes next.
    ///
    /// # Errors
    /// Another process reads already, or the pins cannot be opened.
    pub fn begin(one: &Loaded) -> Result<Self, QueueError> {
        Self::free(one)?;
        let trace = Self::open(one)?;
        // Records that nobody read before are nobody's.
        let path = one.folder.join(EVENTS);
        trace.ring.consume().map_err(|error| QueueError::pin(&path, error))?;
        trace.records.try_iter().for_each(drop);
        trace.set_tracer(std::process::id()).map_err(|error| QueueError::pin(&path, error))?;
        Ok(trace)
    }

    /// Puts a program of the same settings in the place of the one that is there, and reads from its first packet on.
    ///
    /// # Errors
    /// Another process reads already, the kernel refuses the program, or the pins cannot be opened.
    pub fn afresh(one: &Loaded) -> Result<Self, QueueError> {
        Self::free(one)?;
        load::reload(one, std::process::id())?;
        Self::open(one)
    }

    /// Whether nobody else reads.
    fn free(one: &Loaded) -> Result<(), QueueError> {
        let value =
            map(&one.folder.join(TRACER))?.lookup(&KEY, MapFlags::ANY).ok().flatten().unwrap_or_default();
        let reader = value.get(..4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes);
        if reader != 0 && reader != std::process::id() && Path::new(&format!("/proc/{reader}")).exists() {
            return Err(QueueError::AlreadyTraced(reader));
        }
        Ok(())
    }

    fn open(one: &Loaded) -> Result<Self, QueueError> {
        let (tracer, events) = (map(&one.folder.join(TRACER))?, map(&one.folder.join(EVENTS))?);
        let (sender, records) = channel();
        let mut builder = RingBufferBuilder::new();
        let deliver = move |bytes: &[u8]| {
            if let Ok(record) = Record::read_from_bytes(bytes) {
                // Received until this reader is dropped, and the ring with it.
                let _ = sender.send(record);
            }
            0
        };
        let path = one.folder.join(EVENTS);
        let wrong = |error| QueueError::pin(&path, error);
        builder.add(&events, deliver).map_err(wrong)?;
        let ring = builder.build().map_err(wrong)?;
        Ok(Self { tracer, ring, records })
    }

    /// The records that came in; waits for the first at most so long.
    pub fn wait(&self, at_most: Duration) -> Vec<Record> {
        // An interrupted wait is a short one.
        let _ = self.ring.poll(at_most);
        self.records.try_iter().collect()
    }

    fn set_tracer(&self, process: u32) -> libbpf_rs::Result<()> {
        let mut value = vec![0; self.tracer.value_size() as usize];
        value[..4].copy_from_slice(&process.to_ne_bytes());
        self.tracer.update(&KEY, &value, MapFlags::ANY)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // Unloaded meanwhile, nobody looks at it any more.
        let _ = self.set_tracer(0);
    }
}
