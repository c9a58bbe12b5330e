//! The number of active flows, by SRED's zombie list (Ott, Lakshman, Wong: SRED: Stabilized RED,
//! INFOCOM 1999).

use alloc::vec::Vec;

use suimon_units::{Bytes, Probability};

use crate::queue::FlowId;
use crate::random::RandomStream;

/// A sample of the flows that recent packets belonged to, and how often an arriving packet meets its own.
///
/// Of `n` flows of equal rate a random zombie is of the packet's flow with probability `1/n`. Memory is
/// that of the list, whatever the number of flows.
#[derive(Debug, Clone)]
pub struct Zombies {
    list: Vec<FlowId>,
    size: usize,
    overwrite: Probability,
    /// Packets that were compared, as far as they matter.
    compared: f64,
    /// `P(t)`.
    hit_frequency: f64,
}

impl Zombies {
    /// A list of `size` zombies, at least one, each overwritten with probability `overwrite` by a packet
    /// of another flow.
    #[must_use]
    pub fn new(size: u64, overwrite: Probability) -> Self {
        let size = usize::try_from(size.max(1)).unwrap_or(usize::MAX);
        Self { list: Vec::new(), size, overwrite, compared: 0.0, hit_frequency: 0.0 }
    }

    /// A packet of `flow` arrives. Says whether it met its own flow, a "hit".
    pub fn on_packet(&mut self, flow: FlowId, random: &mut RandomStream) -> bool {
        if self.list.is_empty() {
            self.list.push(flow);
            return false;
        }
        let met = random.below(self.list.len() as u64) as usize;
        let hit = self.list[met] == flow;
        if self.list.len() < self.size {
            // Until the list is full every packet joins it (§2).
            self.list.push(flow);
        } else if !hit && random.chance(self.overwrite) {
            self.list[met] = flow;
        }
        // P(t) = (1 - alpha) P(t - 1) + alpha Hit(t), alpha = p / M (§2). The plain mean until there
        // are enough packets for that, so that the first zero does not weigh for thousands of them.
        let alpha = self.overwrite.get() / self.size as f64;
        self.compared = (self.compared + 1.0).min(1.0 / alpha);
        self.hit_frequency += (f64::from(hit) - self.hit_frequency) / self.compared;
        hit
    }

    /// `P(t)`: the share of recent packets that met their own flow.
    #[must_use]
    pub fn hit_frequency(&self) -> f64 {
        self.hit_frequency
    }

    /// The number of flows, at least one: `1 / P(t)` (§2). Without a hit so far, as many as packets.
    #[must_use]
    pub fn flows(&self) -> f64 {
        (1.0 / self.hit_frequency).min(self.compared).max(1.0)
    }

    /// The memory of the list.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        Bytes::new((size_of::<Self>() + self.list.capacity() * size_of::<FlowId>()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list after `packets` packets, the flow of each drawn by `flow`.
    fn list(packets: u64, mut flow: impl FnMut(&mut RandomStream) -> u32) -> Zombies {
        let mut random = RandomStream::new(1, "zombies");
        let mut zombies = Zombies::new(1_000, Probability::clamped(0.25));
        for _ in 0..packets {
            let flow = FlowId(flow(&mut random));
            zombies.on_packet(flow, &mut random);
        }
        zombies
    }

    #[test]
    fn flows_of_equal_rate_are_counted_within_a_tenth() {
        for n in [1, 3, 10, 30, 100] {
            let counted = list(40_000, |random| random.below(n) as u32).flows();
            // The mean of 2 / alpha = 8 000 draws of probability 1 / n, three standard deviations.
            let tolerance = 3.0 * (n as f64 / 8_000.0).sqrt();
            assert!((counted / n as f64 - 1.0).abs() < tolerance.max(1e-9), "{n}: {counted}");
        }
    }

    /// Shares s_i meet themselves with probability sum s_i^2: two flows at 3/4 and 1/4 count as 1.6.
    #[test]
    fn unequal_flows_count_as_the_inverse_of_their_squared_shares() {
        let counted = list(40_000, |random| u32::from(random.below(4) == 0)).flows();
        assert!((counted - 1.6).abs() < 0.1, "{counted}");
    }

    #[test]
    fn flows_that_came_are_counted_within_a_few_turns_of_the_list() {
        let mut packet = 0;
        let counted = list(60_000, |random| {
            packet += 1;
            random.below(if packet < 40_000 { 30 } else { 50 }) as u32
        })
        .flows();
        // Three standard deviations of 8 000 draws of probability 1 / 50.
        assert!((38.0..66.0).contains(&counted), "{counted}");
    }

    #[test]
    fn the_count_is_finite_and_grows_with_packets_while_none_meets_its_own() {
        let mut next = 0;
        let mut strangers = |_: &mut RandomStream| {
            next += 1;
            next
        };
        assert_eq!(list(1, &mut strangers).flows(), 1.0);
        assert_eq!(list(501, &mut strangers).flows(), 500.0);
        assert_eq!(list(100_000, &mut strangers).flows(), 4_000.0);
    }

    /// By hand: 2 zombies, always overwritten, so alpha = 1/2: hits at 1, 1/2, then half of the value before.
    #[test]
    fn the_hit_frequency_is_the_mean_at_first_and_then_moves_by_alpha() {
        let mut random = RandomStream::new(1, "zombies");
        let mut zombies = Zombies::new(2, Probability::ONE);
        let mut meet = |flow, expected: f64| {
            zombies.on_packet(FlowId(flow), &mut random);
            assert_eq!(zombies.hit_frequency(), expected);
        };
        meet(1, 0.0);
        meet(1, 1.0);
        meet(1, 1.0);
        meet(2, 0.5);
        meet(3, 0.25);
    }

    #[test]
    fn memory_is_that_of_the_list_whatever_the_number_of_flows() {
        let memory = |flows| list(100_000, |random| random.below(flows) as u32).memory();
        assert_eq!(memory(10), memory(1_000_000));
        assert!(memory(10) < Bytes::new(5_000), "{}", memory(10));
    }
}
