//! Flows, and streams over several of them.

use suimon_algorithms::RandomStream;
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::profile::StackProfile;

/// A flow from one node to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Unique name.
    pub name: String,
    /// Where the data comes from.
    pub from: String,
    /// Where it goes.
    pub to: String,
    /// The links on its way; `None` for the fewest. The way back is over [`crate::Link::other_direction`].
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
    pub fn colour(&self) -> &str {
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
    /// A node on its way that splits the connection.
    pub gateway: Option<Gateway>,
}

/// A node that ends a connection and leads its data on over one of its own (RFC 3135 §2): each half has its sender.
#[derive(Debug, Clone, PartialEq)]
pub struct Gateway {
    /// The node.
    pub node: String,
    /// Congestion control from there on.
    pub cc: AlgorithmSpec,
    /// Window advertisement toward the sender.
    pub receiver: AlgorithmSpec,
    /// Most that the node advertises, and so holds of what it has not sent.
    pub buffer: Bytes,
    /// Its connections to one receiver share one FS-AT target.
    pub shared: bool,
}

impl TcpFlow {
    /// Its algorithms as users write them: `cubic`, `cubic>fs-at` where a gateway goes on by FS-AT, `drs` for Reno under
    /// that receiver, else `cubic/drs`.
    #[must_use]
    pub fn label(&self) -> String {
        let sender = scheme_label(&self.cc, &self.receiver);
        match &self.gateway {
            Some(gateway) => format!("{sender}>{}", gateway.cc.label()),
            None => sender,
        }
    }

    /// The colour in every chart: the receiver's where it is what stands out, else the sender's.
    #[must_use]
    pub fn colour(&self) -> &str {
        if let Some(gateway) = &self.gateway {
            return gateway.cc.colour();
        }
        match (self.cc.label(), self.receiver.name()) {
            (_, DEFAULT_RECEIVER) => self.cc.colour(),
            (RECEIVERS_SENDER, _) => self.receiver.colour(),
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
    /// The receiver sends each datagram back, as it answers a ping.
    pub echo: bool,
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
    /// TCP opens a new connection for each sending period.
    pub reconnect: bool,
}

/// The congestion control under a receive window that is named alone.
pub const RECEIVERS_SENDER: &str = "reno";

/// The receive window that goes without saying.
pub const DEFAULT_RECEIVER: &str = "fixed";

/// A congestion control and a receive window as users write them, without what goes without saying.
#[must_use]
pub fn scheme_label(cc: &AlgorithmSpec, receiver: &AlgorithmSpec) -> String {
    match (cc.label(), receiver.label()) {
        (cc, DEFAULT_RECEIVER) => cc.to_owned(),
        (RECEIVERS_SENDER, receiver) => receiver.to_owned(),
        (cc, receiver) => format!("{cc}/{receiver}"),
    }
}
