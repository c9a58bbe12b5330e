//! The medium: its stations and their times to send (IEEE 802.11-1999, 9.2).

use suimon_algorithms::RandomStream;
use suimon_units::{Bytes, Duration, Instant};

use super::Parameters;
use crate::{PortId, Ports, Radio};

/// A medium on which every station hears every other.
#[derive(Debug)]
pub struct Medium {
    parameters: Parameters,
    stations: Vec<Station>,
    /// The station of each port.
    owners: Vec<usize>,
    /// The exchange under way, and when it ends.
    busy_until: Option<Instant>,
    /// Somebody got a packet then and was not looked at since.
    called: Option<Instant>,
    totals: Totals,
    // Reused from exchange to exchange.
    senders: Vec<(Instant, usize)>,
}

/// The transmissions over a medium, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Data frames, repetitions included.
    pub transmissions: u64,
    /// Of these, frames that met another.
    pub collided: u64,
    /// Packets that got through.
    pub delivered: u64,
    /// Packets given up.
    pub given_up: u64,
}

#[derive(Debug)]
struct Station {
    ports: Vec<PortId>,
    /// The port that it asks first for the next packet.
    turn: usize,
    head: Option<Head>,
    /// Slots left of the backoff; it runs down without a packet too (post-backoff).
    backoff: u64,
    /// Backoff is drawn up to this.
    cw: u32,
    /// The backoff runs down from then on.
    resumes: Instant,
    /// The outcome of the transmission under way.
    sending: Option<Outcome>,
    random: RandomStream,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    port: PortId,
    size: Bytes,
    since: Instant,
    transmissions: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Acknowledged,
    /// Not; the station knows by then.
    Lost {
        known: Instant,
    },
}

impl Medium {
    /// A medium without stations.
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            stations: Vec::new(),
            owners: Vec::new(),
            busy_until: None,
            called: None,
            totals: Totals::default(),
            senders: Vec::new(),
        }
    }

    /// Adds a station with `ports` ports, which it serves in turn; they get the next numbers.
    pub fn add_station(&mut self, ports: usize, random: RandomStream) {
        let first = self.owners.len();
        self.owners.extend(std::iter::repeat_n(self.stations.len(), ports));
        self.stations.push(Station {
            ports: (first..first + ports).map(PortId).collect(),
            turn: 0,
            head: None,
            backoff: 0,
            cw: self.parameters.cw_min,
            resumes: Instant::ZERO,
            sending: None,
            random,
        });
    }

    /// The transmissions so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// When the next station starts to send, unless something happens before.
    fn next_start(&self) -> Option<Instant> {
        self.stations.iter().filter_map(|station| station.starts(self.parameters.slot)).min()
    }

    /// Gives stations without a packet one where they have it.
    fn admit(&mut self, now: Instant, ports: &mut dyn Ports) {
        let busy = self.busy_until.is_some();
        for station in &mut self.stations {
            if station.head.is_none() && station.sending.is_none() && station.take(now, ports) {
                // A station that finds the medium idle may send at once; else a backoff is due, unless one is running.
                if station.backoff_left(now, self.parameters.slot) == 0 && (busy || now < station.resumes) {
                    station.draw();
                }
            }
        }
    }

    fn finish(&mut self, now: Instant, ports: &mut dyn Ports) {
        for station in &mut self.stations {
            let Some(outcome) = station.sending.take() else { continue };
            let head = station.head.as_mut().expect("who sends has a packet");
            station.resumes = now + self.parameters.difs();
            match outcome {
                Outcome::Acknowledged => {
                    station.cw = self.parameters.cw_min;
                    self.totals.delivered += 1;
                    station.head = None;
                }
                Outcome::Lost { known } => {
                    station.resumes = now.max(known) + self.parameters.difs();
                    if head.transmissions < self.parameters.retry_limit {
                        station.cw = (2 * station.cw + 1).min(self.parameters.cw_max);
                    } else {
                        station.cw = self.parameters.cw_min;
                        self.totals.given_up += 1;
                        ports.give_up(now, head.port);
                        station.head = None;
                    }
                }
            }
            station.draw();
            if station.head.is_none() {
                station.take(now, ports);
            }
        }
    }

    /// Lets stations send whose backoff ends at `now`, or so soon after that they do not hear each other.
    fn begin(&mut self, now: Instant, ports: &mut dyn Ports) {
        let Parameters { slot, turnaround, propagation, sifs, .. } = self.parameters;
        let mut senders = std::mem::take(&mut self.senders);
        senders.clear();
        for (index, station) in self.stations.iter_mut().enumerate() {
            match station.starts(slot).filter(|start| *start < now + slot) {
                Some(start) => senders.push((start, index)),
                None => station.backoff = station.backoff_left(now, slot),
            }
        }
        let collide = senders.len() > 1;
        let mut until = now;
        let mut all_read = !collide;
        for &(start, index) in &senders {
            let station = &mut self.stations[index];
            let head = station.head.as_mut().expect("who sends has a packet");
            head.transmissions += 1;
            let received = start + turnaround + self.parameters.data(head.size) + propagation;
            let lost = collide || station.random.chance(self.parameters.frame_loss);
            self.totals.transmissions += 1;
            self.totals.collided += u64::from(collide);
            if lost {
                let known = received + self.parameters.ack_timeout();
                station.sending = Some(Outcome::Lost { known });
                until = until.max(received);
                all_read = false;
            } else {
                ports.deliver(received, head.port);
                station.sending = Some(Outcome::Acknowledged);
                until = received + sifs + self.parameters.acknowledgement() + propagation;
            }
        }
        let space = if all_read { self.parameters.difs() } else { self.parameters.eifs() };
        for station in self.stations.iter_mut().filter(|station| station.sending.is_none()) {
            station.resumes = until + space;
        }
        self.senders = senders;
        self.busy_until = Some(until);
    }
}

impl Station {
    /// The time at which it starts to send, unless another station does before.
    fn starts(&self, slot: Duration) -> Option<Instant> {
        if self.sending.is_some() {
            return None;
        }
        self.head.map(|head| (self.resumes + slot * self.backoff).max(head.since))
    }

    /// The slots of the backoff left at `now`: only whole idle slots count.
    fn backoff_left(&self, now: Instant, slot: Duration) -> u64 {
        let slots = now.saturating_since(self.resumes).as_nanos() / slot.as_nanos();
        self.backoff.saturating_sub(slots)
    }

    fn draw(&mut self) {
        self.backoff = self.random.below(u64::from(self.cw) + 1);
    }

    /// Takes the next packet from its ports in turn; true where there is one.
    fn take(&mut self, now: Instant, ports: &mut dyn Ports) -> bool {
        for _ in 0..self.ports.len() {
            let port = self.ports[self.turn];
            self.turn = (self.turn + 1) % self.ports.len();
            if ports.is_waiting(port)
                && let Some(size) = ports.take(now, port)
            {
                self.head = Some(Head { port, size, since: now, transmissions: 0 });
                return true;
            }
        }
        false
    }
}

impl Radio for Medium {
    fn on_waiting(&mut self, now: Instant, port: PortId) {
        let station = &self.stations[self.owners[port.0]];
        if station.head.is_none() {
            self.called.get_or_insert(now);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let turn = self.busy_until.or_else(|| self.next_start());
        [self.called, turn].into_iter().flatten().min()
    }

    fn on_event(&mut self, now: Instant, ports: &mut dyn Ports) {
        self.called = None;
        if self.busy_until.is_some_and(|until| until <= now) {
            self.busy_until = None;
            self.finish(now, ports);
        }
        self.admit(now, ports);
        if self.busy_until.is_none() && self.next_start().is_some_and(|start| start <= now) {
            self.begin(now, ports);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use suimon_units::{Probability, Rate};

    use super::super::Standard;
    use super::*;

    #[derive(Debug, Default, Clone, PartialEq)]
    struct Queues {
        endless: Option<u64>,
        waiting: Vec<VecDeque<u64>>,
        on_air: Vec<VecDeque<u64>>,
        arrived: Vec<Vec<(Instant, u64)>>,
        given_up: Vec<u64>,
    }

    impl Queues {
        fn of(waiting: Vec<VecDeque<u64>>) -> Self {
            let ports = waiting.len();
            Self {
                on_air: vec![VecDeque::new(); ports],
                arrived: vec![Vec::new(); ports],
                given_up: vec![0; ports],
                waiting,
                endless: None,
            }
        }
        fn endless(ports: usize, size: u64) -> Self {
            Self { endless: Some(size), ..Self::of(vec![VecDeque::new(); ports]) }
        }
    }

    impl Ports for Queues {
        fn is_waiting(&self, port: PortId) -> bool {
            self.endless.is_some() || !self.waiting[port.0].is_empty()
        }
        fn take(&mut self, _: Instant, port: PortId) -> Option<Bytes> {
            let size = self.endless.or_else(|| self.waiting[port.0].pop_front());
            self.on_air[port.0].extend(size);
            size.map(Bytes::new)
        }
        fn deliver(&mut self, at: Instant, port: PortId) {
            let size = self.on_air[port.0].pop_front().unwrap();
            self.arrived[port.0].push((at, size));
        }
        fn give_up(&mut self, _: Instant, port: PortId) {
            self.on_air[port.0].pop_front().unwrap();
            self.given_up[port.0] += 1;
        }
    }

    fn medium(parameters: &Parameters, stations: usize, seed: u64) -> Medium {
        let mut medium = Medium::new(parameters.clone());
        for station in 0..stations {
            medium.add_station(1, RandomStream::new(seed, &format!("station {station}")));
        }
        medium
    }

    fn run(medium: &mut Medium, queues: &mut Queues, until: Instant) {
        for port in 0..medium.owners.len() {
            medium.on_waiting(Instant::ZERO, PortId(port));
        }
        let mut last = Instant::ZERO;
        while let Some(at) = medium.next_event().filter(|at| *at < until) {
            assert!(at >= last, "time runs backwards");
            last = at;
            medium.on_event(at, queues);
        }
    }

    fn b_11() -> Parameters {
        Parameters::new(Standard::B, Rate::from_bps(11_000_000))
    }

    fn seconds(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Probability of a collision and throughput in bits a second of `n` saturated stations, by Bianchi's fixed point
    /// ("Performance Analysis of the IEEE 802.11 DCF", JSAC 2000) with a finite number of transmissions (Wu and
    /// others, INFOCOM 2002).
    fn bianchi(parameters: &Parameters, n: i32, size: u64) -> (f64, f64) {
        let windows: Vec<f64> =
            std::iter::successors(Some(parameters.cw_min), |cw| Some((2 * cw + 1).min(parameters.cw_max)))
                .take(parameters.retry_limit as usize)
                .map(f64::from)
                .collect();
        let attempt = |p: f64| {
            let attempts: f64 = (0..windows.len()).map(|stage| p.powi(stage as i32)).sum();
            let slots: f64 =
                windows.iter().enumerate().map(|(stage, cw)| p.powi(stage as i32) * (cw / 2.0 + 1.0)).sum();
            attempts / slots
        };
        let collision = |p: f64| 1.0 - (1.0 - attempt(p)).powi(n - 1);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let p = (low + high) / 2.0;
            if collision(p) > p { low = p } else { high = p }
        }
        let tau = attempt(low);
        let idle = (1.0 - tau).powi(n);
        let single = f64::from(n) * tau * (1.0 - tau).powi(n - 1);
        let seconds = |duration: Duration| duration.as_secs_f64();
        let frame = parameters.turnaround + parameters.data(Bytes::new(size)) + parameters.propagation;
        let success = frame
            + parameters.sifs
            + parameters.acknowledgement()
            + parameters.propagation
            + parameters.difs();
        // Stations that collided and stations that heard it wait about as long: acknowledgement timeout or EIFS.
        let failure = frame + parameters.ack_timeout() + parameters.difs();
        let time = idle * seconds(parameters.slot)
            + single * seconds(success)
            + (1.0 - idle - single) * seconds(failure);
        (low, single * size as f64 * 8.0 / time)
    }

    #[test]
    fn saturated_stations_get_what_bianchis_model_says() {
        for (parameters, n) in [
            (b_11(), 2),
            (b_11(), 5),
            (b_11(), 10),
            (b_11(), 20),
            (Parameters::new(Standard::A, Rate::from_bps(54_000_000)), 5),
            (Parameters::new(Standard::G, Rate::from_bps(24_000_000)), 10),
        ] {
            let mut medium = medium(&parameters, n, 1);
            let mut queues = Queues::endless(n, 1_500);
            run(&mut medium, &mut queues, seconds(20));
            let totals = medium.totals();
            let measured = totals.delivered as f64 * 1_500.0 * 8.0 / 20.0;
            let collided = totals.collided as f64 / totals.transmissions as f64;
            let (p, throughput) = bianchi(&parameters, n as i32, 1_500);
            println!("{n} {collided:.3} {p:.3} {:.3}", measured / throughput);
            assert!(
                (measured / throughput - 1.0).abs() < 0.03,
                "{n} stations: {measured}, model {throughput}"
            );
            assert!((collided - p).abs() < 0.05, "{n} stations: {collided}, model {p}");
        }
    }

    #[test]
    fn one_station_alone_waits_for_its_post_backoff_only() {
        let parameters = b_11();
        let mut medium = medium(&parameters, 1, 1);
        let mut queues = Queues::endless(1, 1_500);
        run(&mut medium, &mut queues, seconds(20));
        let exchange = parameters.turnaround
            + parameters.data(Bytes::new(1_500))
            + parameters.propagation * 2
            + parameters.sifs
            + parameters.acknowledgement()
            + parameters.difs();
        let mean = exchange.as_secs_f64() + 15.5 * parameters.slot.as_secs_f64();
        let frames = queues.arrived[0].len() as f64;
        assert!((frames * mean / 20.0 - 1.0).abs() < 0.003, "{frames} frames of {mean} s");
        // The first finds the medium idle and goes at once.
        let first = parameters.turnaround + parameters.data(Bytes::new(1_500)) + parameters.propagation;
        assert_eq!(queues.arrived[0][0].0, Instant::ZERO + first);
        assert_eq!(medium.totals().collided, 0);
    }

    #[test]
    fn stations_that_share_a_medium_get_the_same() {
        let mut medium = medium(&b_11(), 4, 3);
        let mut queues = Queues::endless(4, 1_500);
        run(&mut medium, &mut queues, seconds(60));
        let counts: Vec<f64> = queues.arrived.iter().map(|arrived| arrived.len() as f64).collect();
        let mean = counts.iter().sum::<f64>() / 4.0;
        assert!(counts.iter().all(|count| (count / mean - 1.0).abs() < 0.05), "{counts:?}");
    }

    #[test]
    fn a_station_serves_its_ports_in_turn() {
        let mut medium = Medium::new(b_11());
        medium.add_station(3, RandomStream::new(1, "ap"));
        let mut queues = Queues::endless(3, 1_500);
        run(&mut medium, &mut queues, seconds(2));
        let counts: Vec<_> = queues.arrived.iter().map(Vec::len).collect();
        assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
    }

    #[test]
    fn a_frame_that_never_gets_through_is_given_up_after_the_retry_limit() {
        let parameters = Parameters { frame_loss: Probability::ONE, retry_limit: 4, ..b_11() };
        let mut medium = medium(&parameters, 1, 1);
        let mut queues = Queues::of(vec![VecDeque::from([100, 100])]);
        run(&mut medium, &mut queues, seconds(10));
        assert_eq!((medium.totals().transmissions, medium.totals().given_up, queues.given_up[0]), (8, 2, 2));
        assert_eq!(medium.next_event(), None);
    }

    #[test]
    fn who_comes_while_another_sends_waits_with_a_backoff() {
        let parameters = b_11();
        let mut medium = medium(&parameters, 2, 1);
        let mut queues = Queues::of(vec![VecDeque::from([1_500]), VecDeque::new()]);
        medium.on_waiting(Instant::ZERO, PortId(0));
        medium.on_event(Instant::ZERO, &mut queues);
        let late = Instant::ZERO + Duration::from_micros(100);
        queues.waiting[1].push_back(1_500);
        medium.on_waiting(late, PortId(1));
        assert_eq!(medium.next_event(), Some(late));
        medium.on_event(late, &mut queues);
        let ends = medium.busy_until.unwrap();
        while let Some(at) = medium.next_event() {
            medium.on_event(at, &mut queues);
        }
        let sent = queues.arrived[1][0].0;
        let least = ends + parameters.difs() + parameters.turnaround + parameters.data(Bytes::new(1_500));
        let slots = sent.saturating_since(least + parameters.propagation).as_nanos() / 20_000;
        assert!(sent >= least && slots <= 31, "{slots} slots");
        assert_eq!(medium.totals().collided, 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_packet_arrives_once_in_order_or_is_given_up(
            seed in any::<u64>(),
            sizes in prop::collection::vec(prop::collection::vec(20_u64..2_000, 0..30), 1..6),
            loss in 0.0_f64..0.9,
            retry_limit in 1_u32..8,
        ) {
            let parameters = Parameters {
                frame_loss: Probability::clamped(loss),
                retry_limit,
                ..Parameters::new(Standard::A, Rate::from_bps(6_000_000))
            };
            let walk = || {
                let mut medium = medium(&parameters, sizes.len(), seed);
                let mut queues = Queues::of(sizes.iter().map(|sizes| sizes.iter().copied().collect()).collect());
                run(&mut medium, &mut queues, seconds(1_000));
                (queues, medium.totals())
            };
            let (queues, totals) = walk();
            for (port, sent) in sizes.iter().enumerate() {
                let arrived = &queues.arrived[port];
                prop_assert_eq!(arrived.len() as u64 + queues.given_up[port], sent.len() as u64);
                prop_assert!(arrived.is_sorted_by_key(|(at, _)| *at));
                let mut left = sent.iter();
                prop_assert!(arrived.iter().all(|(_, size)| left.any(|other| other == size)), "out of order");
            }
            let given_up: u64 = queues.given_up.iter().sum();
            prop_assert_eq!(totals.given_up, given_up);
            prop_assert_eq!(walk(), (queues, totals));
        }
    }
}
