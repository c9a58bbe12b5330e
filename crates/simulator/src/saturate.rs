//! The throughput of a link when packets always wait.

use suimon_link::Transmitter;
use suimon_model::{Capacity, Link, radios};
use suimon_radio::{PortId, Ports};
use suimon_units::{Bytes, Duration, Instant};

/// When packets of `size` leave a link of this `capacity` that always has one waiting, for `length`, calling `each` for
/// every one in order. A radio has its medium or cell for itself, and the channel that `suimon compare` gives it
/// with this `seed`. A link that is unlimited lets all through at once, so none is told.
pub fn saturate(
    capacity: &Capacity,
    seed: u64,
    size: Bytes,
    length: Duration,
    each: &mut dyn FnMut(Instant),
) {
    let wire = Link::delaying("bottleneck".to_owned(), "sender", "receiver", Duration::ZERO);
    let link = Link { capacity: capacity.clone(), ..wire };
    let Some((mut radio, _)) = radios(&[link], seed).pop() else {
        return serve(Transmitter::at(capacity), size, length, each);
    };
    let end = Instant::ZERO + length;
    let mut endless = Endless { size, end, each };
    radio.on_waiting(Instant::ZERO, PortId(0));
    while let Some(now) = radio.next_event().filter(|now| *now < end) {
        radio.on_event(now, &mut endless);
    }
}

fn serve(mut transmitter: Transmitter, size: Bytes, length: Duration, each: &mut dyn FnMut(Instant)) {
    if transmitter.is_unlimited() {
        return;
    }
    let end = Instant::ZERO + length;
    let mut now = Instant::ZERO;
    loop {
        now = transmitter.send(now, true, size).ends;
        if now > end {
            return;
        }
        each(now);
    }
}

struct Endless<'a> {
    size: Bytes,
    end: Instant,
    each: &'a mut dyn FnMut(Instant),
}

impl Ports for Endless<'_> {
    fn is_waiting(&self, _: PortId) -> bool {
        true
    }

    fn take(&mut self, _: Instant, _: PortId) -> Option<Bytes> {
        Some(self.size)
    }

    fn deliver(&mut self, at: Instant, _: PortId) {
        if at <= self.end {
            (self.each)(at);
        }
    }

    fn give_up(&mut self, _: Instant, _: PortId) {}
}

#[cfg(test)]
mod tests {
    use suimon_scenario::LinkSpec;

    use super::*;

    fn count(link: &str, seconds: u64) -> usize {
        let capacity = LinkSpec::parse_capacity(link).unwrap();
        let mut times = Vec::new();
        let length = Duration::from_secs(seconds);
        saturate(&capacity, 1, Bytes::new(1_500), length, &mut |at| times.push(at));
        assert!(times.is_sorted() && times.iter().all(|at| *at <= Instant::ZERO + length), "{link}");
        times.len()
    }

    #[test]
    fn a_saturated_link_carries_its_rate() {
        assert_eq!(count("12Mbit", 10), 10_000);
        assert_eq!(count("unlimited", 10), 0);
        // 1330 kbit/s of ST at 0 dB.
        let hsdpa = count("hsdpa ST 0dB", 60);
        assert!((6_200..6_900).contains(&hsdpa), "{hsdpa}");
        // 1.6 ms a frame and its acknowledgement, and 15.5 slots of backoff between them.
        let wifi = count("wifi 802.11b 11Mbit", 10);
        assert!((4_500..5_500).contains(&wifi), "{wifi}");
    }
}
