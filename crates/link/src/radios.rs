//! The radios that serve links: cells and media of the `radio` crate.

use std::collections::BTreeMap;

use suimon_algorithms::RandomStream;
use suimon_model::{Capacity, Link};
use suimon_radio::{Radio, hsdpa, wlan};

/// A radio, and the links that it serves.
#[derive(Debug)]
pub struct Serving {
    /// The radio.
    pub radio: Box<dyn Radio>,
    /// The link that each of its ports serves, as an index among all links.
    pub links: Vec<usize>,
}

/// The radios of `links`: one for each HSDPA cell and each 802.11 medium. A terminal that names no cell has one for
/// itself. Randomness derives from `seed` and the names.
#[must_use]
pub fn radios(links: &[Link], seed: u64) -> Vec<Serving> {
    let mut radios = Vec::new();
    let mut cells: BTreeMap<&str, (hsdpa::Policy, Vec<usize>)> = BTreeMap::new();
    let mut media: BTreeMap<&str, (&wlan::Parameters, Vec<usize>)> = BTreeMap::new();
    for (index, link) in links.iter().enumerate() {
        match &link.capacity {
            Capacity::Hsdpa(terminal) => match &terminal.cell {
                Some(cell) => {
                    cells.entry(&cell.name).or_insert((cell.scheduler, Vec::new())).1.push(index);
                }
                None => radios.push(cell(links, hsdpa::Policy::RoundRobin, vec![index], seed)),
            },
            Capacity::Wifi(medium) => {
                media.entry(&medium.name).or_insert((&medium.parameters, Vec::new())).1.push(index);
            }
            Capacity::Rate(_) | Capacity::Opportunities { .. } | Capacity::Steps { .. } => {}
        }
    }
    radios.extend(cells.into_values().map(|(policy, members)| cell(links, policy, members, seed)));
    let medium = |(name, (parameters, members))| medium(links, name, parameters, members, seed);
    radios.extend(media.into_iter().map(medium));
    radios
}

fn cell(links: &[Link], policy: hsdpa::Policy, members: Vec<usize>, seed: u64) -> Serving {
    let terminal = |index: &usize| match &links[*index].capacity {
        Capacity::Hsdpa(terminal) => Some(terminal.user.clone()),
        _ => None,
    };
    let terminals: Vec<_> = members.iter().filter_map(terminal).collect();
    let mut random = |port: usize, what: &str| {
        RandomStream::new(seed, &format!("link {} {what}", links[members[port]].name))
    };
    let radio = Box::new(hsdpa::Cell::new(policy, &terminals, &mut random));
    Serving { radio, links: members }
}

/// Links that leave the same node are one station.
fn medium(
    links: &[Link],
    name: &str,
    parameters: &wlan::Parameters,
    members: Vec<usize>,
    seed: u64,
) -> Serving {
    let mut stations: Vec<(&str, Vec<usize>)> = Vec::new();
    for index in members {
        let node = links[index].from.as_str();
        match stations.iter_mut().find(|(known, _)| *known == node) {
            Some((_, served)) => served.push(index),
            None => stations.push((node, vec![index])),
        }
    }
    let mut radio = wlan::Medium::new(parameters.clone());
    for (node, served) in &stations {
        radio.add_station(served.len(), RandomStream::new(seed, &format!("medium {name} station {node}")));
    }
    let served = stations.into_iter().flat_map(|(_, served)| served).collect();
    Serving { radio: Box::new(radio), links: served }
}
