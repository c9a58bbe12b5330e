//! WebSockets (RFC 6455): one controls a session, it and some others carry the probes, and the rest are the loads.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::LazyLock;

use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::super::Server;
use super::super::sessions::{Purpose, Session};
use crate::load::NOISE;
use crate::protocol::{Cookie, Refusal};
use crate::recording::Direction;

/// The payload of a question and of its answer, in bytes: as long as each other, so that nobody gets more than was sent.
/// The packet that carries it has 32 bytes besides IP and TCP more than the payload of a datagram.
const PROBE: usize = 24;
/// The longest message that a client sends to control a session, in bytes.
const MAX_MESSAGE: usize = 64;
/// The most that waits to be sent of answers, in bytes.
const MAX_WAITING: usize = 64 << 10;

/// The first message of a session.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum First {
    Open { cookie: String, most_bytes: u64 },
    Refused(String),
}

/// What a connection carries from when it became a WebSocket.
type Stream = TokioIo<Upgraded>;

/// A WebSocket whose messages are probes, and words that control a session.
async fn of_probes(upgrade: OnUpgrade, socket: OwnedFd) -> io::Result<WebSocketStream<Stream>> {
    SockRef::from(&socket).set_tcp_nodelay(true)?;
    let stream = TokioIo::new(upgrade.await.map_err(io::Error::other)?);
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
        .read_buffer_size(4 << 10)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_WAITING);
    Ok(WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await)
}

/// A further connection of a session for its probes, so that one that is lost holds few others back.
pub(super) async fn probes(
    server: Server,
    upgrade: OnUpgrade,
    socket: OwnedFd,
    cookie: Cookie,
) -> io::Result<()> {
    let mut socket = of_probes(upgrade, socket).await?;
    let joined = server.0.sessions.join(&cookie, Purpose::Probes);
    let Some((session, place)) = joined else { return Ok(()) };
    let done = tokio::select! {
        done = answer(&server, &session, &mut socket) => done,
        () = session.closed() => Ok(()),
    };
    drop(place);
    done
}

/// A session, as long as its browser keeps the WebSocket, and no longer than it may last.
pub(super) async fn control(
    server: Server,
    upgrade: OnUpgrade,
    socket: OwnedFd,
    client: SocketAddr,
) -> io::Result<()> {
    let mut socket = of_probes(upgrade, socket).await?;
    let sessions = &server.0.sessions;
    let session = match sessions.open(client.ip()) {
        Ok(session) => session,
        Err(refusal) => return tell(&mut socket, &First::Refused(said(refusal))).await,
    };
    let limits = *sessions.limits();
    let served = async {
        let open = First::Open { cookie: hex(&session.cookie), most_bytes: limits.bytes };
        tell(&mut socket, &open).await?;
        answer(&server, &session, &mut socket).await
    };
    let watched = async {
        tokio::join!(session.watch(Direction::Download), session.watch(Direction::Upload));
    };
    tokio::select! {
        served = served => served,
        () = watched => Ok(()),
        () = sleep(limits.time) => Ok(()),
    }
}

fn said(refusal: Refusal) -> String {
    refusal.to_string()
}

async fn tell(socket: &mut WebSocketStream<Stream>, first: &First) -> io::Result<()> {
    let text = serde_json::to_string(first).map_err(io::Error::from)?;
    socket.send(Message::text(text)).await.map_err(io::Error::other)
}

fn no_message() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no message of a measurement")
}

/// Answers probes, and ends the load whose direction the browser names.
async fn answer(server: &Server, session: &Session, socket: &mut WebSocketStream<Stream>) -> io::Result<()> {
    while let Some(message) = socket.next().await {
        match message.map_err(io::Error::other)? {
            Message::Binary(question) if question.len() == PROBE => {
                if !session.may_echo() {
                    return Ok(());
                }
                server.0.sessions.count_echo();
                let answer = answer_to(&question, session, server.0.sessions.now_us());
                socket.send(Message::Binary(answer)).await.map_err(io::Error::other)?;
            }
            Message::Text(word) => {
                match Direction::BOTH.into_iter().find(|way| way.as_str() == word.as_str()) {
                    Some(direction) => session.load(direction).end(),
                    None => return Err(no_message()),
                }
            }
            Message::Close(_) => break,
            _ => return Err(no_message()),
        }
    }
    Ok(())
}

/// The probe's number, the server's time in microseconds, and what has arrived of both loads, in bytes.
fn answer_to(question: &Bytes, session: &Session, now_us: u64) -> Bytes {
    let mut answer = [0; PROBE];
    answer[..4].copy_from_slice(&question[..4]);
    answer[8..16].copy_from_slice(&(now_us as f64).to_le_bytes());
    let arrived: u64 = Direction::BOTH.iter().map(|direction| session.load(*direction).arrived()).sum();
    answer[16..].copy_from_slice(&(arrived as f64).to_le_bytes());
    Bytes::copy_from_slice(&answer)
}

/// A connection of a load, as long as its session.
pub(super) async fn load(
    server: Server,
    upgrade: OnUpgrade,
    socket: OwnedFd,
    (cookie, direction, flow): (Cookie, Direction, u8),
) -> io::Result<()> {
    let stream = TokioIo::new(upgrade.await.map_err(io::Error::other)?);
    let Some((session, place)) = server.0.sessions.join(&cookie, Purpose::Load(direction)) else {
        return Ok(());
    };
    // At the end the connection goes at once, with what is unsent.
    SockRef::from(&socket).set_linger(Some(std::time::Duration::ZERO))?;
    let load = session.load(direction);
    let most = server.0.sessions.limits().bytes;
    let moved = async {
        match direction {
            Direction::Download => load.send_chunks(flow, socket, stream, most, &MESSAGE).await,
            // What the messages hold is of no interest, nor is it deciphered.
            Direction::Upload => {
                drop(stream);
                load.receive(flow, TcpStream::from_std(socket.into())?, most).await
            }
        }
    };
    let done = tokio::select! {
        done = moved => done,
        () = session.closed() => Ok(()),
    };
    drop(place);
    done
}

/// A binary message of one frame without a mask (RFC 6455 §5.2).
static MESSAGE: LazyLock<Vec<u8>> =
    LazyLock::new(|| [&[0x82, 127], &(NOISE.len() as u64).to_be_bytes()[..], &NOISE].concat());

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The cookie that [`hex`] wrote.
pub(super) fn cookie(text: &str) -> Option<Cookie> {
    let mut cookie = Cookie::default();
    if text.len() != 2 * cookie.len() || !text.is_ascii() {
        return None;
    }
    for (nth, byte) in cookie.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * nth..2 * nth + 2], 16).ok()?;
    }
    Some(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_reads_back_and_nothing_else_is_one() {
        let bytes = [7, 0, 255, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        assert_eq!(cookie(&hex(&bytes)), Some(bytes));
        for wrong in ["", "07", &"g".repeat(32), &"é".repeat(16), &"0".repeat(33)] {
            assert_eq!(cookie(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_message_of_a_load_is_one_frame() {
        let length = u64::from_be_bytes(MESSAGE[2..10].try_into().unwrap());
        assert_eq!(length as usize, MESSAGE.len() - 10);
    }
}
