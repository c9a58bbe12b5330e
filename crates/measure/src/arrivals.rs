//! What arrived of packets of one size, and how long they had waited: a line over time.

use serde::{Deserialize, Serialize};

/// Packets over time, from the first one on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Arrivals {
    /// Packets that arrived in each millisecond.
    pub packets: Vec<u16>,
    /// The shortest wait of those that arrived in each tenth of a second, in milliseconds; none where none did.
    pub waits_ms: Vec<Option<u16>>,
}

/// Counts packets as they come.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    arrivals: Arrivals,
    first_us: Option<u64>,
    all: u64,
    /// The least difference of the two clocks so far, in microseconds.
    least_us: i64,
}

/// The longest recording, in milliseconds.
pub const MAX_MS: usize = 330_000;
/// The size of a packet on the line, in bytes of IP. Tunnels and PPPoE leave room for that.
pub(crate) const PACKET: u64 = 1_400;
/// Milliseconds in a window of waits.
const WINDOW_MS: usize = 100;
/// A packet that waited longer than that was not alone in the queue.
const FILLED_MS: u16 = 5;
/// Bytes that an opportunity of Mahimahi carries.
const OPPORTUNITY: u64 = 1_500;

impl Counter {
    /// A packet arrived at `now_us` of this clock, which the other end had sent at `sent_us` of its own. Returns how many have.
    pub(crate) fn count(&mut self, now_us: u64, sent_us: u64) -> u64 {
        self.all += 1;
        let apart = now_us.cast_signed().wrapping_sub(sent_us.cast_signed());
        let first = *self.first_us.get_or_insert_with(|| {
            self.least_us = apart;
            now_us
        });
        let at_ms = (now_us.saturating_sub(first) / 1_000) as usize;
        if at_ms >= MAX_MS {
            return self.all;
        }
        let Arrivals { packets, waits_ms } = &mut self.arrivals;
        if packets.len() <= at_ms {
            packets.resize(at_ms + 1, 0);
            waits_ms.resize(at_ms / WINDOW_MS + 1, None);
        }
        packets[at_ms] = packets[at_ms].saturating_add(1);
        self.least_us = self.least_us.min(apart);
        let wait_ms = u16::try_from(apart.saturating_sub(self.least_us) / 1_000).unwrap_or(u16::MAX);
        let least = &mut waits_ms[at_ms / WINDOW_MS];
        *least = Some(least.map_or(wait_ms, |least| least.min(wait_ms)));
        self.all
    }

    /// Packets that have arrived.
    pub(crate) const fn all(&self) -> u64 {
        self.all
    }

    /// What arrived so far.
    pub(crate) fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }
}

impl Arrivals {
    /// The same without what arrived before `from_ms`, when the queue was filled for the first time.
    #[must_use]
    pub fn from(&self, from_ms: usize) -> Self {
        Self {
            packets: self.packets.get(from_ms..).unwrap_or_default().to_vec(),
            waits_ms: self.waits_ms.get(from_ms / WINDOW_MS..).unwrap_or_default().to_vec(),
        }
    }

    /// The same in parts of so many milliseconds, a multiple of a hundred.
    pub(crate) fn parts(&self, ms: usize) -> impl Iterator<Item = Self> {
        let waits = self.waits_ms.chunks(ms / WINDOW_MS);
        self.packets
            .chunks(ms)
            .zip(waits)
            .map(|(packets, waits)| Self { packets: packets.to_vec(), waits_ms: waits.to_vec() })
    }

    /// Adds what came next.
    pub(crate) fn extend(&mut self, next: Self) {
        self.packets.extend(next.packets);
        self.waits_ms.extend(next.waits_ms);
    }

    /// When an opportunity of 1500 bytes of Mahimahi passed, in milliseconds.
    #[must_use]
    pub fn opportunities_ms(&self) -> Vec<u64> {
        let mut bytes = 0;
        let mut times = Vec::new();
        for (at_ms, packets) in self.packets.iter().enumerate() {
            bytes += u64::from(*packets) * PACKET;
            while bytes >= OPPORTUNITY {
                bytes -= OPPORTUNITY;
                times.push(at_ms as u64);
            }
        }
        times
    }

    /// The mean rate, in IP bits per second.
    #[must_use]
    pub fn mean_bps(&self) -> f64 {
        let bytes: u64 = self.packets.iter().map(|packets| u64::from(*packets) * PACKET).sum();
        bytes as f64 * 8e3 / self.packets.len().max(1) as f64
    }

    /// The share of the time in which each packet that arrived had waited, so that the line carried what it could. Times
    /// without packets count: there, packets waited for the line, or none would come later.
    #[must_use]
    pub fn filled_share(&self) -> f64 {
        let filled = self.waits_ms.iter().filter(|wait| wait.is_none_or(|wait| wait >= FILLED_MS)).count();
        filled as f64 / self.waits_ms.len().max(1) as f64
    }

    /// The longest of the waits, in milliseconds.
    #[must_use]
    pub fn longest_wait_ms(&self) -> u16 {
        self.waits_ms.iter().flatten().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_become_opportunities_of_their_bytes() {
        let mut counter = Counter::default();
        // A packet a millisecond, by a clock that is far ahead; each waits 20 ms longer from 500 ms on.
        for nth in 0..1_000_u64 {
            let wait = if nth < 500 { 0 } else { 20_000 };
            counter.count((1 << 40) + nth * 1_000, nth * 1_000 + 7 - wait.min(nth * 1_000));
        }
        let arrivals = counter.arrivals();
        assert_eq!(arrivals.packets.len(), 1_000);
        assert!((arrivals.mean_bps() - 11.2e6).abs() < 1.0);
        assert_eq!(arrivals.opportunities_ms().len(), 1_000 * 1_400 / 1_500);
        assert!((arrivals.filled_share() - 0.5).abs() < 1e-9);
        assert_eq!(arrivals.longest_wait_ms(), 20);
        assert_eq!(arrivals.from(900).packets.len(), 100);
        assert_eq!(arrivals.from(5_000), Arrivals::default());
    }

    #[test]
    fn a_recording_has_an_end() {
        let mut counter = Counter::default();
        counter.count(5, u64::MAX);
        counter.count(u64::MAX, 0);
        counter.count(0, u64::MAX / 2);
        assert!(counter.arrivals().packets.len() <= MAX_MS);
    }
}
