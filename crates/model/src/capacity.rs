//! How fast links send: what there is, what must hold of it, and the radios that several share.

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_algorithms::RandomStream;
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_radio::hsdpa::{self, Policy};
use suimon_radio::{Radio, wlan};
use suimon_units::{Bytes, Duration, Rate};

use crate::check::{Checked, MAX_TIME, above_zero, refuse, time, within};
use crate::error::Invalid;
use crate::link::Link;

/// How fast a link sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Capacity {
    /// Always at this rate.
    Rate(Rate),
    /// One opportunity to send 1500 bytes at each of these times, in Mahimahi's way: unused
    /// opportunities are lost, and after `period` the list starts again.
    Opportunities {
        /// When, from the start of the run, ascending, at most `period`.
        times: Arc<[Duration]>,
        /// Length of the list in time, more than zero.
        period: Duration,
    },
    /// At the rate that holds since the latest of these times; after `period` the list starts again.
    Steps {
        /// Since when and which rate, ascending, the first at zero; not all zero.
        steps: Arc<[(Duration, Rate)]>,
        /// Length of the list in time, more than the last step's time.
        period: Duration,
    },
    /// As an HSDPA cell serves one of its terminals.
    Hsdpa(Box<Hsdpa>),
    /// As the station at the link's beginning gets hold of an 802.11 medium, which it shares with all links that
    /// name it. Links from the same node are one station.
    Wifi(Arc<Medium>),
    /// At the rate that a controller finds from the packets that pass there and back, so that they do not wait at a
    /// bottleneck behind the link.
    Shaped(Box<AlgorithmSpec>),
}

impl Capacity {
    /// What one opportunity of a Mahimahi trace carries.
    pub const OPPORTUNITY: Bytes = Bytes::new(1_500);

    /// True where a radio decides when packets leave, not the link by itself.
    #[must_use]
    pub fn is_radio(&self) -> bool {
        matches!(self, Self::Hsdpa(_) | Self::Wifi(_))
    }

    /// The mean rate, where it is known beforehand.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        match self {
            Self::Rate(rate) => Some(*rate).filter(|rate| *rate != Rate::MAX),
            Self::Opportunities { times, period } => {
                Some(Rate::of(Self::OPPORTUNITY * times.len() as u64, *period))
            }
            Self::Steps { steps, period } => {
                let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([*period]);
                let bytes = steps.iter().zip(ends).map(|((from, rate), to)| rate.amount_in(to - *from)).sum();
                Some(Rate::of(bytes, *period))
            }
            Self::Hsdpa(_) | Self::Wifi(_) | Self::Shaped(_) => None,
        }
    }

    /// What the way back takes beside the propagation delay.
    #[must_use]
    pub fn uplink_delay(&self) -> Duration {
        match self {
            Self::Hsdpa(terminal) => terminal.uplink_delay,
            _ => Duration::ZERO,
        }
    }

    /// Checks what can be checked of a capacity alone: times are in order, and something is sent.
    ///
    /// # Errors
    /// The first thing that does not hold, with its key path as in a scenario file.
    pub fn check(&self) -> Result<(), Invalid> {
        check_capacity(self).map_err(|(key, problem)| {
            // A key after a slash is that of a radio.
            let key = key.trim_start_matches('/').to_owned();
            Invalid { subject: "link".to_owned(), key, problem }
        })
    }
}

/// A terminal of an HSDPA cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Hsdpa {
    /// The terminal and its channel.
    pub user: hsdpa::UserParameters,
    /// The cell that it shares with the others that name it; `None` for one of its own.
    pub cell: Option<Arc<Cell>>,
    /// What the way back takes beside the propagation delay. Readers add it to the delay of the way back where
    /// nothing else is said of that.
    pub uplink_delay: Duration,
}

impl Hsdpa {
    /// A terminal in a cell of its own, with what the way back took in the re-run of the FS-AT paper: 35 ms.
    #[must_use]
    pub fn new(user: hsdpa::UserParameters) -> Self {
        Self { user, cell: None, uplink_delay: Duration::from_millis(35) }
    }
}

/// An 802.11 medium.
#[derive(Debug, Clone, PartialEq)]
pub struct Medium {
    /// Unique name.
    pub name: String,
    /// Timing and options.
    pub parameters: wlan::Parameters,
}

/// An HSDPA cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Unique name.
    pub name: String,
    /// Whom it serves next.
    pub scheduler: Policy,
}

/// A radio, and the positions of the links that its ports serve.
pub type Serving = (Box<dyn Radio>, Vec<usize>);

/// The radios that serve `links`, whatever drives them: those that serve one link, then cells and media that several
/// name. Links over a medium that leave the same node are one station.
#[must_use]
pub fn radios(links: &[Link], seed: u64) -> Vec<Serving> {
    let mut alone = Vec::new();
    let mut cells: BTreeMap<&str, (Policy, Vec<usize>)> = BTreeMap::new();
    let mut media: BTreeMap<&str, (&wlan::Parameters, Vec<usize>)> = BTreeMap::new();
    for (position, link) in links.iter().enumerate() {
        match &link.capacity {
            Capacity::Hsdpa(terminal) => match &terminal.cell {
                Some(cell) => {
                    cells.entry(&cell.name).or_insert((cell.scheduler, Vec::new())).1.push(position);
                }
                None => alone.push(cell_of(links, seed, Policy::RoundRobin, vec![position])),
            },
            Capacity::Wifi(medium) => {
                media.entry(&medium.name).or_insert((&medium.parameters, Vec::new())).1.push(position);
            }
            Capacity::Rate(_)
            | Capacity::Opportunities { .. }
            | Capacity::Steps { .. }
            | Capacity::Shaped(_) => {}
        }
    }
    let cells = cells.into_values().map(|(policy, served)| cell_of(links, seed, policy, served));
    let media = media.into_iter().map(|(name, (parameters, served))| {
        medium_of(
            links,
            &|node| RandomStream::new(seed, &format!("medium {name} station {node}")),
            parameters,
            &served,
        )
    });
    alone.into_iter().chain(cells).chain(media).collect()
}

fn cell_of(links: &[Link], seed: u64, policy: Policy, served: Vec<usize>) -> Serving {
    let users: Vec<_> = (served.iter())
        .filter_map(|position| match &links[*position].capacity {
            Capacity::Hsdpa(terminal) => Some(terminal.user.clone()),
            _ => None,
        })
        .collect();
    let mut random = |port: usize, what: &str| {
        RandomStream::new(seed, &format!("link {} {what}", links[served[port]].name))
    };
    (Box::new(hsdpa::Cell::new(policy, &users, &mut random)), served)
}

fn medium_of(
    links: &[Link],
    random: &dyn Fn(&str) -> RandomStream,
    parameters: &wlan::Parameters,
    served: &[usize],
) -> Serving {
    let mut stations: Vec<(&str, Vec<usize>)> = Vec::new();
    for position in served {
        let node = links[*position].from.as_str();
        match stations.iter_mut().find(|(known, _)| *known == node) {
            Some((_, served)) => served.push(*position),
            None => stations.push((node, vec![*position])),
        }
    }
    let mut medium = wlan::Medium::new(parameters.clone());
    for (node, served) in &stations {
        medium.add_station(served.len(), random(node));
    }
    (Box::new(medium), stations.into_iter().flat_map(|(_, served)| served).collect())
}

/// Longest that a report on a channel may take or hold.
const LATEST_REPORT: Duration = Duration::from_secs(1);
/// Longest that a radio may keep packets waiting at a time; it looks every TTI.
const MAX_GAP: Duration = Duration::from_secs(60);
/// Largest contention window, far above what any standard has.
const MAX_CONTENTION_WINDOW: u32 = 65_535;

/// Cells and media by name: all links that name one mean the same.
#[derive(Default)]
pub(crate) struct SharedRadios<'a> {
    cells: BTreeMap<&'a str, &'a Cell>,
    media: BTreeMap<&'a str, &'a Medium>,
}

impl<'a> SharedRadios<'a> {
    pub(crate) fn check(&mut self, link: &'a Link) -> Checked {
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

/// Checks what can be checked of a capacity alone.
pub(crate) fn check_capacity(capacity: &Capacity) -> Checked {
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
        Capacity::Shaped(_) => Ok(()),
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
