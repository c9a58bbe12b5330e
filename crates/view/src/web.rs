//! The board in a browser.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use tiny_http::{Header, Method, Request, Response};

use crate::board::Board;

/// Answers browsers until it is dropped.
pub struct Server {
    server: Arc<tiny_http::Server>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

const PAGE: &str = include_str!("page.html");

impl Server {
    /// Shows `board` at `address`; port 0 takes any that is free.
    ///
    /// # Errors
    /// Where the address is taken or not this machine's.
    pub fn start(board: Arc<Board>, address: SocketAddr) -> io::Result<Self> {
        let server = Arc::new(tiny_http::Server::http(address).map_err(io::Error::other)?);
        let address = server.server_addr().to_ip().unwrap_or(address);
        let answering = Arc::clone(&server);
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(move || {
            for request in answering.incoming_requests() {
                // A browser that went away is told nothing.
                let _ = answer(&board, address, request);
            }
        })?;
        Ok(Self { server, address, thread: Some(thread) })
    }

    /// The address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(board: &Board, address: SocketAddr, request: Request) -> io::Result<()> {
    let (kind, body) = match (request.method(), request.url()) {
        // A page from elsewhere whose name leads here must not read on.
        _ if !is_meant(&request, address) => return request.respond(Response::empty(421)),
        (Method::Get, "/") => ("text/html; charset=utf-8", PAGE.to_owned()),
        (Method::Get, url) if url.starts_with("/links") => {
            let since = url.split_once("?since=").and_then(|(_, number)| number.parse().ok());
            ("application/json", board.json(since.unwrap_or(0)))
        }
        _ => return request.respond(Response::empty(404)),
    };
    let header = |name: &str, value: &str| {
        Header::from_bytes(name, value).expect("the headers are constant, and tests read them")
    };
    let response = Response::from_string(body)
        .with_header(header("Content-Type", kind))
        .with_header(header("Cache-Control", "no-store"))
        .with_header(header("Content-Security-Policy", "default-src 'self' 'unsafe-inline'"));
    request.respond(response)
}

/// Whether the request names an address, or this machine, rather than a name that somebody else gave to it.
fn is_meant(request: &Request, address: SocketAddr) -> bool {
    let mut hosts = request.headers().iter().filter(|header| header.field.equiv("Host"));
    let Some(host) = hosts.next().map(|header| header.value.as_str()) else { return false };
    let name = host.strip_suffix(&format!(":{}", address.port())).unwrap_or(host);
    name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

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
}
