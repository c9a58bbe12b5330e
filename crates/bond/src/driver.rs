//! Moves a session: reads its connections, asks the scheduler, writes.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use suimon_algorithms::path::PathId;
use suimon_units::{self as units, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;

use crate::bond::{Bond, State};
use crate::connection::Connection;
use crate::frame::{Frame, MAX_PATHS};
use crate::status::{PathStatusView, SessionStatus};

/// A command to the driver.
#[derive(Debug)]
pub(crate) enum Command {
    /// A connection has joined.
    Join(Box<Joined>),
    /// A path's interface is gone.
    Drop(PathId, &'static str),
    /// The session shall end.
    Close,
}

/// A connection that the other end has taken in.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) connection: Connection,
    pub(crate) path: PathId,
    pub(crate) attempt: u32,
    /// The session that it joined.
    pub(crate) generation: u64,
    /// The interface's name.
    pub(crate) name: String,
    /// The channel for the reason of the connection's end.
    pub(crate) ended: oneshot::Sender<String>,
}

/// The timeouts of a driver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// A path over which nothing comes for so long is given up.
    pub(crate) path: Duration,
    /// A session without any path for so long is.
    pub(crate) session: Duration,
}

/// The reason of a session's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// This end closed the session.
    Closed,
    /// The other end closed the session.
    ClosedByPeer,
    /// No path for too long.
    Forgotten,
    /// The other end broke the protocol.
    Violated(String),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("as this end was told to"),
            Self::ClosedByPeer => f.write_str("as the other end closed it"),
            Self::Forgotten => f.write_str("as no path was up for too long"),
            Self::Violated(problem) => write!(f, "as the other end sent {problem}"),
        }
    }
}

struct Driver<'a> {
    bond: Bond,
    commands: &'a mut mpsc::Receiver<Command>,
    paths: [Option<Path>; MAX_PATHS],
    patience: Patience,
    timer: Pin<Box<Sleep>>,
    epoch: tokio::time::Instant,
    scratch: Vec<u8>,
    frame: Vec<u8>,
    generation: u64,
    heartbeat_at: Instant,
    /// The time when the last path went, if none is left.
    alone_since: Option<Instant>,
}

struct Path {
    connection: Connection,
    ended: Option<oneshot::Sender<String>>,
    joined_at: Instant,
    heard_at: Instant,
    view: PathStatusView,
    /// Bytes carried (in, out) at the heartbeat before.
    carried: (u64, u64),
    carried_at: Instant,
}

/// Moves the session behind `bond` until it ends. What then becomes of the bond is the caller's to say.
pub(crate) async fn drive(bond: Bond, commands: &mut mpsc::Receiver<Command>, patience: Patience) -> Ended {
    let now = bond.now();
    let generation = bond.lock().generation;
    let mut driver = Driver {
        commands,
        paths: Default::default(),
        patience,
        timer: Box::pin(tokio::time::sleep(HEARTBEAT)),
        epoch: tokio::time::Instant::now() - Duration::from_nanos(now.as_nanos()),
        scratch: vec![0; READ_SIZE],
        frame: Vec::new(),
        generation,
        heartbeat_at: now,
        alone_since: Some(now),
        bond,
    };
    let ended = poll_fn(|cx| driver.poll(cx)).await;
    driver.end(&ended);
    driver.bond.lock().has_path.send_replace(false);
    ended
}

impl Driver<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let bond = self.bond.clone();
        bond.drive(cx.waker().clone(), |state| self.step(cx, state))
    }

    fn step(&mut self, cx: &mut Context<'_>, state: &mut State) -> Poll<Ended> {
        let now = self.bond.now();
        // Before connections join: they may be of the session that has begun.
        if state.generation != self.generation {
            self.generation = state.generation;
            for index in 0..MAX_PATHS {
                self.lose(now, state, PathId(index), "the session began anew");
            }
        }
        while let Poll::Ready(command) = self.commands.poll_recv(cx) {
            match command {
                Some(Command::Join(joined)) => self.join(now, state, *joined),
                Some(Command::Drop(path, reason)) => self.lose(now, state, path, reason),
                Some(Command::Close) | None => return Poll::Ready(Ended::Closed),
            }
        }
        let mut again = false;
        for index in 0..MAX_PATHS {
            match self.read(cx, now, state, PathId(index)) {
                Ok(more) => again |= more,
                Err(ended) => return Poll::Ready(ended),
            }
        }
        again |= self.write(now, state);
        if now >= self.heartbeat_at {
            self.heartbeat(now, state);
        }
        if self.alone_since.is_some_and(|since| since + long(self.patience.session) <= now) {
            return Poll::Ready(Ended::Forgotten);
        }
        again |= self.arm(cx, now, state);
        if again {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let looks = state.session.has_data() && self.paths.iter().any(Option::is_some);
        let look = looks.then_some(now + LOOK);
        let at = [look, state.session.next_wakeup(), Some(self.heartbeat_at)].into_iter().flatten().min();
        let at = at.expect("a heartbeat is due").max(now + MIN_SLEEP);
        self.timer.as_mut().reset(self.epoch + Duration::from_nanos(at.as_nanos()));
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn join(&mut self, now: Instant, state: &mut State, joined: Joined) {
        let Joined { connection, path, attempt, generation, name, ended } = joined;
        if generation != state.generation {
            let _ = ended.send("the session began anew".to_owned());
            return;
        }
        self.lose(now, state, path, "a new connection replaces it");
        let (local, peer) = connection.addresses();
        let address = |address: Option<std::net::SocketAddr>| address.map(|address| address.to_string());
        let view = PathStatusView {
            name,
            carrier: connection.carrier(),
            local: address(local),
            peer: address(peer),
            connections: u64::from(attempt),
            ..PathStatusView::default()
        };
        state.session.path_up(now, path, attempt);
        self.paths[path.0] = Some(Path {
            connection,
            ended: Some(ended),
            joined_at: now,
            heard_at: now,
            view,
            carried: (0, 0),
            carried_at: now,
        });
        self.alone_since = None;
        state.has_path.send_if_modified(|has| !std::mem::replace(has, true));
        // The view shows it at once.
        self.heartbeat_at = now;
    }

    fn lose(&mut self, now: Instant, state: &mut State, path: PathId, reason: &str) {
        let Some(mut lost) = self.paths[path.0].take() else { return };
        state.session.path_down(now, path);
        if let Some(ended) = lost.ended.take() {
            let _ = ended.send(reason.to_owned());
        }
        if self.paths.iter().all(Option::is_none) {
            self.alone_since = Some(now);
            state.has_path.send_if_modified(|has| std::mem::replace(has, false));
        }
        self.heartbeat_at = now;
    }

    /// Takes in the frames that came over `path`. True where there may be more.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        state: &mut State,
        path: PathId,
    ) -> Result<bool, Ended> {
        for _ in 0..READS {
            let Some(slot) = &mut self.paths[path.0] else { return Ok(false) };
            // Frames that came with the answer to a join lie here already.
            if let Err(problem) = take_frames(now, state, path, &mut slot.connection) {
                return match problem {
                    Problem::Malformed(error) => {
                        self.lose(now, state, path, &format!("the other end sent {error}"));
                        Ok(false)
                    }
                    Problem::Ended(ended) => Err(ended),
                };
            }
            match slot.connection.poll_read(cx, &mut self.scratch) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(())) => {
                    slot.heard_at = now;
                    state.session.on_heard(now, path);
                    state.heard_at = now;
                }
                Poll::Ready(Err(error)) => {
                    self.lose(now, state, path, &reason(&error));
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Writes the data that the scheduler places. True where there may be more.
    fn write(&mut self, now: Instant, state: &mut State) -> bool {
        for index in 0..MAX_PATHS {
            if self.paths[index].is_some() {
                self.refresh(now, state, PathId(index));
            }
        }
        for _ in 0..WRITES {
            self.frame.clear();
            let (path, is_report) = match state.session.feedback(now) {
                Some((path, frame)) => {
                    frame.encode(&mut self.frame);
                    (path, true)
                }
                None => match state.session.transmit(now, &mut self.frame) {
                    Some(path) => (path, false),
                    None => return false,
                },
            };
            let Some(slot) = &mut self.paths[path.0] else { continue };
            let sent = if is_report {
                slot.connection.send_report(&self.frame)
            } else {
                slot.connection.send(&self.frame)
            };
            match sent {
                Ok(()) => self.refresh(now, state, path),
                Err(error) => self.lose(now, state, path, &reason(&error)),
            }
        }
        true
    }

    fn refresh(&mut self, now: Instant, state: &mut State, path: PathId) {
        let Some(slot) = &mut self.paths[path.0] else { return };
        let part = state.session.part(now, path);
        match slot.connection.reading(now, state.session.chunk(), part) {
            Ok(reading) => {
                slot.view.update(&reading);
                state.session.on_occupancy(now, path, reading.status, reading.acknowledged);
                state.session.on_loss(path, reading.loss);
            }
            Err(error) => self.lose(now, state, path, &reason(&error)),
        }
    }

    /// Sends a sign of life over each path, gives up silent paths, and publishes the status.
    fn heartbeat(&mut self, now: Instant, state: &mut State) {
        self.heartbeat_at = now + long(HEARTBEAT);
        let mut frame = Vec::new();
        state.session.report().encode(&mut frame);
        let names = self.paths.each_ref().map(|slot| slot.as_ref().map(|slot| slot.view.name.clone()));
        for index in 0..MAX_PATHS {
            let path = PathId(index);
            let Some(slot) = &mut self.paths[index] else { continue };
            let acknowledged = units::Duration::from_millis(u64::from(slot.view.last_ack_ms));
            let silent = now.saturating_since(slot.heard_at);
            if silent > long(self.patience.path) && acknowledged > long(self.patience.path) {
                self.lose(now, state, path, &format!("nothing came for {:.1} s", silent.as_secs_f64()));
                continue;
            }
            let sent = if slot.connection.is_clogged() {
                slot.connection.flush()
            } else {
                slot.connection.send_report(&frame)
            };
            if let Err(error) = sent {
                self.lose(now, state, path, &reason(&error));
                continue;
            }
            let carried = state.session.carried(path);
            slot.view.on_carried(slot.carried, carried, now.saturating_since(slot.carried_at));
            slot.view.stalled = state.session.is_stalled(path);
            let shared = state.session.sharing(path);
            slot.view.shares_with = shared.filter_map(|other| names[other.0].clone()).collect();
            slot.view.up_s = now.saturating_since(slot.joined_at).as_secs_f64();
            (slot.carried, slot.carried_at) = (carried, now);
        }
        state.status = SessionStatus {
            paths: self.paths.iter().flatten().map(|path| path.view.clone()).collect(),
            session: state.session.view().into(),
            streams: state.session.mux.open_streams() as u64,
            ..SessionStatus::default()
        };
    }

    /// Has the task woken when a connection wants more. True where one does now.
    fn arm(&mut self, cx: &mut Context<'_>, now: Instant, state: &mut State) -> bool {
        let mut hungry = false;
        for index in 0..MAX_PATHS {
            let Some(slot) = &mut self.paths[index] else { continue };
            let clogged = slot.connection.is_clogged();
            let waits = state.session.has_data() && slot.view.unsent_bytes > 0;
            if !(clogged || waits) {
                continue;
            }
            match slot.connection.poll_hungry(cx) {
                Ok(true) if clogged => match slot.connection.flush() {
                    Ok(()) => hungry = true,
                    Err(error) => self.lose(now, state, PathId(index), &reason(&error)),
                },
                Ok(more) => hungry |= more,
                Err(error) => self.lose(now, state, PathId(index), &reason(&error)),
            }
        }
        hungry
    }

    fn end(&mut self, ended: &Ended) {
        for slot in self.paths.iter_mut().flatten() {
            // The session is over for this end, whether the other hears it or not.
            let _ = slot.connection.send_last(&Frame::Close);
            if let Some(told) = slot.ended.take() {
                let _ = told.send(format!("the session is over, {ended}"));
            }
        }
        self.paths = Default::default();
    }
}

enum Problem {
    Malformed(String),
    Ended(Ended),
}

fn take_frames(
    now: Instant,
    state: &mut State,
    path: PathId,
    connection: &mut Connection,
) -> Result<(), Problem> {
    let violated = |violation: crate::mux::Violation| Problem::Ended(Ended::Violated(violation.to_string()));
    loop {
        match connection.next_frame() {
            Ok(None) => return Ok(()),
            Ok(Some(Frame::Data { start, bytes })) => {
                state.session.on_data(now, path, start, bytes).map_err(violated)?;
                state.session.on_received(path, connection.received());
            }
            Ok(Some(Frame::Feedback(feedback, received))) => {
                state.session.on_feedback(now, path, feedback, &received).map_err(violated)?;
            }
            Ok(Some(Frame::Close)) => return Err(Problem::Ended(Ended::ClosedByPeer)),
            Ok(Some(Frame::Join(_) | Frame::Welcome(_) | Frame::Refuse(_))) => {
                return Err(Problem::Malformed("a frame out of place".to_owned()));
            }
            Err(error) => return Err(Problem::Malformed(error.to_string())),
        }
    }
}

/// The error in plain words.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the other end closed it".to_owned(),
        _ => error.to_string(),
    }
}

fn long(duration: Duration) -> units::Duration {
    units::Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Four records: fewer calls of the kernel on a fast path, and still in the processor's cache when decrypted.
const READ_SIZE: usize = 64 * 1024;
/// Reads of one path and writes of all before others get their turn.
const READS: usize = 8;
const WRITES: usize = 64;
/// Eight of them come in the time after which a silent path is given up by default.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// How often to look at connections while data waits for one of them: of an acknowledgement, after which a connection may hold
/// more, the kernel says nothing. A fraction of the time that a chunk takes.
const LOOK: units::Duration = units::Duration::from_millis(1);
/// Timers have no finer ticks.
const MIN_SLEEP: units::Duration = units::Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Two keepers share a session: one learns that the server has lost it, the other joins the next one at once.
    #[test]
    fn a_connection_of_the_next_session_stays_though_the_driver_has_not_seen_the_last_one_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (connection, other_end) = crate::tls::tests::connected().await;
            let config = crate::session::tests::config("least-buffered", 100_000);
            let (bond, _incoming) = Bond::new(true, config, [0; 16]);
            let (commands, mut received) = mpsc::channel(1);
            let patience = Patience { path: Duration::from_secs(4), session: Duration::from_secs(60) };
            let mut driving = Box::pin(drive(bond.clone(), &mut received, patience));
            let mut look = async || poll_fn(|cx| Poll::Ready(driving.as_mut().poll(cx).is_pending())).await;
            assert!(look().await);
            bond.restart(0, "as the server has lost it");
            let (ended, mut told) = oneshot::channel();
            let connection = Connection::Tls(Box::new(connection));
            let (path, name) = (PathId(0), "near0".to_owned());
            let joined = Joined { connection, path, attempt: 1, generation: 1, name, ended };
            commands.send(Command::Join(Box::new(joined))).await.unwrap();
            assert!(look().await);
            assert_eq!(told.try_recv(), Err(oneshot::error::TryRecvError::Empty));
            assert!(*bond.lock().has_path.borrow());
            drop(other_end);
        });
    }
}
