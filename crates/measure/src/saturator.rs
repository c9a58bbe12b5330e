//! A sender that keeps a queue filled, so that what arrives is what the line carries: after the Saturator that made the traces of
//! Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks"
//! (NSDI 2013, §4.1). That one lets packets wait up to three seconds; this one less long where it can.
//!
//! It has neither a clock nor a socket. Times are in microseconds of one clock, the sender's.

use std::collections::VecDeque;

/// Packets under way, whose acknowledgements say how many more there may be.
#[derive(Debug, Clone)]
pub(crate) struct Saturator {
    /// The number of the next packet.
    next: u32,
    /// Every packet below that has arrived or got lost.
    settled: u32,
    /// Packets that may be under way.
    window: f64,
    least_rtt_us: u64,
    last_ack_us: u64,
    last_rtt_us: u64,
    /// Acknowledged in the time that [`Rate`] covers.
    rate: Rate,
    /// The packets up to which losses were counted, and those that arrived and that got lost since.
    counted: (u32, u32, u32),
}

/// Where packets wait less than that, there may be more of them, in microseconds.
const LOW_US: u64 = 300_000;
/// Where packets wait longer, there are fewer, unless the line was fast of late.
const HIGH_US: u64 = 1_000_000;
/// Where packets wait longer than that, there are fewer anyway.
const LONGEST_US: u64 = 4_000_000;
/// The queue is to last so long beyond a round trip where the line is as fast again as it was of late.
const SPARE_US: u64 = 50_000;
/// Packets under way at least, and at most: 6 MB.
const LEAST: f64 = 10.0;
const MOST: f64 = 4_096.0;
/// Where more of the packets get lost, the buffer is full, and a larger window only gets more of them lost; where far more do, it is too large.
const LOSING: f64 = 0.1;
const FLOODING: f64 = 0.3;
/// All packets under way are given up where nothing came for so long beyond two round trips.
const SILENCE_US: u64 = 1_000_000;

impl Default for Saturator {
    fn default() -> Self {
        Self {
            next: 0,
            settled: 0,
            window: LEAST,
            least_rtt_us: u64::MAX,
            last_ack_us: 0,
            last_rtt_us: 0,
            rate: Rate::default(),
            counted: (0, 0, 0),
        }
    }
}

impl Saturator {
    /// Packets handed out so far.
    #[must_use]
    pub(crate) const fn sent(&self) -> u32 {
        self.next
    }

    /// The number of a packet that is to be sent now, if one is.
    pub(crate) fn poll(&mut self, now_us: u64) -> Option<u32> {
        let silence = SILENCE_US + 2 * self.last_rtt_us;
        if self.next > self.settled && now_us.saturating_sub(self.last_ack_us) > silence {
            self.settled = self.next;
            self.window = (self.window / 2.0).max(LEAST);
        }
        if f64::from(self.next - self.settled) >= self.window.floor() {
            return None;
        }
        if self.next == self.settled {
            // The silence counts from here on.
            self.last_ack_us = now_us;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// The packet `number`, sent at `sent_us`, has arrived.
    pub(crate) fn acknowledge(&mut self, number: u32, sent_us: u64, now_us: u64) {
        if number >= self.next || sent_us > now_us {
            return;
        }
        let rtt = now_us - sent_us;
        self.least_rtt_us = self.least_rtt_us.min(rtt);
        (self.last_ack_us, self.last_rtt_us) = (now_us, rtt);
        self.rate.count(now_us);
        self.counted.1 += 1;
        if number >= self.settled {
            self.counted.2 += number - self.settled;
            self.settled = number + 1;
        } else {
            // It came late, and was counted as lost.
            self.counted.2 = self.counted.2.saturating_sub(1);
        }
        self.adapt(rtt.saturating_sub(self.least_rtt_us));
    }

    /// Changes the window after an acknowledgement: by one packet for each, so by half or twice in a round trip.
    fn adapt(&mut self, wait_us: u64) {
        let lost = f64::from(self.counted.2) / f64::from(self.counted.1 + self.counted.2).max(1.0);
        if self.settled >= self.counted.0 {
            if lost > FLOODING {
                self.window *= 0.8;
            }
            self.counted = (self.next, 0, 0);
        }
        let packets_per_us = self.rate.most_of_late / RATE_US as f64;
        let floor = packets_per_us * (self.least_rtt_us + SPARE_US) as f64;
        if wait_us < LOW_US && lost < LOSING {
            self.window += 1.0;
        } else if wait_us > LONGEST_US || wait_us > HIGH_US && self.window > floor {
            self.window -= 1.0;
        }
        self.window = self.window.clamp(LEAST, MOST);
    }
}

/// Packets acknowledged in 100 ms, and the most of that in the last ten seconds.
#[derive(Debug, Clone, Default)]
struct Rate {
    recent: VecDeque<u64>,
    /// The most of each of the last seconds.
    seconds: VecDeque<(u64, usize)>,
    most_of_late: f64,
}

const RATE_US: u64 = 100_000;
const LATE_S: u64 = 10;

impl Rate {
    fn count(&mut self, now_us: u64) {
        self.recent.push_back(now_us);
        while self.recent.front().is_some_and(|first| *first + RATE_US < now_us) {
            self.recent.pop_front();
        }
        let (second, count) = (now_us / 1_000_000, self.recent.len());
        match self.seconds.back_mut() {
            Some((last, most)) if *last == second => *most = count.max(*most),
            _ => self.seconds.push_back((second, count)),
        }
        while self.seconds.front().is_some_and(|(first, _)| first + LATE_S < second) {
            self.seconds.pop_front();
        }
        self.most_of_late = self.seconds.iter().map(|(_, most)| *most).max().unwrap_or(0) as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends over a line that carries a packet whenever `interval_us` says, has room for `room` packets, and takes 20 ms each way.
    /// Returns waits in milliseconds at the times of arrival, and the share of opportunities that found no packet, after two seconds.
    fn run(seconds: u64, room: usize, interval_us: impl Fn(u64) -> u64) -> (Vec<f64>, f64) {
        const ONE_WAY: u64 = 20_000;
        let mut saturator = Saturator::default();
        let mut queue: VecDeque<(u32, u64)> = VecDeque::new();
        let mut acks: VecDeque<(u64, u32, u64)> = VecDeque::new();
        let (mut waits, mut idle, mut all) = (Vec::new(), 0, 0);
        let mut opportunity = 0;
        for now in (0..seconds * 1_000_000).step_by(100) {
            while acks.front().is_some_and(|(at, ..)| *at <= now) {
                let (_, number, sent) = acks.pop_front().unwrap();
                saturator.acknowledge(number, sent, now);
            }
            while let Some(number) = saturator.poll(now) {
                if queue.len() < room {
                    queue.push_back((number, now));
                }
            }
            while opportunity <= now {
                opportunity += interval_us(opportunity);
                let sent = queue.pop_front();
                if now > 2_000_000 {
                    all += 1;
                    idle += u32::from(sent.is_none());
                }
                if let Some((number, sent)) = sent {
                    waits.push((now - sent) as f64 / 1e3);
                    acks.push_back((now + 2 * ONE_WAY, number, sent));
                }
            }
        }
        (waits, f64::from(idle) / f64::from(all))
    }

    #[test]
    fn the_queue_of_a_steady_line_is_filled_and_no_longer_than_a_second() {
        // 12 Mbit/s and 500 kbit/s.
        for interval in [1_000, 24_000] {
            let (waits, idle) = run(20, 100_000, |_| interval);
            assert!(idle < 0.001, "{interval}: {idle}");
            let longest = waits.iter().copied().fold(0.0, f64::max);
            assert!(longest < 1_300.0, "{interval}: {longest}");
        }
    }

    #[test]
    fn a_short_buffer_is_kept_full_without_flooding_it() {
        let (waits, idle) = run(20, 30, |_| 1_000);
        assert!(idle < 0.01, "{idle}");
        assert!(waits.iter().all(|wait| *wait < 31.0));
        let mut saturator = Saturator::default();
        for number in 0..5_000_u32 {
            while saturator.poll(u64::from(number) * 1_000).is_some() {}
            // Half of the packets get lost.
            saturator.acknowledge(2 * number, u64::from(number) * 1_000, u64::from(number) * 1_000 + 50_000);
        }
        assert!(saturator.window < 200.0, "{}", saturator.window);
    }

    #[test]
    fn a_line_that_comes_back_fast_finds_packets() {
        // Five seconds of 24 Mbit/s, three of 1 Mbit/s.
        let (waits, idle) = run(40, 100_000, |at| if at / 1_000_000 % 8 < 5 { 500 } else { 12_000 });
        assert!(idle < 0.01, "{idle}");
        assert!(waits.iter().all(|wait| *wait < 5_000.0));
    }

    #[test]
    fn after_silence_it_tries_again_with_half() {
        let mut saturator = Saturator::default();
        let first: Vec<_> = std::iter::from_fn(|| saturator.poll(0)).collect();
        assert_eq!(first, (0..10).collect::<Vec<_>>());
        assert_eq!(saturator.poll(SILENCE_US), None);
        assert_eq!(saturator.poll(SILENCE_US + 1), Some(10));
        // What no one sent, or from the future, is no news.
        saturator.acknowledge(99, 0, 5);
        saturator.acknowledge(10, 9_000_000, 5);
        assert_eq!(saturator.least_rtt_us, u64::MAX);
    }
}
