//! Senders that fill the queue: when competition begins, and when it ends.

use super::*;

/// Whether a flow of `segments` competes before `until`, in a queue whose delay moves as `queueing` says.
fn competes(segments: u64, until: u64, queueing: impl Fn(u64) -> u64) -> bool {
    let (mut open, mut limits) = steady(segments);
    let mut now = 0;
    while now < until {
        let rtt = RTT_MIN + queueing(now);
        if play(&mut open, &mut limits, (now, now + 1), |_| rtt).contains(&Mode::Competing) {
            return true;
        }
        now += rtt;
    }
    false
}

#[test]
fn a_queue_that_slowly_becomes_full_again_and_again_brings_competition_and_one_that_jumps_does_not() {
    // In fewer rounds than (14) asks for.
    assert!(competes(40, 10_000_000, |now| 10_000 + now % 500_000 / 17));
    let jumps = |now: u64| if (now / 1_000_000).is_multiple_of(2) { 10_000 } else { 40_000 };
    assert!(!competes(40, 10_000_000, jumps));
}

#[test]
fn a_window_that_is_held_grows_by_a_segment_a_round_while_the_queue_is_empty() {
    for (queueing, grows) in [(0, true), (RTT_MIN / 32, true), (RTT_MIN / 31, false)] {
        let (mut open, mut limits) = steady(20);
        open.longest[0] = 90_000;
        open.begin_competition(&ack(1), 0, &mut limits);
        open.mode = Mode::Holding;
        play(&mut open, &mut limits, (0, 1_000_000), |_| RTT_MIN + queueing);
        let grown = open.window / MSS.get() - 20;
        assert_eq!(open.mode, Mode::Holding);
        assert_eq!((20..30).contains(&grown), grows, "{queueing}: {grown} segments in about 25 rounds");
        assert!(grows || grown == 0);
    }
}

#[test]
fn a_queue_that_grows_while_the_window_is_held_is_filled_by_others() {
    // An eighth of the full queue is 10 ms, and 2 ms more count.
    for (growth, competes) in [(11_000, false), (13_000, true)] {
        let (mut open, mut limits) = steady(20);
        open.longest[0] = 80_000;
        open.begin_competition(&ack(1), 0, &mut limits);
        open.mode = Mode::Holding;
        open.rivals.settle();
        // At first the queue fills again, which the drain before took out.
        play(&mut open, &mut limits, (0, 60_000), |_| RTT_MIN);
        play(&mut open, &mut limits, (60_000, 600_000), |_| RTT_MIN + 20_000);
        assert_eq!(open.mode, Mode::Holding);
        play(&mut open, &mut limits, (600_000, 1_000_000), |_| RTT_MIN + 20_000 + growth);
        assert_eq!(open.mode == Mode::Competing, competes, "{growth} us");
    }
}

#[test]
fn competition_ends_where_the_queue_grows_longer_than_it_was() {
    let (mut open, mut limits) = steady(40);
    play(&mut open, &mut limits, (0, 13_500_000), |_| RTT_MIN + 90_000);
    assert_eq!(open.mode, Mode::Competing);
    play(&mut open, &mut limits, (13_500_000, 14_000_000), |_| RTT_MIN + 110_000);
    assert_eq!(open.mode, Mode::Competing, "less than a quarter longer");
    let modes = play(&mut open, &mut limits, (14_000_000, 14_500_000), |_| RTT_MIN + 114_000);
    assert!(matches!(modes[1], Mode::Draining(_)), "{modes:?}");
    let again = play(&mut open, &mut limits, (14_500_000, 19_000_000), |_| RTT_MIN + 114_000);
    assert!(!again.contains(&Mode::Competing), "one more drain is not enough: {again:?}");
}

/// A flow after three drains of a queue, and what it knew before each of them.
struct Drained {
    segments: u64,
    rtt_min: u64,
    queueing: u64,
    mean_queueing: u64,
    left: u64,
    /// Segments of the window when a drain last emptied the queue.
    emptied: u64,
}

impl Drained {
    const STAYS: Self = Self {
        segments: 8,
        rtt_min: RTT_MIN,
        queueing: 20_000,
        mean_queueing: 20_000,
        left: 16_000,
        emptied: 0,
    };

    fn flow(&self) -> (Open, Limits) {
        let (mut open, mut limits) = steady(self.segments);
        open.path = Path::of(self.rtt_min, 0);
        for from in [0, 1_000_000, 2_000_000] {
            open.window = (MSS * self.segments).get();
            (open.queueing, open.mean_queueing) = (self.queueing, self.mean_queueing);
            open.drains.emptied = (MSS * self.emptied).get();
            open.begin_drain(&ack(1), false, false);
            play(&mut open, &mut limits, (from, from + 900_000), |_| self.rtt_min + self.left);
        }
        (open, limits)
    }

    fn competes(&self) -> bool {
        self.flow().0.mode == Mode::Competing
    }
}

#[test]
fn a_queue_of_which_three_drains_leave_nearly_all_is_held_by_others() {
    const STAYS: Drained = Drained::STAYS;
    assert!(STAYS.competes());
    assert!(!Drained { segments: 7, ..STAYS }.competes(), "a window that takes little out");
    assert!(!Drained { left: 15_000, ..STAYS }.competes(), "a short queue");
    let far = Drained { rtt_min: 160_000, left: 20_000, ..STAYS };
    assert!(!far.competes() && Drained { left: 20_001, ..far }.competes(), "short for the path");
    // Three quarters of what was there before, by the shorter of the last round and the mean.
    for (queueing, mean_queueing) in [(28_000, 32_000), (32_000, 28_000)] {
        let most = Drained { queueing, mean_queueing, left: 21_000, ..STAYS };
        assert!(!most.competes() && Drained { left: 21_001, ..most }.competes());
    }
    // A quarter more than was there, by the longer of the two: others begin.
    for (queueing, mean_queueing) in [(16_000, 20_000), (20_000, 16_000)] {
        let more = Drained { queueing, mean_queueing, left: 24_900, ..STAYS };
        assert!(more.competes() && !Drained { left: 25_100, ..more }.competes());
    }
    // A longer queue is no sign that such drains were wrong.
    let (mut open, mut limits) = STAYS.flow();
    play(&mut open, &mut limits, (2_900_000, 3_500_000), |_| RTT_MIN + 90_000);
    assert_eq!(open.mode, Mode::Competing);
}

#[test]
fn a_window_that_has_fallen_to_an_eighth_since_the_queue_was_empty_may_be_smaller() {
    const SMALL: Drained = Drained { segments: 5, ..Drained::STAYS };
    assert!(!Drained { emptied: 39, ..SMALL }.competes());
    assert!(Drained { emptied: 40, ..SMALL }.competes());
    let emptied = Drained { left: 0, emptied: 9, ..Drained::STAYS }.flow().0.drains.emptied;
    assert_eq!(emptied, (MSS * 8).get(), "a drain that empties the queue tells the window");
    let (mut open, mut limits) = steady(20);
    open.begin_drain(&ack(1), false, true);
    play(&mut open, &mut limits, (0, 500_000), |_| RTT_MIN);
    assert!(!matches!(open.mode, Mode::Draining(_)), "{:?}", open.mode);
    assert_eq!(open.drains.emptied, 0, "one of competition does not");
}

#[test]
fn a_queue_that_grows_on_and_on_while_the_window_falls_is_filled_by_others() {
    let competes = |queueing: &dyn Fn(u64) -> u64| competes(60, 4_900_000, queueing);
    // From 20 ms up by a third of a millisecond or more in a round.
    assert!(competes(&|now| 20_000 + now / 100));
    assert!(!competes(&|_| 20_000), "a queue that stays");
    assert!(!competes(&|now| 20_000 + now.min(1_000_000) / 100), "it grows in few rounds after the eighth");
    assert!(!competes(&|now| 20_000 + now / 1_500), "it grows by less than a sixth");
    // Not so short that (10) would count it.
    let saws = |now: u64| (20_000 + now / 150) * (1_000 + now % 400_000 / 727) / 1_000;
    assert!(!competes(&saws), "it becomes short again and again");
    assert!(!competes(&|now| 600 + now / 2_000), "such a queue lets the window grow too");
}

#[test]
fn a_window_is_kept_over_a_drain_where_a_loss_of_late_told_that_the_queue_was_full() {
    // Ten seconds after the last loss, or the begin, a drain comes.
    let kept = |lost_at: Option<u64>| {
        let (mut open, mut limits) = steady(40);
        open.longest[0] = 40_000;
        open.begin_competition(&ack(1), 0, &mut limits);
        if let Some(lost_at) = lost_at {
            open.on_congestion(&Congestion { now: at(lost_at), ..loss(40) }, &mut limits);
        }
        let from = 9_000_000 + lost_at.unwrap_or(0);
        play(&mut open, &mut limits, (from, from + 1_050_000), |_| RTT_MIN + 40_000);
        assert!(matches!(open.mode, Mode::Draining(_)), "{:?}", open.mode);
        let window = open.window;
        play(&mut open, &mut limits, (from + 1_100_000, from + 1_300_000), |_| RTT_MIN);
        assert_eq!(open.mode, Mode::Holding);
        open.window >= window
    };
    assert_eq!((kept(Some(1_000_000)), kept(None)), (true, false));
}
