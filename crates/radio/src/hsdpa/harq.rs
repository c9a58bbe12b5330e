//! Blocks on their way to one terminal: hybrid ARQ with chase combining, and order restored by RLC.

use std::collections::VecDeque;

use suimon_algorithms::RandomStream;
use suimon_units::Bytes;

use super::PROCESSES;
use super::adaptation::Cqi;

/// RLC's length indicator, which every packet costs beside its bytes.
const LENGTH_INDICATOR: u64 = 1;

/// A transport block until it is decoded or given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    cqi: Cqi,
    /// The terminal's bytes in it: from, and up to.
    range: (u64, u64),
    /// Sum of the signal-to-interference ratios of its transmissions.
    energy: f64,
    /// The random number that the error rate is compared with: the same for all transmissions.
    draw: f64,
    transmissions: u32,
    /// The TTI of its first transmission.
    first: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Process {
    /// The TTI from which it may send: the answer to its last block is there.
    ready: u64,
    /// A block that was not decoded.
    failed: Option<Block>,
}

/// The outcome of a transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Decoded,
    Failed,
    GivenUp,
}

/// The sending side of hybrid ARQ for one terminal.
#[derive(Debug)]
pub(super) struct Harq {
    processes: [Process; PROCESSES],
    most_transmissions: u32,
    random: RandomStream,
}

impl Harq {
    pub(super) fn new(most_transmissions: u32, random: RandomStream) -> Self {
        Self { processes: [Process::default(); PROCESSES], most_transmissions, random }
    }

    /// The process that would send in TTI `n`: the one with the oldest failed block, or else a free one; and
    /// whether it has a block.
    pub(super) fn next(&self, n: u64) -> Option<(usize, bool)> {
        let ready = || self.processes.iter().enumerate().filter(|(_, process)| process.ready <= n);
        let failed = ready().filter_map(|(index, process)| Some((process.failed?.first, index))).min();
        match failed {
            Some((_, index)) => Some((index, true)),
            None => ready().find(|(_, process)| process.failed.is_none()).map(|(index, _)| (index, false)),
        }
    }

    /// True while a block waits to be sent again.
    pub(super) fn has_failed(&self) -> bool {
        self.processes.iter().any(|process| process.failed.is_some())
    }

    /// A block for `cqi`, to be sent first in TTI `n`.
    pub(super) fn block(&mut self, n: u64, cqi: Cqi, range: (u64, u64)) -> Block {
        Block { cqi, range, energy: 0.0, draw: self.random.uniform(), transmissions: 0, first: n }
    }

    /// Sends `block`, or the failed one of the process, in TTI `n` at `sinr`.
    pub(super) fn send(
        &mut self,
        n: u64,
        process: usize,
        block: Option<Block>,
        sinr: f64,
    ) -> (Block, Outcome) {
        let process = &mut self.processes[process];
        let mut block =
            block.or_else(|| process.failed.take()).expect("a process without a block is given one");
        block.energy += sinr;
        block.transmissions += 1;
        process.ready = n + PROCESSES as u64;
        let rate = block.cqi.block_error_rate(10.0 * libm::log10(block.energy)).get();
        if block.draw >= rate {
            return (block, Outcome::Decoded);
        }
        if block.transmissions >= self.most_transmissions {
            return (block, Outcome::GivenUp);
        }
        process.failed = Some(block);
        (block, Outcome::Failed)
    }
}

impl Block {
    pub(super) fn is_first_transmission(&self) -> bool {
        self.transmissions == 1
    }
}

/// Packets cut into blocks and put together again.
#[derive(Debug)]
pub(super) struct Rlc {
    /// The most bytes that leave in a TTI; `None` where all that is in order leaves at once.
    pace: Option<u64>,
    /// Where each packet that is on its way ends in the stream of the terminal's bytes.
    ends: VecDeque<u64>,
    /// Bytes taken from the queue so far.
    taken: u64,
    /// Bytes put into blocks so far.
    sent: u64,
    /// All bytes before this one have arrived.
    arrived: u64,
    /// All bytes before this one have left.
    handed_over: u64,
    /// Ranges that arrived beyond, in order.
    beyond: Vec<(u64, u64)>,
    /// Ranges to be sent again, each with the first TTI for it.
    resend: VecDeque<(u64, (u64, u64))>,
}

impl Rlc {
    pub(super) fn new(pace: Option<Bytes>) -> Self {
        Self {
            pace: pace.map(Bytes::get),
            ends: VecDeque::new(),
            taken: 0,
            sent: 0,
            arrived: 0,
            handed_over: 0,
            beyond: Vec::new(),
            resend: VecDeque::new(),
        }
    }

    /// True where bytes wait here in TTI `n`.
    pub(super) fn has_bytes(&self, n: u64) -> bool {
        self.sent < self.taken || self.resend.front().is_some_and(|(at, _)| *at <= n)
    }

    /// True where bytes wait here to be sent or to leave, now or later.
    pub(super) fn is_pending(&self) -> bool {
        self.has_bytes(0) || !self.resend.is_empty() || self.handed_over < self.arrived
    }

    /// The range for a block of TTI `n` with room for `payload`; takes more packets where the block has room.
    /// `None` where nothing waits.
    pub(super) fn fill(
        &mut self,
        n: u64,
        payload: Bytes,
        mut take: impl FnMut() -> Option<Bytes>,
    ) -> Option<(u64, u64)> {
        let payload = payload.get();
        if let Some((at, (from, to))) = self.resend.front().copied()
            && at <= n
        {
            self.resend.pop_front();
            let cut = to.min(from + payload);
            if cut < to {
                self.resend.push_front((n, (cut, to)));
            }
            return Some((from, cut));
        }
        while self.taken - self.sent < payload {
            let Some(size) = take() else { break };
            self.join(size);
        }
        let from = self.sent;
        self.sent = self.taken.min(from + payload);
        (self.sent > from).then_some((from, self.sent))
    }

    fn join(&mut self, size: Bytes) {
        self.taken += size.get() + LENGTH_INDICATOR;
        self.ends.push_back(self.taken);
    }

    /// A TTI is over; calls `deliver` for each packet that has left whole.
    pub(super) fn hand_over(&mut self, mut deliver: impl FnMut()) {
        let most = self.pace.map_or(u64::MAX, |pace| self.handed_over + pace);
        self.handed_over = self.arrived.min(most);
        while self.ends.front().is_some_and(|end| *end <= self.handed_over) {
            self.ends.pop_front();
            deliver();
        }
    }

    /// `block` was decoded.
    pub(super) fn on_decoded(&mut self, block: &Block) {
        let (from, to) = block.range;
        if from != self.arrived {
            let place = self.beyond.partition_point(|(other, _)| *other < from);
            self.beyond.insert(place, (from, to));
            return;
        }
        self.arrived = to;
        let contiguous = self
            .beyond
            .iter()
            .take_while(|(from, to)| {
                let follows = *from == self.arrived;
                if follows {
                    self.arrived = *to;
                }
                follows
            })
            .count();
        self.beyond.drain(..contiguous);
    }

    /// Hybrid ARQ gave `block` up; its range may be sent again from TTI `at` on.
    pub(super) fn on_given_up(&mut self, block: &Block, at: u64) {
        self.resend.push_back((at, block.range));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harq() -> Harq {
        Harq::new(4, RandomStream::new(1, "harq"))
    }

    fn cqi(sinr_db: f64) -> Cqi {
        Cqi::of_sinr_db(sinr_db)
    }

    #[test]
    fn energy_of_all_transmissions_adds_up() {
        // At -3 dB of what CQI 16 needs most blocks fail at first; twice the energy decodes nearly all.
        let mut harq = harq();
        let needed = 1.03 * 16.0 - 17.3;
        let sinr = 10_f64.powf((needed - 3.0) / 10.0);
        let (mut first, mut second) = (0, 0);
        for n in 0..2_000 {
            let n = n * 12;
            let block = harq.block(n, cqi(0.0), (0, 0));
            let (process, _) = harq.next(n).unwrap();
            let (_, outcome) = harq.send(n, process, Some(block), sinr);
            first += usize::from(outcome == Outcome::Decoded);
            while harq.has_failed() {
                let (process, has_block) = harq.next(n + 6).unwrap();
                assert!(has_block);
                let (block, outcome) = harq.send(n + 6, process, None, sinr);
                second += usize::from(outcome == Outcome::Decoded && block.transmissions == 2);
                harq.processes = [Process::default(); PROCESSES];
            }
        }
        let rate = |sinr_db| cqi(0.0).block_error_rate(sinr_db).get();
        let fails_first = rate(needed - 3.0);
        let decodes_second = fails_first - rate(needed - 3.0 + 10.0 * 2_f64.log10());
        assert!((first as f64 / 2_000.0 - (1.0 - fails_first)).abs() < 0.02, "{first}");
        assert!(
            (second as f64 / 2_000.0 - decodes_second).abs() < 0.03,
            "{second}, expected {decodes_second}"
        );
    }

    #[test]
    fn a_failed_block_is_sent_again_six_ttis_later_and_four_times_at_most() {
        let mut harq = harq();
        for n in 0..6 {
            let (process, has_block) = harq.next(n).unwrap();
            assert!(!has_block);
            let block = harq.block(n, Cqi::MAX, (0, 0));
            assert_eq!(harq.send(n, process, Some(block), 1e-9).1, Outcome::Failed);
        }
        let mut first = Vec::new();
        for n in 6..18 {
            let (process, has_block) = harq.next(n).unwrap();
            assert!(has_block);
            let (block, outcome) = harq.send(n, process, None, 1e-9);
            assert_eq!(outcome, Outcome::Failed);
            first.push(block.first);
        }
        assert_eq!(first, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
        let (process, _) = harq.next(18).unwrap();
        assert_eq!(harq.send(18, process, None, 1e-9).1, Outcome::GivenUp);
        assert_eq!(harq.next(18), None, "the first process waits for its answer, the others for theirs");
    }

    fn block(range: (u64, u64)) -> Block {
        Block { cqi: Cqi::MAX, range, energy: 1.0, draw: 0.0, transmissions: 1, first: 0 }
    }

    #[test]
    fn what_follows_a_missing_block_waits_for_it() {
        let mut rlc = Rlc::new(None);
        let mut packets = vec![Bytes::new(99); 3].into_iter();
        let ranges: Vec<_> = (0..5).filter_map(|n| rlc.fill(n, Bytes::new(60), || packets.next())).collect();
        assert_eq!(ranges, [(0, 60), (60, 120), (120, 180), (180, 240), (240, 300)]);
        let mut delivered = 0;
        let mut arrive = |rlc: &mut Rlc, range| {
            rlc.on_decoded(&block(range));
            rlc.hand_over(|| delivered += 1);
            delivered
        };
        assert_eq!(arrive(&mut rlc, ranges[1]), 0);
        assert_eq!(arrive(&mut rlc, ranges[3]), 0);
        assert_eq!(arrive(&mut rlc, ranges[2]), 0);
        assert_eq!(arrive(&mut rlc, ranges[0]), 2);
        assert_eq!(arrive(&mut rlc, ranges[4]), 3);
        assert!(!rlc.is_pending() && rlc.beyond.is_empty());
    }

    #[test]
    fn what_was_given_up_is_sent_anew_in_blocks_of_the_size_of_then() {
        let mut rlc = Rlc::new(None);
        let mut packets = vec![Bytes::new(99)].into_iter();
        let range = rlc.fill(0, Bytes::new(500), || packets.next()).unwrap();
        assert_eq!(range, (0, 100));
        rlc.on_given_up(&block(range), 50);
        assert!(rlc.is_pending() && !rlc.has_bytes(49) && rlc.has_bytes(50));
        assert_eq!(rlc.fill(49, Bytes::new(70), || None), None);
        assert_eq!(rlc.fill(50, Bytes::new(70), || None), Some((0, 70)));
        assert_eq!(rlc.fill(51, Bytes::new(70), || None), Some((70, 100)));
        assert!(!rlc.is_pending());
    }

    #[test]
    fn what_is_in_order_leaves_at_its_pace() {
        let mut rlc = Rlc::new(Some(Bytes::new(150)));
        let mut packets = vec![Bytes::new(99); 3].into_iter();
        let ranges = [0, 1].map(|n| rlc.fill(n, Bytes::new(150), || packets.next()).unwrap());
        rlc.on_decoded(&block(ranges[1]));
        let mut ttis = Vec::new();
        for n in 0..4 {
            if n == 1 {
                rlc.on_decoded(&block(ranges[0]));
            }
            assert_eq!(rlc.is_pending(), (1..3).contains(&n), "TTI {n}");
            let mut delivered = 0;
            rlc.hand_over(|| delivered += 1);
            ttis.push(delivered);
        }
        // All 300 bytes are there in the second TTI: 150 of them leave then, and 150 in the next.
        assert_eq!(ttis, [0, 1, 2, 0]);
    }
}
