//! The carriers that a path tries: where its network lets no UDP pass, TCP, and QUIC again from time to time.

use std::time::Duration;

use tokio::time::Instant;

use crate::connection::{Carrier, Carriers};

/// What is known of the network of a path.
#[derive(Debug)]
pub(crate) struct Trial {
    /// The carriers that the user allows.
    allowed: Carriers,
    refused: Option<Refused>,
}

/// TCP was there and QUIC was not.
#[derive(Debug, Clone, Copy)]
struct Refused {
    /// From one trial of QUIC to the next.
    pause: Duration,
    /// The time of the next.
    again_at: Instant,
}

impl Trial {
    pub(crate) fn new(allowed: Carriers) -> Self {
        Self { allowed, refused: None }
    }

    /// The carriers for a connection that is made now.
    pub(crate) fn carriers(&self, now: Instant) -> Carriers {
        match self.again_at() {
            Some(at) if now < at => Carriers::Only(Carrier::Tcp),
            _ => self.allowed,
        }
    }

    /// When QUIC is to be tried again, where TCP took its place.
    pub(crate) fn again_at(&self) -> Option<Instant> {
        self.refused.map(|refused| refused.again_at)
    }

    /// `carriers` were tried, and this one carries the connection.
    pub(crate) fn on_connected(&mut self, now: Instant, carriers: Carriers, carrier: Carrier) {
        match (carriers, carrier) {
            (_, Carrier::Quic) => self.refused = None,
            (Carriers::Auto, Carrier::Tcp) => self.on_refused(now),
            (Carriers::Only(_), Carrier::Tcp) => {}
        }
    }

    /// QUIC was tried in vain.
    pub(crate) fn on_refused(&mut self, now: Instant) {
        let pause = self.refused.map_or(FIRST_PAUSE, |refused| (refused.pause * 2).min(LONGEST_PAUSE));
        self.refused = Some(Refused { pause, again_at: now + pause });
    }

    /// It may be another network.
    pub(crate) fn on_change(&mut self) {
        self.refused = None;
    }
}

/// A machine that was too busy to shake hands, or a cut, is over by then.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// A trial sends some datagrams of 1200 bytes, so it costs an idle path less than a tenth of its signs of life.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: Carriers = Carriers::Only(Carrier::Tcp);

    #[test]
    fn where_quic_was_refused_tcp_is_used_and_quic_tried_with_growing_pauses() {
        let mut now = Instant::now();
        let mut trial = Trial::new(Carriers::Auto);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert_eq!(trial.carriers(now), Carriers::Auto);
            trial.on_connected(now, Carriers::Auto, Carrier::Tcp);
            let at = trial.again_at().unwrap();
            pauses.push((at - now).as_secs());
            assert_eq!(trial.carriers(at - Duration::from_nanos(1)), TCP);
            trial.on_connected(now, TCP, Carrier::Tcp);
            assert_eq!(trial.again_at(), Some(at), "a connection over TCP alone is no trial");
            now = at;
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
    }

    #[test]
    fn once_quic_passes_or_the_network_changes_nothing_is_held_against_it() {
        let now = Instant::now();
        let mut trial = Trial::new(Carriers::Auto);
        for forget in [Trial::on_change, |trial: &mut Trial| {
            trial.on_connected(Instant::now(), Carriers::Only(Carrier::Quic), Carrier::Quic);
        }] {
            trial.on_refused(now);
            trial.on_refused(now);
            assert_eq!(trial.carriers(now), TCP);
            forget(&mut trial);
            assert_eq!((trial.carriers(now), trial.again_at()), (Carriers::Auto, None));
            trial.on_refused(now);
            assert_eq!(trial.again_at(), Some(now + FIRST_PAUSE), "the pauses begin anew");
            trial.on_change();
        }
    }

    #[test]
    fn a_carrier_that_the_user_chose_is_the_only_one() {
        let now = Instant::now();
        for carrier in [Carrier::Tcp, Carrier::Quic] {
            let mut trial = Trial::new(Carriers::Only(carrier));
            trial.on_connected(now, Carriers::Only(carrier), carrier);
            assert_eq!((trial.carriers(now), trial.again_at()), (Carriers::Only(carrier), None));
        }
    }
}
