//! What must hold of links and radios.

use std::collections::BTreeMap;

use suimon_algorithms::queue::Buffer;
use suimon_radio::hsdpa::{self, Policy};
use suimon_radio::wlan;
use suimon_units::{Bytes, Duration, Rate};

use super::{Checked, MAX_PACKET_SIZE, MAX_SIZE, MAX_TIME, above_zero, bytes, refuse, time, within};
use crate::link::{Capacity, Cell, Hsdpa, Link, Medium};

/// Longest that a report on a channel may take or hold.
const LATEST_REPORT: Duration = Duration::from_secs(1);
/// Longest that a radio may keep packets waiting at a time; it looks every TTI.
const MAX_GAP: Duration = Duration::from_secs(60);
/// Largest contention window, far above what any standard has.
const MAX_CONTENTION_WINDOW: u32 = 65_535;

/// Cells and media by name: all links that name one mean the same.
#[derive(Default)]
pub(super) struct SharedRadios<'a> {
    cells: BTreeMap<&'a str, &'a Cell>,
    media: BTreeMap<&'a str, &'a Medium>,
}

impl<'a> SharedRadios<'a> {
    pub(super) fn check(&mut self, link: &'a Link) -> Checked {
        let differs = |key: &str, name: &String| {
            refuse(key, name, "differs from what another link calls so", "one radio of that name")
        };
        match &link.capacity {
            Capacity::Hsdpa(terminal) => match &terminal.cell {
                Some(cell) if **self.cells.entry(&cell.name).or_insert(cell) != **cell => {
                    differs("hsdpa.cell", &cell.name)
                }
                _ => Ok(()),
            },
            Capacity::Wifi(medium) if **self.media.entry(&medium.name).or_insert(medium) != **medium => {
                differs("medium", &medium.name)
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn check_link(link: &Link) -> Checked {
    if link.from == link.to {
        return refuse("between", &&link.from, "is both ends", "two nodes that differ");
    }
    time("delay", link.delay)?;
    bytes("overhead", link.overhead, Bytes::ZERO, MAX_PACKET_SIZE)?;
    link.impairments.check()?;
    match link.buffer {
        Buffer::Packets(count) => above_zero("buffer", count == 0)?,
        Buffer::Bytes(size) => bytes("buffer", size, Bytes::new(1), MAX_SIZE)?,
        Buffer::Unbounded => {}
    }
    check_capacity(&link.capacity)
}

/// Checks what can be checked of a capacity alone.
pub(super) fn check_capacity(capacity: &Capacity) -> Checked {
    match capacity {
        Capacity::Rate(rate) => above_zero("rate", *rate == Rate::ZERO),
        Capacity::Opportunities { times, period } => {
            above_zero("trace", times.is_empty() || *period == Duration::ZERO)?;
            let ordered = times.is_sorted() && times.last().is_some_and(|last| last <= period);
            if ordered {
                Ok(())
            } else {
                refuse("trace", &"its times", "are not ascending", "ascending times")
            }
        }
        Capacity::Steps { steps, period } => {
            above_zero("schedule", steps.iter().all(|(_, rate)| *rate == Rate::ZERO))?;
            let ordered = steps.is_sorted_by(|(before, _), (after, _)| before < after)
                && steps.first().is_some_and(|(first, _)| *first == Duration::ZERO)
                && steps.last().is_some_and(|(last, _)| last < period);
            if ordered {
                Ok(())
            } else {
                refuse("schedule", &"its times", "are not ascending", "ascending times")
            }
        }
        Capacity::Hsdpa(terminal) => check_hsdpa(terminal),
        Capacity::Wifi(medium) => check_medium(&medium.parameters)
            .map_err(|(key, problem)| (format!("/medium.{}.{key}", medium.name), problem)),
    }
}

fn check_medium(medium: &wlan::Parameters) -> Checked {
    for (key, rate) in [("rate", medium.rate), ("control_rate", medium.control_rate)] {
        let rates = medium.standard.rates();
        if !rates.contains(&rate) {
            let accepted: Vec<_> = rates.iter().map(ToString::to_string).collect();
            return refuse(key, &rate, "is no rate of the standard", accepted.join(", "));
        }
    }
    let longest = Duration::from_millis(1);
    within("slot", medium.slot, Duration::from_micros(1), longest)?;
    for (key, value) in
        [("sifs", medium.sifs), ("turnaround", medium.turnaround), ("propagation", medium.propagation)]
    {
        within(key, value, Duration::ZERO, longest)?;
    }
    above_zero("retry_limit", medium.retry_limit == 0)?;
    if medium.cw_max < medium.cw_min || medium.cw_max > MAX_CONTENTION_WINDOW {
        let accepted = format!("cw_min to {MAX_CONTENTION_WINDOW}");
        return refuse("cw_max", &medium.cw_max, "is out of range", accepted);
    }
    Ok(())
}

fn check_hsdpa(terminal: &Hsdpa) -> Checked {
    let user = &terminal.user;
    time("hsdpa.uplink_delay", terminal.uplink_delay)?;
    if let Some(cell) = &terminal.cell
        && let Policy::ProportionalFair { window } = cell.scheduler
    {
        within("window", window, hsdpa::TTI, MAX_TIME)
            .map_err(|(key, problem)| (format!("/cell.{}.{key}", cell.name), problem))?;
    }
    within("hsdpa.cqi_error_hold", user.cqi_error_hold, hsdpa::TTI, MAX_TIME)?;
    within("hsdpa.cqi_delay", user.cqi_delay, Duration::ZERO, LATEST_REPORT)?;
    within("hsdpa.cqi_period", user.cqi_period, hsdpa::TTI, LATEST_REPORT)?;
    within("hsdpa.rlc_resend", user.rlc_resend, Duration::ZERO, MAX_GAP)?;
    within("hsdpa.handover_gap", user.handover_gap, hsdpa::TTI, MAX_GAP)?;
    if let Some(every) = user.handover_every {
        within("hsdpa.handover_every", every, hsdpa::TTI, MAX_TIME)?;
    }
    above_zero("hsdpa.harq_transmissions", user.harq_transmissions == 0)
}
