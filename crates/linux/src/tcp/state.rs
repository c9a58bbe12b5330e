//! The state of a connection in the kernel (`TCP_INFO`, `SIOCOUTQ`).

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use suimon_units::{Bytes, Duration};

/// The state of a sender's congestion control and loss recovery (`enum tcp_ca_state`).
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
    /// The state of the sender.
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
    /// Mean deviation of the round-trip time.
    pub rttvar: Duration,
    /// The least round-trip time of late.
    pub rtt_min: Option<Duration>,
    /// Since an acknowledgement came, in whole milliseconds.
    pub since_ack: Duration,
    /// Payload acknowledged.
    pub acknowledged: Bytes,
    /// Segments that have arrived, also those acknowledged selectively.
    pub delivered: u64,
    /// Payload written and not sent so far.
    pub unsent: Bytes,
    /// Payload sent, retransmissions included.
    pub sent: Bytes,
    /// The retransmitted part of it.
    pub sent_again: Bytes,
    /// Data segments sent.
    pub segments: u64,
    /// The retransmissions among them.
    pub retransmissions: u64,
    /// Segments that the receiver had twice, as its DSACK blocks say.
    pub duplicates: u64,
    /// Retransmission timeouts (Linux 6.7; 0 before).
    pub timeouts: u64,
    /// Data segments delivered whose arrival was marked (ECN).
    pub marked_segments: u64,
    /// Payload received in order.
    pub received: Bytes,
    /// Data segments received, in any order and more than once.
    pub received_segments: u64,
    /// Payload of the full segments that come.
    pub received_segment: Bytes,
    /// Data segments that came before one that was sent earlier (Linux 5.4; 0 before).
    pub out_of_order: u64,
    /// The round-trip time as the receiver sees it, by timestamps; `None` before the first measurement.
    pub receiver_rtt: Option<Duration>,
    /// Whether each segment carries timestamps (RFC 7323 §3).
    pub has_timestamps: bool,
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
        rttvar: Duration::from_micros(word(72)),
        rtt_min: micros(word(148)),
        since_ack: Duration::from_millis(word(56)),
        // The SYN counts as one byte.
        acknowledged: Bytes::new(wide(120).saturating_sub(1)),
        delivered: word(192),
        unsent: Bytes::new(word(144)),
        sent: Bytes::new(wide(200)),
        sent_again: Bytes::new(wide(208)),
        segments: word(156),
        retransmissions: word(100),
        duplicates: word(216),
        timeouts: u64::from(u16::from_ne_bytes([bytes[240], bytes[241]])),
        marked_segments: word(196),
        received: Bytes::new(wide(128)),
        received_segments: word(152),
        received_segment: Bytes::new(word(20)),
        out_of_order: word(224),
        receiver_rtt: micros(word(92)),
        // TCPI_OPT_TIMESTAMPS.
        has_timestamps: bytes[5] & 1 != 0,
    })
}

/// The bytes that `socket` holds: never sent, or sent and not acknowledged (`SIOCOUTQ`).
///
/// # Errors
/// Where `socket` is not connected.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<Bytes> {
    let mut bytes: c_int = 0;
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int to the pointer, which outlives the call.
    let done = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(Bytes::new(u64::try_from(bytes).unwrap_or(0))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    /// The other end reads nothing, so its window fills and the rest stays here.
    #[test]
    fn what_is_neither_acknowledged_nor_sent_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _server = listener.accept().unwrap();
        assert_eq!(unacknowledged(&client).unwrap(), Bytes::ZERO);
        client.set_nonblocking(true).unwrap();
        let mut written = Bytes::ZERO;
        while let Ok(count) = client.write(&[0; 65_536]) {
            written += Bytes::new(count as u64);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        let state = tcp_state(&client).unwrap();
        let held = unacknowledged(&client).unwrap();
        assert_eq!(state.acknowledged + held, written);
        assert!(state.unsent <= held && state.unsent > Bytes::ZERO, "{state:?}");
        assert!(
            state.mss > Bytes::new(500) && state.rtt_min.unwrap() <= state.srtt.unwrap() * 2,
            "{state:?}"
        );
    }

    #[test]
    fn a_socket_of_another_kind_is_an_error() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_state(&udp).is_err());
    }
}
