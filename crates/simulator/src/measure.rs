//! Measurements of flows while a scenario runs, and their series.

use suimon_algorithms::{Probe, congestion::CongestionControl};
use suimon_results::RateSpread;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::tcp::{Receiver, Sender};

/// The variation of a flow's rate: a sample of every so many packets.
#[derive(Debug)]
pub(crate) struct SpreadMeter {
    packets_a_sample: u64,
    packets: u64,
    bytes: Bytes,
    since: Instant,
    samples: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl SpreadMeter {
    pub(crate) fn new(packets_a_sample: u64) -> Self {
        Self {
            packets_a_sample,
            packets: 0,
            bytes: Bytes::ZERO,
            since: Instant::ZERO,
            samples: 0,
            sum: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: 0.0,
        }
    }

    /// The first sample begins now.
    pub(crate) fn begin(&mut self, now: Instant) {
        *self = Self { since: now, ..Self::new(self.packets_a_sample) };
    }

    /// A packet of `size` has arrived.
    pub(crate) fn on_packet(&mut self, now: Instant, size: u32) {
        self.packets += 1;
        self.bytes += Bytes::new(u64::from(size));
        // Packets that come at once make one sample: it has no rate before the clock moves on.
        if self.packets < self.packets_a_sample || now <= self.since {
            return;
        }
        let rate = self.bytes.as_f64() * 8.0 / now.saturating_since(self.since).as_secs_f64();
        self.samples += 1;
        self.sum += rate;
        self.squares += rate * rate;
        self.min = self.min.min(rate);
        self.max = self.max.max(rate);
        (self.packets, self.bytes, self.since) = (0, Bytes::ZERO, now);
    }

    pub(crate) fn result(&self) -> Option<RateSpread> {
        let mean = (self.samples > 0).then(|| self.sum / self.samples as f64)?;
        let variance = self.squares / self.samples as f64 - mean * mean;
        let rate = |bps: f64| Rate::from_bps(bps.round() as u64);
        Some(RateSpread {
            samples: self.samples,
            mean: rate(mean),
            deviation: rate(variance.max(0.0).sqrt()),
            min: rate(self.min),
            max: rate(self.max),
        })
    }
}

/// The values of one sample of a TCP connection.
pub(crate) fn sample_tcp(sender: &Sender, receiver: &Receiver, probe: &mut dyn Probe) {
    let limits = sender.limits();
    let limit = |bytes: Bytes| if bytes == Bytes::MAX { f64::NAN } else { bytes.as_f64() };
    let millis = |time: Option<Duration>| time.map_or(f64::NAN, Duration::as_millis_f64);
    probe.value("cwnd_bytes", limits.cwnd.as_f64());
    probe.value("ssthresh_bytes", limit(limits.ssthresh));
    probe.value("flight_bytes", sender.flight_size().as_f64());
    probe.value("rtt_ms", millis(sender.counters.rtt_last));
    probe.value("srtt_ms", millis(sender.srtt()));
    let cc: &dyn CongestionControl = sender.cc();
    cc.probe(probe);
    receiver.window().probe(probe);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_rate_count_the_same_however_long_they_took() {
        let mut meter = SpreadMeter::new(2);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        meter.begin(at(10));
        assert_eq!(meter.result(), None);
        for millis in [11, 20, 21, 40, 50] {
            meter.on_packet(at(millis), 500);
        }
        // 8 kbit in 10 ms and in 20 ms; the fifth packet makes no sample.
        let spread = meter.result().unwrap();
        assert_eq!((spread.samples, spread.min.as_bps(), spread.max.as_bps()), (2, 400_000, 800_000));
        assert_eq!((spread.mean.as_bps(), spread.deviation.as_bps()), (600_000, 200_000));
    }
}
