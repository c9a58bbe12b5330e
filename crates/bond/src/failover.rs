//! Another server, where no path to the one in use answers.
//!
//! A silence may be the paths' or the server's. So fresh connections are tried to all servers: another one is used only once it
//! has proved who it is, and the one in use has not answered either.

use std::sync::Arc;
use std::time::Duration;

use suimon_units as units;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout, timeout_at};
use tracing::warn;

use crate::bond::Bond;
use crate::client::ClientConfigBond;

/// Switches `active` to another server whenever the one in use is silent and the other is not, for ever.
pub(crate) async fn fail_over(config: Arc<ClientConfigBond>, bond: Bond, active: watch::Sender<usize>) {
    loop {
        sleep(LOOK).await;
        if bond.lock().closed {
            return;
        }
        if !is_silent(&bond) {
            continue;
        }
        let used = *active.borrow();
        let Some(other) = first_answer(&config, used).await else { continue };
        if !is_silent(&bond) {
            continue;
        }
        let [from, to] = [used, other].map(|server| config.servers[server].name.clone());
        warn!("no path to {from} answers: {to} is used from now on; the streams of the session end");
        let generation = {
            let mut state = bond.lock();
            state.server = Some(to.clone());
            // The other one has its time to answer.
            state.heard_at = bond.now();
            active.send_replace(other);
            state.generation
        };
        bond.restart(generation, &format!("as no path to {from} answered"));
    }
}

fn is_silent(bond: &Bond) -> bool {
    bond.now().saturating_since(bond.lock().heard_at) > SILENT
}

/// The server that answers first over any way, where it is another than the one in use and that does not answer soon after.
async fn first_answer(config: &Arc<ClientConfigBond>, used: usize) -> Option<usize> {
    let mut tries = JoinSet::new();
    for server in 0..config.servers.len() {
        for way in 0..config.via.len() {
            let config = config.clone();
            tries.spawn(async move { answers(&config, server, way).await.then_some(server) });
        }
    }
    let began = tokio::time::Instant::now();
    let first = timeout(TRY, next(&mut tries)).await.ok()??;
    // The one in use has as long again.
    let until = tokio::time::Instant::now() + began.elapsed().max(GRACE);
    let mut others = (first != used).then_some(first);
    while others.is_some()
        && let Ok(Some(answered)) = timeout_at(until, next(&mut tries)).await
    {
        others = others.filter(|_| answered != used);
    }
    others
}

/// The next server that answers; `None` where none is left to try.
async fn next(tries: &mut JoinSet<Option<usize>>) -> Option<usize> {
    while let Some(tried) = tries.join_next().await {
        if let Ok(Some(server)) = tried {
            return Some(server);
        }
    }
    None
}

/// Whether a server proves who it is over a way.
async fn answers(config: &ClientConfigBond, server: usize, way: usize) -> bool {
    let mut addresses = Vec::new();
    if config.servers[server].look_up(&mut addresses).await.is_err() {
        return false;
    }
    for peer in addresses {
        if config.reach(server, &config.via[way], peer, config.carriers).await.is_ok() {
            return true;
        }
    }
    false
}

const LOOK: Duration = Duration::from_millis(100);
/// Each path brings a sign of life every 500 ms.
const SILENT: units::Duration = units::Duration::from_millis(900);
/// A server that takes longer is tried again.
const TRY: Duration = Duration::from_secs(2);
/// The least time that the server in use has to answer once another has.
const GRACE: Duration = Duration::from_millis(100);
