//! A log of all packets, sent to whoever writes it down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use suimon_algorithms::queue::DropReason;
use suimon_units::{Duration, Instant};

use crate::packet::WirePacket;

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The packet came to the link.
    Arrived,
    /// The transmission of the packet began.
    Sent {
        /// The time in the queue.
        waited: Duration,
        /// The queue marked it.
        marked: bool,
    },
    /// The packet was dropped by the queue or lost on the link.
    Dropped(DropReason),
    /// The packet was given to the far host.
    Delivered {
        /// The delay beyond the due time.
        late: Duration,
    },
}

/// Something that happened to a packet.
#[derive(Debug, Clone)]
pub struct PacketRecord {
    /// The time, by the emulation's clock.
    pub at: Instant,
    /// The link, as numbered in its setup.
    pub link: usize,
    /// The direction of the link.
    pub direction: usize,
    /// The packet's number in that direction.
    pub number: u64,
    /// The fate of the packet.
    pub fate: Fate,
    /// The IP packet, as it was then.
    pub packet: Box<[u8]>,
}

/// The end of a log that links write to.
#[derive(Debug, Clone)]
pub(crate) struct PacketLog {
    link: usize,
    direction: usize,
    records: SyncSender<PacketRecord>,
    missed: Arc<AtomicU64>,
}

/// The end of a log where records come out.
#[derive(Debug)]
pub struct PacketRecords {
    records: Receiver<PacketRecord>,
    missed: Arc<AtomicU64>,
}

/// The most records that may wait to be read. Packets wait for no reader: a record beyond is counted only.
const ROOM: usize = 65_536;

/// A log, both ends.
pub(crate) fn log() -> (PacketLog, PacketRecords) {
    let (sender, receiver) = sync_channel(ROOM);
    let missed = Arc::new(AtomicU64::new(0));
    let log = PacketLog { link: 0, direction: 0, records: sender, missed: Arc::clone(&missed) };
    (log, PacketRecords { records: receiver, missed })
}

impl PacketLog {
    pub(crate) fn of(&self, link: usize, direction: usize) -> Self {
        Self { link, direction, ..self.clone() }
    }

    pub(crate) fn record(&mut self, at: Instant, packet: &WirePacket, fate: Fate) {
        let record = PacketRecord {
            at,
            link: self.link,
            direction: self.direction,
            number: packet.number,
            fate,
            packet: packet.ip().into(),
        };
        if self.records.try_send(record).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl PacketRecords {
    /// The next record; waits for it. `None` once the emulation is over.
    #[must_use]
    pub fn next(&self) -> Option<PacketRecord> {
        self.records.recv().ok()
    }

    /// Records that were not kept, since nobody had read those before them.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}
