//! A cell: one block in every TTI, to one of its terminals.

use suimon_algorithms::RandomStream;
use suimon_units::{Bytes, Duration, Instant};

use super::channel::{Channel, Reception};
use super::handover::Handovers;
use super::harq::{Harq, Outcome, Rlc};
use super::scheduler::{Candidate, Policy, Scheduler};
use super::{Category, Cqi, Delivery, TTI, UserParameters};
use crate::{PortId, Ports, Radio};

/// A cell and its terminals; port `i` is that of the `i`th.
#[derive(Debug)]
pub struct Cell {
    users: Vec<User>,
    scheduler: Scheduler,
    /// The TTI to work on next; `None` while nothing is to be sent.
    next: Option<u64>,
    /// The first TTI that was not worked on.
    after: u64,
    // Reused from TTI to TTI.
    candidates: Vec<(Candidate, Offer)>,
    ranking: Vec<Candidate>,
}

#[derive(Debug)]
struct User {
    channel: Channel,
    harq: Harq,
    rlc: Rlc,
    handovers: Handovers,
    category: Category,
    /// In TTIs.
    rlc_resend: u64,
    /// The terminal cannot receive before.
    ready: u64,
    totals: Totals,
}

/// A block that could go to a terminal.
#[derive(Debug, Clone, Copy)]
struct Offer {
    reception: Reception,
    process: usize,
    repeats: bool,
}

/// The transmissions of a cell to one terminal, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Blocks that were sent for the first time.
    pub blocks: u64,
    /// Of these, not decoded at once.
    pub failed_first: u64,
    /// Transmissions, repetitions included.
    pub transmissions: u64,
    /// Blocks not decoded in the end.
    pub given_up: u64,
}

impl Cell {
    /// A cell with these terminals; `random` gives the `i`th its streams by name.
    #[must_use]
    pub fn new(
        policy: Policy,
        users: &[UserParameters],
        random: &mut dyn FnMut(usize, &str) -> RandomStream,
    ) -> Self {
        let user = |(index, parameters): (usize, &UserParameters)| User {
            channel: Channel::new(parameters, &mut |what| random(index, what)),
            harq: Harq::new(parameters.harq_transmissions, random(index, "harq")),
            rlc: Rlc::new(match parameters.delivery {
                Delivery::InOrder => None,
                Delivery::Paced => Some(parameters.category.payload(Cqi::MAX)),
            }),
            handovers: Handovers::new(
                parameters.handover_every,
                parameters.handover_gap,
                random(index, "handover"),
            ),
            category: parameters.category,
            rlc_resend: parameters.rlc_resend.as_nanos().div_ceil(TTI.as_nanos()),
            ready: 0,
            totals: Totals::default(),
        };
        Self {
            users: users.iter().enumerate().map(user).collect(),
            scheduler: Scheduler::new(policy, users.len()),
            next: None,
            after: 0,
            candidates: Vec::new(),
            ranking: Vec::new(),
        }
    }

    /// The transmissions of a cell to its only terminal in so many `ttis` if packets of 1500 bytes always wait.
    #[must_use]
    pub fn saturated(
        user: &UserParameters,
        ttis: u64,
        random: &mut dyn FnMut(&str) -> RandomStream,
    ) -> Totals {
        struct Endless;
        impl Ports for Endless {
            fn is_waiting(&self, _: PortId) -> bool {
                true
            }
            fn take(&mut self, _: Instant, _: PortId) -> Option<Bytes> {
                Some(Bytes::new(1_500))
            }
            fn deliver(&mut self, _: Instant, _: PortId) {}
            fn give_up(&mut self, _: Instant, _: PortId) {}
        }
        let mut cell = Self::new(Policy::RoundRobin, std::slice::from_ref(user), &mut |_, what| random(what));
        cell.on_waiting(Instant::ZERO, PortId(0));
        for n in 0..ttis {
            cell.on_event(time_of(n), &mut Endless);
        }
        cell.totals(PortId(0))
    }

    /// The transmissions to the terminal of `port`.
    #[must_use]
    pub fn totals(&self, port: PortId) -> Totals {
        self.users[port.0].totals
    }

    /// Finds the terminals that could be served in TTI `n`; true where one has data to receive, now or later.
    fn survey(&mut self, n: u64, ports: &dyn Ports) -> bool {
        self.candidates.clear();
        let mut busy = false;
        for (index, user) in self.users.iter_mut().enumerate() {
            let has_bytes = user.rlc.has_bytes(n) || ports.is_waiting(PortId(index));
            let failed = user.harq.has_failed();
            if !has_bytes && !failed && !user.rlc.is_pending() {
                continue;
            }
            busy = true;
            if user.ready > n || user.handovers.is_gap(time_of(n)) {
                continue;
            }
            let Some((process, repeats)) = user.harq.next(n).filter(|(_, repeats)| *repeats || has_bytes)
            else {
                continue;
            };
            let reception = user.channel.at(n);
            let report = reception.report;
            let payload = user.category.payload(report.cqi);
            if repeats || payload > Bytes::ZERO {
                let candidate = Candidate { user: index, payload, sinr_db: report.sinr_db };
                self.candidates.push((candidate, Offer { reception, process, repeats }));
            }
        }
        busy
    }

    fn choose(&mut self, n: u64) -> Option<(usize, Offer)> {
        if let [(only, offer)] = self.candidates.as_slice()
            && self.users.len() == 1
        {
            return Some((only.user, *offer));
        }
        self.ranking.clear();
        self.ranking.extend(self.candidates.iter().map(|(candidate, _)| *candidate));
        if self.ranking.is_empty() {
            return None;
        }
        let picked = self.scheduler.pick(n, &self.ranking);
        let chosen = self.candidates.iter().find(|(candidate, _)| candidate.user == picked.user);
        chosen.map(|(candidate, offer)| (candidate.user, *offer))
    }

    fn serve(&mut self, n: u64, index: usize, offer: Offer, ports: &mut dyn Ports) {
        let begins = time_of(n);
        let port = PortId(index);
        let user = &mut self.users[index];
        let block = if offer.repeats {
            None
        } else {
            let cqi = offer.reception.report.cqi;
            let payload = user.category.payload(cqi);
            let Some(range) = user.rlc.fill(n, payload, || ports.take(begins, port)) else { return };
            Some(user.harq.block(n, cqi, range))
        };
        user.ready = n + user.category.inter_tti();
        let (block, outcome) = user.harq.send(n, offer.process, block, offer.reception.sinr);
        user.totals.transmissions += 1;
        if block.is_first_transmission() {
            user.totals.blocks += 1;
            user.totals.failed_first += u64::from(outcome != Outcome::Decoded);
        }
        match outcome {
            Outcome::Failed => {}
            Outcome::GivenUp => {
                user.totals.given_up += 1;
                user.rlc.on_given_up(&block, n + user.rlc_resend);
            }
            Outcome::Decoded => user.rlc.on_decoded(&block),
        }
    }

    /// TTI `n` is over: packets that are whole and in order leave.
    fn hand_over(&mut self, n: u64, ports: &mut dyn Ports) {
        for (index, user) in self.users.iter_mut().enumerate() {
            user.rlc.hand_over(|| ports.deliver(time_of(n + 1), PortId(index)));
        }
    }
}

impl Radio for Cell {
    fn on_waiting(&mut self, now: Instant, _: PortId) {
        if self.next.is_none() {
            let begun = now.as_nanos().div_ceil(TTI.as_nanos());
            self.next = Some(begun.max(self.after));
        }
    }

    fn next_event(&self) -> Option<Instant> {
        self.next.map(time_of)
    }

    fn on_event(&mut self, now: Instant, ports: &mut dyn Ports) {
        let Some(n) = self.next.filter(|n| time_of(*n) <= now) else { return };
        let busy = self.survey(n, ports);
        if let Some((user, offer)) = self.choose(n) {
            self.serve(n, user, offer, ports);
        }
        self.hand_over(n, ports);
        self.after = n + 1;
        self.next = busy.then_some(n + 1);
    }
}

fn time_of(n: u64) -> Instant {
    Instant::ZERO + Duration::from_nanos(TTI.as_nanos().saturating_mul(n))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use suimon_units::Decibels;

    use super::super::Delivery;
    use super::*;

    /// Queues that never run dry, or given ones; the arrivals with their times.
    #[derive(Debug, Default)]
    struct Queues {
        endless: bool,
        waiting: Vec<VecDeque<u64>>,
        on_air: Vec<VecDeque<u64>>,
        arrived: Vec<Vec<(Instant, u64)>>,
    }

    impl Queues {
        fn endless(ports: usize) -> Self {
            Self { endless: true, ..Self::of(vec![VecDeque::new(); ports]) }
        }

        fn of(waiting: Vec<VecDeque<u64>>) -> Self {
            let ports = waiting.len();
            Self {
                endless: false,
                waiting,
                on_air: vec![VecDeque::new(); ports],
                arrived: vec![Vec::new(); ports],
            }
        }

        fn bytes(&self, port: usize) -> u64 {
            self.arrived[port].iter().map(|(_, size)| size).sum()
        }
    }

    impl Ports for Queues {
        fn is_waiting(&self, port: PortId) -> bool {
            self.endless || !self.waiting[port.0].is_empty()
        }
        fn take(&mut self, _: Instant, port: PortId) -> Option<Bytes> {
            let size = if self.endless { Some(1_500) } else { self.waiting[port.0].pop_front() };
            self.on_air[port.0].extend(size);
            size.map(Bytes::new)
        }
        fn deliver(&mut self, at: Instant, port: PortId) {
            let size = self.on_air[port.0].pop_front().expect("only what was taken arrives");
            self.arrived[port.0].push((at, size));
        }
        fn give_up(&mut self, _: Instant, _: PortId) {
            panic!("RLC gives nothing up");
        }
    }

    fn user(profile: &str, geometry: f64) -> UserParameters {
        UserParameters::new(profile.parse().unwrap(), Decibels::new(geometry))
    }

    fn cell(policy: Policy, users: &[UserParameters], seed: u64) -> Cell {
        Cell::new(policy, users, &mut |user, what| RandomStream::new(seed, &format!("user {user} {what}")))
    }

    /// Runs for `ttis`, or until there is nothing to do.
    fn run(cell: &mut Cell, queues: &mut Queues, ttis: u64) {
        cell.on_waiting(Instant::ZERO, PortId(0));
        while let Some(at) = cell.next_event().filter(|at| *at < time_of(ttis)) {
            cell.on_event(at, queues);
        }
    }

    /// Bits a second of one saturated terminal.
    fn rate(parameters: &UserParameters, seed: u64, ttis: u64) -> f64 {
        let mut cell = cell(Policy::RoundRobin, std::slice::from_ref(parameters), seed);
        let mut queues = Queues::endless(1);
        run(&mut cell, &mut queues, ttis);
        queues.bytes(0) as f64 * 8.0 / time_of(ttis).as_secs_f64()
    }

    #[test]
    fn a_perfect_channel_carries_the_largest_block_in_every_tti() {
        let perfect = UserParameters { power: Decibels::new(20.0), ..user("ST", 10.0) };
        // 840 bytes in 2 ms, of which one in 1501 is a length indicator.
        let rate = rate(&perfect, 1, 10_000);
        assert!((rate / (840.0 * 8.0 / 2e-3 * 1_500.0 / 1_501.0) - 1.0).abs() < 1e-3, "{rate}");
    }

    #[test]
    fn a_category_that_receives_in_every_third_tti_gets_a_third() {
        let perfect = UserParameters { power: Decibels::new(20.0), ..user("ST", 10.0) };
        let slow = UserParameters { category: Category::new(1).unwrap(), ..perfect.clone() };
        let ratio = rate(&perfect, 1, 9_000) / rate(&slow, 1, 9_000);
        assert!((ratio - 3.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn a_paced_terminal_gets_as_much_and_never_more_than_a_block_in_a_tti() {
        let most_in_a_tti = |user: &UserParameters| {
            let mut queues = Queues::endless(1);
            run(&mut cell(Policy::RoundRobin, std::slice::from_ref(user), 2), &mut queues, 50_000);
            let arrived: Vec<Instant> = queues.arrived[0].iter().map(|(at, _)| *at).collect();
            arrived.chunk_by(|a, b| a == b).map(<[Instant]>::len).max()
        };
        for profile in ["ST", "PA3", "VA30"] {
            let in_order = user(profile, 5.0);
            let paced = UserParameters { delivery: Delivery::Paced, ..in_order.clone() };
            let ratio = rate(&in_order, 2, 50_000) / rate(&paced, 2, 50_000);
            assert!((ratio - 1.0).abs() < 0.01, "{profile}: {ratio}");
            // 840 bytes are less than a packet of 1500.
            assert!(most_in_a_tti(&in_order) > Some(1), "{profile}");
            assert_eq!(most_in_a_tti(&paced), Some(1), "{profile}");
        }
    }

    #[test]
    fn nothing_arrives_while_the_cell_changes_and_all_goes_on_after() {
        let moving = UserParameters {
            handover_every: Some(Duration::from_secs(4)),
            handover_gap: Duration::from_secs(1),
            ..user("ST", 5.0)
        };
        let stays = rate(&user("ST", 5.0), 1, 200_000);
        let moves = rate(&moving, 1, 200_000);
        assert!((moves / stays - 0.8).abs() < 0.06, "{moves} of {stays}");
    }

    #[test]
    fn about_one_block_in_ten_fails_at_first() {
        for profile in ["ST", "PA3", "VA30"] {
            let mut cell = cell(Policy::RoundRobin, &[user(profile, 0.0)], 1);
            run(&mut cell, &mut Queues::endless(1), 100_000);
            let totals = cell.totals(PortId(0));
            let share = totals.failed_first as f64 / totals.blocks as f64;
            assert!((0.03..0.2).contains(&share), "{profile}: {share}");
            assert_eq!(totals.given_up, 0, "{profile}");
        }
    }

    #[test]
    fn late_reports_cost_a_moving_terminal_but_not_a_standing_one() {
        let late = |profile| {
            let base = user(profile, 0.0);
            let late = UserParameters { cqi_delay: Duration::from_millis(6), ..base.clone() };
            rate(&late, 1, 50_000) / rate(&base, 1, 50_000)
        };
        assert!((late("ST") - 1.0).abs() < 0.02 && late("VA30") < 0.95, "{} {}", late("ST"), late("VA30"));
    }

    #[test]
    fn terminals_share_a_cell_as_its_policy_says() {
        let users = [user("PA3", 10.0), user("PA3", 0.0)];
        let shares = |policy| {
            let mut cell = cell(policy, &users, 1);
            let mut queues = Queues::endless(2);
            run(&mut cell, &mut queues, 100_000);
            [queues.bytes(0) as f64, queues.bytes(1) as f64]
        };
        let alone = [rate(&users[0], 1, 100_000), rate(&users[1], 1, 100_000)];
        let seconds = time_of(100_000).as_secs_f64();
        let [near, far] = shares(Policy::RoundRobin).map(|bytes| bytes * 8.0 / seconds);
        assert!((near / alone[0] - 0.5).abs() < 0.06 && (far / alone[1] - 0.5).abs() < 0.06, "{near} {far}");
        let best = shares(Policy::MaxCarrierToInterference);
        let fair = shares(Policy::ProportionalFair { window: Duration::from_secs(2) });
        let total = |shares: [f64; 2]| shares[0] + shares[1];
        let turns = shares(Policy::RoundRobin);
        assert!(best[1] < 0.4 * turns[1] && total(best) > total(turns), "{best:?} {turns:?}");
        // Each on its own peaks: both get more than by turns.
        assert!(fair[0] > 1.05 * turns[0] && fair[1] > 1.05 * turns[1], "{fair:?} {turns:?}");
    }

    #[test]
    fn an_idle_cell_wakes_with_the_next_packet() {
        let mut cell = cell(Policy::RoundRobin, &[user("ST", 15.0)], 1);
        let mut queues = Queues::of(vec![VecDeque::from([100])]);
        run(&mut cell, &mut queues, u64::MAX);
        assert_eq!((queues.arrived[0].len(), cell.next_event()), (1, None));
        queues.waiting[0].push_back(100);
        let now = Instant::ZERO + Duration::from_micros(100_001);
        cell.on_waiting(now, PortId(0));
        assert_eq!(cell.next_event(), Some(Instant::ZERO + Duration::from_millis(102)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_packet_arrives_once_and_in_order(
            seed in any::<u64>(),
            sizes in prop::collection::vec(prop::collection::vec(1_u64..2_000, 0..40), 1..4),
            profile in prop::sample::select(vec!["ST", "PA3", "VA30", "VA120"]),
            geometry in -8.0_f64..15.0,
            transmissions in 1_u32..4,
            paced in any::<bool>(),
            policy in prop::sample::select(vec![
                Policy::RoundRobin,
                Policy::MaxCarrierToInterference,
                Policy::ProportionalFair { window: Duration::from_millis(100) },
            ]),
        ) {
            let delivery = if paced { Delivery::Paced } else { Delivery::InOrder };
            let parameters = UserParameters {
                harq_transmissions: transmissions,
                delivery,
                cqi_delay: Duration::from_millis(6),
                ..user(profile, geometry)
            };
            let users = vec![parameters; sizes.len()];
            let walk = || {
                let mut cell = cell(policy, &users, seed);
                let mut queues = Queues::of(sizes.iter().map(|sizes| sizes.iter().copied().collect()).collect());
                run(&mut cell, &mut queues, 2_000_000);
                queues
            };
            let queues = walk();
            for (port, expected) in sizes.iter().enumerate() {
                let arrived: Vec<u64> = queues.arrived[port].iter().map(|(_, size)| *size).collect();
                prop_assert_eq!(&arrived, expected);
                prop_assert!(queues.arrived[port].is_sorted_by_key(|(at, _)| *at));
            }
            prop_assert_eq!(walk().arrived, queues.arrived);
        }
    }
}
