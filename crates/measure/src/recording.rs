//! What both ends saw, before anything is made of it.

use serde::{Deserialize, Serialize};

use crate::first_hop::Hop;
use crate::responsiveness::ForeignProbe;

/// A direction of the line, as its user calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the server to the client.
    Download,
    /// From the client to the server.
    Upload,
}

impl Direction {
    /// Both, in the order in which they are measured.
    pub const BOTH: [Self; 2] = [Self::Download, Self::Upload];

    /// The direction in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// From one time to another, in microseconds of the client's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The beginning.
    pub from_us: u64,
    /// The end.
    pub to_us: u64,
}

/// The latest time of a measurement by the client's clock, in microseconds.
const MAX_US: u64 = 120_000_000;
/// The same by the server's clock, which began with the server: a hundred years.
const MAX_SERVER_US: u64 = 3_156_000_000_000_000;

impl Span {
    /// Whether it can be one of a measurement.
    pub(crate) const fn is_in_time(&self) -> bool {
        self.from_us <= self.to_us && self.to_us <= MAX_US
    }

    /// Whether it has the time.
    #[must_use]
    pub const fn has(self, at_us: u64) -> bool {
        self.from_us <= at_us && at_us < self.to_us
    }

    /// Its length in seconds.
    #[must_use]
    pub const fn seconds(self) -> f64 {
        self.to_us.saturating_sub(self.from_us) as f64 / 1e6
    }
}

/// A datagram to the server and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// When the client sent it, in microseconds of its clock.
    pub sent_us: u64,
    /// When the server sent it back, in microseconds of the server's clock, and when the client had it, in those of its
    /// own; nothing where it did not come back.
    pub answer: Option<(u64, u64)>,
}

impl Probe {
    /// Whether it can be one of a measurement.
    pub(crate) fn is_in_time(&self) -> bool {
        let (server, back) = self.answer.unwrap_or((0, self.sent_us));
        self.sent_us <= back && back <= MAX_US && server <= MAX_SERVER_US
    }
}

/// A look at a connection of the load, from one of its ends (`TCP_INFO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// The connection's number.
    pub flow: u8,
    /// When, in microseconds of this end's clock.
    pub at_us: u64,
    /// Smoothed round-trip time in microseconds; zero before the first.
    pub srtt_us: u64,
    /// Payload sent and acknowledged, in bytes.
    pub acknowledged: u64,
    /// Data segments sent.
    pub segments: u64,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// Data segments that arrived marked (ECN).
    #[serde(default)]
    pub marked: u64,
    /// Payload received in order, in bytes.
    pub received: u64,
    /// Data segments received, in any order.
    pub received_segments: u64,
    /// Payload of the full segments that come, in bytes.
    pub received_segment: u64,
    /// Whether segments carry timestamps, which take 12 bytes.
    pub has_timestamps: bool,
}

impl Sample {
    /// Whether it can be one of a measurement.
    pub(crate) const fn is_in_time(&self) -> bool {
        self.at_us <= MAX_SERVER_US
    }
}

/// A load in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// From the first connection to the end of sending.
    pub span: Span,
    /// What the sender saw, in times of its clock.
    pub sender: Vec<Sample>,
    /// What the receiver saw, in times of its clock.
    pub receiver: Vec<Sample>,
}

/// All that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Recording {
    /// Whether addresses are those of IPv6, whose headers are longer.
    pub is_ipv6: bool,
    /// Whether probes were messages of a TCP connection, as those of a browser, rather than datagrams.
    #[serde(default)]
    pub is_stream: bool,
    /// The probes, in the order of sending.
    pub probes: Vec<Probe>,
    /// Times without load: before, between and after.
    pub idle: Vec<Span>,
    /// The load of the download, where it came that far.
    pub download: Option<Loaded>,
    /// The load of the upload.
    pub upload: Option<Loaded>,
    /// Requests over new connections beside the loads, where responsiveness was asked for.
    #[serde(default)]
    pub foreign: Vec<ForeignProbe>,
    /// The first hop, where it has an address and takes pings.
    #[serde(default)]
    pub first_hop: Option<Hop>,
}

/// The length of a browser's probe as a packet without IP's header, in bytes: TCP's header with timestamps, that of a frame
/// (RFC 6455 §5.2) in the mean of both ways, and the payload.
const STREAM_PROBE: u64 = 32 + 4 + 24;

impl Recording {
    /// The length of a probe as an IP packet, in bytes.
    #[must_use]
    pub const fn probe_bytes(&self) -> u64 {
        if self.is_stream {
            STREAM_PROBE + if self.is_ipv6 { 40 } else { 20 }
        } else {
            crate::datagram::on_the_wire(self.is_ipv6)
        }
    }

    /// Whether the times of its probes, spans and samples can be those of a measurement, which a file need not have.
    #[must_use]
    pub fn is_in_time(&self) -> bool {
        let mut loads = Direction::BOTH.into_iter().filter_map(|direction| self.load(direction));
        self.probes.iter().all(Probe::is_in_time)
            && self.idle.iter().all(Span::is_in_time)
            && loads.all(|Loaded { span, sender, receiver }| {
                span.is_in_time() && sender.iter().chain(receiver).all(Sample::is_in_time)
            })
    }

    /// The load in `direction`.
    #[must_use]
    pub const fn load(&self, direction: Direction) -> Option<&Loaded> {
        match direction {
            Direction::Download => self.download.as_ref(),
            Direction::Upload => self.upload.as_ref(),
        }
    }
}
