//! Packets lost, late or overtaken.

use suimon_algorithms::RandomStream;
use suimon_model::{Link, Loss, Outage, Reordering};
use suimon_units::{Duration, Instant};

/// Loss, jitter, reordering and outages of a link.
#[derive(Debug)]
pub(crate) struct Impairments {
    loss: Loss,
    in_bad_state: bool,
    jitter: Duration,
    reordering: Option<Reordering>,
    outages: Vec<Outage>,
    latest_arrival: Instant,
    random: RandomStream,
}

impl Impairments {
    /// The impairments of `link`; `None` where it has none.
    #[must_use]
    pub(crate) fn of(link: &Link, random: RandomStream) -> Option<Self> {
        let impairments = &link.impairments;
        (!impairments.are_none()).then(|| Self {
            loss: impairments.loss,
            in_bad_state: false,
            jitter: impairments.jitter,
            reordering: impairments.reordering,
            outages: impairments.outages.clone(),
            latest_arrival: Instant::ZERO,
            random,
        })
    }

    /// When a packet that left at `departure` and would arrive at `arrival` does; `None` where it is lost.
    #[must_use]
    pub(crate) fn apply(&mut self, departure: Instant, arrival: Instant) -> Option<Instant> {
        if self.loses() || self.is_out_at(departure) {
            return None;
        }
        let mut arrival = arrival;
        if self.jitter != Duration::ZERO {
            let late = arrival + self.random.duration_between(Duration::ZERO, self.jitter);
            arrival = late.max(self.latest_arrival);
            self.latest_arrival = arrival;
        }
        if let Some(reordering) = self.reordering
            && self.random.chance(reordering.probability)
        {
            arrival += reordering.delay;
        }
        Some(arrival)
    }

    fn is_out_at(&self, now: Instant) -> bool {
        let over = self.outages.partition_point(|outage| outage.to <= now);
        self.outages.get(over).is_some_and(|outage| outage.from <= now)
    }

    fn loses(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Random(probability) => self.random.chance(probability),
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let change = if self.in_bad_state { to_good } else { to_bad };
                self.in_bad_state ^= self.random.chance(change);
                self.random.chance(if self.in_bad_state { loss_bad } else { loss_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_units::Probability;

    fn impairments(loss: Loss) -> Impairments {
        Impairments {
            loss,
            in_bad_state: false,
            jitter: Duration::ZERO,
            reordering: None,
            outages: Vec::new(),
            latest_arrival: Instant::ZERO,
            random: RandomStream::new(1, "test"),
        }
    }

    #[test]
    fn burst_loss_has_the_rate_and_burst_length_of_its_chain() {
        // Stationary share of the bad state: 0.01 / (0.01 + 0.25); mean stay in it: 1 / 0.25 packets.
        let p = Probability::clamped;
        let mut link = impairments(Loss::GilbertElliott {
            to_bad: p(0.01),
            to_good: p(0.25),
            loss_good: p(0.0),
            loss_bad: p(1.0),
        });
        let losses: Vec<bool> = (0..200_000).map(|_| link.loses()).collect();
        let lost = losses.iter().filter(|lost| **lost).count() as f64;
        let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((lost / 200_000.0 - 0.01 / 0.26).abs() < 0.003, "{lost}");
        assert!((lost / bursts - 4.0).abs() < 0.3, "{}", lost / bursts);
    }

    #[test]
    fn what_leaves_during_an_outage_is_lost_and_what_is_under_way_arrives() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let outage = |from, to| Outage { from: at(from), to: at(to) };
        let mut link =
            Impairments { outages: vec![outage(10, 15), outage(20, 30)], ..impairments(Loss::None) };
        let through = (0..40).filter(|ms| link.apply(at(*ms), at(*ms + 7)).is_some());
        assert!(through.eq((0..10).chain(15..20).chain(30..40)));
    }

    #[test]
    fn jitter_delays_but_never_reorders() {
        let mut link = Impairments { jitter: Duration::from_millis(10), ..impairments(Loss::None) };
        let arrivals: Vec<_> = (0..1_000)
            .map(|i| {
                let at = Instant::ZERO + Duration::from_millis(i);
                link.apply(at, at).expect("nothing is lost")
            })
            .collect();
        assert!(arrivals.is_sorted());
        assert!(arrivals.iter().enumerate().any(|(i, at)| at.as_nanos() > (i as u64 + 5) * 1_000_000));
    }
}
