//! RED's average queue.

use suimon_units::{Duration, Instant};

/// The weight of one arrival in the average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Weight {
    /// A constant.
    Fixed(f64),
    /// `1 - exp(-s / 1 s)` for a mean transmission time `s`, as ns-2 has it: the average follows the
    /// queue within a second on links of any rate.
    Automatic,
}

/// The average queue `avg`, an exponentially weighted moving average over arrivals.
///
/// While nothing waits the average decays as if packets of the mean transmission time `s` had arrived
/// at an empty queue. `s` is measured: between two departures with packets waiting in between passes
/// the transmission time of the first.
#[derive(Debug, Clone)]
pub struct Average {
    avg: f64,
    weight: Weight,
    w_q: f64,
    /// In seconds; `None` until measured.
    s: Option<f64>,
    /// Idle time counts.
    decays: bool,
    state: State,
}

/// The state of the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The queue has been empty since this time: `q_time`.
    Empty(Instant),
    /// Packets wait, and none has left since the queue was empty.
    Filling,
    /// Packets have waited since the last departure, at this time.
    Busy(Instant),
}

impl Average {
    /// The average of a queue that is empty.
    #[must_use]
    pub fn new(weight: Weight) -> Self {
        let w_q = match weight {
            Weight::Fixed(w_q) => w_q,
            Weight::Automatic => W_Q,
        };
        Self { avg: 0.0, weight, w_q, s: None, decays: true, state: State::Empty(Instant::ZERO) }
    }

    /// The same, where an arrival at an empty queue counts as any other.
    #[must_use]
    pub fn without_idle_time(self) -> Self {
        Self { decays: false, ..self }
    }

    /// The average after the last arrival.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.avg
    }

    /// A packet arrives at a queue of length `q`, itself not included.
    pub fn on_arrival(&mut self, now: Instant, q: f64) {
        if let State::Empty(since) = self.state {
            self.state = State::Filling;
            if self.decays {
                self.avg *= self.decay(now.saturating_since(since));
                return;
            }
        }
        self.avg += self.w_q * (q - self.avg);
    }

    /// The arrival did not join, and the queue is as empty as before.
    pub fn still_empty(&mut self, now: Instant) {
        self.state = State::Empty(now);
    }

    /// A packet leaves, and `empty` says whether none waits behind it.
    pub fn on_departure(&mut self, now: Instant, empty: bool) {
        if let State::Busy(last) = self.state {
            self.measure(now.saturating_since(last));
        }
        self.state = if empty { State::Empty(now) } else { State::Busy(now) };
    }

    /// `(1 - w_q)^m` with `m = idle / s`; a link of unknown speed forgets everything.
    fn decay(&self, idle: Duration) -> f64 {
        match self.s {
            Some(s) if s > 0.0 => libm::pow(1.0 - self.w_q, idle.as_secs_f64() / s),
            _ => 0.0,
        }
    }

    fn measure(&mut self, transmission: Duration) {
        let transmission = transmission.as_secs_f64();
        // A sixteenth: long enough to even out sizes, short enough for links whose rate varies.
        let s = self.s.map_or(transmission, |s| s + (transmission - s) / 16.0);
        self.s = Some(s);
        if self.weight == Weight::Automatic {
            self.w_q = -libm::expm1(-s);
        }
    }
}

/// Weight of an arrival until the link's rate is known (Floyd, Jacobson 1993 §6: at least 0.001, and
/// 0.002 in its simulations).
const W_Q: f64 = 0.002;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    impl Average {
        /// An average that arrivals do not move.
        pub(crate) fn held_at(avg: f64) -> Self {
            Self { avg, w_q: 0.0, state: State::Filling, ..Self::new(Weight::Fixed(0.0)) }
        }
    }

    /// After n arrivals at a constant queue q: avg = q (1 - (1 - w)^n).
    #[test]
    fn the_average_of_a_constant_queue_is_as_in_closed_form() {
        let mut average = Average { state: State::Filling, ..Average::new(Weight::Fixed(0.01)) };
        for n in 1..=300 {
            average.on_arrival(Instant::ZERO, 50e3);
            let expected = 50e3 * (1.0 - libm::pow(0.99, f64::from(n)));
            assert!((average.get() - expected).abs() < 1e-6, "{n}: {} {expected}", average.get());
        }
    }

    #[test]
    fn an_average_without_idle_time_keeps_what_it_was() {
        let started =
            Average { avg: 8e3, state: State::Empty(Instant::ZERO), ..Average::new(Weight::Fixed(0.01)) };
        let mut average = started.clone().without_idle_time();
        average.on_arrival(Instant::ZERO + MS * 1_000, 0.0);
        assert_eq!(average.get(), 8e3 * 0.99);
        let mut average = started;
        average.on_arrival(Instant::ZERO + MS * 1_000, 0.0);
        assert_eq!(average.get(), 0.0, "of a link of unknown speed all is forgotten");
    }

    #[test]
    fn an_idle_link_decays_the_average_as_arrivals_at_an_empty_queue_would() {
        let mut average = Average { avg: 8e3, state: State::Filling, ..Average::new(Weight::Fixed(0.01)) };
        let start = Instant::ZERO;
        average.on_departure(start, false);
        average.on_departure(start + MS * 2, false);
        average.on_departure(start + MS * 4, true);
        let mut arrivals = average.clone();
        arrivals.state = State::Filling;
        (0..50).for_each(|_| arrivals.on_arrival(start, 0.0));
        average.on_arrival(start + MS * 104, 0.0);
        assert!((average.get() - arrivals.get()).abs() < 1e-6);
        assert!((average.get() - 8e3 * libm::pow(0.99, 50.0)).abs() < 1e-6);
        // Refused at an empty queue: the rest of the idle time counts once.
        average.still_empty(start + MS * 104);
        average.on_arrival(start + MS * 106, 0.0);
        assert!((average.get() - 8e3 * libm::pow(0.99, 51.0)).abs() < 1e-6);
    }

    #[test]
    fn time_between_departures_counts_as_transmission_only_with_packets_waiting() {
        let mut average = Average::new(Weight::Automatic);
        assert_eq!(average.w_q, W_Q);
        average.on_departure(Instant::ZERO, true);
        average.on_departure(Instant::ZERO + MS * 500, false);
        assert_eq!((average.s, average.w_q), (None, W_Q));
        average.on_departure(Instant::ZERO + MS * 501, false);
        assert_eq!(average.s, Some(0.001));
        assert!((average.w_q - (1.0 - libm::exp(-0.001))).abs() < 1e-12);
    }
}
