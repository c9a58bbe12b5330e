//! What the kernel tells of a TCP connection, and the options that decide how much it is given ahead of time.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_void, socklen_t};

/// The state of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// Smoothed round-trip time in microseconds; zero until measured.
    pub rtt_us: u32,
    /// Mean deviation of the round-trip time in microseconds.
    pub rtt_var_us: u32,
    /// Least round-trip time of late in microseconds; `u32::MAX` until measured.
    pub min_rtt_us: u32,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Maximum segment size for sending, in bytes.
    pub snd_mss: u32,
    /// Bytes that were written and never sent.
    pub notsent_bytes: u32,
    /// Bytes that were acknowledged.
    pub bytes_acked: u64,
    /// Segments sent again.
    pub total_retrans: u32,
    /// Milliseconds since an acknowledgement came.
    pub last_ack_ms: u32,
}

/// Reads the state of the connection behind `socket` (`TCP_INFO`).
///
/// # Errors
/// Where `socket` is no TCP socket, or the kernel is older than 4.6, which does not know `notsent_bytes`.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut info = MaybeUninit::<RawTcpInfo>::zeroed();
    let mut len = size_of::<RawTcpInfo>() as socklen_t;
    // SAFETY: the pointer and the length describe memory that outlives the call; the kernel writes at most
    // `len` bytes, and every bit pattern of integers is valid.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast::<c_void>(),
            &raw mut len,
        )
    };
    check(done)?;
    if (len as usize) < size_of::<RawTcpInfo>() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "TCP_INFO of this kernel is too short"));
    }
    // SAFETY: zeroed above and then written by the kernel.
    let info = unsafe { info.assume_init() };
    Ok(TcpInfo {
        rtt_us: info.words[WORD_RTT],
        rtt_var_us: info.words[WORD_RTT + 1],
        min_rtt_us: info.min_rtt,
        cwnd_segments: info.words[WORD_CWND],
        snd_mss: info.words[WORD_SND_MSS],
        notsent_bytes: info.notsent_bytes,
        bytes_acked: info.bytes_acked,
        total_retrans: info.words[WORD_TOTAL_RETRANS],
        last_ack_ms: info.words[WORD_LAST_ACK_RECV],
    })
}

/// The head of `struct tcp_info` (include/uapi/linux/tcp.h): eight bytes of flags, 24 words, then wide fields.
#[repr(C)]
struct RawTcpInfo {
    flags: [u8; 8],
    words: [u32; 24],
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
}

/// Places in [`RawTcpInfo::words`]: rto, ato, snd_mss, rcv_mss, unacked, sacked, lost, retrans, fackets,
/// last_data_sent, last_ack_sent, last_data_recv, last_ack_recv, pmtu, rcv_ssthresh, rtt, rttvar, snd_ssthresh,
/// snd_cwnd, advmss, reordering, rcv_rtt, rcv_space, total_retrans.
const WORD_SND_MSS: usize = 2;
const WORD_LAST_ACK_RECV: usize = 12;
const WORD_RTT: usize = 15;
const WORD_CWND: usize = 18;
const WORD_TOTAL_RETRANS: usize = 23;

/// Bytes in the send buffer of `socket`: never sent, or sent and not acknowledged (`SIOCOUTQ`).
///
/// # Errors
/// Where `socket` is not connected.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u32> {
    let mut bytes: c_int = 0;
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int to the pointer, which outlives the call.
    let done = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    check(done)?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// Bounds the connection's retransmission timeout, so that it is back soon after a short outage
/// (`TCP_RTO_MAX_MS`, Linux 6.15; 1000 to 120000).
///
/// # Errors
/// Where the kernel does not know the option or refuses the value.
pub fn set_rto_max_ms(socket: impl AsFd, milliseconds: u32) -> io::Result<()> {
    const TCP_RTO_MAX_MS: c_int = 44;
    let value = c_int::try_from(milliseconds).unwrap_or(c_int::MAX);
    // SAFETY: the pointer and the length describe one int that outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            (&raw const value).cast::<c_void>(),
            size_of::<c_int>() as socklen_t,
        )
    };
    check(done)
}

fn check(done: c_int) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
        assert_eq!(unacknowledged(&client).unwrap(), 0);
        client.set_nonblocking(true).unwrap();
        let mut written = 0_u64;
        while let Ok(count) = client.write(&[0; 65_536]) {
            written += count as u64;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        let info = tcp_info(&client).unwrap();
        let held = u64::from(unacknowledged(&client).unwrap());
        // The handshake's SYN counts as one.
        assert!(info.bytes_acked + held - written <= 1, "{info:?}, {held} of {written}");
        assert!(u64::from(info.notsent_bytes) <= held && info.notsent_bytes > 0, "{info:?}");
        assert!(info.snd_mss > 500 && info.rtt_us > 0 && info.min_rtt_us <= info.rtt_us * 2, "{info:?}");
    }

    #[test]
    fn a_socket_of_another_kind_is_an_error() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_info(&udp).is_err());
        assert!(set_rto_max_ms(&udp, 1_000).is_err());
    }
}
