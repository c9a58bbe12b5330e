//! Routes over the device, while there are paths to carry what they bring.

use std::str::FromStr;
use std::time::Duration;

use suimon_linux::{LinuxError, Namespace, Route};
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::client::Client;

/// The way of a host's traffic while no path is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fail {
    /// Over the host's other routes, where the bond's server and its keys protect nothing.
    Open,
    /// Nowhere: programs wait.
    #[default]
    Closed,
}

impl FromStr for Fail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "open" => Ok(Self::Open),
            "closed" => Ok(Self::Closed),
            _ => Err("accepted: open, closed".to_owned()),
        }
    }
}

/// The routes over the device.
#[derive(Debug)]
pub struct Routes {
    pub(super) namespace: Namespace,
    pub(super) all: Vec<Route>,
    pub(super) fail: Fail,
}

impl Routes {
    /// Keeps the routes as `client` has paths, for ever. They are there at once.
    ///
    /// # Errors
    /// Where the kernel does not take them at the start.
    pub fn keep(self, client: &Client) -> Result<(), LinuxError> {
        self.set(true)?;
        let mut has_path = client.has_path();
        if self.fail == Fail::Closed {
            return Ok(());
        }
        tokio::spawn(async move {
            loop {
                if has_path.wait_for(|has| !has).await.is_err() {
                    return;
                }
                match timeout(OPEN_AFTER, has_path.wait_for(|has| *has)).await {
                    // A path was back soon.
                    Ok(Ok(_)) => continue,
                    Ok(Err(_)) => return,
                    Err(_) => {}
                }
                self.change(false);
                warn!("no path is up: traffic of this host goes around the bond until one is");
                if has_path.wait_for(|has| *has).await.is_err() {
                    return;
                }
                self.change(true);
                info!("a path is up: traffic of this host goes over the bond again");
            }
        });
        Ok(())
    }

    fn change(&self, there: bool) {
        if let Err(problem) = self.set(there) {
            error!("{problem}");
        }
    }

    /// Adds all or removes all.
    fn set(&self, there: bool) -> Result<(), LinuxError> {
        let change = if there { Namespace::add_route } else { Namespace::remove_route };
        self.all.iter().try_for_each(|route| change(&self.namespace, route))
    }
}

/// A session without any path for so long lets traffic around it: a shorter outage does not change the routes twice.
const OPEN_AFTER: Duration = Duration::from_secs(2);
