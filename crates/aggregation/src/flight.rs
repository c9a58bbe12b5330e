//! How much a connection may hold, so that a path stays busy and its queue short.
//!
//! What a connection holds beyond the path's bandwidth-delay product only queues, and everything written later waits for it.
//! A congestion control that needs losses fills the path's queue, so the program that writes keeps the connection from it.

use suimon_algorithms::congestion::fs_at::Confirmed;
use suimon_units::{Bytes, Duration, Instant};

/// A connection, as it is read.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    /// Bytes acknowledged since it began.
    pub acknowledged: Bytes,
    /// Bytes in its send buffer.
    pub buffered: Bytes,
    /// Its smoothed round-trip time.
    pub srtt: Duration,
    /// The mean deviation of it.
    pub rttvar: Duration,
    /// The least of its round-trip times of late.
    pub rtt_min: Duration,
    /// Its maximum segment size.
    pub mss: Bytes,
    /// Data that waits for no other goes over it too: the queue is to be as short as can be, at the cost of some of the path's capacity.
    pub is_urgent: bool,
    /// Another path through the same bottleneck competes there for both, so this one does not.
    pub is_second: bool,
    /// Something was acknowledged since the reading before, and not of what was lost.
    pub moves: bool,
    /// Something was lost since the reading before, where no window keeps the sender from filling the other end's socket.
    pub overflows: bool,
}

/// Bounds what a connection holds to its bandwidth-delay product and a short queue.
///
/// Once a round trip the bound moves by half of what the queue is too short or too long, as in FAST TCP (Jin, Wei, Low 2004, §IV-B:
/// w ← w + γ (α - queued bytes), γ = 1/2). Where others fill the queue, such a sender would starve, so it has to tell whose a
/// queue is. Its length alone does not say: by Little's law what the connection holds is always the time that it takes at the
/// connection's own rate. So the connection drains its own part and looks. If the queue stays, it is somebody else's, and the
/// connection's congestion control competes until the next drain, as Copa does (Arun, Balakrishnan 2018, §2.2).
///
/// Where the rate of a path varies, as over a radio, a short queue is soon used up. A bounded connection therefore holds at least what FS-AT
/// takes for the bandwidth-delay product (Igarashi, Yamazaki, (9)): the mean of the confirmed bytes and four mean deviations. On a path with
/// one rate this adds no queue.
#[derive(Debug, Default)]
pub struct FlightBound {
    phase: Phase,
    variation: Variation,
    round: Option<Round>,
    /// The time when the connection last held as much as it may.
    full_at: Instant,
    /// Rounds in a row with a queue far beyond what is known to be the connection's own.
    crowded: u32,
    /// The most that the path delivered since a drain showed that the queue is the connection's own, in bytes per second.
    peak: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Phase {
    /// No queue and no overflow was seen so far: the connection's own slow start goes on.
    #[default]
    Startup,
    /// The bound, in bytes.
    Bounded(f64),
    /// Whose is the queue?
    Draining(Drain),
    /// Others fill the queue: until then the connection's congestion control competes with them.
    Competing(Instant),
}

/// The connection holds too little for a queue of its own.
#[derive(Debug, Clone, Copy)]
struct Drain {
    /// What the connection holds, in bytes.
    held: f64,
    /// What the path delivered before, in bytes per second.
    rate: f64,
    /// The longest queue that is the connection's own, in seconds.
    own: f64,
    /// The rounds so far, and the chunks that arrived in them.
    rounds: u32,
    chunks: f64,
}

impl Drain {
    /// `chunk` is the least that can be held, `noise` a queue that says nothing, in seconds.
    fn new(flight: &Flight, rate: f64, chunk: f64, noise: f64) -> Self {
        let (rate, rtt_min) = (rate.max(1.0), flight.rtt_min.as_secs_f64());
        let held = (rate * rtt_min).max(chunk);
        // Without others the path goes on at its rate, at which an acknowledgement's segments take their time, and so does a chunk, which is
        // written at once. Beside others that rate is the connection's own and no path's, so they explain no more than a part of the
        // path's length.
        let at_once = chunk.max((flight.mss * ACKED_SEGMENTS).as_f64()) / rate;
        let alone = held / rate - rtt_min + at_once.min(rtt_min * MOST_AT_ONCE);
        let queue = flight.srtt.saturating_sub(flight.rtt_min).as_secs_f64();
        // What is left of a queue within the noise says nothing either.
        let left = ((queue - alone) * LEFT).max(noise);
        Self { held, rate, own: alone + left, rounds: 0, chunks: 0.0 }
    }
}

/// How much the bytes vary that are confirmed in a least round-trip time.
#[derive(Debug, Default)]
struct Variation {
    interval: Option<Interval>,
    average: Confirmed,
    /// Their mean and four deviations. FS-AT's target is twice the last interval at most, so that a gap of the radio would take it away; its
    /// other rules follow a path that grows, as the queue does here.
    allowed: Bytes,
    is_urgent: bool,
}

/// A least round-trip time that has begun.
#[derive(Debug, Clone, Copy)]
struct Interval {
    began: Instant,
    /// Acknowledged by then.
    acknowledged: Bytes,
    /// Held by the connection then, and the most since.
    held: Bytes,
    most: Bytes,
}

impl Variation {
    /// The connection was read, which may hold `bound` and is given about `chunk` bytes at once.
    fn on_reading(&mut self, now: Instant, flight: &Flight, chunk: Bytes, bound: Option<Bytes>) {
        let Flight { acknowledged, buffered, rtt_min, .. } = *flight;
        self.is_urgent = flight.is_urgent;
        let anew = Interval { began: now, acknowledged, held: buffered, most: buffered };
        let interval = self.interval.get_or_insert(anew);
        interval.most = interval.most.max(buffered);
        let interval = *interval;
        let time = now.saturating_since(interval.began);
        if time < rtt_min.max(MIN_ROUND) {
            return;
        }
        self.interval = None;
        let part = rtt_min.as_secs_f64() / time.as_secs_f64();
        let rcv_bytes = Bytes::from_f64((acknowledged - interval.acknowledged).as_f64() * part);
        // An interval that confirms nothing, as in a cut, says nothing of the rate. A connection that held neither what it might nor more
        // than was confirmed was asked for less than the path carries.
        let is_full = bound.is_some_and(|bound| interval.most + chunk >= bound);
        let is_asked = is_full || interval.held > rcv_bytes + flight.mss * ACKED_SEGMENTS;
        if is_asked && rcv_bytes > Bytes::ZERO {
            self.allowed = self.average.update(rcv_bytes);
        }
    }

    /// In bytes. Data that waits for no other has no use for a queue.
    fn allowed(&self) -> f64 {
        if self.is_urgent { 0.0 } else { self.allowed.as_f64() }
    }
}

/// Readings of a round trip.
#[derive(Debug, Clone, Copy)]
struct Round {
    began: Instant,
    sum: f64,
    count: f64,
    most: f64,
    /// In some of them something was acknowledged: without, all that is known is from before.
    moves: bool,
    /// Before some of them something was lost.
    overflows: bool,
    /// The longest time between two readings.
    read: Instant,
    gap: Duration,
}

impl FlightBound {
    /// The connection was read; it is given about `chunk` bytes at once.
    pub fn on_reading(&mut self, now: Instant, flight: Flight, chunk: Bytes) {
        if flight.is_urgent && !self.variation.is_urgent {
            self.on_urgent(&flight, chunk);
        }
        self.variation.on_reading(now, &flight, chunk, self.get());
        let buffered = flight.buffered.as_f64();
        let round = self.round.get_or_insert(Round {
            began: now,
            sum: 0.0,
            count: 0.0,
            most: 0.0,
            moves: false,
            overflows: false,
            read: now,
            gap: Duration::ZERO,
        });
        round.gap = round.gap.max(now.saturating_since(round.read));
        round.read = now;
        round.sum += buffered;
        round.count += 1.0;
        round.most = round.most.max(buffered);
        round.moves |= flight.moves;
        round.overflows |= flight.overflows;
        let round = *round;
        if now.saturating_since(round.began) >= flight.srtt.max(MIN_ROUND) {
            self.round = None;
            if round.moves {
                self.on_round(now, &flight, round, chunk.as_f64());
            }
        }
    }

    /// Bytes that the connection may hold; `None` where it is up to its congestion control.
    #[must_use]
    pub fn get(&self) -> Option<Bytes> {
        match self.phase {
            Phase::Bounded(bytes) => Some(Bytes::from_f64(bytes.max(self.variation.allowed()))),
            Phase::Draining(Drain { held, .. }) => Some(Bytes::from_f64(held)),
            Phase::Startup | Phase::Competing(_) => None,
        }
    }

    /// What waits for no other begins: the queue that was for other data goes at once, not within some round trips.
    fn on_urgent(&mut self, flight: &Flight, chunk: Bytes) {
        let held = flight.buffered.as_f64();
        if let Phase::Bounded(bound) = &mut self.phase
            && held + chunk.as_f64() >= *bound
        {
            // Little's law.
            let rate = held / flight.srtt.as_secs_f64();
            *bound =
                bound.min(rate * (flight.rtt_min.as_secs_f64() + Queue::beside_urgent(flight).length(rate)));
        }
    }

    /// `peak` is what the path delivers, if the queue is known to be the connection's own.
    fn bind(&mut self, now: Instant, bytes: f64, peak: Option<f64>) {
        self.phase = Phase::Bounded(bytes);
        (self.full_at, self.crowded, self.peak) = (now, 0, peak);
    }

    fn on_round(&mut self, now: Instant, flight: &Flight, round: Round, chunk: f64) {
        // Little's law: what is under way over the time that it takes.
        let rate = round.sum / round.count / flight.srtt.as_secs_f64();
        let queue = flight.srtt.saturating_sub(flight.rtt_min).as_secs_f64();
        let noise = noise(flight);
        let aim = if flight.is_urgent {
            Queue::beside_urgent(flight)
        } else {
            // A path must not run dry while the program looks elsewhere, as it does on a busy machine.
            let gap = round.gap.min(MAX_GAP).as_secs_f64();
            Queue { time: noise.max(gap), bytes: HELD_CHUNKS * chunk }
        };
        let Queue { time: own, bytes: held } = aim;
        let target = aim.length(rate);
        let aimed_at = |rate: f64| rate * (flight.rtt_min.as_secs_f64() + target);
        let drain = || Phase::Draining(Drain::new(flight, rate, chunk, own.max(noise)));
        match self.phase {
            Phase::Startup if queue > target || round.overflows => self.bind(now, aimed_at(rate), None),
            Phase::Competing(_) if flight.is_second => self.bind(now, aimed_at(rate), None),
            Phase::Competing(until) if now >= until => self.phase = drain(),
            Phase::Startup | Phase::Competing(_) => {}
            Phase::Draining(Drain { rate, own, .. }) if queue <= own || flight.is_second => {
                self.bind(now, aimed_at(rate), (queue <= own).then_some(rate));
            }
            Phase::Draining(Drain { rounds, chunks, .. })
                if rounds >= DRAIN_ROUNDS && chunks >= DRAIN_CHUNKS =>
            {
                self.phase = Phase::Competing(now + COMPETE.max(flight.srtt * COMPETE_ROUNDS));
            }
            Phase::Draining(drain) => {
                let arrived = (drain.held / chunk).max(1.0);
                self.phase = Phase::Draining(Drain {
                    rounds: drain.rounds + 1,
                    chunks: drain.chunks + arrived,
                    ..drain
                });
            }
            Phase::Bounded(bound) => {
                let is_full = round.most + chunk >= bound.max(self.variation.allowed());
                if is_full {
                    self.full_at = now;
                }
                self.peak = self.peak.map(|peak| peak.max(rate));
                let explained = own.max(noise).max(self.peak.map_or(0.0, |peak| held / peak.max(1.0)));
                self.crowded = if queue > CROWDED * explained { self.crowded + 1 } else { 0 };
                self.phase = if self.crowded >= CROWDED_ROUNDS && !flight.is_second {
                    drain()
                } else if now.saturating_since(self.full_at) > UNUSED {
                    // What the path carries now is unknown.
                    Phase::Startup
                } else {
                    let more = GAIN * rate * (target - queue);
                    let more = if queue < target / 4.0 { more.max(bound * GROWTH) } else { more };
                    let moved = if is_full { bound + more } else { bound + more.min(0.0) };
                    // The queue that the variation allows is no reason to hold less once urgent data forbids it.
                    let least = if self.variation.allowed() > bound { bound } else { held };
                    Phase::Bounded(moved.max(least))
                };
            }
        }
    }
}

/// A queue of a connection's own: so many seconds, and so many bytes.
#[derive(Debug, Clone, Copy)]
struct Queue {
    time: f64,
    bytes: f64,
}

impl Queue {
    /// Beside data that waits for no other. A chunk is a segment then: one is sent while the acknowledgement of another comes. There is an
    /// acknowledgement for each, as the other end delays none by more than a millisecond. On fast paths it comes for several, but there
    /// two segments take less time than [`MIN_QUEUE`].
    fn beside_urgent(flight: &Flight) -> Self {
        Self { time: variation(flight), bytes: (flight.mss * 2).as_f64() }
    }

    /// In seconds, at so many bytes per second.
    fn length(self, rate: f64) -> f64 {
        self.time.max(self.bytes / rate.max(1.0))
    }
}

/// A queue that says nothing, in seconds: short beside the path, or within what its round-trip times vary.
fn noise(flight: &Flight) -> f64 {
    variation(flight).max((flight.rtt_min / 8).as_secs_f64())
}

/// A queue that cannot be told from none, in seconds: within what the path's round-trip times vary.
fn variation(flight: &Flight) -> f64 {
    (flight.rttvar * 2).max(MIN_QUEUE).as_secs_f64()
}

/// γ of FAST TCP.
const GAIN: f64 = 0.5;
/// The bound's growth in a round trip while there is no queue at all, as in BBR's probing (Cardwell et al. 2016).
const GROWTH: f64 = 0.25;
/// Chunks that are held beyond the bandwidth-delay product: one is sent while the program sees that there is room for another. With a
/// segment less, paths of 10 and 5 Mbit/s carry 0.92 of their sum in place of 0.97.
const HELD_CHUNKS: f64 = 2.0;
/// An acknowledgement comes for every second segment (RFC 5681 §4.2), so the time of both on the wire is part of a round-trip time
/// without any queue. The least round-trip time is that of a small packet.
pub(crate) const ACKED_SEGMENTS: u64 = 2;
/// The time in which a program sees an acknowledgement that it has to look for.
const MIN_QUEUE: Duration = Duration::from_millis(2);
/// A program that looks no more often than this has little to send.
const MAX_GAP: Duration = Duration::from_millis(10);
/// Shorter rounds have too few readings.
const MIN_ROUND: Duration = Duration::from_millis(10);
/// So many times the queue that is known to be the connection's own may be somebody else's, if it stays for so many rounds.
const CROWDED: f64 = 2.0;
const CROWDED_ROUNDS: u32 = 12;
/// A drain that leaves less than this part of the queue has shown that there is no other sender.
const LEFT: f64 = 0.25;
/// More of a path's length than this is the queue of others.
const MOST_AT_ONCE: f64 = 0.25;
/// The drain itself takes a round trip, and the queue's end shows one later.
const DRAIN_ROUNDS: u32 = 2;
/// Each chunk brings an acknowledgement or two, of which each takes the smoothed round-trip time an eighth of the way (RFC 6298,
/// §2.3): it has gone most of the way after so many. No longer, since the others take up what a drain leaves.
const DRAIN_CHUNKS: f64 = 12.0;
/// Long enough for the connection's congestion control to get its share, most of the time.
const COMPETE: Duration = Duration::from_secs(5);
const COMPETE_ROUNDS: u64 = 64;
/// A bound that was not reached for so long is forgotten.
const UNUSED: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use suimon_algorithms::RandomStream;

    use super::*;

    const CHUNK: u64 = 3_000;
    const MSS: f64 = 1_500.0;
    const BUFFER_MS: f64 = 100.0;

    fn time(ms: f64) -> Duration {
        Duration::from_nanos((ms * 1e6) as u64)
    }

    /// A path with a queue, a sender that holds as much as it may, and what the kernel would say of both.
    struct Path {
        now: Instant,
        bound: FlightBound,
        /// Bytes per millisecond.
        rate: f64,
        rtt_min_ms: f64,
        /// Alternates between nothing and so much, beside the queue.
        jitter_ms: f64,
        /// Queued by others.
        others_ms: f64,
        /// The congestion window of another connection, in bytes, if there is one.
        rival: Option<f64>,
        /// Since the last loss.
        unhurt_ms: f64,
        srtt_ms: f64,
        rttvar_ms: f64,
        /// The congestion window, in bytes.
        cwnd: f64,
        /// Bytes, since the connection began.
        acknowledged: f64,
        /// Segments for which there is one acknowledgement, of which none is small.
        acked: f64,
        /// Bytes that the connection is given at once.
        chunk: u64,
        is_urgent: bool,
        is_second: bool,
        overflows: bool,
    }

    impl Path {
        fn new(mbit: f64, rtt_min_ms: f64) -> Self {
            Self {
                now: Instant::ZERO,
                bound: FlightBound::default(),
                rate: mbit * 125.0,
                rtt_min_ms,
                jitter_ms: 0.0,
                others_ms: 0.0,
                rival: None,
                unhurt_ms: 0.0,
                srtt_ms: rtt_min_ms,
                rttvar_ms: 0.0,
                cwnd: 14_480.0,
                acknowledged: 0.0,
                acked: 0.0,
                chunk: CHUNK,
                is_urgent: false,
                is_second: false,
                overflows: false,
            }
        }

        /// What the kernel says where nothing is under way, and what little there was has arrived.
        fn idle(&self) -> Flight {
            let length = time(self.rtt_min_ms);
            Flight {
                acknowledged: Bytes::from_f64(self.acknowledged),
                buffered: Bytes::ZERO,
                srtt: length,
                rttvar: Duration::ZERO,
                rtt_min: length,
                mss: Bytes::new(MSS as u64),
                is_urgent: false,
                is_second: false,
                moves: true,
                overflows: false,
            }
        }

        fn held(&self) -> f64 {
            self.bound.get().map_or(self.cwnd, |bound| bound.as_f64().min(self.cwnd))
        }

        /// A round trip without any queue: the acknowledgement waits for the segments that it is for, and the least round-trip time is
        /// that of a small packet.
        fn empty_ms(&self) -> f64 {
            self.rtt_min_ms + self.acked * MSS / self.rate
        }

        fn queue_ms(&self) -> f64 {
            let held = self.held() + self.rival.unwrap_or(0.0);
            (held / self.rate - self.empty_ms()).max(0.0) + self.others_ms
        }

        /// A millisecond of congestion control.
        fn grow(&mut self, rtt: f64) {
            let Some(rival) = self.rival else {
                // Slow start, until the window would be lost.
                self.cwnd = (self.cwnd * (1.0 + 0.7 / rtt)).min(self.rate * (self.rtt_min_ms + BUFFER_MS));
                return;
            };
            self.unhurt_ms += 1.0;
            // CUBIC's factor (RFC 9438, §4.6), Reno's growth, and a loss for both where the buffer is full. A window that the bound
            // leaves unused does not grow (RFC 9438, §4.2).
            let is_lost = self.queue_ms() > BUFFER_MS && self.unhurt_ms > rtt;
            let is_used = self.bound.get().is_none_or(|bound| bound.as_f64() >= self.cwnd);
            let moved = |cwnd: f64| if is_lost { cwnd * 0.7 } else { cwnd + MSS / rtt };
            self.cwnd = if is_lost || is_used { moved(self.cwnd) } else { self.cwnd };
            self.rival = Some(moved(rival));
            if is_lost {
                self.unhurt_ms = 0.0;
            }
        }

        /// Lets so many milliseconds pass; gives the share of the path's rate that was used.
        fn run(&mut self, ms: u64) -> f64 {
            let mut used = 0.0;
            for step in 0..ms {
                self.now += Duration::from_millis(1);
                let jitter = if step % 2 == 0 { self.jitter_ms } else { 0.0 };
                let rtt = self.empty_ms() + self.queue_ms() + jitter;
                // RFC 6298 §2, by ACKs that come more often than once a round trip.
                self.rttvar_ms += ((rtt - self.srtt_ms).abs() - self.rttvar_ms) / 4.0;
                self.srtt_ms += (rtt - self.srtt_ms) / 8.0;
                let part = (self.held() / (self.rate * rtt)).min(1.0);
                used += part;
                self.acknowledged += self.rate * part;
                self.grow(rtt);
                let flight = Flight {
                    acknowledged: Bytes::from_f64(self.acknowledged),
                    buffered: Bytes::new(self.held() as u64),
                    srtt: time(self.srtt_ms),
                    rttvar: time(self.rttvar_ms),
                    rtt_min: time(self.rtt_min_ms),
                    mss: Bytes::new(MSS as u64),
                    is_urgent: self.is_urgent,
                    is_second: self.is_second,
                    moves: true,
                    overflows: self.overflows,
                };
                self.bound.on_reading(self.now, flight, Bytes::new(self.chunk));
            }
            used / ms as f64
        }
    }

    #[test]
    fn slow_start_ends_where_the_other_ends_socket_overflows() {
        for overflows in [false, true] {
            let mut path = Path { overflows, ..Path::new(1_000.0, 20.0) };
            path.run(40);
            assert_eq!(path.bound.get().is_some(), overflows, "there is no queue yet");
        }
    }

    #[test]
    fn the_path_is_full_and_its_queue_short() {
        for (mbit, rtt_min) in [(10.0, 20.0), (5.0, 80.0), (100.0, 10.0), (3.0, 40.0), (50.0, 200.0)] {
            let mut path = Path::new(mbit, rtt_min);
            // FS-AT's deviation begins at a half of what is confirmed.
            path.run(5_000);
            let used = path.run(1_000);
            let least = f64::max(rtt_min / 8.0, 2.0 * CHUNK as f64 / path.rate).max(2.0);
            assert!(used > 0.99, "{mbit} Mbit/s, {rtt_min} ms: {used}");
            assert!(path.queue_ms() < 1.5 * least, "{mbit} Mbit/s, {rtt_min} ms: {}", path.queue_ms());
        }
    }

    #[test]
    fn beside_urgent_data_the_queue_is_a_chunk_and_the_path_nearly_full() {
        let paths = [(10.0, 20.0), (5.0, 80.0), (100.0, 10.0), (3.0, 40.0), (50.0, 200.0)];
        for ((mbit, rtt_min), acked) in paths.into_iter().flat_map(|path| [(path, 1.0), (path, 2.0)]) {
            let mut path = Path::new(mbit, rtt_min);
            // Taken for a queue, the time of all would have the bound shrink, and the rate with it, until half of the path is idle.
            path.acked = acked;
            path.run(3_000);
            path.is_urgent = true;
            path.run(20_000);
            let used = path.run(1_000);
            let most = f64::max(CHUNK as f64 / path.rate, 2.0);
            assert!(used > 0.97, "{mbit} Mbit/s, {rtt_min} ms: {used}");
            assert!(path.queue_ms() < 1.5 * most, "{mbit} Mbit/s, {rtt_min} ms: {}", path.queue_ms());
        }
    }

    #[test]
    fn what_was_queued_for_other_data_goes_at_once_where_urgent_data_begins() {
        let mut path = Path::new(10.0, 20.0);
        path.acked = 1.0;
        path.run(5_000);
        let bulk = path.queue_ms();
        path.is_urgent = true;
        path.run(1);
        let urgent = path.queue_ms();
        // Beside the segment that an acknowledgement is for, one in place of three.
        let segment = MSS / path.rate;
        assert!(bulk > 2.9 * segment && urgent < 1.1 * segment, "{bulk} ms, then {urgent} ms");
        assert!(path.run(1_000) > 0.97);

        let mut idle = Path::new(10.0, 20.0);
        idle.run(5_000);
        let before = idle.held();
        idle.bound.on_reading(idle.now, Flight { is_urgent: true, ..idle.idle() }, Bytes::new(CHUNK));
        assert_eq!(idle.held(), before, "what holds nothing says nothing of its rate");
    }

    #[test]
    fn a_path_that_gets_faster_or_slower_is_followed() {
        let mut path = Path::new(10.0, 20.0);
        path.run(2_000);
        path.rate *= 4.0;
        path.run(500);
        assert!(path.run(500) > 0.95);
        path.rate /= 8.0;
        path.run(1_500);
        assert!(path.queue_ms() < 10.0, "{}", path.queue_ms());
    }

    #[test]
    fn round_trips_that_vary_are_no_queue() {
        let mut path = Path::new(20.0, 20.0);
        path.jitter_ms = 8.0;
        path.run(5_000);
        let held = path.held() / path.rate;
        assert!(
            held > 20.0 && held < 20.0 + 2.5 * path.rttvar_ms,
            "{held} ms of data, and the path is 20 ms long"
        );
    }

    /// The part of a path that is used whose rate is anew each 50 ms, from nothing to 20 Mbit/s, with round trips of 100 ms.
    fn used_of_a_varying_path(is_urgent: bool) -> f64 {
        let (mut bound, mut random) = (FlightBound::default(), RandomStream::new(1, "rates"));
        let (mut queue, mut flight, mut acknowledged, mut rate) = (0.0, 0.0, 0.0, 0.0_f64);
        let (mut on_the_way, mut srtt, mut rttvar) = (VecDeque::from([0.0; 100]), 100.0, 0.0);
        let (mut used, mut carried) = (0.0, 0.0);
        for ms in 0..60_000 {
            if ms % 50 == 0 {
                rate = random.uniform() * 2_500.0;
            }
            let sent = (bound.get().map_or(500_000.0, Bytes::as_f64) - flight).max(0.0);
            (queue, flight) = (queue + sent, flight + sent);
            let out = queue.min(rate);
            queue -= out;
            on_the_way.push_back(out);
            let back = on_the_way.pop_front().unwrap();
            (flight, acknowledged) = (flight - back, acknowledged + back);
            if back > 0.0 {
                let rtt = 100.0 + queue / 1_250.0;
                rttvar += (f64::abs(rtt - srtt) - rttvar) / 4.0;
                srtt += (rtt - srtt) / 8.0;
            }
            if ms > 10_000 {
                (used, carried) = (used + out, carried + rate);
            }
            let flight = Flight {
                acknowledged: Bytes::from_f64(acknowledged),
                buffered: Bytes::from_f64(flight),
                srtt: time(srtt),
                rttvar: time(rttvar),
                rtt_min: time(100.0),
                is_urgent,
                moves: back > 0.0,
                ..Path::new(10.0, 100.0).idle()
            };
            bound.on_reading(Instant::ZERO + Duration::from_millis(ms), flight, Bytes::new(CHUNK));
        }
        used / carried
    }

    #[test]
    fn a_path_whose_rate_varies_is_nearly_full_unless_data_is_urgent() {
        let (bulk, urgent) = (used_of_a_varying_path(false), used_of_a_varying_path(true));
        assert!(bulk > 0.95 && urgent < 0.9, "{bulk} and {urgent}");
    }

    #[test]
    fn where_others_fill_the_queue_the_connections_own_congestion_control_competes_and_later_tries_again() {
        let mut path = Path::new(10.0, 20.0);
        path.run(2_000);
        assert!(path.bound.get().is_some());
        path.others_ms = 60.0;
        path.run(3_000);
        assert_eq!(path.bound.get(), None);
        path.others_ms = 0.0;
        path.run(6_000);
        assert!(path.bound.get().is_some());
        assert!(path.queue_ms() < 10.0, "{}", path.queue_ms());
    }

    #[test]
    fn beside_a_sender_that_fills_the_queue_half_of_the_path_is_used_and_all_once_it_is_gone() {
        for (mbit, rtt_min) in [(10.0, 44.0), (5.0, 80.0), (50.0, 20.0)] {
            for met_before in [true, false] {
                let mut path = Path::new(mbit, rtt_min);
                if met_before {
                    path.run(5_000);
                }
                path.rival = Some(path.rate * (rtt_min + BUFFER_MS / 2.0));
                path.run(60_000);
                let mut used = 0.0;
                for _ in 0..60 {
                    used += path.run(1_000) / 60.0;
                }
                assert!(
                    (0.35..0.6).contains(&used),
                    "{mbit} Mbit/s, {rtt_min} ms, met before: {met_before}: {used}"
                );
                path.rival = None;
                path.run(20_000);
                assert!(path.run(1_000) > 0.99, "{mbit} Mbit/s, {rtt_min} ms");
                assert!(
                    path.queue_ms() < f64::max(1.5 * rtt_min / 8.0, 12.0),
                    "{mbit} Mbit/s, {rtt_min} ms: {}",
                    path.queue_ms()
                );
            }
        }
    }

    #[test]
    fn a_short_queue_of_its_own_is_no_reason_to_compete() {
        // Two chunks are 24 ms at 2 Mbit/s, five times the queue that a path of 40 ms needs.
        let mut path = Path::new(2.0, 40.0);
        for _ in 0..300 {
            path.run(100);
            assert!(path.queue_ms() < 100.0, "{} after {:?}", path.queue_ms(), path.now);
        }
        path.rate /= 4.0;
        path.run(20_000);
        for _ in 0..300 {
            path.run(100);
            assert!(path.queue_ms() < 120.0, "{} after {:?}", path.queue_ms(), path.now);
        }
    }

    #[test]
    fn a_queue_that_a_drain_cannot_tell_from_none_is_no_reason_to_compete() {
        // The last segment of a chunk of four waits for all of them.
        let kinds = [(true, 2.0, CHUNK), (false, 4.0, 6_000)];
        for (is_urgent, acked, chunk) in kinds {
            for others_ms in [0.0, 0.5, 1.0, 1.5, 2.0] {
                let mut path = Path::new(10.0, 20.0);
                (path.is_urgent, path.acked, path.chunk, path.others_ms) =
                    (is_urgent, acked, chunk, others_ms);
                path.run(2_000);
                for _ in 0..300 {
                    path.run(100);
                    assert!(
                        path.bound.get().is_some(),
                        "{chunk} B, {others_ms} ms of others after {:?}",
                        path.now
                    );
                }
            }
        }
    }

    /// As a path does that shares its bottleneck with another path of the bond.
    #[test]
    fn a_second_path_keeps_its_queue_short_where_others_fill_the_bottleneck_and_ends_a_competition() {
        let mut path = Path::new(10.0, 20.0);
        path.is_second = true;
        path.run(2_000);
        path.others_ms = 60.0;
        path.run(3_000);
        // 1250 bytes per millisecond for 80 ms are 100 kB.
        let bound = path.bound.get().unwrap();
        assert!(bound < Bytes::new(10_000), "{bound}");
        path.is_second = false;
        path.run(3_000);
        assert_eq!(path.bound.get(), None);
        path.is_second = true;
        path.run(200);
        assert!(path.bound.get().is_some());
    }

    #[test]
    fn round_trips_that_nothing_confirms_in_a_cut_are_no_queue_of_others() {
        for (moves, kept) in [(false, true), (true, false)] {
            let mut path = Path::new(10.0, 20.0);
            path.run(2_000);
            let stale = Flight { srtt: Duration::from_millis(60), moves, ..path.idle() };
            let mut bounds = Vec::new();
            for _ in 0..2_000 {
                path.now += Duration::from_millis(1);
                let buffered = Bytes::new(path.held() as u64);
                path.bound.on_reading(path.now, Flight { buffered, ..stale }, Bytes::new(CHUNK));
                bounds.push(path.bound.get());
            }
            // The round that had begun before the cut is over within 60 ms.
            assert_eq!(bounds[60] == bounds[1_999], kept, "{moves}: {:?}, {:?}", bounds[60], bounds[1_999]);
        }
    }

    #[test]
    fn what_was_not_used_for_long_is_forgotten() {
        let mut path = Path::new(10.0, 20.0);
        path.run(2_000);
        path.cwnd = 1_000.0;
        let idle = path.idle();
        for _ in 0..1_100 {
            path.now += Duration::from_millis(10);
            path.bound.on_reading(path.now, idle, Bytes::new(CHUNK));
        }
        assert_eq!(path.bound.get(), None);
    }
}
