//! How much a connection may hold, so that a path stays busy and its queue short.
//!
//! What a connection holds beyond the path's bandwidth-delay product only queues, and everything written later waits for it.
//! A congestion control that needs losses fills the path's queue, so the program that writes keeps the connection from it.

use suimon_units::{Bytes, Duration, Instant};

/// A connection, as it is read.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    /// Bytes in its send buffer.
    pub buffered: Bytes,
    /// Its smoothed round-trip time.
    pub srtt: Duration,
    /// The mean deviation of it.
    pub rttvar: Duration,
    /// The least of its round-trip times of late.
    pub rtt_min: Duration,
    /// Real-time data goes over it too: the queue is to be as short as can be, at the cost of some of the path's capacity.
    pub is_realtime: bool,
    /// Another path through the same bottleneck competes there for both, so this one does not.
    pub is_second: bool,
}

/// Bounds what a connection holds to its bandwidth-delay product and a short queue.
///
/// Once a round trip the bound moves by half of what the queue is too short or too long, as in FAST TCP (Jin, Wei, Low 2004, §IV-B:
/// w ← w + γ (α - queued bytes), γ = 1/2). Where others fill the queue, such a sender would starve: after rounds with a queue
/// that its own data does not explain it lets the connection's congestion control compete for a while, as Copa does (Arun,
/// Balakrishnan 2018, §2.2).
#[derive(Debug, Default)]
pub struct FlightBound {
    phase: Phase,
    round: Option<Round>,
    /// The time when the connection last held as much as it may.
    full_at: Instant,
    /// Rounds in a row with a queue far beyond what was aimed at.
    crowded: u32,
    /// The most that the path delivered since the bound was set, in bytes per second.
    peak: f64,
}

#[derive(Debug, Clone, Copy, Default)]
enum Phase {
    /// No queue was seen so far: the connection's own slow start goes on.
    #[default]
    Startup,
    /// The bound, in bytes.
    Bounded(f64),
    /// Others fill the queue: until then the connection's congestion control competes with them.
    Competing(Instant),
}

/// Readings of a round trip.
#[derive(Debug, Clone, Copy)]
struct Round {
    began: Instant,
    sum: f64,
    count: f64,
    most: f64,
    /// The longest time between two readings.
    read: Instant,
    gap: Duration,
}

impl FlightBound {
    /// The connection was read; it is given about `chunk` bytes at once.
    pub fn on_reading(&mut self, now: Instant, flight: Flight, chunk: Bytes) {
        let buffered = flight.buffered.as_f64();
        let round = self.round.get_or_insert(Round {
            began: now,
            sum: 0.0,
            count: 0.0,
            most: 0.0,
            read: now,
            gap: Duration::ZERO,
        });
        round.gap = round.gap.max(now.saturating_since(round.read));
        round.read = now;
        round.sum += buffered;
        round.count += 1.0;
        round.most = round.most.max(buffered);
        let round = *round;
        if now.saturating_since(round.began) >= flight.srtt.max(MIN_ROUND) {
            self.round = None;
            self.on_round(now, &flight, round, chunk.as_f64());
        }
    }

    /// Bytes that the connection may hold; `None` where it is up to its congestion control.
    #[must_use]
    pub fn get(&self) -> Option<Bytes> {
        match self.phase {
            Phase::Bounded(bytes) => Some(Bytes::new(bytes as u64)),
            Phase::Startup | Phase::Competing(_) => None,
        }
    }

    fn bind(&mut self, now: Instant, bytes: f64) {
        self.phase = Phase::Bounded(bytes);
        (self.full_at, self.crowded, self.peak) = (now, 0, 0.0);
    }

    fn on_round(&mut self, now: Instant, flight: &Flight, round: Round, chunk: f64) {
        // Little's law: what is under way over the time that it takes.
        let rate = round.sum / round.count / flight.srtt.as_secs_f64();
        let queue = flight.srtt.saturating_sub(flight.rtt_min).as_secs_f64();
        // A path must not run dry while the program looks elsewhere, as it does on a busy machine.
        let (own, held) = if flight.is_realtime {
            (MIN_QUEUE.as_secs_f64(), chunk)
        } else {
            (target(flight).max(round.gap.min(MAX_GAP).as_secs_f64()), HELD_CHUNKS * chunk)
        };
        let target = own.max(held / rate.max(1.0));
        let aimed_at = rate * (flight.rtt_min.as_secs_f64() + target);
        match self.phase {
            Phase::Startup if queue > target => {
                self.bind(now, aimed_at);
            }
            Phase::Competing(until) if now >= until || flight.is_second => {
                self.bind(now, aimed_at);
            }
            Phase::Startup | Phase::Competing(_) => {}
            Phase::Bounded(bound) => {
                let is_full = round.most + chunk >= bound;
                if is_full {
                    self.full_at = now;
                }
                self.peak = self.peak.max(rate);
                let explained = own.max(held / self.peak.max(1.0));
                self.crowded = if queue > CROWDED * explained { self.crowded + 1 } else { 0 };
                self.phase = if self.crowded >= CROWDED_ROUNDS && !flight.is_second {
                    Phase::Competing(now + COMPETE.max(flight.srtt * COMPETE_ROUNDS))
                } else if now.saturating_since(self.full_at) > UNUSED {
                    // What the path carries now is unknown.
                    Phase::Startup
                } else {
                    let more = GAIN * rate * (target - queue);
                    let more = if queue < target / 4.0 { more.max(bound * GROWTH) } else { more };
                    let moved = if is_full { bound + more } else { bound + more.min(0.0) };
                    Phase::Bounded(moved.max(held))
                };
            }
        }
    }
}

/// The queue that is aimed at, in seconds: short beside the path, longer than the noise of its round-trip times.
fn target(flight: &Flight) -> f64 {
    (flight.rtt_min / 8).max(flight.rttvar * 2).max(MIN_QUEUE).as_secs_f64()
}

/// γ of FAST TCP.
const GAIN: f64 = 0.5;
/// The bound's growth in a round trip while there is no queue at all, as in BBR's probing (Cardwell et al. 2016).
const GROWTH: f64 = 0.25;
/// Chunks that are held beyond the bandwidth-delay product: one is sent while the program sees that there is room for another.
const HELD_CHUNKS: f64 = 2.0;
/// The time in which a program sees an acknowledgement that it has to look for.
const MIN_QUEUE: Duration = Duration::from_millis(2);
/// A program that looks no more often than this has little to send.
const MAX_GAP: Duration = Duration::from_millis(10);
/// Shorter rounds have too few readings.
const MIN_ROUND: Duration = Duration::from_millis(10);
/// So many times the queue that was aimed at is somebody else's, if it stays for so many rounds.
const CROWDED: f64 = 4.0;
const CROWDED_ROUNDS: u32 = 12;
/// Long enough for the connection's congestion control to get its share, most of the time.
const COMPETE: Duration = Duration::from_secs(5);
const COMPETE_ROUNDS: u64 = 64;
/// A bound that was not reached for so long is forgotten.
const UNUSED: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 3_000;

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
        srtt_ms: f64,
        rttvar_ms: f64,
        /// The congestion window, in bytes.
        cwnd: f64,
        is_realtime: bool,
        is_second: bool,
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
                srtt_ms: rtt_min_ms,
                rttvar_ms: 0.0,
                cwnd: 14_480.0,
                is_realtime: false,
                is_second: false,
            }
        }

        fn held(&self) -> f64 {
            self.bound.get().map_or(self.cwnd, |bound| bound.as_f64().min(self.cwnd))
        }

        fn queue_ms(&self) -> f64 {
            (self.held() / self.rate - self.rtt_min_ms).max(0.0) + self.others_ms
        }

        /// Lets so many milliseconds pass; gives the share of the path's rate that was used.
        fn run(&mut self, ms: u64) -> f64 {
            let mut used = 0.0;
            for step in 0..ms {
                self.now += Duration::from_millis(1);
                let jitter = if step % 2 == 0 { self.jitter_ms } else { 0.0 };
                let rtt = self.rtt_min_ms + self.queue_ms() + jitter;
                // RFC 6298 §2, by ACKs that come more often than once a round trip.
                self.rttvar_ms += ((rtt - self.srtt_ms).abs() - self.rttvar_ms) / 4.0;
                self.srtt_ms += (rtt - self.srtt_ms) / 8.0;
                used += (self.held() / (self.rate * rtt)).min(1.0);
                // Slow start, until the window would be lost.
                self.cwnd = (self.cwnd * (1.0 + 0.7 / rtt)).min(self.rate * (self.rtt_min_ms + 100.0));
                let time = |ms: f64| Duration::from_nanos((ms * 1e6) as u64);
                let flight = Flight {
                    buffered: Bytes::new(self.held() as u64),
                    srtt: time(self.srtt_ms),
                    rttvar: time(self.rttvar_ms),
                    rtt_min: time(self.rtt_min_ms),
                    is_realtime: self.is_realtime,
                    is_second: self.is_second,
                };
                self.bound.on_reading(self.now, flight, Bytes::new(CHUNK));
            }
            used / ms as f64
        }
    }

    #[test]
    fn the_path_is_full_and_its_queue_short() {
        for (mbit, rtt_min) in [(10.0, 20.0), (5.0, 80.0), (100.0, 10.0), (3.0, 40.0), (50.0, 200.0)] {
            let mut path = Path::new(mbit, rtt_min);
            path.run(3_000);
            let used = path.run(1_000);
            let least = f64::max(rtt_min / 8.0, 2.0 * CHUNK as f64 / path.rate).max(2.0);
            assert!(used > 0.99, "{mbit} Mbit/s, {rtt_min} ms: {used}");
            assert!(path.queue_ms() < 1.5 * least, "{mbit} Mbit/s, {rtt_min} ms: {}", path.queue_ms());
        }
    }

    #[test]
    fn beside_real_time_data_the_queue_is_a_chunk_and_the_path_nearly_full() {
        for (mbit, rtt_min) in [(10.0, 20.0), (5.0, 80.0), (100.0, 10.0), (3.0, 40.0), (50.0, 200.0)] {
            let mut path = Path::new(mbit, rtt_min);
            path.run(3_000);
            path.is_realtime = true;
            path.run(1_000);
            let used = path.run(1_000);
            let most = f64::max(CHUNK as f64 / path.rate, 2.0);
            assert!(used > 0.9, "{mbit} Mbit/s, {rtt_min} ms: {used}");
            assert!(path.queue_ms() < 1.5 * most, "{mbit} Mbit/s, {rtt_min} ms: {}", path.queue_ms());
        }
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
    fn round_trips_that_vary_are_not_taken_for_a_queue() {
        let mut path = Path::new(20.0, 20.0);
        path.jitter_ms = 8.0;
        path.run(5_000);
        let held = path.held() / path.rate;
        assert!(held > 20.0, "{held} ms of data, and the path is 20 ms long");
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
    fn what_was_not_used_for_long_is_forgotten() {
        let mut path = Path::new(10.0, 20.0);
        path.run(2_000);
        path.cwnd = 1_000.0;
        let idle = Flight {
            buffered: Bytes::ZERO,
            srtt: Duration::from_millis(20),
            rttvar: Duration::ZERO,
            rtt_min: Duration::from_millis(20),
            is_realtime: false,
            is_second: false,
        };
        for _ in 0..1_100 {
            path.now += Duration::from_millis(10);
            path.bound.on_reading(path.now, idle, Bytes::new(CHUNK));
        }
        assert_eq!(path.bound.get(), None);
    }
}
