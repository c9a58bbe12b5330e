//! The board in a browser.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::board::Board;

/// Answers browsers until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    /// Dropped to end it.
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

const PAGE: &str = include_str!("page.html");

impl Server {
    /// Shows `board` at `address`; port 0 takes any that is free.
    ///
    /// # Errors
    /// Where the address is taken or not this machine's.
    pub fn start(board: Arc<Board>, address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            // Whatever is under way ends with the runtime.
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = serve(&listener, address, &board) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(serve)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // No task of the thread waits for anyone outside without being dropped.
            let _ = thread.join();
        }
    }
}

/// Answers whoever comes, for ever. Where too many are there already, the one that is there for longest goes.
async fn serve(listener: &TcpListener, address: SocketAddr, board: &Arc<Board>) {
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            // Descriptors have run out, most likely.
            sleep(PAUSE).await;
            continue;
        };
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= MAX_CONNECTIONS
            && let Some(oldest) = connections.pop_front()
        {
            oldest.abort();
        }
        let served = timeout(MAX_TIME, serve_one(tcp, address, Arc::clone(board)));
        connections.push_back(tokio::spawn(served).abort_handle());
    }
}

/// Answers one request. Its body is not read.
async fn serve_one(tcp: TcpStream, address: SocketAddr, board: Arc<Board>) {
    let answer = service_fn(|request| {
        let answer = answer(&board, address, &request);
        async { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER)
        .keep_alive(false);
    // A browser that went away, or sent no HTTP, is told nothing.
    let _ = http.serve_connection(TokioIo::new(tcp), answer).await;
}

fn answer(board: &Board, address: SocketAddr, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, kind, body) = match (request.method(), request.uri().path()) {
        // A page from elsewhere whose name leads here must not read on.
        _ if !is_meant(request, address) => (StatusCode::MISDIRECTED_REQUEST, "text/plain", String::new()),
        (&Method::GET, "/") => (StatusCode::OK, "text/html; charset=utf-8", PAGE.to_owned()),
        (&Method::GET, "/links") => {
            let since = request.uri().query().and_then(|query| query.strip_prefix("since="));
            let since = since.and_then(|number| number.parse().ok()).unwrap_or(0);
            (StatusCode::OK, "application/json", board.json(since))
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", String::new()),
    };
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_SECURITY_POLICY, "default-src 'self' 'unsafe-inline'")
        .body(Full::new(Bytes::from(body)))
        .expect("the headers are constant, and tests read them")
}

/// Whether the request names an address, or this machine, rather than a name that somebody else gave to it.
fn is_meant(request: &Request<Incoming>, address: SocketAddr) -> bool {
    let Some(host) = request.headers().get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = host.strip_suffix(&format!(":{}", address.port())).unwrap_or(host);
    name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

/// Connections at once.
const MAX_CONNECTIONS: usize = 64;
/// A request's head is complete by then.
const HEADER_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_HEADER: usize = 16 * 1024;
/// An answer is read by then.
const MAX_TIME: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;
    use crate::board::tests::link;

    fn get(address: SocketAddr, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn browsers_get_the_page_and_what_links_do_and_strange_names_nothing() {
        let board = Arc::new(Board::new("a link"));
        board.post("", &[link("bottleneck", 100, 7, 0)]);
        let server = Server::start(Arc::clone(&board), "127.0.0.1:0".parse().unwrap()).unwrap();
        let host = server.address().to_string();
        assert!(get(server.address(), "/", &host).contains("<canvas"));
        let links = get(server.address(), "/links?since=0", &host);
        assert!(links.contains("bottleneck") && links.contains("\"marked\":7"), "{links}");
        assert!(get(server.address(), "/other", &host).starts_with("HTTP/1.1 404"));
        assert!(get(server.address(), "/links", "evil.example").starts_with("HTTP/1.1 421"));
        assert!(!PAGE.contains("http://") && !PAGE.contains("https://"), "the page asks for nothing outside");
    }

    #[test]
    fn hostile_requests_hold_up_neither_other_browsers_nor_the_end() {
        let server = Server::start(Arc::new(Board::new("")), "127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, host) = (server.address(), server.address().to_string());
        let send = |text: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            stream
        };
        let huge = format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000000000000000\r\n\r\n");
        let never = format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n");
        let chunked = format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"
        );
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(1 << 16));
        let mut held = Vec::new();
        for text in [&huge, &never, &chunked, &long, "GET / HTTP/1.1\r\nHo", "\0\u{ff}", ""] {
            held.push(send(text));
            assert!(get(address, "/", &host).contains("<canvas"), "after {text:.40}");
        }
        held.extend((0..200).map(|_| send("")));
        let began = Instant::now();
        assert!(get(address, "/", &host).contains("<canvas"), "beside silent connections");
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        held.push(send(&never));
        drop(server);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
}
