//! Addresses of names, asked for without a thread that waits for each.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::read_system_conf;
use thiserror::Error;
use tracing::warn;

/// A name that no name server knows, or whose servers did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}: no address is known of this name")]
pub struct UnknownName(String);

/// Asks the name servers of this host, or others.
#[derive(Debug, Clone)]
pub struct Names(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// None: those of this host, whichever they are at the time.
    servers: Option<Vec<SocketAddr>>,
    latest: Mutex<Latest>,
}

#[derive(Debug, Default)]
struct Latest {
    /// The time when this host's list of name servers was written.
    written: Option<SystemTime>,
    resolver: Option<TokioResolver>,
}

impl Names {
    /// Names as `/etc/hosts` and the name servers of `/etc/resolv.conf` give them; a change of the latter takes effect
    /// at the next lookup.
    #[must_use]
    pub fn of_host() -> Self {
        Self(Arc::new(Inner { servers: None, latest: Mutex::default() }))
    }

    /// Names as these name servers give them.
    #[must_use]
    pub fn of_servers(servers: &[SocketAddr]) -> Self {
        Self(Arc::new(Inner { servers: Some(servers.to_vec()), latest: Mutex::default() }))
    }

    /// The addresses of `target`, a host and a port. The question is dropped with the future.
    ///
    /// # Errors
    /// [`UnknownName`] where it has none.
    pub async fn look_up(&self, target: &str) -> Result<Vec<SocketAddr>, UnknownName> {
        let unknown = || UnknownName(target.to_owned());
        if let Ok(address) = target.parse() {
            return Ok(vec![address]);
        }
        let (host, port) = target.rsplit_once(':').ok_or_else(unknown)?;
        let port: u16 = port.parse().map_err(|_| unknown())?;
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let resolver = self.resolver().ok_or_else(unknown)?;
        let found = resolver.lookup_ip(host).await.map_err(|_| unknown())?;
        Ok(found.iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    fn resolver(&self) -> Option<TokioResolver> {
        let mut latest = self.0.latest.lock().expect("no one panics while holding it");
        let written = match self.0.servers {
            None => std::fs::metadata(LIST).and_then(|list| list.modified()).ok(),
            Some(_) => None,
        };
        if latest.resolver.is_none() || latest.written != written {
            *latest = Latest { written, resolver: self.build() };
        }
        latest.resolver.clone()
    }

    fn build(&self) -> Option<TokioResolver> {
        let (config, mut options) = match &self.0.servers {
            Some(servers) => (of_servers(servers), ResolverOpts::default()),
            // Without a list there is one at this host (resolv.conf(5)).
            None => read_system_conf().unwrap_or_else(|_| {
                (of_servers(&[SocketAddr::from(([127, 0, 0, 1], 53))]), ResolverOpts::default())
            }),
        };
        options.timeout = options.timeout.min(TIMEOUT);
        // Each session has a limit of its own, so that none keeps others from asking.
        options.max_active_requests = MAX_LOOKUPS;
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        match builder.with_options(options).build() {
            Ok(resolver) => Some(resolver),
            Err(problem) => {
                warn!("names are not looked up: {problem}");
                None
            }
        }
    }
}

fn of_servers(servers: &[SocketAddr]) -> ResolverConfig {
    let server = |address: &SocketAddr| {
        let mut server = NameServerConfig::udp_and_tcp(address.ip());
        for connection in &mut server.connections {
            connection.port = address.port();
        }
        server
    };
    ResolverConfig::from_name_servers(servers.iter().map(server).collect())
}

/// The list of this host's name servers.
const LIST: &str = "/etc/resolv.conf";
/// A name server that has not answered by then is asked again, or the next one is.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Questions under way to one name server.
const MAX_LOOKUPS: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use suimon_testing::serve_names;

    #[test]
    fn a_thousand_names_that_nobody_answers_hold_up_no_other_and_no_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(a_name_is_found_beside_a_thousand());
    }

    async fn a_name_is_found_beside_a_thousand() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let names = Names::of_servers(&[socket.local_addr().unwrap()]);
        serve_names(socket);
        let asked = Arc::new(AtomicUsize::new(0));
        let slow: Vec<_> = (0..1_000)
            .map(|nth| {
                let (names, asked) = (names.clone(), Arc::clone(&asked));
                tokio::spawn(async move {
                    asked.fetch_add(1, Ordering::Relaxed);
                    names.look_up(&format!("slow{nth}.example.:80")).await
                })
            })
            .collect();
        while asked.load(Ordering::Relaxed) < slow.len() {
            tokio::task::yield_now().await;
        }
        let found = names.look_up("quick.example.:80").await;
        assert_eq!(found, Ok(vec![SocketAddr::from(([127, 0, 0, 1], 80))]));
        // By order, since a busy host takes long to ask a thousand questions: one that waited for these is found after they fail.
        let gave_up = slow.iter().filter(|each| each.is_finished()).count();
        assert_eq!(gave_up, 0, "before another name was found");
        let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
        assert!(threads < 100, "{threads} threads");
        slow.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[test]
    fn an_address_needs_no_name_server() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let names = Names::of_servers(&[]);
            for (text, expected) in [
                ("[::1]:80", Some("[::1]:80")),
                ("192.0.2.1:1", Some("192.0.2.1:1")),
                ("x", None),
                ("x:y", None),
                (":80", None),
            ] {
                let found = names.look_up(text).await.ok().map(|found| found[0].to_string());
                assert_eq!(found.as_deref(), expected, "{text}");
            }
        });
    }
}
