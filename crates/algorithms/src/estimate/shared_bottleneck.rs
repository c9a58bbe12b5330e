//! Which paths of one sender go through the same bottleneck, by how alike their queueing delays vary.
//!
//! Packets that pass the same queue at the same time wait for the same time, so the round-trip times of two paths through one
//! bottleneck rise and fall together (Rubenstein, Kurose, Towsley: Detecting Shared Congestion of Flows via End-to-End Measurement.
//! IEEE/ACM Transactions on Networking 10 (3), 2002, §III). They do so not only in step but by the same amount, which tells them
//! from separate queues that happen to be in step.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use suimon_units::{Duration, Instant};

/// Compares the round-trip times of paths.
#[derive(Debug)]
pub struct SharedBottlenecks {
    paths: Vec<Path>,
    /// The end of the block that samples go to now.
    block_ends: Instant,
    /// For each pair of paths, whether they share a bottleneck.
    shared: Vec<bool>,
}

#[derive(Debug, Clone, Default)]
struct Path {
    sum: f64,
    count: u32,
    /// The mean round-trip time of each of the last blocks, in seconds, oldest first.
    means: VecDeque<f64>,
}

impl SharedBottlenecks {
    /// Of `paths` paths, of which nothing is known.
    #[must_use]
    pub fn new(paths: usize) -> Self {
        Self {
            paths: alloc::vec![Path::default(); paths],
            block_ends: Instant::ZERO,
            shared: alloc::vec![false; paths * paths],
        }
    }

    /// The smoothed round-trip time of `path` is `srtt` now.
    pub fn on_sample(&mut self, now: Instant, path: usize, srtt: Duration) {
        if now >= self.block_ends {
            self.end_block();
            self.block_ends = now + BLOCK;
        }
        let path = &mut self.paths[path];
        path.sum += srtt.as_secs_f64();
        path.count += 1;
    }

    /// What is known of `path` holds no longer.
    pub fn forget(&mut self, path: usize) {
        self.paths[path] = Path::default();
        for other in 0..self.paths.len() {
            self.set(path, other, false);
        }
    }

    /// Whether two different paths go through the same bottleneck, as far as is known: false where too little is known.
    #[must_use]
    pub fn is_shared(&self, one: usize, other: usize) -> bool {
        self.shared[one * self.paths.len() + other]
    }

    fn set(&mut self, one: usize, other: usize, shared: bool) {
        let paths = self.paths.len();
        self.shared[one * paths + other] = shared;
        self.shared[other * paths + one] = shared;
    }

    fn end_block(&mut self) {
        for path in &mut self.paths {
            if path.count == 0 {
                // A gap: blocks of two paths have to lie at the same times.
                path.means.clear();
                continue;
            }
            if path.means.len() == BLOCKS {
                path.means.pop_front();
            }
            path.means.push_back(path.sum / f64::from(path.count));
            (path.sum, path.count) = (0.0, 0);
        }
        for one in 0..self.paths.len() {
            for other in 0..one {
                let Some(alike) = concordance(&self.paths[one].means, &self.paths[other].means) else {
                    continue;
                };
                let least = if self.is_shared(one, other) { PARTED } else { JOINED };
                self.set(one, other, alike > least);
            }
        }
    }
}

/// How far two series are the same but for a constant: 1 where they are, about 0 where they are independent. It is the concordance
/// correlation coefficient (Lin: A Concordance Correlation Coefficient to Evaluate Reproducibility. Biometrics 45, 1989, Eq. 1) without
/// the term of the means, as paths have their lengths beside their queues. `None` for short series, and for delays that hardly vary.
fn concordance(one: &VecDeque<f64>, other: &VecDeque<f64>) -> Option<f64> {
    if one.len() < BLOCKS || other.len() < BLOCKS {
        return None;
    }
    let blocks = BLOCKS as f64;
    let [mean_one, mean_other] = [one, other].map(|series| series.iter().sum::<f64>() / blocks);
    let (mut of_one, mut of_other, mut of_both) = (0.0, 0.0, 0.0);
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (one - mean_one, other - mean_other);
        of_one += one * one;
        of_other += other * other;
        of_both += one * other;
    }
    let least = NOISE.as_secs_f64();
    let varies = of_one.min(of_other) / blocks > least * least;
    varies.then(|| 2.0 * of_both / (of_one + of_other))
}

/// Longer than the round trips of most paths, so that their delays are compared at the same times.
const BLOCK: Duration = Duration::from_millis(200);
/// 20 s: several periods of the queues that fill and drain.
const BLOCKS: usize = 100;
/// Delays that deviate by less say nothing of a queue: the turns of programs do as much.
const NOISE: Duration = Duration::from_millis(1);
/// Beyond, two paths are taken to share a bottleneck. Chosen on 24 seeds of each of five kinds of simulated roads, none of which is in
/// the test of `crates/simulator` that tells the errors.
const JOINED: f64 = 0.65;
/// Below, two paths that were taken to do so no longer are.
const PARTED: f64 = 0.3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn ms(ms: f64) -> Duration {
        Duration::from_secs_f64(ms / 1e3)
    }

    /// Whether two paths whose round-trip times are these functions of the time in seconds are shared after so many seconds.
    fn after(paths: &mut SharedBottlenecks, seconds: (u32, u32), of: [&dyn Fn(f64) -> f64; 2]) -> bool {
        for step in seconds.0 * 100..seconds.1 * 100 {
            let time = f64::from(step) / 100.0;
            for (path, rtt) in of.iter().enumerate() {
                paths.on_sample(Instant::ZERO + ms(time * 1e3), path, ms(rtt(time)));
            }
        }
        paths.is_shared(0, 1)
    }

    /// A queue that fills in `period` seconds and drains at once, 30 ms long.
    fn tooth(time: f64, period: f64) -> f64 {
        30.0 * (time / period).fract()
    }

    #[test]
    fn delays_that_vary_alike_are_one_queue_whatever_the_lengths_of_the_paths() {
        let mut paths = SharedBottlenecks::new(2);
        let of: [&dyn Fn(f64) -> f64; 2] = [&|time| 20.0 + tooth(time, 3.0), &|time| 90.0 + tooth(time, 3.0)];
        assert!(!after(&mut paths, (0, 20), of), "too early");
        assert!(after(&mut paths, (20, 21), of));
        assert_eq!(paths.is_shared(0, 1), paths.is_shared(1, 0));
    }

    #[test]
    fn queues_with_periods_of_their_own_and_a_queue_beside_none_are_not_one() {
        let others: [&dyn Fn(f64) -> f64; 3] =
            [&|time| tooth(time, 3.7), &|time| 30.0 - tooth(time, 3.0), &|_| 30.0];
        for other in others {
            let mut paths = SharedBottlenecks::new(2);
            assert!(!after(&mut paths, (0, 60), [&|time| 20.0 + tooth(time, 3.0), other]));
        }
    }

    /// Two queues in step are told apart where one is three times as long: 2 * 3 / (1 + 9) = 0.6.
    #[test]
    fn queues_in_step_that_differ_in_length_are_not_one() {
        let mut paths = SharedBottlenecks::new(2);
        assert!(!after(&mut paths, (0, 60), [&|time| tooth(time, 3.0), &|time| 3.0 * tooth(time, 3.0)]));
    }

    #[test]
    fn what_is_found_is_taken_back_when_the_paths_part_or_one_is_made_anew() {
        let mut paths = SharedBottlenecks::new(3);
        let same: [&dyn Fn(f64) -> f64; 2] = [&|time| tooth(time, 3.0), &|time| tooth(time, 3.0)];
        assert!(after(&mut paths, (0, 30), same));
        assert!(!after(&mut paths, (30, 60), [&|time| tooth(time, 3.0), &|time| tooth(time, 4.3)]));
        assert!(after(&mut paths, (60, 90), same));
        paths.forget(1);
        assert!(!after(&mut paths, (90, 91), same));
        assert!(!paths.is_shared(0, 2) && !paths.is_shared(1, 2), "nothing came of the third");
    }

    /// White noise of a program's turns on both paths, and no queue.
    #[test]
    fn noise_is_no_queue() {
        let mut random = RandomStream::new(1, "turns");
        let mut paths = SharedBottlenecks::new(2);
        for step in 0..4_000 {
            let common = random.uniform() * 0.5;
            for path in 0..2 {
                paths.on_sample(Instant::ZERO + ms(f64::from(step) * 10.0), path, ms(20.0 + common));
            }
        }
        assert!(!paths.is_shared(0, 1));
    }
}
