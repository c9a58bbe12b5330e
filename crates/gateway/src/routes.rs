//! Routes of marked packets, which outlive the process that makes them: a helper removes them when the gateway ends.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use suimon_linux::schedule::Signals;
use suimon_linux::{LinuxError, Namespace, Route};

use crate::transparent::{MARK, ROUTES};

fn set(host: &Namespace, everything: IpAddr, there: bool) -> Result<(), LinuxError> {
    let route = Route {
        destination: Some((everything, 0)),
        via: None,
        device: "lo".to_owned(),
        table: ROUTES,
        local: true,
    };
    let route = if there { host.add_route(&route) } else { host.remove_route(&route) };
    let rule = host.set_rule_of_mark(everything.is_ipv4(), MARK, ROUTES, there);
    // A helper that was killed has left them; they do for this one.
    let is_fine = |done: &Result<(), LinuxError>| match done {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
    };
    [route, rule].into_iter().find(|done| !is_fine(done)).unwrap_or(Ok(()))
}

/// Routes marked packets to this host until standard input ends; says `ready` on standard output once it is so, or what
/// is wrong. No signal that asks a program to stop does stop this.
///
/// # Errors
/// Without root's rights, or where nobody reads the output.
pub fn keep_routes() -> io::Result<()> {
    let _blocked = Signals::block().map_err(io::Error::other)?;
    let host = Namespace::current().map_err(io::Error::other)?;
    let four = set(&host, Ipv4Addr::UNSPECIFIED.into(), true);
    // A host without IPv6 needs none of it.
    let six = set(&host, Ipv6Addr::UNSPECIFIED.into(), true).is_ok();
    let said = match &four {
        Ok(()) => "ready".to_owned(),
        Err(problem) => problem.to_string(),
    };
    let told = writeln!(io::stdout(), "{said}");
    if four.is_ok() && told.is_ok() {
        let _ = io::stdin().read_to_end(&mut Vec::new());
    }
    let _ = set(&host, Ipv4Addr::UNSPECIFIED.into(), false);
    if six {
        let _ = set(&host, Ipv6Addr::UNSPECIFIED.into(), false);
    }
    told
}
