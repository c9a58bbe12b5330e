//! The same measurement for a browser: a page, WebSockets that probe and load the line, and results under addresses that
//! can be passed on.
//!
//! A browser opens a session by a WebSocket, as the command opens it by TCP, under the same limits. Each of the other requests is
//! one connection, which ends in time.

mod answer;
mod results;
mod sockets;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(super) use self::results::Results;
pub use self::results::{Document, Render};
use super::Server;
use super::sessions::Place;
use crate::load::socket_of;

/// A request's head is complete by then.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// The longest head of a request, in bytes.
const MAX_HEADER: usize = 16 << 10;
/// A request is complete and its answer read by then.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Who asks: the address, and the socket below what may protect the connection.
#[derive(Debug)]
struct Peer {
    address: SocketAddr,
    socket: OwnedFd,
}

/// Answers one request of a browser. The connection holds its place until then.
pub(super) async fn serve(server: Server, stream: TcpStream, client: SocketAddr, place: Place) {
    if let Ok(socket) = socket_of(&stream) {
        answer_one(server, stream, Peer { address: client, socket }).await;
    }
    drop(place);
}

/// The same over TLS, where this server has a certificate.
pub(super) async fn serve_protected(server: Server, stream: TcpStream, client: SocketAddr, place: Place) {
    if let (Some(tls), Ok(socket)) = (server.tls(), socket_of(&stream)) {
        match timeout(HEADER_TIME, tls.accept(stream)).await {
            Ok(Ok(stream)) => answer_one(server, stream, Peer { address: client, socket }).await,
            Ok(Err(error)) => tracing::debug!("{client}: {error}"),
            Err(_) => {}
        }
    }
    drop(place);
}

async fn answer_one(
    server: Server,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
) {
    // Nobody reads the answers of a connection that has become a WebSocket here.
    let context = Arc::new((server, peer));
    let answered = service_fn(|request| {
        let context = Arc::clone(&context);
        async move { Ok::<_, Infallible>(answer::answer(&context.0, &context.1, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).max_buf_size(MAX_HEADER).keep_alive(false);
    // A browser that went away, or sent no HTTP, is told nothing.
    let connection = http.serve_connection(TokioIo::new(stream), answered).with_upgrades();
    let _ = timeout(MAX_TIME, connection).await;
}
