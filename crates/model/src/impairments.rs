//! Packets lost, late or overtaken: the settings of a link, their limits and their effect.
//!
//! All three stand here, so that an impairment is this file and its row in the table of keys.

use std::fmt;

use suimon_algorithms::RandomStream;
use suimon_units::{Duration, Instant, Probability};

use crate::check::{Checked, refuse, time};

/// What a link does to packets beside delaying them; nothing by default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Impairments {
    /// Random loss, after transmission.
    pub loss: Loss,
    /// Extra delay, uniform from zero to this, that varies from packet to packet but keeps their order.
    pub jitter: Duration,
    /// Packets that are overtaken.
    pub reordering: Option<Reordering>,
    /// Times in which packets go a longer way.
    pub detour: Option<Detour>,
    /// When nothing gets through: what leaves the link meanwhile is lost. In order, apart from each other.
    pub outages: Vec<Outage>,
}

impl Impairments {
    /// True where every packet arrives, in order and without further delay.
    #[must_use]
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// True where packets may arrive in another order than they left in.
    #[must_use]
    pub fn may_reorder(&self) -> bool {
        self.reordering.is_some() || self.detour.is_some()
    }

    /// True where every packet arrives, if late or overtaken.
    #[must_use]
    pub fn lose_nothing(&self) -> bool {
        self.loss == Loss::None && self.outages.is_empty()
    }

    /// The impairments at work, drawing from `random`; `None` where there are none.
    #[must_use]
    pub fn begin(&self, random: RandomStream) -> Option<ImpairmentState> {
        (!self.are_none()).then(|| ImpairmentState {
            settings: self.clone(),
            in_bad_state: false,
            latest_arrival: Instant::ZERO,
            random,
        })
    }

    pub(crate) fn check(&self) -> Checked {
        time("jitter", self.jitter)?;
        if let Some(reordering) = self.reordering {
            time("reordering.delay", reordering.delay)?;
        }
        if let Some(detour) = &self.detour {
            time("detour.delay", detour.delay)?;
            check_periods("detour.during", &detour.during)?;
        }
        check_periods("outages", &self.outages)
    }
}

/// The impairments of one link at work.
#[derive(Debug)]
pub struct ImpairmentState {
    settings: Impairments,
    /// Of the Gilbert-Elliott chain.
    in_bad_state: bool,
    /// Jitter lets no packet arrive before this.
    latest_arrival: Instant,
    random: RandomStream,
}

impl ImpairmentState {
    /// When a packet that left at `departure` and would arrive at `arrival` does; `None` where it is lost.
    #[must_use]
    pub fn apply(&mut self, departure: Instant, arrival: Instant) -> Option<Instant> {
        if self.loses() || is_within(&self.settings.outages, departure) {
            return None;
        }
        let mut arrival = arrival;
        if let Some(detour) = &self.settings.detour
            && is_within(&detour.during, departure)
        {
            arrival += detour.delay;
        }
        if self.settings.jitter != Duration::ZERO {
            let late = arrival + self.random.duration_between(Duration::ZERO, self.settings.jitter);
            arrival = late.max(self.latest_arrival);
            self.latest_arrival = arrival;
        }
        if let Some(reordering) = self.settings.reordering
            && self.random.chance(reordering.probability)
        {
            arrival += reordering.delay;
        }
        Some(arrival)
    }

    fn loses(&mut self) -> bool {
        match self.settings.loss {
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

/// True where one of `periods`, which are in order, holds `now`.
fn is_within(periods: &[Outage], now: Instant) -> bool {
    let over = periods.partition_point(|period| period.to <= now);
    periods.get(over).is_some_and(|period| period.from <= now)
}

/// Random loss.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet alone.
    Random(Probability),
    /// Two states that lose differently and change from packet to packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// From the good state to the bad one, per packet.
        to_bad: Probability,
        /// From the bad state to the good one, per packet.
        to_good: Probability,
        /// Loss in the good state.
        loss_good: Probability,
        /// Loss in the bad state.
        loss_bad: Probability,
    },
}

/// Packets held back so that later ones overtake them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reordering {
    /// Share of the packets.
    pub probability: Probability,
    /// For how long.
    pub delay: Duration,
}

/// A longer way for some time, as while a route is another one. Packets that leave the link after it may overtake those before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detour {
    /// By how much it is longer.
    pub delay: Duration,
    /// When packets go it, in order and apart from each other.
    pub during: Vec<Outage>,
}

/// A time in which a link carries nothing, or sends packets a longer way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Since then.
    pub from: Instant,
    /// It is over then; [`Instant::MAX`] where it lasts.
    pub to: Instant,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.from.saturating_since(Instant::ZERO))?;
        if self.to < Instant::MAX {
            write!(f, "{}", self.to.saturating_since(Instant::ZERO))?;
        }
        Ok(())
    }
}

fn check_periods(key: &'static str, outages: &[Outage]) -> Checked {
    let mut ended = Instant::ZERO;
    for outage in outages {
        if outage.to <= outage.from {
            return refuse(key, outage, "does not end after it begins", "such as \"10s..15s\"");
        }
        if outage.from < ended {
            let accepted = "periods in order and apart";
            return refuse(key, outage, "begins before the one before has ended", accepted);
        }
        ended = outage.to;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_work(settings: &Impairments) -> ImpairmentState {
        settings.begin(RandomStream::new(1, "test")).expect("something is impaired")
    }

    #[test]
    fn burst_loss_has_the_rate_and_burst_length_of_its_chain() {
        // Stationary share of the bad state: 0.01 / (0.01 + 0.25); mean stay in it: 1 / 0.25 packets.
        let p = Probability::clamped;
        let loss =
            Loss::GilbertElliott { to_bad: p(0.01), to_good: p(0.25), loss_good: p(0.0), loss_bad: p(1.0) };
        let mut link = at_work(&Impairments { loss, ..Impairments::default() });
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
            at_work(&Impairments { outages: vec![outage(10, 15), outage(20, 30)], ..Impairments::default() });
        let through = (0..40).filter(|ms| link.apply(at(*ms), at(*ms + 7)).is_some());
        assert!(through.eq((0..10).chain(15..20).chain(30..40)));
    }

    #[test]
    fn what_leaves_during_a_detour_arrives_later_and_may_be_overtaken() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let during = vec![Outage { from: at(10), to: at(12) }];
        let mut link = at_work(&Impairments {
            detour: Some(Detour { delay: Duration::from_millis(30), during }),
            ..Impairments::default()
        });
        let arrivals = [9, 10, 11, 12].map(|ms| link.apply(at(ms), at(ms + 7)));
        assert_eq!(arrivals, [16, 47, 48, 19].map(|ms| Some(at(ms))));
    }

    #[test]
    fn jitter_delays_but_never_reorders() {
        let mut link = at_work(&Impairments { jitter: Duration::from_millis(10), ..Impairments::default() });
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
