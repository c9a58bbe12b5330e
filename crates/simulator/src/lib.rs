//! Deterministic packet-level network simulator.
//!
//! [`run`] turns a [`Scenario`] into a [`RunResult`]. Time is whole nanoseconds, events are totally
//! ordered, every component draws from a random stream of its own: the same scenario gives the same
//! bytes, on every machine and any number of cores.
//!
//! Cost follows packets on busy links. A packet takes an event where it is delivered and where queues are fed
//! from several sides, and none on the links between (see `link::wire` and `link::Link::keep_going`). Packets
//! in flight are kept in one line a link, of which only the first is in the event heap; a flow that waits
//! costs nothing, and nothing is allocated per packet once queues have reached their size.

#![forbid(unsafe_code)]

mod events;
mod extra_delay;
mod flow;
mod gateway;
mod link;
mod measure;
mod multipath;
mod packet;
mod pieces;
mod radio;
mod ring;
mod routes;
mod saturate;
mod shaper;
mod tap;
mod tcp;
mod timers;
mod udp;
mod watch;
mod windows;
mod world;

pub use saturate::saturate;
use suimon_algorithms::estimate::Seen;
use suimon_model::Scenario;
use suimon_results::RunResult;
use suimon_units::Duration;
pub use tap::{TappedKind, TappedPacket};
pub use world::Crossing;

/// Runs `scenario` to its end.
///
/// `labels` are passed on to the result; they set this run apart in a comparison.
#[must_use]
pub fn run(scenario: &Scenario, labels: &[(String, String)]) -> RunResult {
    run_observed(scenario, labels, &mut |_| {})
}

/// As [`run`], and tells now and then how much simulated time has passed.
#[must_use]
pub fn run_observed(
    scenario: &Scenario,
    labels: &[(String, String)],
    on_progress: &mut dyn FnMut(Duration),
) -> RunResult {
    world::World::new(&Scenario::split(extra_delay::drawn(scenario)), None, None).run(labels, on_progress)
}

/// As [`run`], and shows every packet at the host where its flow begins, in the order of time: a capture there.
#[must_use]
pub fn run_tapped(scenario: &Scenario, on_packet: &mut dyn FnMut(&TappedPacket)) -> RunResult {
    let scenario = Scenario::split(extra_delay::drawn(scenario));
    let mut world = world::World::new(&scenario, None, None);
    world.tap = Some(tap::Tap(on_packet));
    world.run(&[], &mut |_| {})
}

/// As [`run`], and shows every packet that comes to the reported link called `link`, in order, with the
/// round-trip time that its sender had measured last, within one `record_interval`. This is how estimators are held
/// to the truth.
#[must_use]
pub fn run_watched(
    scenario: &Scenario,
    link: &str,
    on_packet: &mut dyn FnMut(&Seen, Option<Duration>),
) -> RunResult {
    world::World::new(&Scenario::split(extra_delay::drawn(scenario)), Some((link, on_packet)), None)
        .run(&[], &mut |_| {})
}

/// As [`run`], and shows every packet of TCP that passes the link called `link`, there and back, at the end of that link and
/// at the end of its way back, with the round-trip time that its sender had measured last.
#[must_use]
pub fn run_crossed(
    scenario: &Scenario,
    link: &str,
    on_packet: &mut dyn FnMut(&Crossing, Option<Duration>),
) -> RunResult {
    let scenario = Scenario::split(extra_delay::drawn(scenario));
    world::World::new(&scenario, None, Some((link, world::OnCrossing(on_packet)))).run(&[], &mut |_| {})
}
