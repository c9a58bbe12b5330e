//! The state of a session, for people and programs.

use serde::{Deserialize, Serialize};
use suimon_units::{Bytes, Duration, Rate};

use crate::connection::{Carrier, Reading};
use crate::session::SessionView;

/// One session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// The server that a client uses.
    pub server: Option<String>,
    /// The paths that are up.
    pub paths: Vec<PathStatusView>,
    /// The aggregate of the paths.
    pub session: AggregateStatus,
    /// Open streams.
    pub streams: u64,
    /// Sessions of this client that ended before this one.
    pub ended: u64,
    /// Why the last of them ended.
    pub last_end: Option<String>,
}

/// The aggregate of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AggregateStatus {
    /// Bytes sent, headers of streams included.
    pub sent_bytes: u64,
    /// Of these, bytes that the other end has in order.
    pub acknowledged_bytes: u64,
    /// Bytes that this end has in order.
    pub received_bytes: u64,
    /// Bytes that wait here for others, sent earlier.
    pub reorder_bytes: u64,
    /// Bytes that came twice.
    pub duplicate_bytes: u64,
    /// Bytes of real-time and redundant flows sent.
    pub realtime_bytes: u64,
    /// Bytes that went over a second path too: of redundant flows, of urgent data whose path was late, and the first data that the
    /// other end lacked where its path was.
    pub copied_bytes: u64,
    /// Bytes that streams hold: not read, or not sent yet.
    pub streams_bytes: u64,
    /// Bytes kept until the other end has them.
    pub unacknowledged_bytes: u64,
}

/// One path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathStatusView {
    /// The client's interface.
    pub name: String,
    /// What carries the connection.
    pub carrier: Carrier,
    /// This end's address.
    pub local: Option<String>,
    /// The other end's.
    pub peer: Option<String>,
    /// Data is under way and none of it arrives.
    pub stalled: bool,
    /// Other paths through the same bottleneck, as their delays vary alike.
    pub shares_with: Vec<String>,
    /// Connections so far.
    pub connections: u64,
    /// Seconds since this one was made.
    pub up_s: f64,
    /// Bytes that this connection has delivered.
    pub sent_bytes: u64,
    /// Bytes that came over it.
    pub received_bytes: u64,
    /// Goodput out, in bits per second, of the last half second.
    pub sent_bps: u64,
    /// Goodput in.
    pub received_bps: u64,
    /// Bytes that the connection holds, unsent or not acknowledged.
    pub buffered_bytes: u64,
    /// Of these, bytes never sent.
    pub unsent_bytes: u64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Smoothed round-trip time; none until measured.
    pub rtt_ms: Option<f64>,
    /// Least round-trip time of late.
    pub rtt_min_ms: Option<f64>,
    /// Time that data sent now waits in the path's queues: the smoothed round-trip time beyond the least.
    pub queue_ms: Option<f64>,
    /// How fast it carries data, in bits per second, as the scheduler takes it.
    pub capacity_bps: Option<u64>,
    /// The part of the segments that was sent again in the last five to ten seconds.
    pub loss: f64,
    /// Segments sent again over this connection.
    pub retransmitted_segments: u64,
    /// Milliseconds since an acknowledgement came.
    pub last_ack_ms: u32,
}

impl PathStatusView {
    pub(crate) fn update(&mut self, reading: &Reading) {
        let Reading { status, loss, .. } = reading;
        self.loss = loss.get();
        self.buffered_bytes = status.buffered.get();
        self.unsent_bytes = status.unsent.get();
        self.cwnd_bytes = status.cwnd.get();
        self.rtt_ms = status.rtt.map(|rtt| rtt.srtt.as_millis_f64());
        self.rtt_min_ms = reading.rtt_min.map(Duration::as_millis_f64);
        self.queue_ms = self.rtt_ms.zip(self.rtt_min_ms).map(|(rtt, least)| (rtt - least).max(0.0));
        self.capacity_bps = status.delivery_rate.map(Rate::as_bps);
        self.retransmitted_segments = reading.lost;
        self.last_ack_ms = (reading.since_ack.as_nanos() / 1_000_000) as u32;
    }

    /// Carried (in, out) so many bytes before and now, `time` apart.
    pub(crate) fn on_carried(&mut self, before: (u64, u64), now: (u64, u64), time: Duration) {
        (self.received_bytes, self.sent_bytes) = now;
        if time > Duration::ZERO {
            self.received_bps = Rate::of(Bytes::new(now.0 - before.0), time).as_bps();
            self.sent_bps = Rate::of(Bytes::new(now.1 - before.1), time).as_bps();
        }
    }
}

impl From<SessionView> for AggregateStatus {
    fn from(view: SessionView) -> Self {
        Self {
            sent_bytes: view.produced,
            acknowledged_bytes: view.acknowledged,
            received_bytes: view.received,
            reorder_bytes: view.reorder_held,
            duplicate_bytes: view.duplicates,
            realtime_bytes: view.realtime,
            copied_bytes: view.copied,
            streams_bytes: view.streams_held,
            unacknowledged_bytes: view.send_held,
        }
    }
}
