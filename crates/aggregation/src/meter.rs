//! Measurements of a connection, alike in both worlds, so that a scheduler sees the same quantities in each.

use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

/// A connection as it is read.
#[derive(Debug, Clone, Copy)]
pub struct Occupancy {
    /// Bytes acknowledged since it began.
    pub acknowledged: Bytes,
    /// Bytes in its send buffer.
    pub buffered: Bytes,
    /// Its smoothed round-trip time.
    pub srtt: Duration,
    /// The least of its round-trip times of late.
    pub rtt_min: Option<Duration>,
}

/// The rate at which a connection's data is acknowledged, where every ACK is seen: a sample in each round trip.
#[derive(Debug, Default)]
pub struct RateMeter {
    sampler: Sampler,
    /// In bits per second.
    rate: Option<f64>,
}

impl RateMeter {
    /// Data was acknowledged.
    pub fn on_acknowledged(&mut self, now: Instant, connection: Occupancy) {
        let Some(sample) = self.sampler.read(now, &connection) else { return };
        let Some(rate) = self.rate else {
            self.rate = Some(sample.bps);
            return;
        };
        // A connection that held no more than a bandwidth-delay product at the rate it delivered had no queue: it
        // was not asked for more, and its rate is only a lower bound.
        let product = sample.bps / 8.0 * connection.rtt_min.unwrap_or_default().as_secs_f64();
        if sample.buffered_at_first.as_f64() > product * QUEUEING {
            self.rate = Some(towards(rate, sample.bps));
        } else {
            self.rate = Some(rate.max(sample.bps));
        }
    }

    /// The rate; `None` until measured.
    #[must_use]
    pub fn get(&self) -> Option<Rate> {
        positive(self.rate)
    }
}

/// The rate at which a connection's data is acknowledged, read from its kernel now and then.
///
/// A program reads its sockets when it has something to do, and in between a connection may have run dry. So, unlike in
/// a [`RateMeter`], the least occupancy counts, and a rate that nothing has confirmed for long is forgotten.
#[derive(Debug, Default)]
pub struct CapacityMeter {
    sampler: Sampler,
    /// In bits per second.
    rate: Option<f64>,
    measured_at: Instant,
    /// Nothing of what is under way was acknowledged in the last round trip.
    stands_still: bool,
}

impl CapacityMeter {
    /// The connection was read.
    pub fn on_reading(&mut self, now: Instant, connection: Occupancy) {
        if self.stands_still && self.sampler.acknowledges(&connection) {
            // The end of a cut: a sample that began within it would count a part of it.
            self.sampler = Sampler::default();
            self.stands_still = false;
        }
        let Some(sample) = self.sampler.read(now, &connection) else { return };
        // An old measurement says nothing: the path may have been too slow to be used since, and be so no more.
        if now.saturating_since(self.measured_at) > (connection.srtt * 4).max(MAX_MEMORY) {
            self.rate = None;
        }
        // A round trip without any acknowledgement of what is under way, as in a cut, tells nothing of the rate: a path that counted it as none
        // would be taken for a slow one for long after the cut.
        self.stands_still = sample.bps == 0.0 && sample.least_buffered > Bytes::ZERO;
        if self.stands_still {
            return;
        }
        // A connection that held less than a bandwidth-delay product was not asked for more; what it
        // did then says only how much it can do at least.
        let rate = self.rate.unwrap_or_default();
        let product = rate / 8.0 * connection.rtt_min.unwrap_or_default().as_secs_f64();
        let asked = sample.least_buffered.as_f64() >= product.max(MIN_HELD);
        if asked || (sample.bps > rate && self.rate.is_some()) {
            self.rate = Some(self.rate.map_or(sample.bps, |rate| towards(rate, sample.bps)));
            self.measured_at = now;
        }
    }

    /// The rate; `None` until measured, and where it was forgotten.
    #[must_use]
    pub fn get(&self) -> Option<Rate> {
        positive(self.rate)
    }
}

/// Cuts time into round trips.
#[derive(Debug, Default)]
struct Sampler(Option<Begun>);

/// A sample under way.
#[derive(Debug, Clone, Copy)]
struct Begun {
    at: Instant,
    acknowledged: Bytes,
    buffered: Bytes,
    /// Since then.
    least_buffered: Bytes,
}

/// The bytes acknowledged in a round trip, and those that the connection held.
#[derive(Debug, Clone, Copy)]
struct Sample {
    bps: f64,
    buffered_at_first: Bytes,
    least_buffered: Bytes,
}

impl Sampler {
    /// Whether something was acknowledged since the sample began.
    fn acknowledges(&self, connection: &Occupancy) -> bool {
        self.0.is_some_and(|begun| connection.acknowledged > begun.acknowledged)
    }

    /// A sample, once a round trip is over.
    fn read(&mut self, now: Instant, connection: &Occupancy) -> Option<Sample> {
        let Occupancy { acknowledged, buffered, srtt, .. } = *connection;
        let anew = Begun { at: now, acknowledged, buffered, least_buffered: buffered };
        let begun = self.0.get_or_insert(anew);
        begun.least_buffered = begun.least_buffered.min(buffered);
        let begun = *begun;
        let time = now.saturating_since(begun.at);
        if time < srtt.max(MIN_SAMPLE) {
            return None;
        }
        self.0 = Some(anew);
        Some(Sample {
            bps: (acknowledged - begun.acknowledged).as_f64() * 8.0 / time.as_secs_f64(),
            buffered_at_first: begun.buffered,
            least_buffered: begun.least_buffered,
        })
    }
}

/// A quarter of the way from `rate` to `sample`.
fn towards(rate: f64, sample: f64) -> f64 {
    rate + (sample - rate) / 4.0
}

fn positive(bps: Option<f64>) -> Option<Rate> {
    bps.map(|bps| Rate::from_bps(bps as u64)).filter(|rate| *rate > Rate::ZERO)
}

/// A path holds a queue where its data takes so many times its least round-trip time.
const QUEUEING: f64 = 1.125;

/// Shorter times than this give no rate worth the name where ACKs come in bursts.
const MIN_SAMPLE: Duration = Duration::from_millis(20);

/// Bytes: two full segments. A connection that holds less is not held up by the path.
const MIN_HELD: f64 = 2.0 * 1448.0;

/// A rate is kept for so long at least, though nothing confirms it.
const MAX_MEMORY: Duration = Duration::from_secs(2);

/// The least of the samples of the last five to ten minutes. Shorter, and a queue that stands becomes the path's
/// length; Linux forgets after five minutes too (`tcp_min_rtt_wlen`).
#[derive(Debug, Default)]
pub struct WindowedMin {
    begun: Instant,
    current: Option<Duration>,
    before: Option<Duration>,
}

const WINDOW: Duration = Duration::from_secs(300);

impl WindowedMin {
    /// A round-trip time was measured.
    pub fn on_sample(&mut self, now: Instant, sample: Duration) {
        if now.saturating_since(self.begun) > WINDOW {
            (self.before, self.current, self.begun) = (self.current, None, now);
        }
        self.current = Some(self.current.map_or(sample, |least| least.min(sample)));
    }

    /// The least; `None` until something was measured.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        [self.current, self.before].into_iter().flatten().min()
    }
}

/// The part of a connection's segments that was lost in the last five to ten seconds.
#[derive(Debug, Default)]
pub struct LossMeter {
    /// What had been sent when the halves of that time began, the older one first.
    begun: [Segments; 2],
    now: Segments,
    turns_at: Instant,
}

/// Segments that a connection has sent since it began.
#[derive(Debug, Clone, Copy, Default)]
pub struct Segments {
    /// All of them.
    pub sent: u64,
    /// The retransmissions among them: as many were lost, or taken to be.
    pub retransmitted: u64,
}

impl LossMeter {
    /// The connection was read.
    pub fn on_reading(&mut self, now: Instant, segments: Segments) {
        if now >= self.turns_at {
            (self.begun, self.turns_at) = ([self.begun[1], segments], now + LOSS_WINDOW);
        }
        self.now = segments;
    }

    /// The part of the segments that was sent again. A single loss is no rate: it counts as none.
    #[must_use]
    pub fn get(&self) -> Probability {
        let lost = self.now.retransmitted.saturating_sub(self.begun[0].retransmitted);
        let sent = self.now.sent.saturating_sub(self.begun[0].sent);
        Probability::clamped(if lost < 2 { 0.0 } else { lost as f64 / sent.max(1) as f64 })
    }
}

const LOSS_WINDOW: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn occupancy(acknowledged: u64, buffered: u64, rtt: Duration) -> Occupancy {
        let [acknowledged, buffered] = [acknowledged, buffered].map(Bytes::new);
        Occupancy { acknowledged, buffered, srtt: rtt, rtt_min: Some(rtt) }
    }

    /// A meter that is told every 100 ms that so many bytes more were acknowledged, and as many are held.
    fn told(samples: &[(u64, u64)]) -> f64 {
        let (mut meter, mut acknowledged) = (RateMeter::default(), 0);
        meter.on_acknowledged(at(0), occupancy(0, samples[0].1, RTT));
        for (nth, (more, held)) in samples.iter().enumerate() {
            acknowledged += more;
            let now = at(100 * (nth as u64 + 1));
            meter.on_acknowledged(now, occupancy(acknowledged, *held, RTT));
        }
        meter.get().map_or(0.0, Rate::as_bps_f64)
    }

    #[test]
    fn a_path_without_a_queue_is_as_fast_as_it_ever_was_and_learns_that_at_once() {
        // The bytes held a round trip before were delivered: no queue, 8 times as much in three round trips.
        let rate = told(&[(10_000, 20_000), (20_000, 40_000), (40_000, 80_000), (80_000, 80_000)]);
        assert_eq!(rate, 80_000.0 * 8.0 / 0.1);
        let rate = told(&[(80_000, 10_000), (10_000, 10_000), (10_000, 10_000)]);
        assert_eq!(rate, 80_000.0 * 8.0 / 0.1, "it was not asked for more");
    }

    #[test]
    fn a_path_with_a_queue_is_as_fast_as_it_was_of_late() {
        let rate = told(&[(80_000, 80_000), (40_000, 80_000), (40_000, 80_000)]);
        let expected = (80_000.0 - 40_000.0 / 4.0 - 30_000.0 / 4.0) * 8.0 / 0.1;
        assert!((rate - expected).abs() < 1.0, "{rate}, not {expected}");
    }

    #[test]
    fn the_least_round_trip_time_outlives_a_standing_queue() {
        let mut least = WindowedMin::default();
        least.on_sample(at(0), RTT);
        for second in 1..=299 {
            least.on_sample(at(1_000 * second), RTT * 3);
        }
        assert_eq!(least.get(), Some(RTT));
        for second in 300..=700 {
            least.on_sample(at(1_000 * second), RTT * 3);
        }
        assert_eq!(least.get(), Some(RTT * 3), "and not the path's change");
    }

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
            meter.on_reading(*now, occupancy(*acknowledged, held, RTT / 2));
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

    #[test]
    fn a_cut_says_nothing_of_the_rate() {
        let (mut meter, mut now, mut acknowledged) = (CapacityMeter::default(), Instant::ZERO, 0);
        let rate = Rate::from_bps(8_000_000);
        run(&mut meter, &mut now, &mut acknowledged, rate, 100_000, 500);
        let before = meter.get().unwrap().as_bps_f64();
        // The cut begins and ends within a round trip, which counts.
        run(&mut meter, &mut now, &mut acknowledged, Rate::ZERO, 100_000, 100);
        let in_cut = meter.get();
        assert!(in_cut.unwrap().as_bps_f64() > 0.7 * before, "{in_cut:?}");
        run(&mut meter, &mut now, &mut acknowledged, Rate::ZERO, 100_000, 900);
        assert_eq!(meter.get(), in_cut);
        run(&mut meter, &mut now, &mut acknowledged, rate, 100_000, 100);
        assert!(meter.get().unwrap().as_bps_f64() > 0.5 * before, "{:?}", meter.get());
        run(&mut meter, &mut now, &mut acknowledged, Rate::ZERO, 100_000, 2_100);
        assert_eq!(meter.get(), None, "it was long");
    }

    #[test]
    fn what_came_of_a_round_trip_in_which_a_cut_ended_is_not_taken_for_the_rate() {
        let rate = Rate::from_bps(8_000_000);
        for late in (0..100).step_by(10) {
            let (mut meter, mut now, mut acknowledged) = (CapacityMeter::default(), Instant::ZERO, 0);
            run(&mut meter, &mut now, &mut acknowledged, rate, 100_000, 500);
            run(&mut meter, &mut now, &mut acknowledged, Rate::ZERO, 100_000, 2_100 + late);
            assert_eq!(meter.get(), None);
            run(&mut meter, &mut now, &mut acknowledged, rate, 100_000, 60);
            let after = meter.get().unwrap().as_bps_f64();
            assert!((after / 8e6 - 1.0).abs() < 0.01, "{after} bit/s, {late} ms later");
        }
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

    #[test]
    fn loss_is_a_part_of_what_was_sent_of_late_and_one_loss_is_none() {
        let mut meter = LossMeter::default();
        let mut read = |ms, sent, retransmitted| {
            meter.on_reading(at(ms), Segments { sent, retransmitted });
            meter.get().get()
        };
        assert_eq!(read(0, 0, 0), 0.0);
        assert_eq!(read(1_000, 100, 1), 0.0);
        assert_eq!(read(2_000, 200, 2), 0.01);
        assert_eq!(read(5_000, 400, 4), 0.01, "the first half of the time is over");
        assert_eq!(read(9_999, 800, 4), 0.005);
        assert_eq!(read(10_000, 800, 4), 0.0, "what was lost in the first five seconds is forgotten");
    }
}
