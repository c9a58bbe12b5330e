//! Carries bytes between a TCP connection of this host and a stream.

use std::cell::RefCell;
use std::io;

use socket2::SockRef;
use suimon_service::descriptors::reset_on_close;
use tokio::net::TcpStream;

use crate::bond::Stream;
use crate::mux::ResetReason;

/// Carries both directions until both have ended; where one fails, both ends learn that it did, and so they do where this
/// process is killed.
pub(crate) async fn relay(tcp: TcpStream, stream: Stream) {
    let _ = tcp.set_nodelay(true);
    // A reset, not an end, however this ends before it is complete: whoever reads must not take the part for the whole.
    let _ = reset_on_close(&tcp, true);
    let (outward, inward) = tokio::join!(
        async {
            let done = outward(&tcp, &stream).await;
            // The other direction learns of it from the stream.
            if done.is_err() {
                stream.reset(ResetReason::Aborted);
            }
            done
        },
        async {
            let done = inward(&tcp, &stream).await;
            if done.is_err() {
                stream.reset(ResetReason::Aborted);
            }
            done
        }
    );
    if outward.is_ok() && inward.is_ok() {
        let _ = reset_on_close(&tcp, false);
    }
}

thread_local! {
    /// One buffer for all streams of a thread: a stream that waits holds no memory.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_SIZE]);
}

async fn outward(tcp: &TcpStream, stream: &Stream) -> io::Result<()> {
    loop {
        // With nothing to read there is no need for room, but a stream that was reset has to be noticed.
        tokio::select! {
            ready = tcp.readable() => ready?,
            gone = stream.gone() => return Err(io::Error::other(gone)),
        }
        let room = stream.room().await.map_err(io::Error::other)?;
        let read = SCRATCH.with_borrow_mut(|scratch| {
            let most = room.min(scratch.len());
            let count = tcp.try_read(&mut scratch[..most])?;
            if count > 0 {
                stream.write(&scratch[..count]).map_err(io::Error::other)?;
            }
            Ok::<_, io::Error>(count)
        });
        match read {
            Ok(0) => return stream.end().map_err(io::Error::other),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn inward(tcp: &TcpStream, stream: &Stream) -> io::Result<()> {
    while let Some(bytes) = stream.read().await.map_err(io::Error::other)? {
        let mut written = 0;
        while written < bytes.len() {
            tokio::select! {
                ready = tcp.writable() => ready?,
                gone = stream.gone() => return Err(io::Error::other(gone)),
            }
            match tcp.try_write(&bytes[written..]) {
                Ok(count) => {
                    written += count;
                    stream.consumed(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
    SockRef::from(tcp).shutdown(std::net::Shutdown::Write)
}

/// The size of a stream's queue.
const SCRATCH_SIZE: usize = 256 * 1024;
