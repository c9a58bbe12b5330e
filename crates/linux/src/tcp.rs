//! TCP sockets of experiments: how they are set up, and what the kernel tells of them.

use std::ffi::{OsStr, c_int};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::sys::socket::{setsockopt, sockopt};
use suimon_units::{Bytes, Duration, Rate};

/// What to do with a socket before it connects or listens; what a listener accepts has it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpOptions {
    /// Congestion control, as the kernel calls it.
    pub congestion_control: Option<String>,
    /// Largest segment, options included (`TCP_MAXSEG`).
    pub max_segment: u32,
    /// Most that is ever advertised.
    pub window: Option<Bytes>,
    /// A writer waits while more than this was not sent yet (`TCP_NOTSENT_LOWAT`).
    pub most_unsent: Option<Bytes>,
}

impl TcpOptions {
    /// Applies all of them.
    ///
    /// # Errors
    /// What the kernel refuses, such as a congestion control that it does not have.
    pub fn apply(&self, socket: impl AsFd) -> io::Result<()> {
        let socket = socket.as_fd();
        if let Some(name) = &self.congestion_control {
            setsockopt(&socket, sockopt::TcpCongestion, &OsStr::new(name).to_owned())?;
        }
        set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, u64::from(self.max_segment))?;
        if let Some(window) = self.window {
            limit_window(socket, window)?;
        }
        if let Some(unsent) = self.most_unsent {
            set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, unsent.get())?;
        }
        Ok(())
    }
}

/// Room for received data whatever the window, in bytes.
const LEAST_BUFFER: u64 = 1 << 20;

fn set(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: u64) -> io::Result<()> {
    let value = c_int::try_from(value).unwrap_or(c_int::MAX);
    let (pointer, length) = ((&raw const value).cast(), size_of::<c_int>() as libc::socklen_t);
    // SAFETY: the pointer and the length describe one int that outlives the call.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer, length) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Never advertises more than `window` from now on; a listener hands that down to what it accepts. The kernel sets it anew
/// when it learns how much memory packets take, so a receiver that must keep to it says so again as data comes.
///
/// # Errors
/// Without the right to reserve so much memory for a socket.
pub fn limit_window(socket: impl AsFd, window: Bytes) -> io::Result<()> {
    let socket = socket.as_fd();
    // Memory for what the kernel keeps beside the data; with too little of it, it would advertise less, and hold ACKs
    // back until the application has read.
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, (4 * window.get()).max(LEAST_BUFFER))?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, window.get())
}

/// Lets `socket` send no faster than `rate`, and pace what it sends (`SO_MAX_PACING_RATE`).
///
/// # Errors
/// None that the kernel is known to give to a TCP socket.
pub fn limit_pacing(socket: impl AsFd, rate: Rate) -> io::Result<()> {
    let value = rate.as_bps() / 8;
    let (pointer, length) = ((&raw const value).cast(), size_of::<u64>() as libc::socklen_t);
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the pointer and the length describe one number that outlives the call.
    let done =
        unsafe { libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, pointer, length) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes what has arrived and throws it away, waiting for it where `socket` does: how much it was, zero at the end.
///
/// # Errors
/// As `recv(2)`.
pub fn discard(socket: impl AsFd, most: usize) -> io::Result<usize> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: with MSG_TRUNC a TCP socket copies nothing (tcp(7)), so that there need be no memory.
    let got = unsafe { libc::recv(descriptor, std::ptr::null_mut(), most, libc::MSG_TRUNC) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// What a sender's congestion control and loss recovery are at (`enum tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SenderState {
    /// Nothing is amiss.
    Open,
    /// Something was acknowledged out of order.
    Disorder,
    /// The window is being reduced for a mark.
    WindowReduction,
    /// Fast recovery.
    Recovery,
    /// The retransmission timer ran out.
    Loss,
}

/// The state of a connection, as its sender sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpState {
    /// What the sender is at.
    pub state: SenderState,
    /// Payload of its full segments.
    pub mss: Bytes,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow start threshold; `None` where it never was reached.
    pub ssthresh: Option<Bytes>,
    /// Data sent and neither acknowledged nor found lost, in whole segments.
    pub flight: Bytes,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Duration>,
    /// The least round-trip time of late.
    pub rtt_min: Option<Duration>,
    /// Payload acknowledged.
    pub acknowledged: Bytes,
    /// Payload sent, retransmissions included.
    pub sent: Bytes,
    /// Of it, retransmissions.
    pub sent_again: Bytes,
    /// Data segments sent.
    pub segments: u64,
    /// Of them, retransmissions.
    pub retransmissions: u64,
    /// Segments that the receiver had twice, as its DSACK blocks say.
    pub duplicates: u64,
    /// Retransmission timeouts (Linux 6.7; 0 before).
    pub timeouts: u64,
}

/// Reads the state of the connection behind `socket`.
///
/// # Errors
/// Where there is none, or the kernel is older than 4.18.
pub fn tcp_state(socket: impl AsFd) -> io::Result<TcpState> {
    // `struct tcp_info` of include/uapi/linux/tcp.h up to `tcpi_total_rto_recoveries`; older kernels fill less.
    let mut bytes = [0_u8; 244];
    let mut length = bytes.len() as libc::socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    let pointer = bytes.as_mut_ptr().cast();
    // SAFETY: the pointer and the length describe memory that outlives the call, of which the kernel writes no more.
    let done =
        unsafe { libc::getsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, pointer, &raw mut length) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    if length < 216 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "TCP_INFO of this kernel is too short"));
    }
    let word =
        |at: usize| u64::from(u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    let wide = |at: usize| {
        let (low, high) = if cfg!(target_endian = "little") { (at, at + 4) } else { (at + 4, at) };
        word(low) | word(high) << 32
    };
    let mss = word(16);
    let segments = |count: u64| Bytes::new(count * mss);
    let micros =
        |value: u64| (value > 0 && value < u64::from(u32::MAX)).then(|| Duration::from_micros(value));
    Ok(TcpState {
        state: match bytes[1] {
            0 => SenderState::Open,
            1 => SenderState::Disorder,
            2 => SenderState::WindowReduction,
            3 => SenderState::Recovery,
            _ => SenderState::Loss,
        },
        mss: Bytes::new(mss),
        cwnd: segments(word(80)),
        // TCP_INFINITE_SSTHRESH of include/net/tcp.h.
        ssthresh: Some(word(76)).filter(|segments| *segments < 0x7fff_ffff).map(segments),
        // Unacknowledged, selectively acknowledged, lost, sent again: tcp_packets_in_flight.
        flight: segments((word(24) + word(36)).saturating_sub(word(28) + word(32))),
        srtt: micros(word(68)),
        rtt_min: micros(word(148)),
        // The SYN counts as one byte.
        acknowledged: Bytes::new(wide(120).saturating_sub(1)),
        sent: Bytes::new(wide(200)),
        sent_again: Bytes::new(wide(208)),
        segments: word(156),
        retransmissions: word(100),
        duplicates: word(216),
        timeouts: u64::from(u16::from_ne_bytes([bytes[240], bytes[241]])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_tells_what_it_sent_and_keeps_to_its_options() {
        let options = TcpOptions {
            congestion_control: Some("reno".to_owned()),
            max_segment: 1_012,
            window: Some(Bytes::new(20_000)),
            most_unsent: Some(Bytes::new(32_768)),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        options.apply(&listener).unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        near.write_all(&[0; 10_000]).unwrap();
        let mut got = 0;
        while got < 10_000 {
            got += discard(&far, 1 << 20).unwrap();
        }
        limit_window(&far, Bytes::new(20_000)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let state = tcp_state(&near).unwrap();
        assert_eq!(state.acknowledged, Bytes::new(10_000));
        assert_eq!(state.sent, Bytes::new(10_000));
        // 12 bytes of timestamps in each.
        assert_eq!((state.mss, state.segments), (Bytes::new(1_000), 10));
        assert_eq!((state.state, state.ssthresh, state.retransmissions), (SenderState::Open, None, 0));
        assert!(state.rtt_min.is_some() && state.srtt >= state.rtt_min);
        near.set_nonblocking(true).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        for _ in 0..100 {
            let _ = near.write(&[0; 10_000]);
            let state = tcp_state(&near).unwrap();
            assert!(state.flight <= Bytes::new(20_000), "{state:?}");
        }
    }

    #[test]
    fn a_congestion_control_that_is_not_there_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = TcpOptions {
            congestion_control: Some("no_such".to_owned()),
            max_segment: 1_460,
            window: None,
            most_unsent: None,
        };
        assert_eq!(options.apply(&listener).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
