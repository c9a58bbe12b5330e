//! TCP sockets: their options, and the kernel's statistics of them.

mod state;

use std::ffi::{OsStr, c_int};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::sys::socket::{MsgFlags, getsockopt, send, setsockopt, sockopt};
use suimon_units::{Bytes, Duration, Rate};

pub use self::state::{SenderState, TcpState, tcp_state, unacknowledged};

/// Options of a socket, set before it connects or listens; accepted sockets inherit them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpOptions {
    /// Congestion control, as the kernel calls it.
    pub congestion_control: Option<String>,
    /// Largest segment, options included (`TCP_MAXSEG`).
    pub max_segment: Bytes,
    /// Most that is ever advertised.
    pub window: Option<Bytes>,
    /// A writer waits while more than this was not sent yet (`TCP_NOTSENT_LOWAT`).
    pub most_unsent: Option<Bytes>,
}

impl TcpOptions {
    /// Applies all of them.
    ///
    /// # Errors
    /// Options that the kernel refuses, such as a congestion control that it does not have.
    pub fn apply(&self, socket: impl AsFd) -> io::Result<()> {
        let socket = socket.as_fd();
        if let Some(name) = &self.congestion_control {
            choose(socket, name)?;
        }
        set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, self.max_segment.get())?;
        if let Some(window) = self.window {
            limit_window(socket, window)?;
        }
        if let Some(unsent) = self.most_unsent {
            limit_unsent(socket, unsent)?;
        }
        Ok(())
    }
}

/// Room for received data whatever the window, in bytes.
const MIN_BUFFER: u64 = 1 << 20;

fn set(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: u64) -> io::Result<()> {
    let value = c_int::try_from(value).unwrap_or(c_int::MAX);
    let (pointer, length) = ((&raw const value).cast(), size_of::<c_int>() as libc::socklen_t);
    // SAFETY: the pointer and the length describe one int that outlives the call.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer, length) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets `socket` use the congestion control that the kernel calls `name`; those that a listener accepts use it too.
///
/// # Errors
/// Where the kernel has none of that name.
pub fn choose(socket: impl AsFd, name: &str) -> io::Result<()> {
    Ok(setsockopt(&socket, sockopt::TcpCongestion, &OsStr::new(name).to_owned())?)
}

/// The congestion control of `socket`, as the kernel calls it.
///
/// # Errors
/// Where `socket` is of another kind.
pub fn chosen(socket: impl AsFd) -> io::Result<String> {
    let name = getsockopt(&socket, sockopt::TcpCongestion)?;
    Ok(name.to_string_lossy().trim_end_matches('\0').to_owned())
}

/// Lets a writer to `socket` wait while more than `most` was not sent yet (`TCP_NOTSENT_LOWAT`).
///
/// # Errors
/// None that the kernel is known to give to a TCP socket.
pub fn limit_unsent(socket: impl AsFd, most: Bytes) -> io::Result<()> {
    set(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, most.get())
}

/// Bounds the connection's retransmission timeout, so that it is back soon after a short outage; from 1 to 120 s
/// (`TCP_RTO_MAX_MS`, Linux 6.15).
///
/// # Errors
/// Where the kernel does not know the option or refuses the value.
pub fn limit_timeout(socket: impl AsFd, most: Duration) -> io::Result<()> {
    const TCP_RTO_MAX_MS: c_int = 44;
    set(socket.as_fd(), libc::IPPROTO_TCP, TCP_RTO_MAX_MS, most.as_nanos() / 1_000_000)
}

/// Never advertises more than `window` from now on; sockets that a listener accepts inherit that. The kernel sets it
/// anew when it learns how much memory packets take, so a receiver that must keep to it says so again as data comes.
///
/// # Errors
/// Without the right to reserve so much memory for a socket.
pub fn limit_window(socket: impl AsFd, window: Bytes) -> io::Result<()> {
    let socket = socket.as_fd();
    // The kernel keeps other data beside the payload; with too little memory, it would advertise less, and hold ACKs
    // back until the application has read.
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, (4 * window.get()).max(MIN_BUFFER))?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, window.get())
}

/// Lets `socket` send no faster than `rate`, and pace its segments (`SO_MAX_PACING_RATE`).
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

/// Lets `socket` hold so many bytes of written data, whatever the kernel makes of the connection's rate. The kernel keeps
/// other data beside the payload, for which there is room too.
///
/// # Errors
/// Without the right to reserve so much memory for a socket.
pub fn reserve_send_buffer(socket: impl AsFd, bytes: Bytes) -> io::Result<()> {
    // The kernel doubles the value (socket(7)).
    set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, (2 * bytes.get()).max(MIN_BUFFER))
}

/// Hands `data` over: the number of bytes that were taken. Where `more` follows, segments that are not full wait for
/// it, and none asks its receiver for an answer at once (`MSG_MORE`).
///
/// # Errors
/// The errors are those of `send(2)`.
pub fn write(socket: impl AsFd, data: &[u8], more: bool) -> io::Result<usize> {
    let flags = MsgFlags::MSG_NOSIGNAL
        | if more { MsgFlags::from_bits_retain(libc::MSG_MORE) } else { MsgFlags::empty() };
    Ok(send(socket.as_fd().as_raw_fd(), data, flags)?)
}

/// Acknowledges at once what `socket` has received and been read of, rather than with the next segment (`TCP_QUICKACK`).
/// It holds for what has come so far only.
///
/// # Errors
/// None that the kernel is known to give to a TCP socket.
pub fn acknowledge(socket: impl AsFd) -> io::Result<()> {
    set(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1)
}

/// Takes arrived data and throws it away, waiting for it where `socket` does: the number of bytes, zero at the end.
///
/// # Errors
/// The errors are those of `recv(2)`.
pub fn discard(socket: impl AsFd, most: usize) -> io::Result<usize> {
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: with MSG_TRUNC a TCP socket copies nothing (tcp(7)), so that there need be no memory.
    let got = unsafe { libc::recv(descriptor, std::ptr::null_mut(), most, libc::MSG_TRUNC) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
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
            max_segment: Bytes::new(1_012),
            window: Some(Bytes::new(20_000)),
            most_unsent: Some(Bytes::new(32_768)),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        match options.apply(&listener) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("skipped: SO_RCVBUFFORCE, which gives the window its memory, needs CAP_NET_ADMIN");
                return;
            }
            applied => applied.unwrap(),
        }
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        assert_eq!(chosen(&far).unwrap(), "reno");
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
        let received = tcp_state(&far).unwrap();
        assert_eq!((received.received, received.received_segment), (Bytes::new(10_000), Bytes::new(1_000)));
        assert!(received.has_timestamps && (1..=10).contains(&received.received_segments), "{received:?}");
        near.set_nonblocking(true).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        for _ in 0..100 {
            let _ = near.write(&[0; 10_000]);
            let state = tcp_state(&near).unwrap();
            assert!(state.flight <= Bytes::new(20_000), "{state:?}");
        }
    }

    #[test]
    fn a_timeout_is_limited_where_there_is_a_connection_to_be() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // Linux before 6.15 does not know it.
        let limited = limit_timeout(&listener, Duration::from_secs(1));
        assert!(limited.is_ok() || limited.unwrap_err().raw_os_error() == Some(libc::ENOPROTOOPT));
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(limit_timeout(&udp, Duration::from_secs(1)).is_err());
    }

    #[test]
    fn a_congestion_control_that_is_not_there_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = TcpOptions {
            congestion_control: Some("no_such".to_owned()),
            max_segment: Bytes::new(1_460),
            window: None,
            most_unsent: None,
        };
        assert_eq!(options.apply(&listener).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
