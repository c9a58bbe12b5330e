//! What a browser saw of a line, with what the server's sockets add.
//!
//! A browser has no datagrams and no look at its sockets. Its probes go over several WebSockets in turn: a lost one holds back those
//! behind it on the same WebSocket, and comes late instead of never. Of the loads only the server's end is known.

use serde::Deserialize;

use crate::estimate::Clocks;
pub use crate::load::Look;
use crate::recording::{Loaded, Probe, Recording, Sample, Span};

/// When a probe was sent, the server's time, and when the answer came, where one did, in microseconds.
pub type SentProbe = (u64, Option<(u64, u64)>);

/// The report of a browser. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The probes by their numbers; nothing where a WebSocket was stuck, so that none was sent.
    pub probes: Vec<Option<SentProbe>>,
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
/// The WebSockets over which probes go in turn. One that is lost holds back each eighth behind it, and a congestion
/// window of two segments is enough for a round trip of 320 ms.
const SOCKETS: usize = 8;
/// A probe that comes later than one that was sent after it, by more than that, was sent again.
const OVERTAKEN_US: u64 = 1_000;

impl Seen {
    /// All that was seen, where a probe came back. `looks` are the server's, of the download and of the upload.
    #[must_use]
    pub fn recording(&self, looks: [Vec<Look>; 2], is_ipv6: bool) -> Option<Recording> {
        let idle: Vec<Span> = self.idle.iter().copied().filter(Span::is_in_time).take(MAX_IDLE).collect();
        let probes = self.unblocked();
        let mut recording = Recording { is_ipv6, is_stream: true, probes, idle, ..Recording::default() };
        let clocks = Clocks::of(&recording)?;
        let least =
            recording.probes.iter().filter_map(|probe| Some(probe.answer?.1.saturating_sub(probe.sent_us)));
        let back_us = least.min()? / 2;
        let [down, up] = looks;
        let load = |span: Option<Span>| span.filter(Span::is_in_time);
        // What a browser had handed to its host goes on for a while.
        let within = |mut looks: Vec<Look>, span: Span| {
            looks.retain(|look| clocks.of_client(look.sample.at_us as f64) <= span.to_us as f64);
            looks
        };
        recording.download = load(self.download).map(|span| {
            let (sender, receiver) = of_download(&within(down, span), &clocks, back_us);
            Loaded { span, sender, receiver }
        });
        recording.upload = load(self.upload).map(|span| {
            let (sender, receiver) = of_upload(&within(up, span), &clocks);
            Loaded { span, sender, receiver }
        });
        Some(recording)
    }

    /// The probes, without those that waited for an earlier one to be sent again. That one counts as lost.
    ///
    /// Packets stay in order in the queues of a line, so a probe that was overtaken by a later one, of another WebSocket,
    /// did not wait for the line alone.
    fn unblocked(&self) -> Vec<Probe> {
        let numbered = self.probes.iter().take(MAX_PROBES).enumerate();
        let sent = numbered.filter_map(|(number, probe)| Some((number, (*probe)?)));
        let is_in_time = |sent_us, answer| Probe { sent_us, answer }.is_in_time();
        let mut all: Vec<_> = sent.filter(|(_, (sent, answer))| is_in_time(*sent, *answer)).collect();
        all.sort_by_key(|(_, (sent, _))| *sent);
        // From the last to the first: the earliest times of those that were sent later.
        let mut earliest = (u64::MAX, u64::MAX);
        let mut is_late: Vec<bool> = Vec::with_capacity(all.len());
        for (_, (_, answer)) in all.iter().rev() {
            let (server, back) = answer.unwrap_or((u64::MAX, u64::MAX));
            let is_overtaken =
                |at: u64, later: u64| at != u64::MAX && at.saturating_sub(later) > OVERTAKEN_US;
            is_late.push(is_overtaken(server, earliest.0) || is_overtaken(back, earliest.1));
            earliest = (earliest.0.min(server), earliest.1.min(back));
        }
        let mut was_late = [false; SOCKETS];
        let each = all.into_iter().zip(is_late.into_iter().rev());
        each.filter_map(|((number, (sent_us, answer)), is_late)| {
            let was_late = std::mem::replace(&mut was_late[number % SOCKETS], is_late);
            let answer = if is_late { None } else { answer };
            // Those behind the first that is late were held back by it.
            (!is_late || !was_late).then_some(Probe { sent_us, answer })
        })
        .collect()
    }
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

    fn seen(probes: Vec<SentProbe>) -> Seen {
        let probes = probes.into_iter().map(Some).collect();
        Seen { probes, idle: vec![Span { from_us: 0, to_us: 1_000_000 }], download: None, upload: None }
    }

    #[test]
    fn a_probe_that_was_sent_again_counts_as_lost_and_those_behind_it_do_not_count() {
        let steady = |nth: u64| (nth * 20_000, Some((nth * 20_000 + 10_000, nth * 20_000 + 20_000)));
        let mut probes: Vec<_> = (0..40).map(steady).collect();
        // The fourth comes 300 ms late, and with it the twelfth, which is the next of its WebSocket.
        for late in [3, 3 + SOCKETS] {
            probes[late].1 = Some((370_000, 380_000));
        }
        let kept = seen(probes.clone()).unblocked();
        assert_eq!(kept.len(), 39);
        assert_eq!(kept[3], Probe { sent_us: 60_000, answer: None });
        assert_eq!(kept.iter().filter(|probe| probe.answer.is_none()).count(), 1);
        assert_eq!(kept[10].sent_us, 200_000);
        assert_eq!(kept[11].sent_us, 240_000);
        // A host that stood still delays all alike, and in order.
        let mut stood = probes;
        for (nth, probe) in stood.iter_mut().enumerate() {
            *probe = steady(nth as u64);
            probe.1 = probe.1.map(|(server, back)| (server.max(400_000), back.max(450_000)));
        }
        assert!(seen(stood).unblocked().iter().all(|probe| probe.answer.is_some()));
    }

    #[test]
    fn a_websocket_that_was_stuck_leaves_the_numbers_of_the_others() {
        let steady = |nth: u64| Some((nth * 20_000, Some((nth * 20_000 + 10_000, nth * 20_000 + 20_000))));
        let mut seen = seen(Vec::new());
        seen.probes = (0..40).map(steady).collect();
        // The second does not send. The fourth is late twice, and so is the fifth once.
        for none in (1..40).step_by(SOCKETS) {
            seen.probes[none] = None;
        }
        for late in [3, 3 + SOCKETS, 4] {
            seen.probes[late].as_mut().unwrap().1 = Some((370_000, 380_000));
        }
        let kept = seen.unblocked();
        assert_eq!(kept.iter().filter(|probe| probe.answer.is_none()).count(), 2);
        assert_eq!(kept.len(), 40 - 5 - 1);
    }

    #[test]
    fn a_probe_is_late_where_it_is_overtaken_by_more_than_a_millisecond() {
        for (ahead, is_late) in [(1_000, false), (1_001, true)] {
            let probes = vec![(0, Some((9_000, 30_000))), (20_000, Some((9_500, 30_000 - ahead)))];
            assert_eq!(seen(probes).unblocked()[0].answer.is_none(), is_late);
        }
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
