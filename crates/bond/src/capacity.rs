//! How fast a path carries data, read from its kernel whenever somebody looks.
//!
//! Not the simulator's [`RateMeter`](suimon_aggregation::RateMeter), which hears of every acknowledgement: a program
//! reads its sockets when it has something to do, and in between a connection may have run dry.

use suimon_units::{Duration, Instant, Rate};

/// How fast a connection's data gets acknowledged, a sample in each round trip.
#[derive(Debug, Default)]
pub(crate) struct CapacityMeter {
    sample: Option<RateSample>,
    /// In bits per second.
    rate: Option<f64>,
    measured_at: Instant,
}

/// A sample under way.
#[derive(Debug, Clone, Copy)]
struct RateSample {
    since: Instant,
    acknowledged: u64,
    /// The least that the connection held since it began.
    buffered: u64,
}

impl CapacityMeter {
    /// The connection has `acknowledged` bytes behind it and holds `buffered`; its round-trip time is `srtt`,
    /// the least of late `rtt_min`.
    pub(crate) fn on_acknowledged(
        &mut self,
        now: Instant,
        acknowledged: u64,
        buffered: u64,
        srtt: Duration,
        rtt_min: Option<Duration>,
    ) {
        let begin = RateSample { since: now, acknowledged, buffered };
        let sample = self.sample.get_or_insert(begin);
        sample.buffered = sample.buffered.min(buffered);
        let sample = *sample;
        let time = now.saturating_since(sample.since);
        if time < srtt.max(SHORTEST_SAMPLE) {
            return;
        }
        self.sample = Some(begin);
        let bps = (acknowledged - sample.acknowledged) as f64 * 8.0 / time.as_secs_f64();
        // What was measured long ago says nothing: the path may have been too slow to be used since, and be so no
        // more.
        if now.saturating_since(self.measured_at) > (srtt * 4).max(LONGEST_MEMORY) {
            self.rate = None;
        }
        // A connection that held less than a bandwidth-delay product was not asked for more; what it
        // did then says only how much it can do at least.
        let rate = self.rate.unwrap_or_default();
        let needed = (rate / 8.0 * rtt_min.unwrap_or_default().as_secs_f64()).max(LEAST_HELD);
        let asked = sample.buffered as f64 >= needed;
        if asked || (bps > rate && self.rate.is_some()) {
            self.rate = Some(self.rate.map_or(bps, |rate| rate + (bps - rate) / 4.0));
            self.measured_at = now;
        }
    }

    /// The rate; `None` until measured.
    pub(crate) fn get(&self) -> Option<Rate> {
        self.rate.map(|rate| Rate::from_bps(rate as u64)).filter(|rate| *rate > Rate::ZERO)
    }
}

/// Shorter times than this give no rate worth the name where ACKs come in bursts.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(20);

/// Bytes: two full segments. Who holds less is not held up by the path.
const LEAST_HELD: f64 = 2.0 * 1448.0;

/// A rate is kept for so long at least, though nothing confirms it.
const LONGEST_MEMORY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    /// A connection that is read every 10 ms and delivers `rate` while it holds something.
    fn run(
        meter: &mut CapacityMeter,
        now: &mut Instant,
        acknowledged: &mut u64,
        rate: Rate,
        held: u64,
        ms: u64,
    ) {
        for _ in 0..ms / 10 {
            *now += Duration::from_millis(10);
            *acknowledged += rate.amount_in(Duration::from_millis(10)).get();
            meter.on_acknowledged(*now, *acknowledged, held, RTT, Some(RTT));
        }
    }

    #[test]
    fn a_connection_that_was_asked_for_little_is_not_taken_for_slow() {
        let (mut meter, mut now, mut acknowledged) = (CapacityMeter::default(), Instant::ZERO, 0);
        let (slow, quick) = (Rate::from_bps(10_000), Rate::from_bps(8_000_000));
        run(&mut meter, &mut now, &mut acknowledged, slow, 0, 500);
        assert_eq!(meter.get(), None, "it ran dry, so nothing is known");
        run(&mut meter, &mut now, &mut acknowledged, quick, 100_000, 500);
        let near = |rate: Rate| (rate.as_bps_f64() / 8e6 - 1.0).abs() < 0.05;
        assert!(near(meter.get().unwrap()), "{:?}", meter.get());
        run(&mut meter, &mut now, &mut acknowledged, slow, 100, 500);
        assert!(near(meter.get().unwrap()), "{:?}", meter.get());
        run(&mut meter, &mut now, &mut acknowledged, slow, 100_000, 1_000);
        assert!(meter.get().unwrap() < Rate::from_bps(1_000_000), "now it was asked");
    }

    /// Or a path that was slow once would be slow for ever: nothing is given to it that could show otherwise.
    #[test]
    fn what_nothing_confirms_is_forgotten() {
        let (mut meter, mut now, mut acknowledged) = (CapacityMeter::default(), Instant::ZERO, 0);
        run(&mut meter, &mut now, &mut acknowledged, Rate::from_bps(10_000), 5_000, 500);
        assert!(meter.get().is_some());
        run(&mut meter, &mut now, &mut acknowledged, Rate::ZERO, 0, 1_900);
        assert!(meter.get().is_some());
        run(&mut meter, &mut now, &mut acknowledged, Rate::ZERO, 0, 300);
        assert_eq!(meter.get(), None);
    }
}
