//! What must hold of flows, and of streams over several.

use suimon_units::{Bytes, Duration, Instant, Rate};

use super::{Checked, MAX_PACKET_SIZE, MAX_SIZE, MAX_TIME, above_zero, bytes, refuse, time, within};
use crate::error::Problem;
use crate::flow::{Aggregate, Flow, Start, Traffic};
use crate::profile::StackProfile;

/// Largest receive buffer that a scaled window can advertise (RFC 7323 §2.3).
const MAX_WINDOW: Bytes = Bytes::new(1 << 30);
/// Fastest source of datagrams; each costs an event, and faster ones would seem to stand still.
const FASTEST_SOURCE: Rate = Rate::from_bps(1_000_000_000_000);
/// Who gives a connection up sooner than a SYN is sent again (RFC 6298 §2.1) gives up what only was slow.
const MIN_PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn check_flow(flow: &Flow, duration: Duration) -> Checked {
    let (first, last) = match flow.start {
        Start::At(at) => (at, at),
        Start::Between(low, high) => (low, high),
    };
    let since_zero = |at: Instant| at.saturating_since(Instant::ZERO);
    if last < first {
        return refuse("start", &since_zero(last), "is before the first time", "two times in order");
    }
    if since_zero(last) >= duration {
        return refuse("start", &since_zero(last), "is not before the end", "less than the duration");
    }
    if let Some(stop) = flow.stop
        && stop <= last
    {
        return refuse("stop", &since_zero(stop), "is not after the start", "a time after the start");
    }
    let (least, most) = flow.extra_delay;
    if most < least {
        return refuse("extra_delay", &most, "is less than the first time", "two times in order");
    }
    time("extra_delay", most)?;
    let (size, on_off) = match &flow.traffic {
        Traffic::Tcp(tcp) => {
            check_stack(&tcp.profile)?;
            bytes("window", tcp.window, tcp.profile.mss, MAX_WINDOW)?;
            above_zero("application_rate", tcp.application_rate == Some(Rate::ZERO))?;
            if let Some(gateway) = &tcp.gateway {
                bytes("gateway.buffer", gateway.buffer, tcp.profile.mss, MAX_WINDOW)?;
                if tcp.on_off.is_some_and(|on_off| on_off.reconnect) {
                    let accepted = "connections that stay";
                    return refuse("on_off.reconnect", &true, "is not modelled with a gateway", accepted);
                }
            }
            (tcp.size, tcp.on_off)
        }
        Traffic::Udp(udp) => {
            above_zero("udp.rate", udp.rate == Rate::ZERO)?;
            if udp.rate > FASTEST_SOURCE {
                return refuse("udp.rate", &udp.rate, "is too fast", format!("at most {FASTEST_SOURCE}"));
            }
            bytes("udp.packet", udp.packet, Bytes::new(1), MAX_PACKET_SIZE)?;
            (udp.size, udp.on_off)
        }
    };
    if let Some(size) = size {
        bytes("size", size, Bytes::new(1), MAX_SIZE)?;
    }
    if let Some(on_off) = on_off {
        for (key, value) in [("on_off.on", on_off.on), ("on_off.off", on_off.off)] {
            above_zero(key, value == Duration::ZERO)?;
            time(key, value)?;
        }
    }
    Ok(())
}

/// Checks `aggregate` beside the `earlier` ones.
pub(super) fn check_aggregate(aggregate: &Aggregate, flows: &[Flow], earlier: &[Aggregate]) -> Checked {
    const MAX_PATHS: usize = 64;
    if aggregate.flows.len() > MAX_PATHS {
        let problem = Problem::TooMany { what: "more flows".to_owned(), limit: MAX_PATHS as u64 };
        return Err(("flows".to_owned(), problem));
    }
    let mut ends = None;
    let mut mss = Bytes::ZERO;
    for (position, name) in aggregate.flows.iter().enumerate() {
        let Some(flow) = flows.iter().find(|flow| flow.name == *name) else {
            let known = flows.iter().map(|flow| flow.name.clone()).collect();
            let problem = Problem::UnknownName { what: "flow", name: name.clone(), known };
            return Err(("flows".to_owned(), problem));
        };
        let Traffic::Tcp(tcp) = &flow.traffic else {
            return refuse("flows", name, "is no TCP flow", "TCP flows");
        };
        if tcp.gateway.is_some() && aggregate.reconnect.is_some() {
            let problem = "is split by a gateway, and is not connected anew there";
            return refuse("flows", name, problem, "flows without a gateway, or reconnect = \"off\"");
        }
        let own = tcp.size.is_some() || tcp.application_rate.is_some() || tcp.on_off.is_some();
        if own || flow.stop.is_some() {
            let accepted = "flows without size, application_rate, on_off and stop";
            return refuse("flows", name, "has data of its own", accepted);
        }
        let taken = earlier.iter().any(|other| other.flows.contains(name));
        if taken || aggregate.flows[..position].contains(name) {
            return refuse("flows", name, "is taken already", "each flow once");
        }
        if *ends.get_or_insert((&flow.from, &flow.to)) != (&flow.from, &flow.to) {
            return refuse("flows", name, "leads elsewhere", "flows with the same two ends");
        }
        mss = mss.max(tcp.profile.mss);
    }
    bytes("send_buffer", aggregate.send_buffer, mss, MAX_SIZE)?;
    bytes("reorder_buffer", aggregate.reorder_buffer, mss, MAX_SIZE)?;
    above_zero("application_rate", aggregate.application_rate == Some(Rate::ZERO))?;
    if let Some(reconnect) = aggregate.reconnect {
        within("reconnect", reconnect, MIN_PATIENCE, MAX_TIME)?;
    }
    match aggregate.size {
        Some(size) => bytes("size", size, Bytes::new(1), MAX_SIZE),
        None => Ok(()),
    }
}

fn check_stack(stack: &StackProfile) -> Checked {
    bytes("stack.mss", stack.mss, Bytes::new(1), MAX_PACKET_SIZE)?;
    bytes("stack.header", stack.header, Bytes::new(1), MAX_PACKET_SIZE)?;
    if stack.packet_size() > MAX_PACKET_SIZE {
        return refuse(
            "stack.mss",
            &stack.mss,
            "is too large with its header",
            format!("at most {MAX_PACKET_SIZE} together"),
        );
    }
    above_zero("stack.initial_window", stack.initial_window == 0)?;
    for (key, value) in [("stack.rto_initial", stack.rto_initial), ("stack.rto_min", stack.rto_min)] {
        above_zero(key, value == Duration::ZERO)?;
        time(key, value)?;
    }
    time("stack.delayed_ack_timeout", stack.delayed_ack_timeout)?;
    above_zero("stack.delayed_ack_timeout", stack.delayed_ack && stack.delayed_ack_timeout == Duration::ZERO)
}
