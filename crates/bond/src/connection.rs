//! One connection: frames over TLS over TCP, or over QUIC.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::task::{Context, Poll};

use serde::{Deserialize, Serialize};
use suimon_aggregation::{CapacityMeter, Flight, FlightBound, LossMeter, Occupancy, Segments};
use suimon_algorithms::path::{PathStatus, Rtt};
use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

use crate::frame::{Frame, Malformed, VERSION};
use crate::keys::PublicKey;
use crate::quic::QuicConnection;
use crate::session::Part;
use crate::tls::TlsConnection;

/// What carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// TLS over TCP.
    #[default]
    Tcp,
    /// QUIC, which is over UDP.
    Quic,
}

/// The carriers among which a client chooses for each connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Carriers {
    /// QUIC where UDP passes, TCP elsewhere.
    #[default]
    Auto,
    /// This one alone.
    Only(Carrier),
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Quic => "QUIC",
        })
    }
}

impl FromStr for Carriers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "quic" => Ok(Self::Only(Carrier::Quic)),
            "tcp" => Ok(Self::Only(Carrier::Tcp)),
            _ => Err("accepted: auto, quic, tcp".to_owned()),
        }
    }
}

/// A connection whose other end has proved who it is.
#[derive(Debug)]
pub(crate) enum Connection {
    Tls(Box<TlsConnection>),
    Quic(Box<QuicConnection>),
}

/// Calls a method of whatever carries the connection.
macro_rules! either {
    ($self:ident, $connection:ident => $call:expr) => {
        match $self {
            Self::Tls($connection) => $call,
            Self::Quic($connection) => $call,
        }
    };
}

impl Connection {
    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            Self::Tls(_) => Carrier::Tcp,
            Self::Quic(_) => Carrier::Quic,
        }
    }

    /// The next frame of the handshake, once it came.
    pub(crate) async fn receive<T>(&mut self, wanted: impl Fn(Frame<'_>) -> Option<T>) -> io::Result<T> {
        either!(self, connection => connection.receive(wanted).await)
    }

    /// Sends a frame of the handshake.
    pub(crate) async fn send_all(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        match self {
            Self::Tls(connection) => connection.send_all(frame).await,
            Self::Quic(connection) => connection.send_first(frame),
        }
    }

    /// Sends the last frame; the connection is to be dropped then.
    pub(crate) fn send_last(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        match self {
            Self::Tls(connection) => {
                let mut bytes = Vec::new();
                frame.encode(&mut bytes);
                connection.send(&bytes)
            }
            Self::Quic(connection) => {
                connection.close(frame);
                Ok(())
            }
        }
    }

    pub(crate) fn peer_key(&self) -> Option<PublicKey> {
        either!(self, connection => connection.peer_key())
    }

    /// Of this end and of the other.
    pub(crate) fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        either!(self, connection => connection.addresses())
    }

    /// Reads once, up to the length of `scratch`; `UnexpectedEof` at the end. The task is woken when there is more to read.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, scratch: &mut [u8]) -> Poll<io::Result<()>> {
        match self {
            Self::Tls(connection) => connection.poll_read(cx, scratch),
            Self::Quic(connection) => connection.poll_read(cx),
        }
    }

    /// The next of the frames that were read.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        either!(self, connection => connection.next_frame())
    }

    /// Bytes of data in the frames that were read, up to the first frame that is missing of those that the other end sent.
    pub(crate) fn received(&self) -> u64 {
        either!(self, connection => connection.received())
    }

    /// Sends one frame of data, or gives as much of it to the kernel as that takes.
    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        either!(self, connection => connection.send(frame))
    }

    /// Sends a frame that the next of its kind makes needless, so it need not arrive.
    pub(crate) fn send_report(&mut self, frame: &[u8]) -> io::Result<()> {
        match self {
            Self::Tls(connection) => connection.send(frame),
            Self::Quic(connection) => connection.send_report(frame),
        }
    }

    /// Gives the kernel what it did not take before, as much as it takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        either!(self, connection => connection.flush())
    }

    /// Whether something is left that the kernel, or the other end's credit, did not take.
    pub(crate) fn is_clogged(&self) -> bool {
        either!(self, connection => connection.is_clogged())
    }

    /// Whether all that was given to the connection was sent; if not, the task is woken when it was.
    pub(crate) fn poll_hungry(&self, cx: &mut Context<'_>) -> io::Result<bool> {
        match self {
            Self::Tls(connection) => connection.poll_hungry(cx),
            Self::Quic(connection) => Ok(connection.is_hungry()),
        }
    }

    /// Reads the state of the connection, which is given about `chunk` bytes at once.
    pub(crate) fn reading(&mut self, now: Instant, chunk: Bytes, part: Part) -> io::Result<Reading> {
        match self {
            Self::Tls(connection) => connection.reading(now, chunk, part),
            Self::Quic(connection) => Ok(connection.reading(now, chunk, part)),
        }
    }
}

/// One reading of a connection's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) status: PathStatus,
    /// The least round-trip time of late, as it was measured.
    pub(crate) rtt_min: Option<Duration>,
    /// Segments or packets that were taken for lost since the connection began.
    pub(crate) lost: u64,
    /// Since an acknowledgement came.
    pub(crate) since_ack: Duration,
    /// The part of its segments that was lost of late.
    pub(crate) loss: Probability,
    /// Whether something was acknowledged, be it selectively, since the reading before.
    pub(crate) acknowledged: bool,
}

/// A connection as its kernel or its stack tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    /// Bytes unsent, or sent and not acknowledged.
    pub(crate) buffered: Bytes,
    /// Bytes unsent.
    pub(crate) unsent: Bytes,
    /// Bytes that it may hold.
    pub(crate) send_buffer: Bytes,
    pub(crate) cwnd: Bytes,
    pub(crate) mss: Bytes,
    pub(crate) rtt: Option<Rtt>,
    pub(crate) rtt_min: Option<Duration>,
    pub(crate) is_recovering: bool,
    /// Bytes acknowledged since it began.
    pub(crate) acknowledged: Bytes,
    /// Grows whenever something is acknowledged.
    pub(crate) delivered: u64,
    pub(crate) segments: Segments,
    /// Packets lost, where no window keeps this end from filling the other one's socket.
    pub(crate) dropped: u64,
    pub(crate) since_ack: Duration,
}

/// What is measured of a connection, whatever carries it.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    rate: CapacityMeter,
    bound: FlightBound,
    loss: LossMeter,
    delivered: u64,
    dropped: u64,
}

impl Meters {
    /// Takes in what was `told` of the connection, which is given about `chunk` bytes at once.
    pub(crate) fn on_told(&mut self, now: Instant, told: Told, chunk: Bytes, part: Part) -> Reading {
        let Told { buffered, rtt, .. } = told;
        let acknowledged = told.delivered != std::mem::replace(&mut self.delivered, told.delivered);
        let overflows = told.dropped != std::mem::replace(&mut self.dropped, told.dropped);
        let rtt_min = told.rtt_min.map(|least| least.max(MIN_RTT));
        if let Some(Rtt { srtt, rttvar }) = rtt {
            self.rate.on_reading(now, Occupancy { acknowledged: told.acknowledged, buffered, srtt, rtt_min });
            if let Some(rtt_min) = rtt_min {
                let Part { is_urgent, is_second } = part;
                let flight = Flight {
                    acknowledged: told.acknowledged,
                    buffered,
                    srtt,
                    rttvar,
                    rtt_min,
                    mss: told.mss,
                    is_urgent,
                    is_second,
                    moves: acknowledged && !told.is_recovering,
                    overflows,
                };
                self.bound.on_reading(now, flight, chunk);
            }
        }
        self.loss.on_reading(now, told.segments);
        let status = PathStatus {
            buffered,
            unsent: told.unsent,
            send_buffer: self.bound.get().map_or(told.send_buffer, |bound| bound.min(told.send_buffer)),
            cwnd: told.cwnd,
            mss: told.mss,
            rtt,
            rtt_min,
            delivery_rate: self.rate.get(),
            is_recovering: told.is_recovering,
        };
        Reading {
            status,
            rtt_min: told.rtt_min,
            lost: told.segments.retransmitted,
            since_ack: told.since_ack,
            loss: self.loss.get(),
            acknowledged,
        }
    }

    /// Bytes that may wait unsent. On a fast path two milliseconds' worth, so that it does not run dry while this program is
    /// asked; on others nothing, so that the scheduler decides as late as can be.
    pub(crate) fn may_wait(&self) -> u64 {
        let worth = self.rate.get().map_or(0, |rate: Rate| rate.amount_in(WAITING).get());
        if worth < FAST { 0 } else { worth.min(MAX_WAITING) }
    }
}

/// The fault of an end of another version, in plain words.
pub(crate) fn other_version() -> io::Error {
    let text = format!(
        "it speaks another version of the protocol than this end ({VERSION}): both ends need the same version of suimon"
    );
    io::Error::new(io::ErrorKind::Unsupported, text)
}

pub(crate) fn invalid(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

const WAITING: Duration = Duration::from_millis(2);
const MAX_WAITING: u64 = 1 << 20;
/// Less than a record, and records go one by one.
const FAST: u64 = 32 * 1024;
/// A round trip is over when this program looks again, which is a timer's tick and a turn of the processor later; a connection
/// that may hold no more than the wire does would run dry in between.
const MIN_RTT: Duration = Duration::from_millis(2);
