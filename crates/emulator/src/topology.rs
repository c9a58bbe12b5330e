//! Two hosts and the paths between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use suimon_linux::{LinuxError, Namespace, Route};
use suimon_model::Link;

use crate::addresses::{MAX_DEPTH, Place};
use crate::emulation::{Emulation, End, LinkSetup, Setup};
use crate::gate::Gate;
use crate::relay;

/// Two hosts joined by paths: `near`, whose programs have a device for each path, and `far`.
#[derive(Debug)]
pub struct TwoHosts {
    /// The links, in the order of the paths; their first direction leads from `near` to `far`.
    pub emulation: Emulation,
    /// One host.
    pub near: Namespace,
    /// The other.
    pub far: Namespace,
    /// The paths between them.
    pub paths: Vec<Path>,
}

/// One path between two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The near host's device.
    pub device: String,
    /// The far host's device.
    pub far_device: String,
    /// The near host's address on it.
    pub near: Ipv4Addr,
    /// The far host's address on it.
    pub far: Ipv4Addr,
    /// The near host's IPv6 address on it.
    pub near_v6: Ipv6Addr,
    /// The far host's IPv6 address on it.
    pub far_v6: Ipv6Addr,
    /// The address of the host at the other end of all paths on the way: where the far host is itself the near host of
    /// other paths, the far host of the first of those.
    pub end: Ipv4Addr,
    /// Its IPv6 address.
    pub end_v6: Ipv6Addr,
    /// Addresses of hosts behind the near host.
    block: Option<(IpAddr, u8)>,
}

impl TwoHosts {
    /// Joins two new hosts by `paths`, each given by its directions from the near host to the far one and back.
    ///
    /// # Errors
    /// Without the right to make namespaces and devices.
    pub fn new(setup: &Setup, paths: &[[Link; 2]]) -> Result<Self, LinuxError> {
        Self::between(setup, Namespace::new()?, Namespace::new()?, paths)
    }

    /// Joins `near` by `paths` to a new host that answers for all addresses: programs at `near` reach over the paths
    /// all hosts that the calling thread reaches, by TCP and by UDP over IPv4. The far host's own address stands for
    /// the host that this runs on; its port 53 for `resolver`, where that is given.
    ///
    /// # Errors
    /// The errors are those of [`TwoHosts::between`].
    pub fn outward(
        setup: &Setup,
        near: Namespace,
        paths: &[[Link; 2]],
        resolver: Option<IpAddr>,
    ) -> Result<Self, LinuxError> {
        let (gate, requests) = Gate::new();
        let hosts = Self::join(setup, near, Namespace::new()?, paths, Some(&gate))?;
        relay::start(&hosts.far, &hosts.paths, resolver, requests, gate)?;
        Ok(hosts)
    }

    /// Lets hosts be joined to the near host by further paths, whose packets then pass these paths too.
    ///
    /// # Errors
    /// Without the right to change routes.
    pub fn forward(&self) -> Result<(), LinuxError> {
        self.near.set_sysctl("ipv4/ip_forward", "1")?;
        // There is no such key where the kernel has no IPv6.
        let _ = self.near.set_sysctl("ipv6/conf/all/forwarding", "1");
        for path in &self.paths {
            let Some(block) = path.block else { continue };
            self.far.add_route(&Route {
                destination: Some(block),
                via: None,
                device: path.far_device.clone(),
                table: Route::MAIN,
                local: false,
            })?;
        }
        Ok(())
    }

    /// Joins `near` to `far`. Packets for which `near` has no other route go over the first path; packets from the
    /// address of another path go over that path.
    ///
    /// # Errors
    /// Without the right to make devices in both.
    pub fn between(
        setup: &Setup,
        near: Namespace,
        far: Namespace,
        paths: &[[Link; 2]],
    ) -> Result<Self, LinuxError> {
        Self::join(setup, near, far, paths, None)
    }

    fn join(
        setup: &Setup,
        near: Namespace,
        far: Namespace,
        paths: &[[Link; 2]],
        gate: Option<&Arc<Gate>>,
    ) -> Result<Self, LinuxError> {
        let mut taken = near.addresses()?;
        taken.extend(far.addresses()?);
        let mut links = Vec::new();
        let mut found = Vec::new();
        let mut free = free_places(&taken, &far)?.into_iter();
        for directions in paths {
            let place = free.next().ok_or_else(|| {
                let problem =
                    format!("more paths than there are addresses for, or more than {MAX_DEPTH} in a row");
                LinuxError::new("joining hosts by a path", std::io::Error::other(problem))
            })?;
            let path = Path::at(&place);
            let prefix_v6 = place.prefix_v6();
            let end = |namespace: &Namespace, device: &str, v4: Ipv4Addr, v6: Ipv6Addr| End {
                namespace: namespace.clone(),
                device: device.to_owned(),
                addresses: vec![(v4.into(), 30), (v6.into(), prefix_v6)],
            };
            links.push(LinkSetup {
                directions: directions.clone(),
                ends: [
                    end(&near, "path%d", path.near, path.near_v6),
                    end(&far, "suimon%d", path.far, path.far_v6),
                ],
                flow_delays: Default::default(),
            });
            found.push(path);
        }
        let emulation = Emulation::start_with(setup, &links, gate)?;
        let has_ipv6 = near.addresses()?.iter().any(|(address, _)| address.is_ipv6());
        for (index, path) in found.iter_mut().enumerate() {
            [path.device, path.far_device] = emulation.devices(index).map(str::to_owned);
            let table = FIRST_TABLE + index as u32;
            let ways: [(IpAddr, IpAddr); 2] =
                [(path.near.into(), path.far.into()), (path.near_v6.into(), path.far_v6.into())];
            for (own, via) in ways.into_iter().filter(|(own, _)| has_ipv6 || own.is_ipv4()) {
                let route = Route::default_via(via, &path.device);
                if index == 0 {
                    near.add_route(&route)?;
                }
                if paths.len() > 1 {
                    near.add_route(&Route { table, ..route })?;
                    near.add_rule_from(own, table)?;
                }
            }
        }
        Ok(Self { emulation, near, far, paths: found })
    }
}

/// Paths that a process has room for before the place where the next process begins.
const PLACES_BETWEEN: u16 = 16;

/// Places for paths to `far`, of which none of the addresses in `taken` is one.
fn free_places(taken: &[(IpAddr, u8)], far: &Namespace) -> Result<Vec<Place>, LinuxError> {
    let far = far.addresses()?;
    let places = match far.iter().find_map(|(address, _)| Place::of_near(*address)) {
        Some(place) => place.behind(),
        None => {
            // This kernel keeps metrics of earlier links by address, so another process begins with others. Processes that
            // start at the same time see none of each other's addresses, and their numbers follow one another.
            let first = (std::process::id() as u16).wrapping_mul(PLACES_BETWEEN);
            (0..=u16::MAX).map(|nth| Place::outermost(first.wrapping_add(nth))).collect()
        }
    };
    let is_free = |place: &Place| !taken.iter().any(|(address, _)| Path::at(place).has(*address));
    Ok(places.into_iter().filter(is_free).collect())
}

/// The table of the first path's routes.
const FIRST_TABLE: u32 = 7_000;

impl Path {
    fn at(place: &Place) -> Self {
        let root = place.root();
        Self {
            device: String::new(),
            far_device: String::new(),
            near: place.address(true),
            far: place.address(false),
            near_v6: place.address_v6(true),
            far_v6: place.address_v6(false),
            end: root.address(false),
            end_v6: root.address_v6(false),
            block: place.block(),
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => u32::from(address) & !3 == u32::from(self.near) & !3,
            IpAddr::V6(address) => address == self.near_v6 || address == self.far_v6,
        }
    }
}
