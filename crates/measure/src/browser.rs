//! What a browser saw of a line, with what the server's sockets add.
//!
//! A browser has no datagrams and no look at its sockets. Its probes go over a WebSocket, so a lost one holds back those behind
//! it, and comes late instead of never; and of the loads only the server's end is known.

use serde::Deserialize;

use crate::estimate::Clocks;
pub use crate::load::Look;
use crate::recording::{Loaded, Probe, Recording, Sample, Span};

/// The report of a browser. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// Of each probe in the order of sending: when it was sent, the server's time, and when the answer came, where one did.
    pub probes: Vec<(u64, Option<(u64, u64)>)>,
    /// Times without load.
    pub idle: Vec<Span>,
    /// The time of the download.
    pub download: Option<Span>,
    /// The time of the upload.
    pub upload: Option<Span>,
}

/// The most probes and idle times that count.
const MAX_PROBES: usize = 6_000;
const MAX_IDLE: usize = 16;
/// The latest time that counts.
const MAX_US: u64 = 120_000_000;
/// The same by the server's clock, which began with the server: a hundred years.
const MAX_SERVER_US: u64 = 3_156_000_000_000_000;
/// Probes that come at the same time, by so much, though they were sent further apart: one held the others back.
const TOGETHER_US: u64 = 1_000;
const APART_US: u64 = 8_000;

impl Seen {
    /// All that was seen, where a probe came back. `looks` are the server's, of the download and of the upload.
    #[must_use]
    pub fn recording(&self, looks: [Vec<Look>; 2], is_ipv6: bool) -> Option<Recording> {
        let idle: Vec<Span> = self.idle.iter().copied().filter(is_in_time).take(MAX_IDLE).collect();
        let probes = self.unblocked();
        let mut recording = Recording { is_ipv6, is_stream: true, probes, idle, ..Recording::default() };
        let clocks = Clocks::of(&recording)?;
        let least =
            recording.probes.iter().filter_map(|probe| Some(probe.answer?.1.saturating_sub(probe.sent_us)));
        let back_us = least.min()? / 2;
        let [down, up] = looks;
        let load = |span: Option<Span>| span.filter(is_in_time);
        // What a browser had handed to its host goes on for a while.
        let within = |looks: &[Look], span: Span| -> Vec<Look> {
            let is_before = |look: &&Look| clocks.of_client(look.sample.at_us as f64) <= span.to_us as f64;
            looks.iter().filter(is_before).copied().collect()
        };
        recording.download = load(self.download).map(|span| {
            let (sender, receiver) = of_download(&within(&down, span), &clocks, back_us);
            Loaded { span, sender, receiver }
        });
        recording.upload = load(self.upload).map(|span| {
            let (sender, receiver) = of_upload(&within(&up, span), &clocks);
            Loaded { span, sender, receiver }
        });
        Some(recording)
    }

    /// The probes, without those that waited for an earlier one to be sent again. That one counts as lost.
    fn unblocked(&self) -> Vec<Probe> {
        let in_time = |(sent, answer): &&(u64, Option<(u64, u64)>)| {
            let (server, back) = answer.unwrap_or((0, *sent));
            *sent <= back && back <= MAX_US && server <= MAX_SERVER_US
        };
        let mut all: Vec<_> = self.probes.iter().filter(in_time).take(MAX_PROBES).copied().collect();
        all.sort_by_key(|(sent, _)| *sent);
        let mut kept: Vec<Probe> = Vec::with_capacity(all.len());
        let mut is_held_back = false;
        for (nth, &(sent_us, answer)) in all.iter().enumerate() {
            let next = all.get(nth + 1).and_then(|(sent, answer)| Some((*sent, (*answer)?)));
            let frees = matches!((answer, next), (Some(one), Some((sent, two))) if holds_back((sent_us, one), (sent, two)));
            // The last of those that came together was there before, and waited as well.
            match (frees, is_held_back) {
                (false, false) => kept.push(Probe { sent_us, answer }),
                (true, false) => kept.push(Probe { sent_us, answer: None }),
                (_, true) => {}
            }
            is_held_back = frees;
        }
        kept
    }
}

fn is_in_time(span: &Span) -> bool {
    span.from_us <= span.to_us && span.to_us <= MAX_US
}

type Answered = (u64, (u64, u64));

/// Whether one probe came together with the next, at either end.
fn holds_back((sent, (server, back)): Answered, (next_sent, (next_server, next_back)): Answered) -> bool {
    let is_far = |from: u64, to: u64| to.saturating_sub(from) >= APART_US;
    let is_near = |from: u64, to: u64| to.saturating_sub(from) <= TOGETHER_US;
    is_far(sent, next_sent) && is_near(server, next_server)
        || is_far(server, next_server) && is_near(back, next_back)
}

/// What the ends saw of a download whose sender is here: what has arrived is what was acknowledged, half a round trip ago.
fn of_download(looks: &[Look], clocks: &Clocks, back_us: u64) -> (Vec<Sample>, Vec<Sample>) {
    let received = |look: &Look| Sample {
        at_us: (clocks.of_client(look.sample.at_us as f64) as u64).saturating_sub(back_us),
        received: look.sample.acknowledged,
        received_segments: look.delivered,
        received_segment: look.segment,
        acknowledged: 0,
        ..look.sample
    };
    (looks.iter().map(|look| look.sample).collect(), looks.iter().map(received).collect())
}

/// What the ends saw of an upload whose receiver is here. The receiver's round-trip time stands in for the sender's; each
/// time in which segments began to come out of order counts as one that was sent again, of which there may be more.
fn of_upload(looks: &[Look], clocks: &Clocks) -> (Vec<Sample>, Vec<Sample>) {
    let mut flows: Vec<(u8, u64, u64, bool)> = Vec::new();
    let mut sent = Vec::with_capacity(looks.len());
    for look in looks {
        let place = flows.iter().position(|(flow, ..)| *flow == look.sample.flow).unwrap_or_else(|| {
            flows.push((look.sample.flow, look.out_of_order, 0, false));
            flows.len() - 1
        });
        let (_, before, episodes, is_in_one) = &mut flows[place];
        let is_new = look.out_of_order > *before;
        *episodes += u64::from(is_new && !*is_in_one);
        (*before, *is_in_one) = (look.out_of_order, is_new);
        sent.push(Sample {
            at_us: clocks.of_client(look.sample.at_us as f64) as u64,
            srtt_us: look.receiver_rtt_us,
            segments: look.sample.received_segments,
            retransmissions: *episodes,
            ..look.sample
        });
    }
    (sent, looks.iter().map(|look| look.sample).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(probes: Vec<(u64, Option<(u64, u64)>)>) -> Seen {
        Seen { probes, idle: vec![Span { from_us: 0, to_us: 1_000_000 }], download: None, upload: None }
    }

    #[test]
    fn a_probe_that_was_sent_again_counts_as_lost_and_those_behind_it_do_not_count() {
        let steady = |nth: u64| (nth * 20_000, Some((nth * 20_000 + 10_000, nth * 20_000 + 20_000)));
        let mut probes: Vec<_> = (0..10).map(steady).collect();
        // The fourth comes with the sixth.
        for late in [3, 4] {
            probes[late].1 = Some((5 * 20_000 + 9_900, 5 * 20_000 + 19_900));
        }
        let kept = seen(probes).unblocked();
        assert_eq!(kept.len(), 8);
        assert_eq!(kept[3], Probe { sent_us: 60_000, answer: None });
        assert_eq!(kept.iter().filter(|probe| probe.answer.is_none()).count(), 1);
        assert_eq!(kept[4], Probe { sent_us: 120_000, answer: Some((130_000, 140_000)) });
    }

    #[test]
    fn times_that_cannot_be_are_left_out() {
        let probes =
            vec![(u64::MAX, Some((0, 0))), (5, Some((1, 2))), (1, Some((u64::MAX, 7))), (1, Some((4, 9)))];
        assert_eq!(seen(probes).unblocked(), [Probe { sent_us: 1, answer: Some((4, 9)) }]);
        assert!(seen(Vec::new()).recording(Default::default(), false).is_none());
    }

    #[test]
    fn an_upload_is_told_from_its_receiver() {
        let look = |at_us, out_of_order| Look {
            sample: Sample { at_us, received_segments: at_us / 100, ..Sample::default() },
            out_of_order,
            receiver_rtt_us: 30_000,
            ..Look::default()
        };
        let probes = vec![(0, Some((500, 1_000)))];
        let looks = [look(1_000, 0), look(2_000, 3), look(3_000, 7), look(4_000, 7), look(5_000, 8)];
        let mut seen = seen(probes);
        seen.upload = Some(Span { from_us: 1_000, to_us: 6_000 });
        let recording = seen.recording([Vec::new(), looks.to_vec()], false).unwrap();
        let again: Vec<_> =
            recording.upload.unwrap().sender.iter().map(|sample| sample.retransmissions).collect();
        assert_eq!(again, [0, 1, 1, 1, 2]);
    }
}
