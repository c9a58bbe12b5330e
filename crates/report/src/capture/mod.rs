//! Views of a packet capture: its proofs of round-trip times, and the estimates of estimators.

mod figures;
mod json;
mod page;
mod tables;
mod terminal;

use suimon_results::{CaptureResult, EstimatorVerdict, Repeats, RttSummary};
use suimon_units::Duration;

use crate::numbers::significant;

pub use figures::capture_figures;
pub use json::capture_json;
pub use page::capture_page_tables;
pub use tables::CaptureTables;
pub use terminal::terminal_capture;

/// Which number to use, and which not, as far as the capture itself proves it.
#[must_use]
pub fn capture_verdict(result: &CaptureResult) -> String {
    let mut proved = RttSummary::default();
    for rtt in result.flows.iter().map(|flow| flow.rtt).filter(|rtt| rtt.samples > 0) {
        proved.min = if proved.samples == 0 { rtt.min } else { proved.min.min(rtt.min) };
        proved.max = proved.max.max(rtt.max);
        proved.sum += rtt.sum;
        proved.samples += rtt.samples;
    }
    let Some(mean) = proved.mean() else {
        return if result.data_packets == 0 {
            String::new()
        } else {
            "Use no number above as a round-trip time: the capture proves none, so no estimate can be judged."
                .to_owned()
        };
    };
    let off = |verdict| {
        let of = result.estimators.iter().filter(move |estimator| estimator.verdict() == verdict);
        let told = of.map(|estimator| {
            let error = estimator.error().map_or(f64::NAN, |error| error * 100.0);
            format!("{} (off by {} %)", estimator.name, significant(error))
        });
        told.collect::<Vec<_>>().join(", ")
    };
    let ms = |time: Duration| significant(time.as_millis_f64());
    let mut told = format!("Use the true round-trip time: {} ms on average", ms(mean));
    if let Some(rtts) = result.rtt_percentiles {
        told += &format!(", {} ms on the median, {} ms at the 95th percentile", ms(rtts.p50), ms(rtts.p95));
    }
    told += &format!(", from {} to {} ms, by {} ACKs.", ms(proved.min), ms(proved.max), proved.samples);
    for (verdict, what) in [
        (EstimatorVerdict::Close, "Estimators that come close"),
        (EstimatorVerdict::Rough, "Rough ones"),
        (EstimatorVerdict::Fails, "Estimators that fail on this capture, and are not to be used"),
    ] {
        let names = off(verdict);
        if !names.is_empty() {
            told += &format!(" {what}: {names}.");
        }
    }
    told
}

/// The repeats of all flows.
fn all_repeats(result: &CaptureResult) -> Repeats {
    result.flows.iter().filter_map(|flow| flow.repeats).fold(Repeats::default(), |sum, flow| Repeats {
        retransmissions: sum.retransmissions + flow.retransmissions,
        lost_before: sum.lost_before + flow.lost_before,
        reordered: sum.reordered + flow.reordered,
    })
}

/// What was sent again, came late or was lost, as a sentence; empty where nothing tells.
#[must_use]
pub fn capture_losses(result: &CaptureResult) -> String {
    let tcp = || result.flows.iter().filter(|flow| flow.repeats.is_some());
    let packets: u64 = tcp().map(|flow| flow.packets).sum();
    if packets == 0 {
        return String::new();
    }
    let repeats = all_repeats(result);
    if repeats == Repeats::default() {
        return format!("{packets} TCP packets with data: none was sent again and none came late.");
    }
    let percent = significant(100.0 * repeats.lost() as f64 / packets as f64);
    let parts: Vec<String> = [
        (repeats.retransmissions, "sent again"),
        (repeats.lost_before, "lost on their way to the capture"),
        (repeats.reordered, "out of order"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    format!("{packets} TCP packets with data: {}. At most {percent} % were lost.", parts.join(", "))
}

/// The notes that a reader needs before trusting `result`, each a sentence.
#[must_use]
pub fn capture_notes(result: &CaptureResult) -> Vec<String> {
    let mut notes = Vec::new();
    if !result.skipped.is_empty() {
        let reasons: Vec<_> =
            result.skipped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        notes.push(format!("Skipped packets: {}.", reasons.join(", ")));
    }
    if let Some((packets, offset)) = result.cut_off {
        notes.push(format!(
            "The capture is cut off at byte {offset}, within packet {}; what comes before was used.",
            packets + 1
        ));
    }
    if result.out_of_order > 0 {
        notes.push(format!(
            "{} packets bear an earlier time than the one before; they count as simultaneous with it.",
            result.out_of_order
        ));
    }
    if result.packets_of_other_flows > 0 {
        notes.push(format!(
            "{} packets belong to more flows than are kept; they enter the estimates and no other number.",
            result.packets_of_other_flows
        ));
    }
    if result.flow_samples_not_kept > 0 {
        notes.push(format!(
            "{} rows of the flows over time were left out for want of memory; totals hold everything.",
            result.flow_samples_not_kept
        ));
    }
    if result.data_packets > 0 && result.flows.iter().all(|flow| flow.rtt.samples == 0) {
        notes.push(
            "No true round-trip time is known: that takes both directions of a TCP connection, from its \
             start or with timestamps."
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
pub(crate) mod samples {
    use suimon_results::{
        CapturedFlow, Column, EstimatorResult, RttPercentiles, RttSummary, Series, TimeSequence,
    };
    use suimon_units::{Bytes, Duration, Instant};

    use super::*;

    fn summary(rtts: &[u64]) -> RttSummary {
        let mut summary = RttSummary::default();
        rtts.iter().for_each(|ms| summary.add(Duration::from_millis(*ms)));
        summary
    }

    fn percentiles(rtts: &[u64]) -> Option<RttPercentiles> {
        let ms = |ms| Duration::from_millis(ms);
        (!rtts.is_empty()).then(|| RttPercentiles { p50: ms(48), p95: ms(59), p99: ms(60) })
    }

    fn flow(name: &str, packets: u64, rtts: &[u64], estimates: &[u64]) -> CapturedFlow {
        CapturedFlow {
            name: name.to_owned(),
            transport: "tcp",
            start: Instant::ZERO,
            end: Instant::ZERO + Duration::from_secs(2),
            packets,
            bytes: Bytes::new(packets * 1_500),
            payload: Bytes::new(packets * 1_448),
            rtt: summary(rtts),
            rtt_percentiles: percentiles(rtts),
            repeats: (!rtts.is_empty()).then_some(Repeats {
                retransmissions: 6,
                lost_before: 3,
                reordered: 1,
            }),
            time_sequence: (!rtts.is_empty()).then(|| {
                let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
                TimeSequence {
                    data: vec![(at(0), 0), (at(10), 1_448)],
                    repeats: vec![(at(90), 0)],
                    acknowledged: vec![(at(130), 2_896)],
                }
            }),
            receiver_side_mean: Some(Duration::from_millis(30)),
            sender_side_mean: (!rtts.is_empty()).then(|| Duration::from_millis(10)),
            estimates: vec![summary(estimates)],
        }
    }

    fn series(subject: &str, columns: &[(&str, [f64; 2])]) -> Series {
        let second = |n| Instant::ZERO + Duration::from_secs(n);
        let column =
            |(name, values): &(&str, [f64; 2])| Column { name: (*name).to_owned(), values: values.to_vec() };
        Series {
            subject: subject.to_owned(),
            times: vec![second(1), second(2)],
            columns: columns.iter().map(column).collect(),
        }
    }

    /// Two flows, one estimator, two intervals.
    pub(crate) fn two_flows() -> CaptureResult {
        let flows = vec![flow("10.0.0.1:1 > 10.0.0.2:80", 300, &[40, 60], &[44]), flow("b", 10, &[], &[])];
        CaptureResult {
            name: "link.pcap".to_owned(),
            packets: 1_000,
            duration: Duration::from_secs(2),
            skipped: vec![("not IP".to_owned(), 3)],
            out_of_order: 0,
            cut_off: Some((1_000, 88_024)),
            data_packets: 310,
            flows,
            packets_of_other_flows: 0,
            rtt_percentiles: percentiles(&[40, 60]),
            estimators: vec![EstimatorResult {
                name: "bursts".to_owned(),
                colour: "#e15759".to_owned(),
                estimates: 1,
                judged: 1,
                bias_median: Some(-0.12),
                error_median: Some(0.12),
                representative_mean: Some(Duration::from_millis(44)),
                true_mean: Some(Duration::from_millis(50)),
                representative_error: Some(0.12),
                memory: Bytes::new(200),
            }],
            series: series(
                "link",
                &[
                    ("rtt_true_ms", [50.0, f64::NAN]),
                    ("bursts_ms", [44.0, 44.0]),
                    ("flows_active", [2.0, 1.0]),
                ],
            ),
            flow_series: vec![series(
                "10.0.0.1:1 > 10.0.0.2:80",
                &[("rtt_true_ms", [50.0, 52.0]), ("bursts_ms", [44.0, f64::NAN])],
            )],
            flow_samples_not_kept: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_names_the_number_to_use_and_those_not_to() {
        let mut result = samples::two_flows();
        let told = capture_verdict(&result);
        assert_eq!(
            told,
            "Use the true round-trip time: 50.0 ms on average, 48.0 ms on the median, 59.0 ms at the 95th \
             percentile, from 40.0 to 60.0 ms, by 2 ACKs. Rough ones: bursts (off by 12.0 %)."
        );
        result.estimators[0].error_median = Some(87.6);
        let told = capture_verdict(&result);
        assert!(told.ends_with("are not to be used: bursts (off by 8760 %)."), "{told}");
        result.flows.remove(0);
        assert!(capture_verdict(&result).starts_with("Use no number above"));
    }

    #[test]
    fn losses_are_told_as_far_as_sequence_numbers_show_them() {
        let mut result = samples::two_flows();
        assert_eq!(
            capture_losses(&result),
            "300 TCP packets with data: 6 sent again, 3 lost on their way to the capture, 1 out of order. At most 3.00 % \
             were lost."
        );
        result.flows[0].repeats = Some(Repeats::default());
        assert!(capture_losses(&result).ends_with("none was sent again and none came late."));
        result.flows.remove(0);
        assert_eq!(capture_losses(&result), "");
    }

    #[test]
    fn what_was_left_out_is_said() {
        let mut result = samples::two_flows();
        assert_eq!(
            capture_notes(&result),
            [
                "Skipped packets: 3 not IP.",
                "The capture is cut off at byte 88024, within packet 1001; what comes before was used."
            ]
        );
        result.flows.remove(0);
        assert!(capture_notes(&result)[2].starts_with("No true round-trip time is known"));
    }
}
