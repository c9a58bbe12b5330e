//! Connections that a gateway splits: what the halves tell each other.

use suimon_units::{Bytes, Instant};

use super::World;
use crate::flow::{Endpoints, Flow};
use crate::gateway::Half;
use crate::tcp::Sender;

impl World<'_> {
    /// The sender of a half of a split connection has news: an acknowledgement, or packets that it has sent.
    #[cold]
    pub(super) fn on_half(&mut self, now: Instant, index: u32, half: Half) {
        match half {
            Half::Inward { outward } => {
                let Endpoints::Tcp { sender, .. } = &self.flows[index as usize].endpoints else { return };
                if sender.is_established() && self.flows[outward].started.is_none() {
                    self.on_flow_start(now, outward as u32);
                    // The user has waited since the first half began.
                    self.flows[outward].started = self.flows[index as usize].started;
                }
            }
            Half::Outward { inward, client } => {
                let Endpoints::Tcp { sender, .. } = &self.flows[index as usize].endpoints else { return };
                if sender.is_established() {
                    self.begin_inward(now, inward);
                }
                if let Some(client) = client {
                    self.share(now, index as usize, client);
                }
                self.read_inward(now, index as usize, inward);
            }
        }
    }

    /// Both halves are there: data may come.
    fn begin_inward(&mut self, now: Instant, inward: usize) {
        let flow = &mut self.flows[inward];
        if !std::mem::replace(&mut flow.joined, true)
            && let Endpoints::Tcp { sender, .. } = &mut flow.endpoints
        {
            sender.source.resume(now);
            sender.on_wakeup(now, &mut self.outbox);
            self.after_sender(now, inward as u32);
            if let Some(subflow) = self.flows[inward].subflow {
                self.hear(now, inward as u32, subflow, None);
            }
        }
    }

    /// The first half of a split connection has delivered `more`, which the second sends.
    #[cold]
    pub(super) fn pass_on(&mut self, now: Instant, outward: usize, more: Bytes) {
        if let Endpoints::Tcp { sender, .. } = &mut self.flows[outward].endpoints {
            sender.source.feed(more);
            sender.on_wakeup(now, &mut self.outbox);
            self.after_sender(now, outward as u32);
        }
        if let Some(Half::Outward { inward, .. }) = self.flows[outward].half {
            self.read_inward(now, outward, inward);
        }
    }

    /// What the second half of a split connection has not sent, the gateway leaves unread.
    fn read_inward(&mut self, now: Instant, outward: usize, inward: usize) {
        let Endpoints::Tcp { sender, .. } = &self.flows[outward].endpoints else { return };
        let taken = sender.taken();
        let Endpoints::Tcp { receiver, .. } = &mut self.flows[inward].endpoints else { return };
        let update = receiver.on_read(now, receiver.delivered() - taken);
        if update.is_some() {
            self.send_answer(now, inward as u32, update);
        }
    }

    /// A connection to a receiver starts beside others.
    pub(super) fn enter_client(&mut self, index: usize, client: usize) {
        let Endpoints::Tcp { sender, .. } = &self.flows[index].endpoints else { return };
        let client = &self.clients[client];
        let started = |flow: &usize| *flow != index && self.flows[*flow].started.is_some();
        let others = client.flows.iter().copied().filter(started);
        let share = client.share_at_start(sender, senders(&self.flows, others));
        if let Endpoints::Tcp { sender, .. } = &mut self.flows[index].endpoints {
            sender.tell();
            sender.limit_share(share);
        }
    }

    /// Gives each connection to a receiver its share of what may be in flight to it.
    fn share(&mut self, now: Instant, index: usize, client: usize) {
        let Endpoints::Tcp { sender, .. } = &mut self.flows[index].endpoints else { return };
        let Some(ack) = sender.take_told() else { return };
        // They are put back below; a share is computed and told without a copy of the list.
        let members = std::mem::take(&mut self.clients[client].flows);
        self.clients[client].on_ack(&ack, &senders(&self.flows, members.iter().copied()));
        for &flow in &members {
            if let Endpoints::Tcp { sender, .. } = &mut self.flows[flow].endpoints {
                sender.limit_share(self.clients[client].share(sender));
                sender.on_wakeup(now, &mut self.outbox);
            }
            self.after_sender(now, flow as u32);
        }
        self.clients[client].flows = members;
    }

    /// The first half of a split connection is stopped, so the second has an end.
    pub(super) fn end_outward(&mut self, now: Instant, inward: usize, outward: usize) {
        let Endpoints::Tcp { sender, .. } = &self.flows[inward].endpoints else { return };
        let total = sender.taken();
        let would_have = self.flows[outward].will_complete();
        if let Endpoints::Tcp { sender, .. } = &mut self.flows[outward].endpoints {
            sender.source.end_at(total);
        }
        if would_have && !self.flows[outward].will_complete() {
            self.flow_completed(now);
        }
    }
}

/// The sending ends of `members` among `flows`.
fn senders(
    flows: &[Flow],
    members: impl Iterator<Item = usize> + Clone,
) -> impl Iterator<Item = &Sender> + Clone {
    members.filter_map(|flow| match &flows[flow].endpoints {
        Endpoints::Tcp { sender, .. } => Some(sender.as_ref()),
        Endpoints::Udp { .. } => None,
    })
}
