//! Sockets of TCP and of kernel MPTCP.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use socket2::{Domain, Protocol, Socket, Type};
use suimon_emulator::TwoHosts;
use suimon_linux::{LinuxError, Namespace};

use crate::error::LabError;

/// What a stream is carried by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    /// Listeners of it take plain TCP too.
    Mptcp,
}

impl Transport {
    fn protocol(self) -> Protocol {
        match self {
            Self::Tcp => Protocol::TCP,
            Self::Mptcp => Protocol::from(IPPROTO_MPTCP),
        }
    }

    pub(super) fn listen(self, address: SocketAddr) -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(self.protocol()))?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(1024)?;
        Ok(socket.into())
    }

    /// Connects, with the congestion control `cc` where it is given.
    pub(super) fn connect(self, to: SocketAddr, cc: Option<&str>) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(self.protocol()))?;
        if let Some(cc) = cc {
            socket.set_tcp_congestion(cc.as_bytes())?;
        }
        socket.connect(&to.into())?;
        Ok(socket.into())
    }
}

/// Lets MPTCP use every path.
pub(super) fn offer_subflows(hosts: &TwoHosts) -> Result<(), LabError> {
    for namespace in [&hosts.near, &hosts.far] {
        run(namespace, "ip", &["mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8"])?;
    }
    for path in &hosts.paths[1..] {
        let address = path.near.to_string();
        run(&hosts.near, "ip", &["mptcp", "endpoint", "add", &address, "dev", &path.device, "subflow"])?;
    }
    Ok(())
}

/// Runs a program in a namespace until it ends.
pub(super) fn run(namespace: &Namespace, program: &str, arguments: &[&str]) -> Result<(), LabError> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = namespace.spawn(&mut command)?.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let command = format!("{program} {}", arguments.join(" "));
    Err(LinuxError::new(command, io::Error::other(format!("{}, {}", output.status, said.trim()))).into())
}

/// `IPPROTO_MPTCP` (include/uapi/linux/in.h).
const IPPROTO_MPTCP: i32 = 262;
