//! When a link has sent a packet: constant rate, recorded opportunities, or steps of rate.

use std::sync::Arc;

use suimon_model::Capacity;
use suimon_units::{Bytes, Duration, Instant, Rate};

const OPPORTUNITY_BYTES: u64 = Capacity::OPPORTUNITY.get();

/// The sending side of a link as a clock: asked packet by packet, in order.
#[derive(Debug)]
pub(crate) enum Server {
    /// Transmission takes no time.
    Unlimited,
    /// A rate that never changes.
    Constant(Constant),
    /// A recording of when packets may leave.
    Opportunities(Opportunities),
    /// A rate that changes at given times.
    Steps(Steps),
    /// A radio, which takes packets when it wants.
    Radio,
}

/// The transmission of the packet at the head of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// The end of the packet's wait. On a recorded link the packet leaves at this time: the time that the radio took
    /// for the packet itself is not recorded.
    pub starts: Instant,
    /// The time when the last bit has left.
    pub ends: Instant,
}

impl Server {
    /// The server of a link of this `capacity`.
    #[must_use]
    pub(crate) fn new(capacity: &Capacity) -> Self {
        match capacity {
            Capacity::Rate(Rate::MAX) => Self::Unlimited,
            Capacity::Rate(rate) => Self::constant(*rate),
            // Until its driver changes the rate.
            Capacity::Shaped(controller) => Self::constant(controller.build_shaper().initial()),
            Capacity::Opportunities { times, period } => Self::Opportunities(Opportunities {
                times: Arc::clone(times),
                period: *period,
                index: 0,
                cycle: 0,
                left: OPPORTUNITY_BYTES,
            }),
            Capacity::Steps { steps, period } => Self::Steps(Steps::new(Arc::clone(steps), *period)),
            // All others are radios.
            _ => Self::Radio,
        }
    }

    fn constant(rate: Rate) -> Self {
        Self::Constant(Constant { rate, size: Bytes::ZERO, time: Duration::ZERO })
    }

    /// Sends `size` bytes, beginning at `turn` at the earliest. They `waited` if they came before it.
    ///
    /// # Panics
    /// On a radio, which takes packets when it wants.
    #[inline(always)]
    pub(crate) fn send(&mut self, turn: Instant, waited: bool, size: Bytes) -> Service {
        // Asked first, since most are: a branch is cheaper than a table of them.
        if let Self::Constant(constant) = self {
            return Service { starts: turn, ends: turn + constant.transmission_time(size) };
        }
        self.send_otherwise(turn, waited, size)
    }

    fn send_otherwise(&mut self, turn: Instant, waited: bool, size: Bytes) -> Service {
        match self {
            Self::Unlimited => Service { starts: turn, ends: turn },
            Self::Constant(constant) => {
                Service { starts: turn, ends: turn + constant.transmission_time(size) }
            }
            Self::Opportunities(opportunities) => {
                let ends = opportunities.send(turn, waited, size);
                Service { starts: ends, ends }
            }
            Self::Steps(steps) => Service { starts: turn, ends: steps.finish(turn, size) },
            Self::Radio => unreachable!("a link that is never free sends nothing by itself"),
        }
    }

    /// The rate at `now`; on a recorded link the mean over the recording. `None` without a finite rate.
    #[must_use]
    pub(crate) fn rate_at(&self, now: Instant) -> Option<Rate> {
        match self {
            Self::Unlimited | Self::Radio => None,
            Self::Constant(constant) => Some(constant.rate),
            Self::Opportunities(Opportunities { times, period, .. }) => {
                Some(Rate::of(Bytes::new(OPPORTUNITY_BYTES) * times.len() as u64, *period))
            }
            Self::Steps(steps) => Some(steps.at(now).0),
        }
    }

    /// How many bytes could have been sent from `from` to `to`; `None` without a finite rate.
    #[must_use]
    pub(crate) fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        match self {
            Self::Unlimited | Self::Radio => None,
            Self::Constant(constant) => Some(constant.rate.amount_in(to.saturating_since(from))),
            Self::Opportunities(opportunities) => Some(opportunities.between(from, to)),
            Self::Steps(steps) => Some(steps.between(from, to)),
        }
    }
}

/// A rate that never changes, and how long the latest size takes: sizes repeat, and divisions are slow.
#[derive(Debug)]
pub(crate) struct Constant {
    rate: Rate,
    size: Bytes,
    time: Duration,
}

impl Constant {
    fn transmission_time(&mut self, size: Bytes) -> Duration {
        if size != self.size {
            (self.size, self.time) = (size, self.rate.transmission_time(size));
        }
        self.time
    }
}

/// Mahimahi's link: packets leave at recorded times only, and unused opportunities are lost.
///
/// A packet that comes at an opportunity's very time is too late for it, as in Mahimahi, whose `read_packet` uses the
/// opportunities up to now before it takes the packet in. Real hosts need microseconds, so theirs are too late as well;
/// simulated ones need none, and with round trips of whole milliseconds each ACK would find the opportunity of its
/// millisecond.
#[derive(Debug)]
pub(crate) struct Opportunities {
    times: Arc<[Duration]>,
    period: Duration,
    index: usize,
    cycle: u64,
    /// Bytes that the opportunity at `index` still carries.
    left: u64,
}

impl Opportunities {
    fn time(&self) -> Instant {
        Instant::ZERO + self.period * self.cycle + self.times[self.index]
    }

    fn advance(&mut self) {
        self.left = OPPORTUNITY_BYTES;
        self.index += 1;
        if self.index == self.times.len() {
            self.index = 0;
            self.cycle += 1;
        }
    }

    fn send(&mut self, turn: Instant, waited: bool, size: Bytes) -> Instant {
        let cycle = turn.as_nanos() / self.period.as_nanos();
        if cycle > self.cycle + 1 {
            // After a long silence, jump rather than step through whole recordings.
            (self.cycle, self.index, self.left) = (cycle - 1, 0, OPPORTUNITY_BYTES);
        }
        let earliest = if waited { turn } else { turn + Duration::from_nanos(1) };
        while self.time() < earliest {
            self.advance();
        }
        let mut remaining = size.get();
        loop {
            let taken = remaining.min(self.left);
            remaining -= taken;
            self.left -= taken;
            let leaves = self.time();
            if self.left == 0 {
                self.advance();
            }
            if remaining == 0 {
                return leaves;
            }
        }
    }

    fn between(&self, from: Instant, to: Instant) -> Bytes {
        let until = |instant: Instant| {
            let period = self.period.as_nanos();
            // The last opportunity of a cycle comes at its very end, so a cycle begins just after one.
            let cycles = instant.as_nanos().saturating_sub(1) / period;
            let rest = instant.as_nanos() - cycles * period;
            let in_rest = self.times.partition_point(|time| time.as_nanos() < rest);
            cycles * self.times.len() as u64 + in_rest as u64
        };
        Bytes::new(OPPORTUNITY_BYTES) * until(to).saturating_sub(until(from))
    }
}

/// A byte in bit-nanoseconds per second, in which amounts are counted so that nothing is lost to rounding
/// between steps.
const BYTE: u128 = 8 * 1_000_000_000;

/// A rate that changes at given times.
#[derive(Debug)]
pub(crate) struct Steps {
    steps: Arc<[(Duration, Rate)]>,
    period: Duration,
    /// The amount that one period lets through.
    per_period: u128,
}

impl Steps {
    fn new(steps: Arc<[(Duration, Rate)]>, period: Duration) -> Self {
        Self { per_period: amount_until(&steps, period), steps, period }
    }

    /// The rate at `instant` and when it ends.
    fn at(&self, instant: Instant) -> (Rate, Instant) {
        let period = self.period.as_nanos();
        let phase = Duration::from_nanos(instant.as_nanos() % period);
        let cycle_start = instant.as_nanos() - phase.as_nanos();
        let next = self.steps.partition_point(|(time, _)| *time <= phase);
        let ends = self.steps.get(next).map_or(self.period, |(time, _)| *time);
        (self.steps[next - 1].1, Instant::from_nanos(cycle_start) + ends)
    }

    fn finish(&self, now: Instant, size: Bytes) -> Instant {
        let mut remaining = u128::from(size.get()) * BYTE;
        // Whole periods at once: with short periods and low rates there may be billions of them.
        let periods = (remaining - 1) / self.per_period;
        remaining -= periods * self.per_period;
        let mut time = now + self.period * u64::try_from(periods).unwrap_or(u64::MAX);
        while time < Instant::MAX {
            let (rate, ends) = self.at(time);
            let bits_per_second = u128::from(rate.as_bps());
            let possible = bits_per_second * u128::from(ends.saturating_since(time).as_nanos());
            if possible >= remaining {
                let nanos = remaining.div_ceil(bits_per_second.max(1));
                return time + Duration::from_nanos(nanos as u64);
            }
            remaining -= possible;
            time = ends;
        }
        Instant::MAX
    }

    fn between(&self, from: Instant, to: Instant) -> Bytes {
        let amount = (self.by(to) - self.by(from)) / BYTE;
        Bytes::new(u64::try_from(amount).unwrap_or(u64::MAX))
    }

    /// The amount that could have been sent since the start of the run.
    fn by(&self, instant: Instant) -> u128 {
        let period = self.period.as_nanos();
        let phase = Duration::from_nanos(instant.as_nanos() % period);
        u128::from(instant.as_nanos() / period) * self.per_period + amount_until(&self.steps, phase)
    }
}

/// The amount that `steps` let through from their beginning until `phase`.
fn amount_until(steps: &[(Duration, Rate)], phase: Duration) -> u128 {
    let ends = steps.iter().skip(1).map(|(time, _)| *time).chain([phase]);
    (steps.iter().zip(ends).take_while(|((begins, _), _)| *begins < phase))
        .map(|((begins, rate), ends)| {
            u128::from(rate.as_bps()) * u128::from((ends.min(phase) - *begins).as_nanos())
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn opportunities(times: &[u64]) -> Server {
        let times: Arc<[_]> = times.iter().map(|t| Duration::from_millis(*t)).collect();
        let period = *times.last().unwrap();
        Server::new(&Capacity::Opportunities { times, period })
    }

    #[test]
    fn a_full_packet_takes_one_opportunity_and_a_missed_one_is_lost() {
        let mut server = opportunities(&[10, 20, 20, 40]);
        let full = Bytes::new(1_500);
        assert_eq!(server.send(ms(0), false, full).ends, ms(10));
        assert_eq!(server.send(ms(15), false, full).ends, ms(20));
        assert_eq!(server.send(ms(21), false, full).ends, ms(40), "the second one at 20 ms was missed");
        assert_eq!(server.send(ms(40), true, full).ends, ms(50), "the recording starts again");
    }

    #[test]
    fn only_a_packet_that_was_there_before_finds_an_opportunity() {
        let mut server = opportunities(&[10, 20, 20, 20, 40]);
        let full = Bytes::new(1_500);
        assert_eq!(server.send(ms(10), false, full).ends, ms(20), "it came at the very time of the first");
        assert_eq!(server.send(ms(20), true, full).ends, ms(20), "it waited for its turn");
        assert_eq!(
            server.send(ms(20), false, full).ends,
            ms(40),
            "a third is left at 20 ms, for none that comes then"
        );
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_span_several() {
        let mut server = opportunities(&[10, 20, 30]);
        assert_eq!(server.send(ms(0), false, Bytes::new(500)).ends, ms(10));
        assert_eq!(server.send(ms(10), true, Bytes::new(1_000)).ends, ms(10));
        assert_eq!(server.send(ms(10), true, Bytes::new(1_501)).ends, ms(30));
        assert_eq!(
            server.potential(ms(0), ms(60)),
            Some(Bytes::new(5 * 1_500)),
            "the one at 60 ms lies past the end"
        );
    }

    #[test]
    fn a_long_silence_skips_whole_recordings() {
        let mut server = opportunities(&[10, 20, 30]);
        assert_eq!(server.send(ms(3_000_005), false, Bytes::new(1_500)).ends, ms(3_000_010));
    }

    #[test]
    fn a_packet_across_a_step_gets_both_rates_and_waits_out_an_outage() {
        let steps: Arc<[_]> = [(0, 1_000_000), (10, 0), (30, 2_000_000)]
            .iter()
            .map(|&(at, bps)| (Duration::from_millis(at), Rate::from_bps(bps)))
            .collect();
        let mut server = Server::new(&Capacity::Steps { steps, period: Duration::from_millis(40) });
        // 1500 bytes are 12 000 bits: 10 000 until 10 ms, 2 000 more at 2 Mbit/s from 30 ms on.
        assert_eq!(server.send(ms(0), false, Bytes::new(1_500)).ends, ms(31));
        assert_eq!(server.potential(ms(0), ms(80)), Some(Bytes::new(7_500)));
    }
}
