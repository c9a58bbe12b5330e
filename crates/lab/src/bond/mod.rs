//! The bond between network namespaces of this host, measured.

pub mod cuts;
pub mod datagrams;
mod ends;
pub mod faults;
pub mod goodput;
mod reliable;
pub mod rivals;
pub mod shared;
mod sockets;
pub mod speed;
mod traffic;
mod tunnels;
pub mod waits;

use suimon_scenario::{Capacity, Link, LinkSpec, drop_tail};
use suimon_units::{Duration, Rate};

pub use self::reliable::Digests;

/// Both directions of each of `paths`.
fn links(paths: &[LinkSpec]) -> Vec<[Link; 2]> {
    paths.iter().map(link).collect()
}

/// Both directions of each of `paths`, as fast and as long each way.
fn even_links(paths: &[LinkSpec]) -> Vec<[Link; 2]> {
    let mut links = links(paths);
    for [there, back] in &mut links {
        (back.capacity, back.buffer) = (there.capacity.clone(), there.buffer);
    }
    links
}

fn link(path: &LinkSpec) -> [Link; 2] {
    let mut links = path.links(&drop_tail());
    // The way back is not what is measured: as fast, and never full. A radio serves both.
    if matches!(links[1].capacity, Capacity::Opportunities { .. } | Capacity::Steps { .. }) {
        links[1].capacity = Capacity::Rate(Rate::from_bps(10_000_000));
    }
    links
}

fn long(duration: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(duration.as_nanos())
}
