//! One session as its streams' users and its driver see it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Poll, Waker};

use suimon_units::{Bytes, Instant};
use tokio::sync::{mpsc, watch};

use crate::frame::Welcome;
use suimon_service::Target;

use crate::mux::{Event, PACKETS, ResetReason, ServiceClass, StreamId};
use crate::session::{Session, SessionConfig};
use crate::status::SessionStatus;

/// One end of a session, shared by all who use it.
#[derive(Debug, Clone)]
pub(crate) struct Bond(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    epoch: std::time::Instant,
    opens: bool,
    config: SessionConfig,
    state: Mutex<State>,
    /// Streams that the other end opens, and where they shall lead: no more than may be open.
    streams: mpsc::UnboundedSender<(Stream, Target)>,
    packets: mpsc::Sender<ClassedPacket>,
}

/// A bond that those who hold this do not keep.
#[derive(Debug, Clone)]
pub(crate) struct WeakBond(Weak<Shared>);

impl WeakBond {
    pub(crate) fn upgrade(&self) -> Option<Bond> {
        self.0.upgrade().map(Bond)
    }
}

/// An IP packet and its class.
pub type ClassedPacket = (ServiceClass, Vec<u8>);

/// Streams and packets that the other end begins or sends.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Streams that shall lead to a target.
    pub(crate) streams: mpsc::UnboundedReceiver<(Stream, Target)>,
    /// IP packets; those that nobody takes in time are lost.
    pub(crate) packets: mpsc::Receiver<ClassedPacket>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) id: [u8; 16],
    /// Zero until the server has told it.
    pub(crate) nonce: u64,
    /// Counts the sessions that this end has lost.
    pub(crate) generation: u64,
    /// Why the last of them ended.
    last_end: Option<String>,
    /// The server that a client uses.
    pub(crate) server: Option<String>,
    /// When something came over any path last.
    pub(crate) heard_at: Instant,
    /// Whether a path is up.
    pub(crate) has_path: watch::Sender<bool>,
    /// Nothing more will happen.
    pub(crate) closed: bool,
    /// The driver has work.
    driver: Option<Waker>,
    streams: HashMap<StreamId, Waiting>,
    /// Tasks that wait to open a stream.
    openers: Vec<Waker>,
    /// The status at the driver's last heartbeat.
    pub(crate) status: SessionStatus,
}

/// Tasks that wait for a stream.
#[derive(Debug, Default)]
struct Waiting {
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Tasks that wait only for an early end of the stream.
    mourners: Vec<Waker>,
}

impl Waiting {
    fn all(self) -> impl Iterator<Item = Waker> {
        self.reader.into_iter().chain(self.writer).chain(self.mourners)
    }
}

impl Bond {
    /// A session called `id` over no path yet.
    pub(crate) fn new(opens: bool, config: SessionConfig, id: [u8; 16]) -> (Self, Incoming) {
        let (streams, streams_in) = mpsc::unbounded_channel();
        let (packets, packets_in) = mpsc::channel(PACKETS);
        let state = State {
            session: Session::new(opens, &config),
            id,
            nonce: 0,
            generation: 0,
            last_end: None,
            server: None,
            heard_at: Instant::ZERO,
            has_path: watch::Sender::new(false),
            closed: false,
            driver: None,
            streams: HashMap::new(),
            openers: Vec::new(),
            status: SessionStatus::default(),
        };
        let epoch = std::time::Instant::now();
        let shared = Shared { epoch, opens, config, state: Mutex::new(state), streams, packets };
        (Self(Arc::new(shared)), Incoming { streams: streams_in, packets: packets_in })
    }

    pub(crate) fn downgrade(&self) -> WeakBond {
        WeakBond(Arc::downgrade(&self.0))
    }

    pub(crate) fn now(&self) -> Instant {
        let nanos = self.0.epoch.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).expect("processes end within 584 years"))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no one panics while holding it")
    }

    /// The state of the session, and what became of those before it.
    pub(crate) fn status(&self) -> SessionStatus {
        let state = self.lock();
        SessionStatus {
            server: state.server.clone(),
            ended: state.generation,
            last_end: state.last_end.clone(),
            ..state.status.clone()
        }
    }

    /// Does something to the session, tells those whom it concerns, and has the driver look.
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let done = act(&mut state);
        let mut wake = self.deliver(&mut state);
        wake.extend(state.driver.take());
        drop(state);
        wake.into_iter().for_each(Waker::wake);
        done
    }

    /// As the driver: events go out when it is done.
    pub(crate) fn drive<T>(&self, waker: Waker, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let done = act(&mut state);
        let wake = self.deliver(&mut state);
        state.driver = Some(waker);
        drop(state);
        wake.into_iter().for_each(Waker::wake);
        done
    }

    /// Hands out the events; gives the tasks to wake when the lock is given back.
    fn deliver(&self, state: &mut State) -> Vec<Waker> {
        let mut wake = Vec::new();
        while let Some(event) = state.session.mux.poll_event() {
            let (id, read, write) = match event {
                Event::Open { stream, target } => {
                    let stream = Stream { bond: self.clone(), id: stream, generation: state.generation };
                    // Without a taker the stream is dropped, which resets it; not under this lock.
                    if let Err(refused) = self.0.streams.send((stream, target)) {
                        let (mut stream, _) = refused.0;
                        stream.generation = u64::MAX;
                        state.session.mux.reset(stream.id, ResetReason::Forbidden);
                        state.session.mux.release(stream.id);
                    }
                    continue;
                }
                Event::Packet(class, packet) => {
                    let _ = self.0.packets.try_send((class, packet));
                    continue;
                }
                Event::Room => {
                    wake.append(&mut state.openers);
                    continue;
                }
                Event::Opened(id) | Event::Writable(id) => (id, false, true),
                Event::Readable(id) => (id, true, false),
                Event::Reset(id) => {
                    let waiting = state.streams.get_mut(&id).map(std::mem::take);
                    wake.extend(waiting.into_iter().flat_map(Waiting::all));
                    continue;
                }
            };
            if let Some(waiting) = state.streams.get_mut(&id) {
                wake.extend(waiting.reader.take().filter(|_| read));
                wake.extend(waiting.writer.take().filter(|_| write));
            }
        }
        wake
    }

    /// Takes the server's answer in. False where the server has lost the session: then a new one has begun.
    pub(crate) fn welcome(&self, generation: u64, welcome: &Welcome) -> bool {
        let mut state = self.lock();
        if state.generation != generation {
            return false;
        }
        if state.nonce == 0 {
            state.nonce = welcome.nonce;
            state.session.on_peer_buffer(Bytes::new(welcome.reorder_buffer));
            state.session.mux.on_peer_limits(welcome.window, welcome.streams);
        }
        let known = state.nonce == welcome.nonce;
        drop(state);
        if known {
            // Whoever waits to open a stream may.
            self.with(|_| ());
        } else {
            self.restart(generation, "as the server has lost it");
        }
        known
    }

    /// Session `generation` has ended for the reason `why`: its streams end, and a new session begins.
    pub(crate) fn restart(&self, generation: u64, why: &str) {
        let id = random();
        self.with(|state| {
            if state.generation != generation {
                return;
            }
            state.session = Session::new(self.0.opens, &self.0.config);
            state.id = id;
            state.nonce = 0;
            state.generation += 1;
            state.last_end = Some(why.to_owned());
            state.openers.drain(..).for_each(Waker::wake);
            for (_, waiting) in state.streams.drain() {
                waiting.all().for_each(Waker::wake);
            }
        });
    }

    /// Nothing more will happen: streams end.
    pub(crate) fn close(&self) {
        let generation = self.lock().generation;
        self.restart(generation, "as this end closed it");
        self.with(|state| state.closed = true);
    }

    /// Opens a stream of a class to `target`, waiting for a session and for room among its streams, and for the server's
    /// word that it has reached it.
    pub(crate) async fn open(&self, class: ServiceClass, target: &Target) -> Result<Stream, ResetReason> {
        let (id, generation) = poll_fn(|cx| {
            self.with(|state| {
                if state.closed {
                    return Poll::Ready(Err(ResetReason::SessionLost));
                }
                match state.session.mux.open(class, target) {
                    Some(id) => {
                        state.streams.insert(id, Waiting::default());
                        Poll::Ready(Ok((id, state.generation)))
                    }
                    None => {
                        state.openers.push(cx.waker().clone());
                        Poll::Pending
                    }
                }
            })
        })
        .await?;
        let stream = Stream { bond: self.clone(), id, generation };
        stream.opened().await?;
        Ok(stream)
    }

    /// Sends an IP packet, unless too many wait.
    pub(crate) fn send_packet(&self, class: ServiceClass, packet: &[u8]) -> bool {
        self.with(|state| state.session.mux.send_packet(class, packet))
    }
}

/// One end of a stream; dropped before both directions have ended, it resets it.
#[derive(Debug)]
pub(crate) struct Stream {
    bond: Bond,
    id: StreamId,
    generation: u64,
}

impl Stream {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> Result<T, ResetReason>) -> Result<T, ResetReason> {
        self.bond.with(|state| {
            if state.generation == self.generation { act(state) } else { Err(ResetReason::SessionLost) }
        })
    }

    /// Without waking the driver: nothing was changed that it should send.
    fn look<T>(&self, act: impl FnOnce(&mut State) -> Result<T, ResetReason>) -> Result<T, ResetReason> {
        let mut state = self.bond.lock();
        if state.generation == self.generation { act(&mut state) } else { Err(ResetReason::SessionLost) }
    }

    async fn opened(&self) -> Result<(), ResetReason> {
        poll_fn(|cx| {
            let opened = self.look(|state| {
                let opened = state.session.mux.is_opened(self.id)?;
                if !opened {
                    state.streams.entry(self.id).or_default().writer = Some(cx.waker().clone());
                }
                Ok(opened)
            });
            match opened {
                Ok(true) => Poll::Ready(Ok(())),
                Ok(false) => Poll::Pending,
                Err(reason) => Poll::Ready(Err(reason)),
            }
        })
        .await
    }

    /// Tells the other end that the target is reached.
    pub(crate) fn accept(&self) -> Result<(), ResetReason> {
        self.with(|state| {
            state.session.mux.accept(self.id);
            Ok(())
        })
    }

    /// Waits until so many bytes can be written.
    pub(crate) async fn room(&self) -> Result<usize, ResetReason> {
        poll_fn(|cx| {
            let room = self.look(|state| {
                let room = state.session.mux.room(self.id)?;
                if room == 0 {
                    state.streams.entry(self.id).or_default().writer = Some(cx.waker().clone());
                }
                Ok(room)
            });
            match room {
                Ok(0) => Poll::Pending,
                other => Poll::Ready(other),
            }
        })
        .await
    }

    /// Writes `bytes`, no more than there was room for.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), ResetReason> {
        self.with(|state| state.session.mux.write(self.id, bytes))
    }

    /// Nothing more will be written.
    pub(crate) fn end(&self) -> Result<(), ResetReason> {
        self.with(|state| {
            state.session.mux.end(self.id);
            Ok(())
        })
    }

    /// Waits for bytes; `None` at the end.
    pub(crate) async fn read(&self) -> Result<Option<Vec<u8>>, ResetReason> {
        poll_fn(|cx| {
            let taken = self.look(|state| {
                let taken = state.session.mux.take(self.id)?;
                if taken.as_ref().is_some_and(Vec::is_empty) {
                    state.streams.entry(self.id).or_default().reader = Some(cx.waker().clone());
                }
                Ok(taken)
            });
            match taken {
                Ok(Some(bytes)) if bytes.is_empty() => Poll::Pending,
                other => Poll::Ready(other),
            }
        })
        .await
    }

    /// `count` bytes that were read have been passed on.
    pub(crate) fn consumed(&self, count: usize) {
        // A stream that has ended early needs no credit.
        let _ = self.with(|state| {
            state.session.mux.consumed(self.id, count);
            Ok(())
        });
    }

    /// Waits until it has ended early.
    pub(crate) async fn gone(&self) -> ResetReason {
        poll_fn(|cx| {
            let looked = self.look(|state| {
                state.session.mux.is_opened(self.id)?;
                let waiting = state.streams.entry(self.id).or_default();
                waiting.mourners.retain(|waker| !waker.will_wake(cx.waker()));
                waiting.mourners.push(cx.waker().clone());
                Ok(())
            });
            looked.map_or_else(Poll::Ready, |()| Poll::Pending)
        })
        .await
    }

    /// Ends it early.
    pub(crate) fn reset(&self, reason: ResetReason) {
        let _ = self.with(|state| {
            state.session.mux.reset(self.id, reason);
            Ok(())
        });
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.generation == u64::MAX {
            return;
        }
        let _ = self.with(|state| {
            state.session.mux.release(self.id);
            state.streams.remove(&self.id);
            Ok(())
        });
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let bytes = ring::rand::generate(&ring::rand::SystemRandom::new());
    bytes.expect("the system gave random numbers when keys were made").expose()
}
