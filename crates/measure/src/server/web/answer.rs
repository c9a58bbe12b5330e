//! Answers to requests.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, ORIGIN,
    REFERRER_POLICY, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use tokio::task::spawn_blocking;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::super::Server;
use super::super::sessions::Session;
use super::Peer;
use super::sockets::{self, cookie};
use crate::browser::Seen;
use crate::estimate::Line;
use crate::protocol::{Cookie, MAX_FLOWS};
use crate::recording::Direction;
use crate::responsiveness::SMALL;

/// The page and its scripts, which ask for nothing from elsewhere.
const FILES: [(&str, &str, &str); 6] = [
    ("/", "text/html; charset=utf-8", include_str!("../../../web/page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("../../../web/page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("../../../web/page.js")),
    ("/probes.js", "text/javascript; charset=utf-8", include_str!("../../../web/probes.js")),
    ("/load.js", "text/javascript; charset=utf-8", include_str!("../../../web/load.js")),
    (SMALL, "text/plain", "."),
];
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The longest report of a browser, in bytes: that of the most probes of a session takes half of it.
const MAX_REPORT: usize = 512 << 10;

type Answer = Response<Full<Bytes>>;

pub(super) async fn answer(server: &Server, peer: &Peer, request: Request<Incoming>) -> Answer {
    let path = request.uri().path();
    match (request.method(), path) {
        (&Method::GET, "/session" | "/probes" | "/load") => upgrade(server, peer, request),
        (&Method::POST, "/results") => describe(server, peer.address, request).await,
        (&Method::GET, path) => match path.strip_prefix("/results/") {
            Some(rest) => document(server, rest),
            None => match FILES.iter().find(|(name, ..)| *name == path) {
                Some((_, kind, text)) => say(StatusCode::OK, kind, Bytes::from_static(text.as_bytes())),
                None => refuse(StatusCode::NOT_FOUND, "there is nothing of this name"),
            },
        },
        _ => refuse(StatusCode::METHOD_NOT_ALLOWED, "accepted: GET"),
    }
}

fn say(status: StatusCode, kind: &str, body: Bytes) -> Answer {
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_SECURITY_POLICY, POLICY)
        .header(REFERRER_POLICY, "no-referrer")
        .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
        .body(Full::new(body))
        .expect("media types are constant")
}

fn refuse(status: StatusCode, why: &str) -> Answer {
    say(status, "text/plain; charset=utf-8", Bytes::from(format!("{why}\n")))
}

/// A result: its page, or one of its files.
fn document(server: &Server, path: &str) -> Answer {
    let (name, file) = path.split_once('/').unwrap_or((path, ""));
    let found = server.0.results.find(name);
    let Some(documents) = found else {
        return refuse(StatusCode::NOT_FOUND, "this result is not kept any more");
    };
    if file.is_empty() {
        let (_, kind, text) = FILES[0];
        return say(StatusCode::OK, kind, Bytes::from_static(text.as_bytes()));
    }
    match documents.iter().find(|document| document.name == file) {
        Some(document) => say(StatusCode::OK, document.media_type, Bytes::copy_from_slice(&document.content)),
        None => refuse(StatusCode::NOT_FOUND, "this result has no such file"),
    }
}

/// Makes a WebSocket of the connection.
fn upgrade(server: &Server, peer: &Peer, mut request: Request<Incoming>) -> Answer {
    if !is_own(request.headers()) {
        return refuse(StatusCode::FORBIDDEN, "a page from elsewhere may not measure");
    }
    let Some(key) = key(request.headers()) else {
        return refuse(StatusCode::UPGRADE_REQUIRED, "accepted: a WebSocket of version 13");
    };
    let query = request.uri().query().unwrap_or_default();
    let wanted = match request.uri().path() {
        "/session" => Some(Wanted::Session),
        "/probes" => value(query, "cookie").and_then(cookie).map(Wanted::Probes),
        _ => load_of(query),
    };
    let Some(wanted) = wanted else {
        return refuse(StatusCode::BAD_REQUEST, "accepted: cookie, and for a load direction and flow");
    };
    let Ok(socket) = peer.socket.try_clone() else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "this server has no room for another connection");
    };
    let (upgrade, server, client) = (hyper::upgrade::on(&mut request), server.clone(), peer.address);
    tokio::spawn(async move {
        let served = match wanted {
            Wanted::Session => sockets::control(server, upgrade, socket, client).await,
            Wanted::Probes(cookie) => sockets::probes(server, upgrade, socket, cookie).await,
            Wanted::Load(cookie, direction, flow) => {
                sockets::load(server, upgrade, socket, (cookie, direction, flow)).await
            }
        };
        if let Err(error) = served {
            tracing::debug!("{client}: {error}");
        }
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, key)
        .body(Full::default())
        .expect("a key in base64 is a header")
}

/// Whether the page that asks came from here: otherwise any page could let its visitors load this server.
fn is_own(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match (text(ORIGIN), text(HOST)) {
        (None, _) => true,
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, from)| from == host),
        (Some(_), None) => false,
    }
}

/// The answer to the key of a WebSocket's handshake (RFC 6455 §4.2.2).
fn key(headers: &HeaderMap) -> Option<String> {
    let is_upgrade = headers.get(UPGRADE)?.as_bytes().eq_ignore_ascii_case(b"websocket");
    let is_version = headers.get(SEC_WEBSOCKET_VERSION)?.as_bytes() == b"13";
    let key = headers.get(SEC_WEBSOCKET_KEY)?;
    (is_upgrade && is_version).then(|| derive_accept_key(key.as_bytes()))
}

/// What a WebSocket is for.
enum Wanted {
    Session,
    Probes(Cookie),
    Load(Cookie, Direction, u8),
}

/// What a query gives for `key`.
fn value<'query>(query: &'query str, key: &str) -> Option<&'query str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key).map(|pair| pair.1)
}

/// What a load's query names: `cookie=…&direction=download&flow=0`.
fn load_of(query: &str) -> Option<Wanted> {
    let direction =
        Direction::BOTH.into_iter().find(|way| value(query, "direction") == Some(way.as_str()))?;
    let flow = value(query, "flow")?.parse().ok().filter(|flow| *flow < MAX_FLOWS)?;
    Some(Wanted::Load(cookie(value(query, "cookie")?)?, direction, flow))
}

/// Makes a result of what a browser saw and of what this end saw, once in a session.
async fn describe(server: &Server, client: SocketAddr, request: Request<Incoming>) -> Answer {
    let session = request.uri().query().and_then(|query| value(query, "cookie")).and_then(cookie);
    let session = session.and_then(|cookie| server.0.sessions.find(&cookie, client.ip()));
    let Some(session) = session else {
        return refuse(StatusCode::FORBIDDEN, "the session is over");
    };
    // Before it comes, so that a session has room for one.
    if !session.may_report() {
        return refuse(StatusCode::CONFLICT, "the session has sent its report");
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("").to_owned();
    let Ok(body) = Limited::new(request.into_body(), MAX_REPORT).collect().await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the report is too long, or ended early");
    };
    let (turn, server, body) = (server.0.results.turn().await, server.clone(), body.to_bytes());
    // It takes a while, in which others' probes are to be answered.
    let made = spawn_blocking(move || {
        let _turn = turn;
        result(&server, &session, &body, client.ip().to_canonical().is_ipv6(), &host)
    });
    made.await.unwrap_or_else(|_| {
        refuse(StatusCode::INTERNAL_SERVER_ERROR, "the server made nothing of the report")
    })
}

fn result(server: &Server, session: &Session, report: &[u8], is_ipv6: bool, host: &str) -> Answer {
    let Ok(seen) = serde_json::from_slice::<Seen>(report) else {
        return refuse(StatusCode::BAD_REQUEST, "the report does not read");
    };
    let looks = Direction::BOTH.map(|direction| {
        session.load(direction).close();
        session.load(direction).take_looks()
    });
    let recording = seen.recording(looks, is_ipv6);
    let Some(line) = recording.as_ref().and_then(Line::of).filter(Line::is_finite) else {
        return refuse(StatusCode::UNPROCESSABLE_ENTITY, "no probe came back while the line was idle");
    };
    let recording = recording.expect("a line has a recording");
    match server.0.results.keep(&line, &recording, host) {
        Ok(name) => say(StatusCode::OK, "application/json", Bytes::from(format!("{{\"name\":\"{name}\"}}"))),
        Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}
