//! What suffers beside the load: a video call, a ping and small web pages, in runs of a comparison.
//!
//! Their flows stand behind those of the load, so that events keep their places. [`gather`] takes them out of a result
//! and tells what each application had of the network.

use suimon_results::{ApplicationKind, ApplicationResult, RunResult};
use suimon_scenario::{Flow, Link, LinkSpec, Scenario, Start, TcpFlow, Traffic, UdpFlow};
use suimon_units::{Bytes, Duration, Instant, Rate};

/// The rate of each direction of a video call, as of a call in high definition.
const CALL: Rate = Rate::from_bps(2_000_000);
/// The most that a call takes of a direction, since programs for calls adapt to the line.
const CALL_SHARE: f64 = 0.4;
/// Size of a packet of a call, headers included.
const CALL_PACKET: Bytes = Bytes::new(1_200);
/// A ping sends this much every [`PING_INTERVAL`].
const PING_PACKET: Bytes = Bytes::new(98);
const PING_INTERVAL: Duration = Duration::from_millis(200);
/// A page has so many objects of this size, each over a connection of its own.
const OBJECTS: u64 = 10;
const OBJECT: Bytes = Bytes::new(20_000);
/// A page is opened this often.
const PAGE_INTERVAL: Duration = Duration::from_secs(5);

const CALL_DOWN: &str = "call-down";
const CALL_UP: &str = "call-up";
const PING: &str = "ping";
const PAGE: &str = "page-";

/// The far end of the line, where downloads come from.
pub(super) const FAR: &str = "sender";
/// The near end, where the user is.
pub(super) const NEAR: &str = "receiver";

/// The flows of a call, a ping and pages over `link` in a run of so long; connections are made as `tcp` says.
pub(super) fn flows(link: &LinkSpec, duration: Duration, tcp: &TcpFlow) -> Vec<Flow> {
    let rate = |capacity: Option<Rate>| capacity.map_or(CALL, |rate| CALL.min(rate.scaled(CALL_SHARE)));
    let there = rate(link.link.capacity.mean_rate());
    let call = |rate| UdpFlow { rate, packet: CALL_PACKET, size: None, echo: false, on_off: None };
    let ping = UdpFlow {
        rate: Rate::of(PING_PACKET, PING_INTERVAL),
        packet: PING_PACKET,
        echo: true,
        ..call(Rate::ZERO)
    };
    let datagrams = |name: &str, from: &str, to: &str, udp| flow(name, from, to, Traffic::Udp(udp));
    let mut flows = vec![
        datagrams(CALL_DOWN, FAR, NEAR, call(there)),
        datagrams(CALL_UP, NEAR, FAR, call(rate(link.back))),
        datagrams(PING, NEAR, FAR, ping),
    ];
    let object = TcpFlow { size: Some(OBJECT), ..tcp.clone() };
    for (page, at) in page_times(duration).enumerate() {
        for nth in 0..OBJECTS {
            let object = Traffic::Tcp(Box::new(object.clone()));
            let name = format!("{PAGE}{}-{}", page + 1, nth + 1);
            flows.push(Flow { start: Start::At(at), ..flow(&name, FAR, NEAR, object) });
        }
    }
    flows
}

/// When pages are opened in a run of so long: so early that each has an interval to come.
fn page_times(duration: Duration) -> impl Iterator<Item = Instant> {
    let count = (duration.as_nanos() / PAGE_INTERVAL.as_nanos()).saturating_sub(1);
    let first = if count == 0 { duration / 2 } else { PAGE_INTERVAL };
    (0..count.max(1)).map(move |nth| Instant::ZERO + first + PAGE_INTERVAL * nth)
}

/// A flow from the beginning on.
pub(super) fn flow(name: &str, from: &str, to: &str, traffic: Traffic) -> Flow {
    Flow {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        via: None,
        start: Start::At(Instant::ZERO),
        stop: None,
        extra_delay: (Duration::ZERO, Duration::ZERO),
        traffic,
    }
}

/// Takes the flows of applications out of `result`, which `scenario` yielded, and tells what each application had.
pub(super) fn gather(scenario: &Scenario, result: &mut RunResult) {
    let Some(first) = result.flows.iter().position(|flow| flow.name == CALL_DOWN) else { return };
    let own = result.flows.split_off(first);
    result.flow_series.truncate(first);
    result.events.retain(|event| (event.flow as usize) < first);
    let named = |name: &str| own.iter().position(|flow| flow.name == name);
    for (name, kind) in [
        (CALL_DOWN, ApplicationKind::CallDown),
        (CALL_UP, ApplicationKind::CallUp),
        (PING, ApplicationKind::Ping),
    ] {
        let Some(nth) = named(name) else { continue };
        let (flow, spec) = (&own[nth], &scenario.flows[first + nth]);
        result.applications.push(ApplicationResult {
            kind,
            sent: flow.packets_sent,
            lost: flow.packets_lost,
            delay: flow.datagrams,
            unloaded: unloaded(scenario, spec),
            completions: Vec::new(),
        });
    }
    let pages: Vec<_> = own.iter().filter(|flow| flow.name.starts_with(PAGE)).collect();
    let mut completions = Vec::new();
    let mut lost = 0;
    for page in pages.chunks(OBJECTS as usize) {
        let ends = page.iter().filter_map(|object| object.completed);
        lost += page.iter().filter(|object| object.completed.is_none()).count() as u64;
        if ends.clone().count() == page.len() {
            completions.extend(ends.max().map(|end| end.saturating_since(page[0].start)));
        }
    }
    result.applications.push(ApplicationResult {
        kind: ApplicationKind::Page,
        sent: pages.len() as u64,
        lost,
        delay: None,
        unloaded: Duration::ZERO,
        completions,
    });
}

/// The time that a datagram of `flow` takes over an empty network; there and back where it is sent back. A link whose
/// rate varies counts with its mean rate, and with no time for the packet itself where it has none.
fn unloaded(scenario: &Scenario, flow: &Flow) -> Duration {
    let Traffic::Udp(udp) = &flow.traffic else { return Duration::ZERO };
    let [there, back] = scenario.ways(flow);
    let pass = |link: &&Link| {
        let sending =
            link.capacity.mean_rate().map_or(Duration::ZERO, |rate| rate.transmission_time(udp.packet));
        link.delay + sending
    };
    there.iter().chain(&back).map(pass).fold(Duration::ZERO, |sum, time| sum + time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_opened_every_five_seconds_and_once_in_a_short_run() {
        let at = |seconds: u64| page_times(Duration::from_secs(seconds)).collect::<Vec<_>>();
        let seconds = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        assert_eq!(at(60).len(), 11);
        assert_eq!((at(60)[0], at(60)[10]), (seconds(5), seconds(55)));
        assert_eq!(at(4), [seconds(2)]);
    }
}
