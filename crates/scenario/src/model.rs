//! The validated experiment.

use std::fmt;
use std::sync::Arc;

use suimon_algorithms::RandomStream;
pub use suimon_algorithms::queue::Buffer;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_radio::{hsdpa, wlan};
use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

use crate::profile::StackProfile;
use crate::scheme;

/// One experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Short name, used in tables and file names.
    pub name: String,
    /// What it is about, for the report.
    pub description: String,
    /// All randomness derives from it.
    pub seed: u64,
    /// When the run ends at the latest.
    pub duration: Duration,
    /// End early, once every flow that has a size is complete.
    pub stop_when_complete: bool,
    /// Unidirectional links. Hosts and routers are the names that they connect.
    pub links: Vec<Link>,
    /// The flows, in order.
    pub flows: Vec<Flow>,
    /// Flows that carry one stream together.
    pub aggregates: Vec<Aggregate>,
    /// What to record.
    pub record: Record,
}

/// A unidirectional link with the queue in front of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Unique name.
    pub name: String,
    /// The node whose packets it takes.
    pub from: String,
    /// The node that it leads to.
    pub to: String,
    /// How fast it sends.
    pub capacity: Capacity,
    /// Propagation delay.
    pub delay: Duration,
    /// What each packet costs on the link beside its own bytes.
    pub overhead: Bytes,
    /// How much may wait, without the packet that is being sent.
    pub buffer: Buffer,
    /// The queue discipline.
    pub queue: AlgorithmSpec,
    /// Random loss, after transmission.
    pub loss: Loss,
    /// Extra delay, uniform from zero to this, that varies from packet to packet but keeps their order.
    pub jitter: Duration,
    /// Packets that are overtaken.
    pub reordering: Option<Reordering>,
    /// When nothing gets through: what leaves the link meanwhile is lost. In order, apart from each other.
    pub outages: Vec<Outage>,
    /// What estimates round-trip times from the packets that come to it.
    pub estimator: Option<AlgorithmSpec>,
    /// Whether results show it; access links of a comparison are not worth a row.
    pub reported: bool,
}

impl Link {
    /// The other direction of the duplex link that `name` is one direction of.
    #[must_use]
    pub fn other_direction(name: &str) -> String {
        match name.strip_suffix(REVERSE) {
            Some(forward) => forward.to_owned(),
            None => format!("{name}{REVERSE}"),
        }
    }

    /// One that does nothing but delay, and that no result shows.
    ///
    /// # Panics
    ///
    /// Never: drop tail is registered.
    #[must_use]
    pub fn delaying(name: String, from: &str, to: &str, delay: Duration) -> Self {
        Self {
            name,
            from: from.to_owned(),
            to: to.to_owned(),
            capacity: Capacity::Rate(Rate::MAX),
            delay,
            overhead: Bytes::ZERO,
            buffer: Buffer::Unbounded,
            queue: AlgorithmSpec::parse(Role::Queue, "droptail").expect("drop tail is registered"),
            loss: Loss::None,
            jitter: Duration::ZERO,
            reordering: None,
            outages: Vec::new(),
            estimator: None,
            reported: false,
        }
    }
}

/// How the way back of a duplex link is called, behind the link's name.
const REVERSE: &str = "-reverse";

/// How fast a link sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Capacity {
    /// Always at this rate.
    Rate(Rate),
    /// One opportunity to send 1500 bytes at each of these times, in Mahimahi's way: unused
    /// opportunities are lost, and after `period` the list starts again.
    Opportunities {
        /// When, from the start of the run, ascending, at most `period`.
        times: Arc<[Duration]>,
        /// Length of the list in time, more than zero.
        period: Duration,
    },
    /// At the rate that holds since the latest of these times; after `period` the list starts again.
    Steps {
        /// Since when and which rate, ascending, the first at zero; not all zero.
        steps: Arc<[(Duration, Rate)]>,
        /// Length of the list in time, more than the last step's time.
        period: Duration,
    },
    /// As an HSDPA cell serves one of its terminals.
    Hsdpa(Box<Hsdpa>),
    /// As the station at the link's beginning gets hold of an 802.11 medium, which it shares with all links that
    /// name it. Links from the same node are one station.
    Wifi(Arc<Medium>),
}

impl Capacity {
    /// True where a radio decides when packets leave, not the link by itself.
    #[must_use]
    pub fn is_radio(&self) -> bool {
        matches!(self, Self::Hsdpa(_) | Self::Wifi(_))
    }
}

/// A terminal of an HSDPA cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Hsdpa {
    /// The terminal and its channel.
    pub user: hsdpa::UserParameters,
    /// The cell that it shares with the others that name it; `None` for one of its own.
    pub cell: Option<Arc<Cell>>,
    /// What the way back takes beside the propagation delay. Readers add it to the delay of the way back where
    /// nothing else is said of that.
    pub uplink_delay: Duration,
}

impl Hsdpa {
    /// A terminal in a cell of its own, with what the way back took in the re-run of the FS-AT paper: 35 ms.
    #[must_use]
    pub fn new(user: hsdpa::UserParameters) -> Self {
        Self { user, cell: None, uplink_delay: Duration::from_millis(35) }
    }
}

/// An 802.11 medium.
#[derive(Debug, Clone, PartialEq)]
pub struct Medium {
    /// Unique name.
    pub name: String,
    /// Timing and options.
    pub parameters: wlan::Parameters,
}

/// An HSDPA cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Unique name.
    pub name: String,
    /// Whom it serves next.
    pub scheduler: hsdpa::Policy,
}

/// Random loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each packet alone.
    Random(Probability),
    /// Two states that lose differently and change from packet to packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// From the good state to the bad one, per packet.
        to_bad: Probability,
        /// From the bad state to the good one, per packet.
        to_good: Probability,
        /// Loss in the good state.
        loss_good: Probability,
        /// Loss in the bad state.
        loss_bad: Probability,
    },
}

/// Packets held back so that later ones overtake them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reordering {
    /// Share of the packets.
    pub probability: Probability,
    /// For how long.
    pub delay: Duration,
}

/// A time in which a link carries nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Since then.
    pub from: Instant,
    /// It is over then; [`Instant::MAX`] where it lasts.
    pub to: Instant,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.from.saturating_since(Instant::ZERO))?;
        if self.to < Instant::MAX {
            write!(f, "{}", self.to.saturating_since(Instant::ZERO))?;
        }
        Ok(())
    }
}

/// A flow from one node to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Unique name.
    pub name: String,
    /// Where the data comes from.
    pub from: String,
    /// Where it goes.
    pub to: String,
    /// The links on its way; `None` for the fewest. The way back is over [`Link::other_direction`].
    pub via: Option<Vec<String>>,
    /// When it starts.
    pub start: Start,
    /// When it stops sending, whatever remains.
    pub stop: Option<Instant>,
    /// Propagation delay beside that of the links, each way: uniform between the two, drawn once.
    pub extra_delay: (Duration, Duration),
    /// What it sends.
    pub traffic: Traffic,
}

impl Flow {
    /// What it draws from: first its start, then the lengths of its bursts and pauses.
    #[must_use]
    pub fn random(&self, seed: u64) -> RandomStream {
        RandomStream::new(seed, &format!("flow {}", self.name))
    }

    /// The one extra delay that it has under `seed`, from a stream of its own.
    #[must_use]
    pub fn drawn_extra_delay(&self, seed: u64) -> Duration {
        let (least, most) = self.extra_delay;
        RandomStream::new(seed, &format!("flow {} delay", self.name)).duration_between(least, most)
    }

    /// The same flow, `later`, under another name.
    pub(crate) fn later(self, later: Duration, name: String) -> Self {
        let start = match self.start {
            Start::At(at) => Start::At(at + later),
            Start::Between(low, high) => Start::Between(low + later, high + later),
        };
        Self { name, start, stop: self.stop.map(|stop| stop + later), ..self }
    }
}

/// When a flow starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// Then.
    At(Instant),
    /// At a uniformly random time between the two.
    Between(Instant, Instant),
}

impl Start {
    /// The time itself, the first that is drawn of [`Flow::random`].
    pub fn drawn(self, random: &mut RandomStream) -> Instant {
        match self {
            Self::At(at) => at,
            Self::Between(from, to) => {
                from + random.duration_between(Duration::ZERO, to.saturating_since(from))
            }
        }
    }
}

/// What a flow sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    /// A TCP connection.
    Tcp(Box<TcpFlow>),
    /// Datagrams at a constant rate.
    Udp(UdpFlow),
}

impl Traffic {
    /// Its algorithms as users write them ([`TcpFlow::label`]), or `udp`.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Tcp(tcp) => tcp.label(),
            Self::Udp(_) => "udp".to_owned(),
        }
    }

    /// The colour in every chart.
    #[must_use]
    pub fn colour(&self) -> &'static str {
        match self {
            Self::Tcp(tcp) => tcp.colour(),
            // No algorithm, whose colour it could take.
            Self::Udp(_) => "#9c755f",
        }
    }
}

/// A TCP connection.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpFlow {
    /// Congestion control at the sender.
    pub cc: AlgorithmSpec,
    /// Window advertisement at the receiver.
    pub receiver: AlgorithmSpec,
    /// The options of both stacks.
    pub profile: StackProfile,
    /// Receive buffer: what the receiver can advertise at most.
    pub window: Bytes,
    /// How much the application sends in all; `None` for as much as it can.
    pub size: Option<Bytes>,
    /// The application produces data at this rate only; `None` for as fast as TCP takes it.
    pub application_rate: Option<Rate>,
    /// Random periods of sending and silence.
    pub on_off: Option<OnOff>,
}

impl TcpFlow {
    /// Its algorithms as users write them: `cubic`, `drs` for Reno under that receiver, else `cubic/drs`.
    #[must_use]
    pub fn label(&self) -> String {
        scheme::label(&self.cc, &self.receiver)
    }

    /// The colour in every chart: the receiver's where it is what stands out, else the sender's.
    #[must_use]
    pub fn colour(&self) -> &'static str {
        match (self.cc.label(), self.receiver.name()) {
            (_, "fixed") => self.cc.colour(),
            ("reno", _) => self.receiver.colour(),
            _ => self.cc.colour(),
        }
    }
}

/// Several TCP flows that carry one stream: what each sends is up to a path scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Unique name.
    pub name: String,
    /// The flows, one for each path.
    pub flows: Vec<String>,
    /// Which flow carries what.
    pub scheduler: AlgorithmSpec,
    /// How much the application sends in all; `None` for as much as it can.
    pub size: Option<Bytes>,
    /// The application produces data at this rate only; `None` for as fast as it is taken.
    pub application_rate: Option<Rate>,
    /// What each flow may hold, unsent or unacknowledged.
    pub send_buffer: Bytes,
    /// What may wait at the receiver for data of other flows.
    pub reorder_buffer: Bytes,
    /// Whether data of a flow that makes no progress is given to others too.
    pub copy_stalled: bool,
    /// A flow that is silent for so long (and for two retransmission timeouts), or does not connect within it,
    /// is connected anew; `None` leaves it to TCP's own retransmissions.
    pub reconnect: Option<Duration>,
}

/// Datagrams at a constant rate.
#[derive(Debug, Clone, PartialEq)]
pub struct UdpFlow {
    /// Sending rate, headers included.
    pub rate: Rate,
    /// Size of a datagram on the wire, headers included.
    pub packet: Bytes,
    /// How much is sent; `None` until stopped.
    pub size: Option<Bytes>,
    /// Random periods of sending and silence.
    pub on_off: Option<OnOff>,
}

/// Alternating periods of sending and silence, each exponentially distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OnOff {
    /// Mean length of a sending period.
    pub on: Duration,
    /// Mean length of a silent period.
    pub off: Duration,
}

/// What a run records beside totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Sample every flow and queue this often; `None` records no series.
    pub interval: Option<Duration>,
    /// Totals and percentiles count from here on; what happens earlier is warm-up.
    pub warmup: Duration,
    /// Statistics of every reported queue over these.
    pub windows: Vec<Window>,
    /// How many events are kept; the others are only counted.
    pub events: usize,
    /// Tell how the rate of each flow varies, over samples of so many packets received, at least one.
    pub rate_spread: Option<u64>,
}

impl Record {
    /// How many events are kept unless the scenario says otherwise.
    pub const EVENTS: usize = 10_000;
}

impl Default for Record {
    /// Totals of the whole run and its events, no series.
    fn default() -> Self {
        Self {
            interval: None,
            warmup: Duration::ZERO,
            windows: Vec::new(),
            events: Self::EVENTS,
            rate_spread: None,
        }
    }
}

/// A window of time, of which statistics are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Unique name.
    pub name: String,
    /// When it opens.
    pub from: Instant,
    /// When it closes.
    pub to: Instant,
    /// How often goodput is sampled in it.
    pub sample: Duration,
}
