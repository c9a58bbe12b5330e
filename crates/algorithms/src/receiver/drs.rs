//! Dynamic Right-Sizing (Fisk, Feng 2001): the receiver advertises twice the data that it takes
//! in per round-trip time.
//!
//! The window bounds the flight, and so the queue, as a side effect; FS-AT's paper compares with it.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::{ReceiveWindow, Received};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "drs",
    summary: "advertises twice what arrives per round-trip time, never less than before",
    source: "Fisk, Feng: Dynamic Right-Sizing in TCP, 2001",
    colour: "#b07aa1",
    parameters: &[
        Parameter {
            name: "rtt",
            help: "round-trip time from timestamps, or from a full window passing as the paper says",
            default: Value::Choice("window"),
            range: Range::OneOf(&["timestamps", "window"]),
        },
        Parameter {
            name: "min_buffer",
            help: "the buffer never falls below this",
            default: Value::Bytes(Bytes::new(32_000)),
            range: Range::Any,
        },
    ],
};

/// Builds it over a receive buffer of `buffer`.
#[must_use]
pub fn build(buffer: Bytes, arguments: &Arguments) -> Box<dyn ReceiveWindow> {
    let reading =
        if arguments.choice("rtt") == "window" { RttReading::Window } else { RttReading::Timestamps };
    Box::new(Drs::new(buffer, arguments.bytes("min_buffer"), reading))
}

/// How the receiver, which sends no data, measures a round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttReading {
    /// From an ACK to the arrival of the last byte that it allowed.
    Window,
    /// From the timestamp that a segment echoes.
    Timestamps,
}

/// DRS's state.
#[derive(Debug, Clone)]
pub struct Drs {
    reading: RttReading,
    max_buffer: Bytes,
    buffer: Bytes,
    rtt_min: Option<Duration>,
    /// The window being timed: since when, and its right edge.
    timed_window: Option<(Instant, u64)>,
    /// The window that Linux would have advertised last.
    opened: Bytes,
    /// The start of the interval, and the bytes that the application had read.
    interval: Option<(Instant, u64)>,
}

impl Drs {
    /// DRS between `min_buffer` and `max_buffer`.
    #[must_use]
    pub fn new(max_buffer: Bytes, min_buffer: Bytes, reading: RttReading) -> Self {
        Self {
            reading,
            max_buffer,
            buffer: min_buffer.min(max_buffer),
            rtt_min: None,
            timed_window: None,
            opened: Bytes::ZERO,
            interval: None,
        }
    }

    fn measure_rtt(&mut self, segment: &Received) {
        let rtt = match self.reading {
            RttReading::Timestamps => segment.timestamp_rtt,
            RttReading::Window => self.time_window(segment),
        };
        if let Some(rtt) = rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
    }
}

impl Drs {
    /// Linux's `tcp_rcv_rtt_measure`: the time until a window's worth of data has followed a segment.
    fn time_window(&mut self, segment: &Received) -> Option<Duration> {
        let window = self.opened.max(segment.mss * INITIAL_SEGMENTS);
        // Linux's `tcp_grow_window`: its window never holds the sender up, for it grows faster than any slow start.
        self.opened = (window + segment.mss * SEGMENTS_PER_SEGMENT).min(self.buffer);
        match self.timed_window {
            Some((_, edge)) if segment.rcv_nxt < edge => None,
            timed => {
                self.timed_window = Some((segment.now, segment.rcv_nxt + window.get()));
                timed.map(|(since, _)| segment.now.saturating_since(since))
            }
        }
    }
}

impl ReceiveWindow for Drs {
    fn on_segment(&mut self, segment: &Received) {
        self.measure_rtt(segment);
        let Some((began, read_before)) = self.interval else {
            self.interval = Some((segment.now, segment.read));
            return;
        };
        let Some(rtt_min) = self.rtt_min else { return };
        if segment.now.saturating_since(began) < rtt_min {
            return;
        }
        let rcv_data = Bytes::new(segment.read - read_before);
        let headers = segment.header * rcv_data.whole(segment.mss);
        // The maximum is kept: buffer and window never shrink.
        self.buffer = self.buffer.max((rcv_data + headers) * 2).min(self.max_buffer);
        self.interval = Some((segment.now, segment.read));
    }

    fn buffer(&self) -> Bytes {
        self.buffer
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("receive_buffer_bytes", self.buffer.as_f64());
        if let Some(rtt_min) = self.rtt_min {
            out.value("receiver_rtt_min_ms", rtt_min.as_millis_f64());
        }
    }
}

/// Segments of the window that Linux 2.6.16 advertises before any data arrives (`tcp_select_initial_window`, after
/// RFC 2414).
const INITIAL_SEGMENTS: u64 = 4;

/// The window of Linux 2.6.16 grows by this many segments with each full segment (`tcp_grow_window`).
const SEGMENTS_PER_SEGMENT: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(millis: u64, received: u64, advertised: u64) -> Received {
        Received {
            now: Instant::ZERO + Duration::from_millis(millis),
            rcv_nxt: received,
            advertised,
            read: received,
            timestamp_rtt: Some(Duration::from_millis(100)),
            mss: Bytes::new(1_000),
            header: Bytes::new(40),
        }
    }

    fn drs(reading: RttReading) -> Drs {
        Drs::new(Bytes::new(96_000), Bytes::new(32_000), reading)
    }

    #[test]
    fn twice_the_data_of_a_round_trip_with_headers_is_advertised_up_to_the_buffer() {
        let mut drs = drs(RttReading::Timestamps);
        drs.on_segment(&segment(0, 0, 32_000));
        drs.on_segment(&segment(99, 20_000, 32_000));
        assert_eq!(drs.buffer(), Bytes::new(32_000));
        drs.on_segment(&segment(100, 21_000, 32_000));
        assert_eq!(drs.buffer(), Bytes::new(2 * 21 * 1_040));
        drs.on_segment(&segment(200, 99_000, 32_000));
        assert_eq!(drs.buffer(), Bytes::new(96_000));
    }

    #[test]
    fn the_buffer_never_shrinks() {
        let mut drs = drs(RttReading::Timestamps);
        drs.on_segment(&segment(0, 0, 32_000));
        drs.on_segment(&segment(100, 30_000, 32_000));
        drs.on_segment(&segment(200, 31_000, 32_000));
        assert_eq!(drs.buffer(), Bytes::new(2 * 30 * 1_040));
    }

    #[test]
    fn the_window_reading_times_a_window_of_linux_that_begins_at_four_segments() {
        let mut drs = drs(RttReading::Window);
        for (millis, received) in [(0, 1), (10, 2), (100, 3), (110, 4)] {
            drs.on_segment(&segment(millis, 1_000 * received, 32_000));
            assert_eq!(drs.rtt_min, None);
        }
        // The fifth segment is the last of the window that the first one found.
        drs.on_segment(&segment(120, 5_000, 32_000));
        assert_eq!(drs.rtt_min, Some(Duration::from_millis(120)));
        // The window has grown by two segments with each one, to twelve: the next is timed up to the 17th.
        drs.on_segment(&segment(130, 16_000, 32_000));
        assert_eq!(drs.rtt_min, Some(Duration::from_millis(120)));
        drs.on_segment(&segment(180, 17_000, 32_000));
        assert_eq!(drs.rtt_min, Some(Duration::from_millis(60)));
    }
}
