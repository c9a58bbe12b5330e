//! Nodes that split connections: a flow through one is two connections, and what the first delivers is what the second
//! sends.
//!
//! The connection to the receiver has the flow's place; that from the sender comes behind all flows of the scenario and
//! is in no result. It is made first, and its data waits until the other is made too, as where a gateway asks the server
//! before it answers the client. What the node holds unsent closes the window toward the sender.

use suimon_algorithms::congestion::{Ack, CongestionControl, Limits};
use suimon_model::{Gateway, Scenario};
use suimon_units::Bytes;

use crate::tcp::Sender;

/// A half of a split connection, with the index of the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Half {
    /// From the sender to the gateway.
    Inward { outward: usize },
    /// From the gateway to the receiver.
    Outward { inward: usize, client: Option<usize> },
}

/// The halves among the flows of a scenario that was [split](Scenario::split), and the receivers that share a target each.
pub(crate) fn halves(scenario: &Scenario) -> (Vec<Option<Half>>, Vec<Client>) {
    let mut halves = vec![None; scenario.flows.len()];
    let mut clients: Vec<(&str, &str, Client)> = Vec::new();
    for (outward, inward) in scenario.halves() {
        let flow = &scenario.flows[outward];
        let client = flow.gateway().filter(|gateway| gateway.shared).map(|gateway| {
            let known = clients.iter().position(|(node, to, _)| *node == flow.from && *to == flow.to);
            known.unwrap_or_else(|| {
                clients.push((&flow.from, &flow.to, Client::new(gateway)));
                clients.len() - 1
            })
        });
        if let Some(client) = client {
            clients[client].2.flows.push(outward);
        }
        halves[outward] = Some(Half::Outward { inward, client });
        halves[inward] = Some(Half::Inward { outward });
    }
    (halves, clients.into_iter().map(|(_, _, client)| client).collect())
}

/// A receiver whose connections share one target: FS-AT measures all of them as one, and each may have a share of its
/// space in flight. Young connections have larger shares, so that a page need not wait for a download.
#[derive(Debug)]
pub(crate) struct Client {
    /// Indices of the connections from the gateway.
    pub(crate) flows: Vec<usize>,
    control: Box<dyn CongestionControl>,
    limits: Limits,
    /// What may be in flight to it; none before the first acknowledgement.
    space: Option<Bytes>,
    /// The weights of the connections that have data to send.
    weights: u64,
}

/// A connection is young until it has carried so much since it began or was silent: what a large page weighs.
/// `bpf/client.h` has the same.
const YOUNG: u64 = 2_000_000;
/// So often a young connection counts. A download beside it keeps a ninth.
const WEIGHT_OF_YOUNG: u64 = 8;

/// How often a connection counts in its client's space, once it has carried `carried` bytes.
fn weight(carried: u64) -> u64 {
    if carried < YOUNG { WEIGHT_OF_YOUNG } else { 1 }
}

impl Client {
    fn new(gateway: &Gateway) -> Self {
        let limits = Limits::initial(Bytes::ZERO);
        Self { flows: Vec::new(), control: gateway.cc.build_congestion(), limits, space: None, weights: 0 }
    }

    /// An acknowledgement arrived for one of the connections, of which these are all.
    pub(crate) fn on_ack<'a>(&mut self, ack: &Ack, all: &(impl Iterator<Item = &'a Sender> + Clone)) {
        let active = all.clone().filter(|sender| sender.is_established());
        let sum = |of: fn(&Sender) -> Bytes| active.clone().map(of).fold(Bytes::ZERO, |sum, one| sum + one);
        let flight_size = sum(Sender::flight_size);
        self.limits.cwnd = sum(|sender| sender.limits().cwnd);
        if self.space.is_none() {
            self.control.on_established(ack.now, &mut self.limits);
        }
        // Who has nothing to send leaves its share to the others.
        let sending = active.clone().filter(|sender| !sender.is_application_limited());
        self.weights = sending.map(|sender| weight(sender.carried())).sum();
        let together = Ack {
            flight_size,
            prior_flight_size: flight_size + ack.delivered,
            snd_wnd: ack.snd_wnd * active.clone().count() as u64,
            app_limited: self.weights == 0,
            ..*ack
        };
        let cwnd = self.limits.cwnd;
        self.control.on_ack(&together, &mut self.limits);
        self.limits.cwnd = cwnd;
        self.space = Some(self.limits.space);
    }

    /// The share of a connection, by its weight.
    pub(crate) fn share(&self, sender: &Sender) -> Bytes {
        self.share_of(weight(sender.carried()), self.weights, sender.mss(), Bytes::ZERO)
    }

    /// The share of a connection that starts beside `others`, before it hears anything: at first all of them together
    /// may send one initial window.
    pub(crate) fn share_at_start<'a>(
        &self,
        sender: &Sender,
        others: impl Iterator<Item = &'a Sender>,
    ) -> Bytes {
        let own = weight(0);
        let all = own + others.map(|other| weight(other.carried())).sum::<u64>();
        self.share_of(own, all, sender.mss(), sender.limits().cwnd)
    }

    fn share_of(&self, own: u64, all: u64, mss: Bytes, at_first: Bytes) -> Bytes {
        (self.space.unwrap_or(at_first) * own / all.max(own)).max(mss * 2)
    }
}
