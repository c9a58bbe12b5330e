//! RTT by autocorrelation (Veal, Li, Lowenthal: New Methods for Passive Estimation of TCP Round-Trip Times,
//! Passive and Active Measurement, 2005).
//!
//! A self-clocked sender's pattern of packets comes again every round-trip time, so the number of packets a
//! slot is most like itself that much later.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use suimon_units::{Bytes, Duration, Instant};

use super::{RttEstimator, RttSample, Seen};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::queue::FlowId;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "autocorrelation",
    summary: "the lag at which a flow's packets are most like themselves; keeps seconds of one flow at a time",
    source: "Veal, Li, Lowenthal: New Methods for Passive Estimation of TCP Round-Trip Times, 2005",
    colour: "#b07aa1",
    parameters: &[
        Parameter {
            name: "window",
            help: "how long a flow is observed; lags up to a quarter of it are tried",
            default: Value::Duration(Duration::from_secs(4)),
            range: Range::Any,
        },
        Parameter {
            name: "slot",
            help: "packets are counted in slots of this length",
            default: Value::Duration(Duration::from_millis(1)),
            range: Range::Any,
        },
        Parameter {
            name: "threshold",
            help: "correlation coefficient below which there is no estimate",
            default: Value::Number(0.2),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "tries",
            help: "flows under observation at once",
            default: Value::Count(2),
            range: Range::Between(1.0, 1_000.0),
        },
    ],
};

/// Estimates the round-trip time of a few flows at a time, chosen by their packets.
#[derive(Debug, Clone)]
pub struct Autocorrelation {
    window: Duration,
    slot: Duration,
    threshold: f64,
    tries: Vec<Try>,
}

/// One flow under observation; of none before the first packet.
#[derive(Debug, Clone, Default)]
struct Try {
    object: Option<(FlowId, Instant)>,
    /// Slots with packets, and how many, in the order of time.
    counts: Vec<(u32, u32)>,
}

/// Builds it.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn RttEstimator> {
    let slot = arguments.duration("slot").max(Duration::from_micros(1));
    Box::new(Autocorrelation {
        // Slots are numbered by 32 bits, and work grows with their number.
        window: arguments.duration("window").max(slot * 8).min(slot * MAX_SLOTS),
        slot,
        threshold: arguments.number("threshold"),
        tries: vec![Try::default(); arguments.count("tries") as usize],
    })
}

impl RttEstimator for Autocorrelation {
    fn on_packet(&mut self, seen: &Seen, random: &mut RandomStream) -> Option<RttSample> {
        let slots = self.window.as_nanos() / self.slot.as_nanos();
        let mut found = None;
        for current in &mut self.tries {
            let Some((flow, since)) = current.object else {
                if random.below(CHOICE) == 0 {
                    current.object = Some((seen.flow, seen.now));
                    current.counts.clear();
                    current.counts.push((0, 1));
                }
                continue;
            };
            let slot = seen.now.saturating_since(since).as_nanos() / self.slot.as_nanos();
            if seen.flow == flow && slot < slots {
                match current.counts.last_mut() {
                    Some((last, count)) if u64::from(*last) == slot => *count += 1,
                    _ => current.counts.push((slot as u32, 1)),
                }
            } else if seen.flow == flow {
                current.object = None;
                if let Some(lag) = best_lag(&current.counts, slots as u32, self.threshold) {
                    found = Some(RttSample { flow, rtt: self.slot.mul_f64(lag), at: seen.now });
                }
            } else if slot >= 2 * slots {
                // The object fell silent.
                current.object = None;
            }
        }
        found
    }

    fn memory(&self) -> Bytes {
        let counts: usize = self.tries.iter().map(|each| each.counts.capacity()).sum();
        let tries = self.tries.capacity() * size_of::<Try>();
        Bytes::new((size_of::<Self>() + tries + counts * size_of::<(u32, u32)>()) as u64)
    }
}

/// The lag, in slots, of the highest peak of the autocorrelation beyond the burst itself.
///
/// The covariance at lag `l` is `sum P(t) P(t + l) / (T - l) - mean^2`. A mean smooths it over the mean gap between
/// packets, so that the distances of packets within a burst do not show. Among peaks nearly as high as the
/// highest the first counts: the others are multiples of it.
fn best_lag(counts: &[(u32, u32)], slots: u32, threshold: f64) -> Option<f64> {
    let packets: f64 = counts.iter().map(|(_, count)| f64::from(*count)).sum();
    if packets < MIN_PACKETS {
        return None;
    }
    let mean = packets / f64::from(slots);
    let width = (libm::round(1.0 / mean) as usize).max(2);
    let most = slots as usize / 4;
    let mut products = vec![0.0; most + 2 * width + 1];
    for (position, (slot, count)) in counts.iter().enumerate() {
        for (other, others) in &counts[position..] {
            let Some(sum) = products.get_mut((other - slot) as usize) else { break };
            *sum += f64::from(*count) * f64::from(*others);
        }
    }
    let covariances: Vec<f64> = (products.iter().zip(0_u32..))
        .map(|(sum, lag)| sum / f64::from(slots.saturating_sub(lag).max(1)) - mean * mean)
        .collect();
    let smoothed = |lag: usize| -> f64 {
        let near = (0..width).map(|distance| {
            let weight = 1.0 - distance as f64 / width as f64;
            let both = covariances[lag.abs_diff(distance)] + covariances[lag + distance];
            weight * if distance == 0 { covariances[lag] } else { both }
        });
        near.sum()
    };
    let heights: Vec<f64> = (0..=most).map(smoothed).collect();
    let past_burst = heights.iter().position(|height| *height <= 0.0)?;
    let highest = heights[past_burst..].iter().copied().fold(0.0, f64::max);
    if highest <= threshold * heights[0] {
        return None;
    }
    let near = past_burst + heights[past_burst..].iter().position(|height| *height >= NEARLY * highest)?;
    let within = (near..=most.min(near + width)).map(|lag| (lag, heights[lag]));
    let lag = within.fold((near, 0.0), |best, each| if each.1 > best.1 { each } else { best }).0;
    // Sharp again: the distance of most packets to their like, and where in its slots that lies.
    let around = lag.saturating_sub(width - 1).max(1)..lag + width;
    let sharp =
        around.fold(lag, |best, each| if covariances[each] > covariances[best] { each } else { best });
    let near = [sharp - 1, sharp, sharp + 1].map(|lag| covariances[lag].max(0.0));
    Some(sharp as f64 + (near[2] - near[0]) / near.iter().sum::<f64>().max(f64::MIN_POSITIVE))
}

/// One arriving packet in this many chooses the next flow.
const CHOICE: u64 = 10;

/// Fewer packets in a window show no pattern.
const MIN_PACKETS: f64 = 16.0;

/// Peaks of this share of the highest count as equal to it.
const NEARLY: f64 = 0.8;

/// Most slots of a window.
const MAX_SLOTS: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::super::testing::{bursts, data, ms, multiplexed, samples};
    use super::*;
    use crate::registry::{AlgorithmSpec, Role};

    fn estimates(settings: &str, packets: &[Seen]) -> Vec<RttSample> {
        let spec = AlgorithmSpec::parse(Role::Estimator, &format!("autocorrelation{settings}")).unwrap();
        samples(&mut *spec.build_estimator(), packets)
    }

    /// By hand: pairs of packets in every tenth slot of 100, five slots to a packet.
    #[test]
    fn the_lag_of_a_regular_pattern_is_its_period() {
        let counts: Vec<_> = (0..10).map(|nth| (10 * nth, 2)).collect();
        assert_eq!(best_lag(&counts, 100, 0.2), Some(10.0));
        assert_eq!(best_lag(&counts[..7], 100, 0.2), None);
    }

    #[test]
    fn round_trip_times_from_10_to_500_ms_are_found_within_half_a_slot() {
        for rtt in [10.0, 33.3, 60.0, 130.0, 300.0, 500.0] {
            let found = estimates("", &bursts(0, 0.0, rtt, 4, rtt / 40.0));
            assert!(!found.is_empty(), "{rtt}");
            for sample in found {
                assert!(sample.rtt.abs_diff(ms(rtt)) <= ms(0.5), "{rtt}: {sample:?}");
            }
        }
    }

    #[test]
    fn other_flows_in_between_change_nothing() {
        let trains: Vec<_> = (0..4)
            .map(|flow| bursts(flow, 1.3 * f64::from(flow), 40.0 + 30.0 * f64::from(flow), 4, 1.0))
            .collect();
        let found = estimates(":tries=4", &multiplexed(&trains));
        assert!(found.len() >= 8, "{}", found.len());
        for sample in found {
            let rtt = ms(40.0 + 30.0 * f64::from(sample.flow.0));
            assert!(sample.rtt.abs_diff(rtt) <= ms(0.5), "{sample:?}");
        }
    }

    #[test]
    fn packets_without_a_pattern_give_nothing() {
        let mut random = RandomStream::new(3, "poisson");
        let mut at = 0.0;
        let packets: Vec<_> = (0..5_000)
            .map(|_| {
                at += random.exponential(ms(10.0)).as_millis_f64();
                data(0, at)
            })
            .collect();
        assert_eq!(estimates("", &packets), []);
    }

    #[test]
    fn a_flow_that_falls_silent_is_given_up_for_another() {
        let mut packets = vec![data(7, 0.0); 100];
        packets.extend(bursts(0, 1.0, 100.0, 4, 1.0));
        let found = estimates(":tries=1:window=2s", &packets);
        assert!(!found.is_empty() && found.iter().all(|sample| sample.flow == FlowId(0)));
    }
}
