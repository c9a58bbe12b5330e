//! The headers of a device's packets, as they leave it and come to it. The packets themselves go their way.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockType, recvmsg, setsockopt, socket,
    sockopt,
};
use suimon_units::{Duration, Instant};

use crate::error::{Doing, LinuxError};
use crate::schedule::wait_readable;

/// Hears of every packet of one device: those that leave are told as the device sends them, behind its queue.
#[derive(Debug)]
pub struct Packets {
    socket: OwnedFd,
    buffer: Box<[u8; KEPT]>,
}

/// A packet that passed.
#[derive(Debug)]
pub struct Passing<'a> {
    /// It left, rather than came.
    pub leaves: bool,
    /// When, by the clock of the day.
    pub at: Instant,
    /// Its bytes from the IP header on.
    pub length: u32,
    /// The first of them.
    pub data: &'a [u8],
}

impl Packets {
    /// Listens at `device` of the calling thread's network namespace.
    ///
    /// # Errors
    /// There is no such device, or without the right to (`CAP_NET_RAW`).
    pub fn of(device: &str) -> Result<Self, LinuxError> {
        let doing = || format!("listening to the packets of {device}");
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // No protocol yet: packets of other devices are not heard before the socket is bound.
        let socket = socket(AddressFamily::Packet, SockType::Datagram, flags, None).doing(doing())?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).doing(doing())?;
        // Where this is refused, the usual room serves.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &ROOM);
        let index = if_nametoindex(device).doing(doing())?;
        // SAFETY: all fields are numbers, for which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        let length = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: the address is one of this family, of this length, and outlives the call.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
        Errno::result(bound).doing(doing())?;
        Ok(Self { socket, buffer: Box::new([0; KEPT]) })
    }

    /// Waits for packets, at most for `timeout`, and shows all that have passed.
    ///
    /// # Errors
    /// The device is gone.
    pub fn wait(
        &mut self,
        timeout: Duration,
        on_packet: &mut dyn FnMut(&Passing<'_>),
    ) -> Result<(), LinuxError> {
        wait_readable([self.socket.as_fd()], Some(timeout))?;
        for _ in 0..MOST_AT_ONCE {
            if !self.next(on_packet)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn next(&mut self, on_packet: &mut dyn FnMut(&Passing<'_>)) -> Result<bool, LinuxError> {
        let mut control = nix::cmsg_space!(libc::timespec);
        let mut buffers = [io::IoSliceMut::new(&mut self.buffer[..])];
        // The whole length is told, whatever is kept.
        let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
        let descriptor = self.socket.as_raw_fd();
        let message = match recvmsg::<LinkAddr>(descriptor, &mut buffers, Some(&mut control), flags) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
            Err(error) => return Err(error).doing("reading packets of the device"),
        };
        let at = message.cmsgs().ok().and_then(|mut all| {
            all.find_map(|one| match one {
                ControlMessageOwned::ScmTimestampns(time) => Some(time),
                _ => None,
            })
        });
        let length = message.bytes;
        let leaves = message.address.is_some_and(|from| from.pkttype() == libc::PACKET_OUTGOING);
        if let Some(at) = at {
            let nanos = at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64;
            let data = &self.buffer[..length.min(KEPT)];
            on_packet(&Passing { leaves, at: Instant::from_nanos(nanos), length: length as u32, data });
        }
        Ok(true)
    }
}

/// Bytes kept of a packet: the headers of IPv6 and TCP with all options.
const KEPT: usize = 192;
/// Bytes of packets that may wait to be read.
const ROOM: usize = 8 << 20;
/// Packets shown before somebody else has a turn.
const MOST_AT_ONCE: usize = 10_000;
