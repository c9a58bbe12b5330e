//! TUN devices: the descriptor of one gives the packets that its host sends, and packets written to it reach the host.
//! The device ends with the descriptor.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::error::{Doing, LinuxError};
use crate::namespace::Namespace;

/// Options of a TUN device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TunOptions {
    /// Hand over TCP segments unsplit and with unfinished checksums, as a network card would be given them. Every
    /// packet then has a [`SEGMENTATION_HEADER`] before it, read or written.
    pub segmentation: bool,
}

/// Length of the `virtio_net_hdr` before each packet, where segmentation was asked for.
pub const SEGMENTATION_HEADER: usize = 10;

/// Longest packet that a device hands over, with its header.
pub const MAX_READ: usize = 65_536 + SEGMENTATION_HEADER;

/// A TUN device and its descriptor.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// Makes a device called `name` in `namespace`: up to 15 bytes, not taken there; `%d` in it stands for the first
    /// number that makes it so. It is down.
    ///
    /// # Errors
    /// Where the name is taken, `/dev/net/tun` cannot be opened, or without the right to.
    pub fn open(namespace: &Namespace, name: &str, options: TunOptions) -> Result<Self, LinuxError> {
        let (file, name) = namespace.run(|| make(name, options))??;
        Ok(Self { file, name })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one packet; does not wait for one.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where there is none.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }

    /// Writes one packet.
    ///
    /// # Errors
    /// Where the device is down, or the packet is none.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// `/dev/net/tun` belongs to the namespace of the thread that opens it.
fn make(name: &str, options: TunOptions) -> Result<(File, String), LinuxError> {
    let doing = || format!("making the device {name}");
    let mut flags = libc::IFF_TUN | libc::IFF_NO_PI;
    if options.segmentation {
        flags |= libc::IFF_VNET_HDR;
    }
    // SAFETY: `ifreq` is plain data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('/') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name has 1 to 15 bytes and no slash"))
            .doing(doing());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
    let file = file.doing_with(
        "opening /dev/net/tun",
        "this needs root, or that this user may read and write the file: chmod 666 /dev/net/tun, as root",
    )?;
    // SAFETY: the descriptor is open, and TUNSETIFF reads and writes one `ifreq`, which outlives the call.
    let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if made != 0 {
        return Err(io::Error::last_os_error()).doing(doing());
    }
    if options.segmentation {
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        // SAFETY: the descriptor is open, and TUNSETOFFLOAD takes a number.
        let set = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, offloads as libc::c_ulong) };
        if set != 0 {
            return Err(io::Error::last_os_error()).doing(doing());
        }
    }
    let name = request.ifr_name.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8);
    Ok((file, String::from_utf8_lossy(&name.collect::<Vec<_>>()).into_owned()))
}
