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
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(super) use self::results::Results;
pub use self::results::{Document, Render};
use super::Server;
use super::sessions::Place;

/// A request's head is complete by then.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// The longest head of a request, in bytes.
const MAX_HEADER: usize = 16 << 10;
/// A request is complete and its answer read by then.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Answers one request of a browser. The connection holds its place until then.
pub(super) async fn serve(server: Server, stream: TcpStream, client: SocketAddr, place: Place) {
    // Nobody reads the answers of a connection that has become a WebSocket here.
    let server = Arc::new(server);
    let answered = service_fn(|request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(answer::answer(&server, client, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).max_buf_size(MAX_HEADER).keep_alive(false);
    // A browser that went away, or sent no HTTP, is told nothing.
    let connection = http.serve_connection(TokioIo::new(stream), answered).with_upgrades();
    let _ = timeout(MAX_TIME, connection).await;
    drop(place);
}
