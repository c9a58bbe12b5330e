//! [`crate::estimate::zombies`] in integers, with a list of fixed size.

use alloc::boxed::Box;

use super::{ONE, Random};

/// A sample of the flows of recent packets.
#[derive(Debug, Clone)]
pub(super) struct Zombies {
    list: Box<[u32; ZOMBIES]>,
    length: usize,
    compared: u64,
    /// In parts of [`ONE`].
    hit_frequency: u64,
}

impl Zombies {
    pub(super) fn new() -> Self {
        Self { list: Box::new([0; ZOMBIES]), length: 0, compared: 0, hit_frequency: 0 }
    }

    /// A packet of `flow` arrives. Says whether it met its own flow.
    pub(super) fn on_packet(&mut self, flow: u32, random: &mut Random) -> bool {
        if self.length == 0 {
            self.list[0] = flow;
            self.length = 1;
            return false;
        }
        let met = random.below(self.length as u64) as usize;
        let hit = self.list[met] == flow;
        if self.length < ZOMBIES {
            self.list[self.length] = flow;
            self.length += 1;
        } else if !hit && random.below(OVERWRITE) == 0 {
            self.list[met] = flow;
        }
        self.compared = (self.compared + 1).min(ZOMBIES as u64 * OVERWRITE);
        if hit {
            self.hit_frequency += (ONE - self.hit_frequency) / self.compared;
        } else {
            self.hit_frequency -= self.hit_frequency / self.compared;
        }
        hit
    }

    /// The share of recent packets that met their own flow, in parts of [`ONE`].
    pub(super) fn hit_frequency(&self) -> u64 {
        self.hit_frequency
    }

    /// The number of flows in 1/65536.
    pub(super) fn flows(&self) -> u64 {
        let most = self.compared << 16;
        let flows = (ONE << 16).checked_div(self.hit_frequency).unwrap_or(most);
        flows.min(most).max(1 << 16)
    }
}

const ZOMBIES: usize = 1_000;
/// One packet in so many that miss their flow overwrites what it met.
const OVERWRITE: u64 = 4;
