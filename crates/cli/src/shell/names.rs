//! How the program finds hosts by name.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

use suimon_emulator::TwoHosts;

const HOSTS: &str = "/etc/hosts";
const RESOLVER: &str = "/etc/resolv.conf";

/// Whom this machine asks for names.
pub(super) struct Names {
    text: String,
}

impl Names {
    pub(super) fn read() -> Self {
        Self { text: fs::read_to_string(RESOLVER).unwrap_or_default() }
    }

    /// Who answers on this machine itself, which the program reaches by another address.
    pub(super) fn resolver(&self) -> Option<IpAddr> {
        let servers = self.text.lines().filter_map(|line| line.strip_prefix("nameserver"));
        servers.filter_map(|server| server.trim().parse().ok()).find(IpAddr::is_loopback)
    }

    /// The same for the program, to which this machine is `far`.
    fn seen_from(&self, far: IpAddr) -> String {
        let own = |line: &&str| {
            let server = line.strip_prefix("nameserver").and_then(|server| server.trim().parse().ok());
            server.is_some_and(|server: IpAddr| server.is_loopback())
        };
        let mut text: String =
            self.text.lines().filter(|line| !own(line)).map(|line| format!("{line}\n")).collect();
        if self.resolver().is_some() {
            text.insert_str(0, &format!("nameserver {far}\n"));
        }
        text
    }
}

/// Files that the program sees other contents in: it knows the host at the other end as `far`, and asks for names
/// as this machine does.
pub(super) fn covered(hosts: &TwoHosts, names: Option<&Names>) -> Vec<(PathBuf, Vec<u8>)> {
    let first = &hosts.paths[0];
    // In a shell within another one there is a `far` already.
    let others = fs::read_to_string(HOSTS).unwrap_or_default();
    let others = others.lines().filter(|line| line.split_whitespace().nth(1) != Some("far"));
    let mut text: String = others.map(|line| format!("{line}\n")).collect();
    text += &format!("{} far\n{} far\n", first.end, first.end_v6);
    let mut covered = vec![(PathBuf::from(HOSTS), text.into_bytes())];
    if let Some(names) = names {
        covered.push((PathBuf::from(RESOLVER), names.seen_from(first.far.into()).into_bytes()));
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolver_on_this_machine_is_asked_at_the_far_end() {
        let names = Names { text: "search home\nnameserver 127.0.0.53\noptions edns0\n".to_owned() };
        assert_eq!(names.resolver(), Some(IpAddr::from([127, 0, 0, 53])));
        let seen = names.seen_from(IpAddr::from([100, 96, 0, 1]));
        assert_eq!(seen, "nameserver 100.96.0.1\nsearch home\noptions edns0\n");
        let other = Names { text: "nameserver 9.9.9.9\n".to_owned() };
        assert_eq!((other.resolver(), other.seen_from([1, 2, 3, 4].into())), (None, other.text.clone()));
    }
}
