//! The flow that sends most, and the share of each heavy flow, by a space-saving sketch over a sliding
//! window (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data
//! Streams, ICDT 2005), with forward decay (Cormode, Shkapenyuk, Srivastava, Xu: Forward Decay, ICDE
//! 2009).
//!
//! A flow may stand only in one set of few entries, chosen by its number, so a packet touches two cache
//! lines and nothing is sorted. Within its set everything is as in the paper: a flow that is not there
//! takes the entry with the least count over, and inherits that count as its possible error.

use alloc::boxed::Box;
use alloc::vec;

use suimon_units::{Bytes, Duration, Instant};

use crate::queue::FlowId;

/// Bytes per flow over a sliding window, for the flows that send most, in 64 kB.
///
/// The window has a soft edge: a byte of age `a` counts `exp(-a / tau)`, with `tau` half of the window,
/// so that the mean age of the bytes is that of a window with a hard edge. `N` is a note on each of these
/// flows, at first its default.
#[derive(Debug, Clone)]
pub struct Heaviest<N = ()> {
    entries: Box<[Entry<N>]>,
    total: f64,
    heaviest: Option<(FlowId, f64)>,
    tau: Duration,
    /// Counts are in bytes of this time.
    origin: Instant,
    /// The weight of a byte now, `exp((now - origin) / tau)`, and the time until which it is near enough.
    weight: f64,
    weight_until: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry<N> {
    note: N,
    count: f64,
    /// The part of `count` that may belong to flows that stood here before.
    error: f32,
    flow: u32,
}

impl<N> Entry<N> {
    /// The count that certainly belongs to the flow.
    fn certain(&self) -> f64 {
        self.count - f64::from(self.error)
    }
}

impl<N: Copy + Default> Heaviest<N> {
    const SETS: usize = ROOM / (WAYS * size_of::<Entry<N>>());

    /// An empty sketch over the last `window`.
    #[must_use]
    pub fn new(window: Duration) -> Self {
        Self {
            entries: vec![Entry::default(); Self::SETS * WAYS].into_boxed_slice(),
            total: 0.0,
            heaviest: None,
            tau: (window / 2).max(Duration::from_nanos(1)),
            origin: Instant::ZERO,
            weight: 1.0,
            weight_until: Instant::ZERO,
        }
    }

    /// A packet of `flow` passes.
    pub fn on_packet(&mut self, now: Instant, flow: FlowId, size: Bytes) {
        if now >= self.weight_until {
            self.age(now);
        }
        let weighted = size.as_f64() * self.weight;
        self.total += weighted;
        let set = &mut self.entries[Self::set_of(flow)];
        let own = set.iter().position(|entry| entry.flow == flow.0);
        let entry = match own {
            Some(own) => &mut set[own],
            None => {
                let least = set.iter_mut().min_by(|a, b| a.count.total_cmp(&b.count));
                let least = least.expect("a set has entries");
                *least =
                    Entry { error: least.count as f32, flow: flow.0, note: N::default(), count: least.count };
                least
            }
        };
        entry.count += weighted;
        // Counts only grow, so a flow that overtakes the heaviest does so with a packet of its own.
        let certain = entry.certain();
        if self.heaviest.is_none_or(|(heaviest, most)| heaviest == flow || certain > most) {
            self.heaviest = Some((flow, certain));
        }
    }

    /// The flow that sent most within the window.
    #[must_use]
    pub fn flow(&self) -> Option<FlowId> {
        self.heaviest.map(|(flow, _)| flow)
    }

    /// The share of all bytes within the window that `flow` certainly sent, from 0 to 1: never too much, and
    /// often zero for flows that send less than a few thousandths.
    #[must_use]
    pub fn share(&self, flow: FlowId) -> f64 {
        let entry = self.entries[Self::set_of(flow)].iter().find(|entry| entry.flow == flow.0);
        match entry {
            Some(entry) if self.total > 0.0 => entry.certain() / self.total,
            _ => 0.0,
        }
    }

    /// The note on `flow`, where it has an entry.
    pub fn note(&mut self, flow: FlowId) -> Option<&mut N> {
        self.entries[Self::set_of(flow)]
            .iter_mut()
            .find(|entry| entry.flow == flow.0)
            .map(|entry| &mut entry.note)
    }

    /// The entries that `flow` may stand in.
    fn set_of(flow: FlowId) -> core::ops::Range<usize> {
        // Fibonacci hashing: consecutive numbers come to lie far apart.
        let hash = u64::from(flow.0.wrapping_mul(0x9e37_79b9));
        let first = ((hash * Self::SETS as u64) >> 32) as usize * WAYS;
        first..first + WAYS
    }

    /// A byte that passes from now on counts more than those before.
    fn age(&mut self, now: Instant) {
        let age = now.saturating_since(self.origin).as_secs_f64() / self.tau.as_secs_f64();
        self.weight = if age < MAX_EXPONENT {
            libm::exp(age)
        } else {
            self.rescale(libm::exp(-age));
            self.origin = now;
            1.0
        };
        self.weight_until = now + self.tau / STEPS;
    }

    fn rescale(&mut self, factor: f64) {
        for entry in &mut self.entries {
            entry.count *= factor;
            // Rounded to one side, an error would exceed its count.
            entry.error = (f64::from(entry.error) * factor).min(entry.count) as f32;
        }
        self.total *= factor;
        self.heaviest = self.heaviest.map(|(flow, most)| (flow, most * factor));
    }
}

/// Entries of a set: without notes, two cache lines.
const WAYS: usize = 8;
/// Bytes for all entries: 64 kB, less the rest of the structure.
const ROOM: usize = 63_800;
/// How often in `tau` the weight is brought up to date; 64 keeps it within 1.6 %.
const STEPS: u64 = 64;
/// Counts stay below a window's bytes times `e^27`, far within the range of a single-precision error.
const MAX_EXPONENT: f64 = 27.0;

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(80);
    /// Between packets: 500 Mbit/s of 1500 bytes.
    const GAP: Duration = Duration::from_micros(24);

    #[test]
    fn it_takes_no_more_than_64_kb() {
        let sketch = <Heaviest>::new(WINDOW);
        assert!(size_of_val(&*sketch.entries) + size_of::<Heaviest>() <= 64_000);
    }

    #[test]
    fn shares_are_those_of_the_window_and_never_too_large() {
        let mut sketch = <Heaviest>::new(WINDOW);
        let mut now = Instant::ZERO;
        for nth in 0..100_000_u32 {
            now += GAP;
            let flow = if nth % 4 == 0 { 1 } else { 2 };
            sketch.on_packet(now, FlowId(flow), Bytes::new(1_500));
        }
        assert!((sketch.share(FlowId(1)) - 0.25).abs() < 1e-3, "{}", sketch.share(FlowId(1)));
        assert!((sketch.share(FlowId(2)) - 0.75).abs() < 1e-3);
        assert_eq!(sketch.share(FlowId(3)), 0.0);
        // Flow 1 alone for two windows: four times tau, of which e^-4 remains of flow 2.
        for _ in 0..(2 * WINDOW.as_nanos() / GAP.as_nanos()) {
            now += GAP;
            sketch.on_packet(now, FlowId(1), Bytes::new(1_500));
        }
        let left = 0.75 * libm::exp(-4.0);
        assert!((sketch.share(FlowId(2)) - left).abs() < 1e-3, "{}", sketch.share(FlowId(2)));
        assert_eq!(sketch.flow(), Some(FlowId(1)));
    }

    #[test]
    fn what_passed_days_ago_does_not_count() {
        let mut sketch = <Heaviest>::new(WINDOW);
        sketch.on_packet(Instant::ZERO, FlowId(1), Bytes::new(1_000_000_000));
        let later = Instant::ZERO + Duration::from_secs(10 * 24 * 3_600);
        sketch.on_packet(later, FlowId(2), Bytes::new(40));
        assert_eq!(sketch.flow(), Some(FlowId(2)));
        assert_eq!(sketch.share(FlowId(2)), 1.0);
        assert_eq!(sketch.share(FlowId(1)), 0.0);
    }
}
