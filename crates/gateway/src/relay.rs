//! Both directions of a connection, and how it ends.
//!
//! An end of one direction goes on as an end of that direction (half-close). A reset goes on as a reset, after the bytes
//! that came before it: a server that resets after its answer has answered.

use std::io;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use suimon_linux::tcp::unacknowledged;
use suimon_service::descriptors::reset_on_close;
use suimon_units::Bytes;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::sides::prepare;
use crate::splice::{Failed, transfer};

/// One socket, and whether it is known to be dead.
struct End<'a> {
    stream: &'a TcpStream,
    dead: Notify,
    /// The direction that reads from it has ended.
    read_out: Notify,
}

/// Carries a connection between the client's socket `radio` and the server's socket `lan` until it ends, as a gateway
/// carries those that it splits itself.
///
/// # Errors
/// Where a socket is gone already.
pub async fn join(radio: TcpStream, lan: TcpStream) -> io::Result<()> {
    prepare(&radio)?;
    prepare(&lan)?;
    relay(&radio, &lan, &AtomicU64::new(0), &AtomicU64::new(0)).await;
    Ok(())
}

/// Carries both directions until both have ended; `to_radio` and `to_lan` count their bytes. Where that comes to no good
/// end, dropping the sockets resets both connections.
pub(crate) async fn relay(radio: &TcpStream, lan: &TcpStream, to_radio: &AtomicU64, to_lan: &AtomicU64) {
    let end = |stream| End { stream, dead: Notify::new(), read_out: Notify::new() };
    let (radio, lan) = (end(radio), end(lan));
    let (down, up) = tokio::join!(direction(&lan, &radio, to_radio), direction(&radio, &lan, to_lan));
    if down.is_ok() && up.is_ok() {
        let _ = reset_on_close(radio.stream, false);
        let _ = reset_on_close(lan.stream, false);
    }
}

async fn direction(source: &End<'_>, sink: &End<'_>, carried: &AtomicU64) -> Result<(), Failed> {
    let done = tokio::select! {
        biased;
        () = sink.dead.notified() => Err(Failed::Sink),
        done = transfer(source.stream, sink.stream, carried) => done,
    };
    source.read_out.notify_one();
    match done {
        Ok(()) => {
            // All that may still come from there is a reset.
            tokio::select! {
                _ = source.stream.ready(Interest::ERROR) => source.dead.notify_one(),
                () = sink.read_out.notified() => {}
            }
        }
        Err(Failed::Source) => {
            source.dead.notify_one();
            drain(sink.stream).await;
        }
        Err(Failed::Sink) => {}
    }
    done
}

/// Waits until the other end has all bytes that were written to it, or takes none any more.
async fn drain(stream: &TcpStream) {
    let mut left = Bytes::ZERO;
    let mut moved = Instant::now();
    while let Ok(now) = unacknowledged(stream) {
        if now == Bytes::ZERO || (now == left && moved.elapsed() > DRAIN_TIMEOUT) {
            return;
        }
        if now != left {
            (left, moved) = (now, Instant::now());
        }
        sleep(DRAIN_POLL).await;
    }
}

const DRAIN_POLL: Duration = Duration::from_millis(20);
/// An end that takes nothing for so long is not waited for.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
