//! Bytes from socket to socket without a copy: by a pipe, which is held only while there are bytes in it.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::sides::{MIN_UNSENT, limit_unsent};

/// The socket that failed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Nothing more can be read.
    Source,
    /// Nothing more can be written.
    Sink,
}

/// Carries bytes from `source` to `sink` until the former ends, and ends the latter then. Adds them up in `carried`.
pub(crate) async fn transfer(
    source: &TcpStream,
    sink: &TcpStream,
    carried: &AtomicU64,
) -> Result<(), Failed> {
    let mut pace = Pace::new();
    loop {
        // What cannot go on is not read: it stays with its sender.
        source.readable().await.map_err(|_| Failed::Source)?;
        sink.writable().await.map_err(|_| Failed::Sink)?;
        let mut pipe = None;
        let read = source.try_io(Interest::READABLE, || {
            let pipe = pipe.insert(Pipe::take()?);
            Ok(splice(source, None, &pipe.input, None, pace.limit as usize, FLAGS)?)
        });
        let mut held = match read {
            Ok(0) => {
                return SockRef::from(sink).shutdown(std::net::Shutdown::Write).map_err(|_| Failed::Sink);
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                pipe.into_iter().for_each(Pipe::give_back);
                continue;
            }
            Err(_) => return Err(Failed::Source),
        };
        let Some(pipe) = pipe else { continue };
        let all = held;
        while held > 0 {
            match sink.try_io(Interest::WRITABLE, || Ok(splice(&pipe.output, None, sink, None, held, FLAGS)?))
            {
                Ok(count) => held -= count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sink.writable().await.map_err(|_| Failed::Sink)?;
                }
                Err(_) => return Err(Failed::Sink),
            }
        }
        pipe.give_back();
        carried.fetch_add(all as u64, Ordering::Relaxed);
        pace.on_carried(all, sink);
    }
}

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

/// How much may wait unsent: what goes out in [`Pace::AHEAD`], so that the sender never waits for this process.
#[derive(Debug)]
struct Pace {
    since: Instant,
    carried: usize,
    limit: u32,
}

impl Pace {
    /// Longer than this process is usually kept from the processor.
    const AHEAD: Duration = Duration::from_millis(10);
    const WINDOW: Duration = Duration::from_millis(50);
    const MAX_UNSENT: u32 = 1024 * 1024;

    fn new() -> Self {
        Self { since: Instant::now(), carried: 0, limit: MIN_UNSENT }
    }

    fn on_carried(&mut self, count: usize, sink: &TcpStream) {
        self.carried += count;
        let elapsed = self.since.elapsed();
        if elapsed < Self::WINDOW {
            return;
        }
        let ahead = self.carried as f64 * Self::AHEAD.as_secs_f64() / elapsed.as_secs_f64();
        // In powers of two, so that it seldom changes.
        let limit = (ahead as u32).clamp(MIN_UNSENT, Self::MAX_UNSENT).next_power_of_two();
        if limit != self.limit && limit_unsent(sink, limit).is_ok() {
            self.limit = limit;
        }
        (self.since, self.carried) = (Instant::now(), 0);
    }
}

/// A pipe without bytes.
#[derive(Debug)]
struct Pipe {
    input: OwnedFd,
    output: OwnedFd,
}

thread_local! {
    static SPARE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
}

impl Pipe {
    /// Pipes that a thread keeps for the next who needs one.
    const SPARE: usize = 16;
    /// So that segments of a single packet each fill more than sixteen places, the kernel's default.
    const SIZE: usize = 256 * 1024;

    fn take() -> io::Result<Self> {
        if let Some(pipe) = SPARE.with_borrow_mut(Vec::pop) {
            return Ok(pipe);
        }
        let (output, input) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Without the right to so large a one, a smaller one does.
        let _ = fcntl_setpipe_size(input.as_fd(), Self::SIZE);
        Ok(Self { input, output })
    }

    /// Of an empty pipe: one with bytes in it is closed instead.
    fn give_back(self) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < Self::SPARE {
                spare.push(self);
            }
        });
    }
}
