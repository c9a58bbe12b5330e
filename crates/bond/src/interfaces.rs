//! Interfaces that come and go.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{AsyncSocket, AsyncSocketExt, SocketAddr as NetlinkAddr, TokioSocket};
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;

/// The interface or the source address of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// An interface, by name; it may come later.
    Interface(String),
    /// A source address.
    Address(IpAddr),
}

impl FromStr for Via {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let plain = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
        if !text.is_empty() && text.len() < IFNAMSIZ && text.chars().all(plain) {
            return Ok(Self::Interface(text.to_owned()));
        }
        Err(format!("{text:?} is neither an interface's name nor an address"))
    }
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// Linux's bound, with a zero at the end.
const IFNAMSIZ: usize = 16;

impl Via {
    /// Connects to `peer` by this way, with congestion control `cc` where one is named. Where it is `bound`, an address stands
    /// for the interface that has it.
    pub(crate) async fn connect(
        &self,
        peer: SocketAddr,
        cc: Option<&str>,
        bound: bool,
    ) -> io::Result<TcpStream> {
        let socket = self.socket(peer, (Type::STREAM, Protocol::TCP), bound)?;
        if let Some(cc) = cc {
            let what =
                |error: io::Error| io::Error::new(error.kind(), format!("congestion control {cc}: {error}"));
            socket.set_tcp_congestion(cc.as_bytes()).map_err(what)?;
        }
        socket.set_nonblocking(true)?;
        TcpSocket::from_std_stream(socket.into()).connect(peer).await
    }

    /// A socket for datagrams to and from `peer` alone by this way.
    pub(crate) fn datagrams(&self, peer: SocketAddr, bound: bool) -> io::Result<UdpSocket> {
        let socket = self.socket(peer, (Type::DGRAM, Protocol::UDP), bound)?;
        // The kernel then says where the peer's port is closed.
        socket.connect(&peer.into())?;
        Ok(socket.into())
    }

    /// A socket for `peer` by this way.
    fn socket(
        &self,
        peer: SocketAddr,
        (kind, protocol): (Type, Protocol),
        bound: bool,
    ) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(peer), kind, Some(protocol))?;
        match self {
            Self::Interface(name) => {
                let what = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
                socket.bind_device(Some(name.as_bytes())).map_err(what)?;
                // Where routes are chosen by source address, the device alone finds none.
                if let Some(address) = address_of(name, peer.is_ipv4()) {
                    socket.bind(&SocketAddr::new(address, 0).into())?;
                }
            }
            Self::Address(address) => {
                if bound {
                    let name = interface_of(*address).ok_or(io::ErrorKind::AddrNotAvailable)?;
                    socket.bind_device(Some(name.as_bytes()))?;
                }
                socket.bind(&SocketAddr::new(*address, 0).into())?;
            }
        }
        Ok(socket)
    }

    /// The footing of a connection from `local`, for [`is_gone`](Self::is_gone) to compare.
    pub(crate) fn footing(&self, local: Option<IpAddr>) -> Footing {
        let index = match self {
            Self::Interface(name) => if_nametoindex(name.as_str()).ok(),
            Self::Address(_) => None,
        };
        Footing { index, local }
    }

    /// Why a connection with this footing cannot work any more, if it cannot.
    pub(crate) fn is_gone(&self, footing: &Footing) -> Option<&'static str> {
        if let Self::Interface(name) = self {
            match if_nametoindex(name.as_str()) {
                Err(_) => return Some("the interface is gone"),
                // A new device of the same name is another one; old sockets stay bound to the old one.
                Ok(index) if Some(index) != footing.index => return Some("the interface was replaced"),
                Ok(_) => {}
            }
        }
        let addresses: Vec<_> = getifaddrs().ok()?.collect();
        let (mut named, mut works, mut has_address) = (false, false, false);
        for entry in addresses {
            let ip = ip(&entry);
            has_address |= ip.is_some() && ip == footing.local;
            if matches!(self, Self::Interface(name) if *name == entry.interface_name) {
                named = true;
                works |= entry.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
            }
        }
        if named && !works {
            return Some("the interface is down");
        }
        (footing.local.is_some() && !has_address).then_some("its address is gone")
    }
}

/// The first address of interface `name` that reaches beyond its link.
fn address_of(name: &str, v4: bool) -> Option<IpAddr> {
    let entries = getifaddrs().ok()?.filter(|entry| entry.interface_name == name);
    entries.filter_map(|entry| ip(&entry)).find(|address| match address {
        IpAddr::V4(_) => v4,
        IpAddr::V6(address) => !v4 && !address.is_unicast_link_local(),
    })
}

/// The name of the interface that has `address`.
fn interface_of(address: IpAddr) -> Option<String> {
    let mut entries = getifaddrs().ok()?;
    entries.find(|entry| ip(entry) == Some(address)).map(|entry| entry.interface_name)
}

fn ip(entry: &InterfaceAddress) -> Option<IpAddr> {
    let address = entry.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// The parts of this host without which a connection is gone: its interface and its address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Footing {
    index: Option<u32>,
    local: Option<IpAddr>,
}

/// Counts up whenever interfaces, addresses or routes change; where the kernel does not tell, never.
pub(crate) fn watch_changes() -> watch::Receiver<u64> {
    let (changes, receiver) = watch::channel(0);
    tokio::spawn(async move {
        if let Err(error) = listen(&changes).await {
            tracing::warn!("changes of interfaces are not told: {error}");
        }
        // Receivers wait for ever rather than spin.
        changes.closed().await;
    });
    receiver
}

async fn listen(changes: &watch::Sender<u64>) -> io::Result<()> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    let groups = [groups::LINK, groups::IPV4_ADDRESS, groups::IPV6_ADDRESS, groups::IPV4_ROUTE];
    socket.socket_mut().bind(&NetlinkAddr::new(0, groups.into_iter().sum()))?;
    let mut message = Vec::with_capacity(8192);
    loop {
        message.clear();
        match socket.recv(&mut message).await {
            // The readers of this count look up the change itself.
            Ok(_) => changes.send_modify(|count| *count += 1),
            // Messages were lost, so something changed.
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ENOBUFS as i32) => {
                changes.send_modify(|count| *count += 1);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Multicast groups of rtnetlink (include/uapi/linux/rtnetlink.h, `RTMGRP_*`).
mod groups {
    pub(super) const LINK: u32 = 1;
    pub(super) const IPV4_ADDRESS: u32 = 0x10;
    pub(super) const IPV4_ROUTE: u32 = 0x40;
    pub(super) const IPV6_ADDRESS: u32 = 0x100;
}
