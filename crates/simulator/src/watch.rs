//! The packets into a link, for estimators, beside the measurements of their senders.

use suimon_algorithms::estimate::representative::Representative;
use suimon_algorithms::estimate::{RttEstimator, Seen};
use suimon_algorithms::queue::{FlowId, Packet as _};
use suimon_algorithms::{Probe, RandomStream};
use suimon_model as model;
use suimon_units::{Duration, Instant};

use crate::flow::{Endpoints, Flow};
use crate::packet::Frame;

/// The packets that came to a link since they were last looked at.
#[derive(Debug)]
pub(crate) struct Watch {
    seen: Vec<Seen>,
    estimation: Option<Estimation>,
}

/// An estimator at work.
#[derive(Debug)]
struct Estimation {
    estimator: Box<dyn RttEstimator>,
    representative: Representative,
    random: RandomStream,
}

impl Watch {
    /// The watch for the estimator of `link`, where it has one.
    pub(crate) fn of(link: &model::Link, seed: u64) -> Option<Self> {
        let estimator = link.estimator.as_ref()?;
        Some(Self {
            seen: Vec::new(),
            estimation: Some(Estimation {
                estimator: estimator.build_estimator(),
                representative: Representative::new(None),
                random: RandomStream::new(seed, &format!("link {} estimator", link.name)),
            }),
        })
    }

    /// A watch that hands its packets to a caller.
    pub(crate) fn for_others() -> Self {
        Self { seen: Vec::new(), estimation: None }
    }

    pub(crate) fn on_packet(&mut self, now: Instant, frame: &Frame) {
        let opens_connection = frame.opens_connection;
        self.seen.push(Seen { now, flow: frame.flow(), size: frame.size(), opens_connection });
    }

    /// Gives the packets since the last time, each with the round-trip time that its sender measured last.
    pub(crate) fn drain<'a>(
        &'a mut self,
        flows: &'a [Flow],
    ) -> impl Iterator<Item = (Seen, Option<Duration>)> + 'a {
        self.seen.drain(..).map(|seen| (seen, measured(flows, seen.flow)))
    }

    /// The values of one sample: the representative round-trip time, and the mean of the senders' own,
    /// weighted by their bytes since the last sample (eq. 2 of Hoshihara, Koga, Watanabe).
    pub(crate) fn sample(&mut self, flows: &[Flow], probe: &mut dyn Probe) {
        let Some(mut estimation) = self.estimation.take() else { return };
        let (mut sum, mut packets, mut estimates) = (Duration::ZERO, 0, 0_u32);
        for (seen, truth) in self.drain(flows) {
            if let Some(truth) = truth {
                sum += truth;
                packets += 1;
            }
            if let Some(sample) = estimation.estimator.on_packet(&seen, &mut estimation.random) {
                estimation.representative.on_estimate(sample.rtt);
                estimates += 1;
            }
        }
        let millis = |time: Option<Duration>| time.map_or(f64::NAN, Duration::as_millis_f64);
        probe.value("estimated_rtt_ms", millis(estimation.representative.get()));
        probe.value("true_rtt_ms", millis((packets > 0).then(|| sum / packets)));
        probe.value("estimates", f64::from(estimates));
        probe.value("estimator_bytes", estimation.estimator.memory().as_f64());
        self.estimation = Some(estimation);
    }
}

/// The round-trip time that the sender of `flow` measured last.
pub(crate) fn measured(flows: &[Flow], flow: FlowId) -> Option<Duration> {
    match &flows[flow.0 as usize].endpoints {
        Endpoints::Tcp { sender, .. } => sender.counters.rtt_last,
        Endpoints::Udp { .. } => None,
    }
}
