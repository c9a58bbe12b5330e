//! Path schedulers: the assignment of data to several connections.
//!
//! Each path is an ordinary TCP connection with its own congestion and flow control. A scheduler sees
//! the state of the sockets as a program reads it (occupancy of the send buffer, window, round-trip time,
//! delivery rate) and places the next data, or decides to wait.

pub mod blest;
pub mod ecf;
pub mod least_buffered;
pub mod look_ahead;
pub mod lowest_rtt;
pub mod redundant;
pub mod round_robin;

use core::fmt::Debug;

use dyn_clone::{DynClone, clone_trait_object};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::probe::Probe;

/// Decides which path carries which data.
pub trait PathScheduler: Debug + Send + DynClone {
    /// The next placement; `None` to wait until data, an acknowledgement, the window or a path changes the
    /// state. Asked again until the answer is `None`.
    fn place(&mut self, now: Instant, state: &SendState<'_>) -> Option<Placement>;

    /// Tells the inner values that are worth plotting.
    fn probe(&self, _out: &mut dyn Probe) {}
}

clone_trait_object!(PathScheduler);

/// A path, by its place in [`SendState::paths`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub usize);

/// Data and the path for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// The path that takes the data.
    pub path: PathId,
    /// The data.
    pub data: Data,
}

/// A choice of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// The first data that no path has.
    Next,
    /// Data that no path has, so many bytes behind the first.
    Ahead(Bytes),
    /// A copy of the first data that is under way on other paths and was never on this one.
    Copy,
}

/// The state of the sender at a decision.
#[derive(Debug, Clone, Copy)]
pub struct SendState<'a> {
    /// Every path, in a fixed order; some may be unusable.
    pub paths: &'a [PathView],
    /// Bytes of the next placement.
    pub chunk: Bytes,
    /// Bytes that the application has produced and no path has.
    pub unassigned: Bytes,
    /// How far behind the first unassigned byte the receiver's reorder buffer ends.
    pub window: Bytes,
    /// The size of that buffer.
    pub buffer: Bytes,
}

impl SendState<'_> {
    /// True where the next data exists and fits the receiver's reorder buffer.
    #[must_use]
    pub fn next_fits(&self) -> bool {
        self.unassigned > Bytes::ZERO && self.chunk <= self.window
    }

    /// Usable paths whose send buffer has room for the next chunk.
    pub fn with_room(&self) -> impl Iterator<Item = (PathId, &PathView)> {
        self.usable().filter(|(_, path)| path.status.buffered + self.chunk <= path.status.send_buffer)
    }

    /// Usable paths that would send the next chunk as soon as their window opens: at most one waits
    /// unsent. A late decision is a good one, and TCP still finds its window full.
    pub fn ready(&self) -> impl Iterator<Item = (PathId, &PathView)> {
        self.with_room().filter(|(_, path)| path.status.unsent == Bytes::ZERO)
    }

    /// Usable paths.
    pub fn usable(&self) -> impl Iterator<Item = (PathId, &PathView)> {
        self.paths.iter().enumerate().map(|(id, path)| (PathId(id), path)).filter(|(_, path)| path.usable)
    }
}

/// One path as its sender sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathView {
    /// Its connection is established and makes progress.
    pub usable: bool,
    /// The time without an acknowledgement while data is under way.
    pub silent: Duration,
    /// Some data is under way on other paths and was never on this one.
    pub can_copy: bool,
    /// True where the path carries the first byte that the receiver lacks.
    pub holds_first: bool,
    /// The state of its connection.
    pub status: PathStatus,
}

/// The state of a connection, as a program reads it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PathStatus {
    /// Bytes in its send buffer: unsent, or sent and not acknowledged (Linux: `SIOCOUTQ`).
    pub buffered: Bytes,
    /// Of these, bytes never sent (Linux: `SIOCOUTQNSD`).
    pub unsent: Bytes,
    /// Size of its send buffer.
    pub send_buffer: Bytes,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Maximum segment size.
    pub mss: Bytes,
    /// Smoothed round-trip time and its mean deviation; `None` until measured.
    pub rtt: Option<Rtt>,
    /// Least round-trip time of late.
    pub rtt_min: Option<Duration>,
    /// The rate at which its data is acknowledged; `None` until measured.
    pub delivery_rate: Option<Rate>,
    /// Its retransmission timer ran out (Linux: `TCP_CA_Loss`): what was lost goes before all that it is given now.
    pub is_recovering: bool,
}

/// A round-trip time, smoothed (RFC 6298 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rtt {
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Its mean deviation.
    pub rttvar: Duration,
}

impl PathView {
    /// Smoothed round-trip time; a path without one is taken to be quick, so that it gets tried.
    #[must_use]
    pub fn srtt(&self) -> Duration {
        self.status.rtt.map_or(Duration::ZERO, |rtt| rtt.srtt)
    }

    /// The rate of the path: as measured, else a window in each round trip.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.status
            .delivery_rate
            .or_else(|| Some(Rate::of(self.status.cwnd, self.status.rtt?.srtt)))
            .filter(|rate| *rate > Rate::ZERO)
    }

    /// The time until `more` bytes that the path takes now have arrived: its buffer drains and the bytes are under way,
    /// but never sooner than the path's least round trip allows. `None` for a path that nothing is known of.
    #[must_use]
    pub fn arrives_in(&self, more: Bytes) -> Option<Duration> {
        let rtt_min = self.status.rtt_min?;
        let drained = self.rate()?.transmission_time(self.status.buffered + more);
        Some(drained.max(rtt_min).saturating_sub(rtt_min / 2))
    }
}

/// The path with the least `key`; the first of several.
fn least<'a, K: PartialOrd>(
    paths: impl Iterator<Item = (PathId, &'a PathView)>,
    key: impl Fn(&PathView) -> K,
) -> Option<(PathId, &'a PathView)> {
    paths.reduce(|best, path| if key(path.1) < key(best.1) { path } else { best })
}

#[cfg(test)]
pub(crate) mod testing {
    //! Paths for the schedulers' tests; a test overrides the fields that it is about.

    use super::*;

    pub(crate) const CHUNK: Bytes = Bytes::new(1_000);

    /// An idle path with a window of ten chunks.
    pub(crate) fn path(srtt_ms: u64) -> PathView {
        let srtt = Duration::from_millis(srtt_ms);
        let status = PathStatus {
            send_buffer: Bytes::new(64_000),
            cwnd: CHUNK * 10,
            mss: CHUNK,
            rtt: Some(Rtt { srtt, rttvar: Duration::ZERO }),
            rtt_min: Some(srtt),
            ..PathStatus::default()
        };
        PathView { usable: true, silent: Duration::ZERO, can_copy: false, holds_first: false, status }
    }

    /// `path` with its window full and one chunk waiting.
    pub(crate) fn full(path: PathView) -> PathView {
        PathView {
            status: PathStatus { buffered: path.status.cwnd + CHUNK, unsent: CHUNK, ..path.status },
            ..path
        }
    }

    /// Endless data and a wide window.
    pub(crate) fn state(paths: &[PathView]) -> SendState<'_> {
        SendState {
            paths,
            chunk: CHUNK,
            unassigned: Bytes::new(1_000_000),
            window: Bytes::new(1_000_000),
            buffer: Bytes::new(1_000_000),
        }
    }

    /// The path that `scheduler` gives the next data to.
    pub(crate) fn next(scheduler: &mut impl PathScheduler, paths: &[PathView]) -> Option<usize> {
        let placement = scheduler.place(Instant::ZERO, &state(paths))?;
        assert_eq!(placement.data, Data::Next);
        Some(placement.path.0)
    }
}
