//! Flows that a gateway splits, as two connections each.

use std::borrow::Cow;

use suimon_units::Duration;

use crate::flow::{Flow, Gateway, Traffic};
use crate::scenario::Scenario;

impl Flow {
    /// The gateway that splits this flow.
    #[must_use]
    pub fn gateway(&self) -> Option<&Gateway> {
        match &self.traffic {
            Traffic::Tcp(tcp) => tcp.gateway.as_ref(),
            Traffic::Udp(_) => None,
        }
    }
}

impl Scenario {
    /// The same scenario, in which each flow through a gateway begins there, and one for its first half comes behind all.
    /// The two have one name.
    #[must_use]
    pub fn split(scenario: Cow<'_, Self>) -> Cow<'_, Self> {
        if !scenario.flows.iter().any(|flow| flow.gateway().is_some()) {
            return scenario;
        }
        let mut scenario = scenario.into_owned();
        let ways = |flow: &Flow| Some(scenario.halves_of(flow.via.as_ref()?, &flow.gateway()?.node));
        let ways: Vec<_> = scenario.flows.iter().map(ways).collect();
        let mut inward = Vec::new();
        for (flow, ways) in scenario.flows.iter_mut().zip(ways) {
            let Some(Gateway { node, receiver, buffer, .. }) = flow.gateway().cloned() else { continue };
            let mut first = flow.clone();
            if let Some((before, behind)) = ways {
                (first.via, flow.via) = (Some(before), Some(behind));
            }
            first.to.clone_from(&node);
            flow.from = node;
            // The application is at the sender; what it draws goes by the flow's name, which both have.
            (flow.stop, flow.extra_delay) = (None, (Duration::ZERO, Duration::ZERO));
            if let (Traffic::Tcp(first), Traffic::Tcp(second)) = (&mut first.traffic, &mut flow.traffic) {
                (first.receiver, first.window, first.gateway) = (receiver, buffer, None);
                (second.application_rate, second.on_off) = (None, None);
            }
            inward.push(first);
        }
        scenario.flows.extend(inward);
        Cow::Owned(scenario)
    }

    /// The halves of each connection of a scenario that was [`split`](Self::split): the place of the flow from the gateway,
    /// and that of the flow to it.
    #[must_use]
    pub fn halves(&self) -> Vec<(usize, usize)> {
        let is_split = |(place, flow): (usize, &Flow)| flow.gateway().map(|_| place);
        let outward: Vec<_> = self.flows.iter().enumerate().filter_map(is_split).collect();
        let inward = self.flows.len() - outward.len()..;
        outward.into_iter().zip(inward).collect()
    }
}
