//! The end that answers.
//!
//! Nobody gets anything but at the address that TCP has proved to be his: a session is opened over TCP, and a datagram is
//! answered only where it brings the session's cookie and comes from the session's address, a probe by as many bytes as it had.
//! Sessions are few, short, and limited in bytes; a network may have only some of them, and open only some in a minute.

mod echo;
mod sessions;
mod tls;
mod web;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use self::echo::Echoes;
pub use self::sessions::{Limits, Report};
use self::sessions::{Open, Place, Purpose, Session, Sessions};
pub use self::tls::{Tls, TlsError};
use self::web::Results;
pub use self::web::{Document, Render};
use crate::clock::Clock;
use crate::protocol::{
    Cookie, Hello, MAX_FLOWS, MILLISECONDS, PREFACE, Refusal, Reply, Request, SAMPLES, receive, send,
};
use crate::recording::Direction;

/// A server and its sessions.
#[derive(Debug, Clone)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sessions: Arc<Sessions>,
    echoes: Echoes,
    results: Results,
    /// For browsers that ask for HTTPS.
    tls: Mutex<Option<Tls>>,
}

/// Who says nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(5);
/// The type of the record that a connection of TLS begins with (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;
/// After a failure to accept, which a lack of descriptors brings about.
const PAUSE: Duration = Duration::from_millis(100);

impl Server {
    /// A server without sessions. `render` makes the files of what browsers measure.
    #[must_use]
    pub fn new(limits: Limits, render: Render) -> Self {
        let clock = Clock::new();
        let sessions = Arc::new(Sessions::new(limits, clock));
        let echoes = Echoes::new(clock, Arc::clone(&sessions));
        Self(Arc::new(Inner { sessions, echoes, results: Results::new(render), tls: Mutex::default() }))
    }

    /// Counts since the start.
    #[must_use]
    pub fn report(&self) -> Report {
        self.0.sessions.report()
    }

    /// Serves browsers by HTTPS too from now on, or by this certificate in place of the one before.
    pub fn protect(&self, tls: Tls) {
        *self.0.tls.lock().expect("no one panics while holding it") = Some(tls);
    }

    fn tls(&self) -> Option<Tls> {
        self.0.tls.lock().expect("no one panics while holding it").clone()
    }

    /// Serves those who connect to `listener`, for ever.
    pub async fn serve(self, listener: TcpListener) {
        loop {
            let Ok((stream, client)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            // Those who are one too many are left at once.
            let Some(place) = self.0.sessions.knock(client.ip()) else { continue };
            let server = self.clone();
            tokio::spawn(async move {
                let mut first = [0];
                match timeout(PATIENCE, stream.peek(&mut first)).await {
                    // The methods of HTTP begin with capitals.
                    Ok(Ok(1)) if first[0].is_ascii_uppercase() => {
                        web::serve(server, stream, client, place).await;
                    }
                    Ok(Ok(1)) if first[0] == HANDSHAKE => {
                        web::serve_protected(server, stream, client, place).await;
                    }
                    Ok(Ok(1)) => server.serve_command(stream, client, place).await,
                    _ => {}
                }
            });
        }
    }

    /// Serves a connection of `suimon measure`.
    async fn serve_command(&self, stream: TcpStream, client: SocketAddr, place: Place) {
        let hello = timeout(PATIENCE, greeted(stream)).await;
        drop(place);
        if let Ok(Ok((hello, stream))) = hello
            && let Err(error) = self.answer(hello, stream, client).await
        {
            tracing::debug!("{client}: {error}");
        }
    }

    async fn answer(&self, hello: Hello, stream: TcpStream, client: SocketAddr) -> io::Result<()> {
        match hello {
            Hello::Session => {
                self.control(stream, client, Sessions::open, self.0.sessions.limits().time).await
            }
            Hello::Recording => {
                let time = self.0.sessions.limits().recording;
                self.control(stream, client, Sessions::open_recording, time).await
            }
            Hello::Load { cookie, direction, flow } => self.load(stream, &cookie, direction, flow).await,
        }
    }

    /// A session, as long as its client keeps the connection, and no longer than it may last.
    async fn control(
        &self,
        mut stream: TcpStream,
        client: SocketAddr,
        open: fn(&Sessions, IpAddr) -> Result<Open<'_>, Refusal>,
        time: Duration,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let session = match open(&self.0.sessions, client.ip()) {
            Ok(session) => session,
            Err(refusal) => return send(&mut stream, &Reply::Refused(refusal)).await,
        };
        self.0.echoes.listen(stream.local_addr()?)?;
        let (cookie, most_bytes) = (session.cookie, self.0.sessions.limits().bytes);
        send(&mut stream, &Reply::Open { cookie, most_bytes }).await?;
        let watched = async {
            tokio::join!(session.watch(Direction::Download), session.watch(Direction::Upload));
        };
        tokio::select! {
            served = serve_requests(&session, &mut stream) => served,
            () = watched => Ok(()),
            () = sleep(time) => Ok(()),
        }
    }

    /// A connection of a load, as long as its session.
    async fn load(
        &self,
        stream: TcpStream,
        cookie: &Cookie,
        direction: Direction,
        flow: u8,
    ) -> io::Result<()> {
        let joined = self.0.sessions.join(cookie, Purpose::Load(direction));
        let Some((session, place)) = joined else { return Ok(()) };
        if flow >= MAX_FLOWS {
            return Ok(());
        }
        // At the end the connection goes at once, with what is unsent.
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        let load = session.load(direction);
        let most = self.0.sessions.limits().bytes;
        let moved = async {
            match direction {
                Direction::Download => load.send(flow, stream, most).await,
                Direction::Upload => load.receive(flow, stream, most).await,
            }
        };
        let done = tokio::select! {
            done = moved => done,
            () = session.closed() => Ok(()),
        };
        drop(place);
        done
    }
}

/// What a connection begins with.
async fn greeted(mut stream: TcpStream) -> io::Result<(Hello, TcpStream)> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await?;
    if preface != PREFACE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no client of this version"));
    }
    let hello = receive(&mut stream).await?;
    Ok((hello, stream))
}

async fn serve_requests(session: &Session, stream: &mut TcpStream) -> io::Result<()> {
    loop {
        let request = match receive(stream).await {
            Ok(request) => request,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        match request {
            Request::Report(direction) => {
                let load = session.load(direction);
                load.close();
                for samples in load.take_samples().chunks(SAMPLES) {
                    send(stream, &Reply::Samples(samples.to_vec())).await?;
                }
            }
            Request::Arrivals => {
                let arrivals = session.recorder().map(|recorder| recorder.counter.arrivals().clone());
                for part in arrivals.unwrap_or_default().parts(MILLISECONDS) {
                    send(stream, &Reply::Arrivals(part)).await?;
                }
            }
        }
        send(stream, &Reply::End).await?;
    }
}
