//! Peers that mean no good.

use std::time::Duration;

use suimon_measure::Direction;
use suimon_measure::protocol::{Hello, MAX_FLOWS, PREFACE, Refusal, Reply, decode, encode};
use suimon_measure::server::{Limits, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

async fn serve(limits: Limits) -> (Server, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::new(limits, |_, _, _| Vec::new());
    tokio::spawn(server.clone().serve(listener));
    (server, address)
}

async fn hello(address: std::net::SocketAddr, hello: &Hello) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&PREFACE).await.unwrap();
    stream.write_all(&encode(hello).unwrap()).await.unwrap();
    stream
}

async fn reply(stream: &mut TcpStream) -> Reply {
    let length = usize::from(stream.read_u16().await.unwrap());
    let mut content = vec![0; length];
    stream.read_exact(&mut content).await.unwrap();
    decode(&content).unwrap()
}

/// A question as the client sends it.
fn question(cookie: [u8; 16], length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length.max(32)];
    bytes[..4].copy_from_slice(b"suiq");
    bytes[4..20].copy_from_slice(&cookie);
    bytes.truncate(length);
    bytes
}

async fn answer(socket: &UdpSocket) -> Option<usize> {
    let mut bytes = [0; 2_000];
    timeout(Duration::from_millis(300), socket.recv(&mut bytes)).await.ok().map(|length| length.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_datagram_gets_no_more_than_itself_and_only_with_a_cookie_from_the_address_of_its_session() {
    let (server, address) = serve(Limits::default()).await;
    let mut control = hello(address, &Hello::Session).await;
    let Reply::Open { cookie, .. } = reply(&mut control).await else { panic!("no session") };
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(address).await.unwrap();
    socket.send(&question(cookie, 32)).await.unwrap();
    assert_eq!(answer(&socket).await, Some(32));
    for wrong in
        [question([1; 16], 32), question(cookie, 31), question(cookie, 33), question(cookie, 1_400), vec![]]
    {
        socket.send(&wrong).await.unwrap();
        assert_eq!(answer(&socket).await, None, "{} bytes", wrong.len());
    }
    let elsewhere = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    elsewhere.connect(address).await.unwrap();
    elsewhere.send(&question(cookie, 32)).await.unwrap();
    assert_eq!(answer(&elsewhere).await, None, "an address that has proved nothing");
    drop(control);
    tokio::time::sleep(Duration::from_millis(100)).await;
    socket.send(&question(cookie, 32)).await.unwrap();
    assert_eq!(answer(&socket).await, None, "the session is over");
    assert_eq!(server.report().echoes, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_limited_and_end_in_time_with_all_their_connections() {
    let limits = Limits { of_network: 1, time: Duration::from_millis(500), ..Limits::default() };
    let (server, address) = serve(limits).await;
    let mut control = hello(address, &Hello::Session).await;
    let Reply::Open { cookie, .. } = reply(&mut control).await else { panic!("no session") };
    let mut second = hello(address, &Hello::Session).await;
    assert_eq!(reply(&mut second).await, Reply::Refused(Refusal::OfAddress));
    let load = |flow| Hello::Load { cookie, direction: Direction::Download, flow };
    // One that reads nothing, one number too high, and one of no session.
    let mut idle = hello(address, &load(0)).await;
    let mut wrong = hello(address, &load(MAX_FLOWS)).await;
    let mut stranger =
        hello(address, &Hello::Load { cookie: [0; 16], direction: Direction::Upload, flow: 0 }).await;
    let mut bytes = [0; 16];
    for refused in [&mut wrong, &mut stranger] {
        assert!(matches!(
            timeout(Duration::from_secs(2), refused.read(&mut bytes)).await,
            Ok(Ok(0) | Err(_))
        ));
    }
    // The session ends, and takes the connection along.
    let ended = timeout(Duration::from_secs(3), async {
        let mut bytes = vec![0; 1 << 20];
        while idle.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    });
    ended.await.expect("the session has ended");
    assert_eq!(server.report().open, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_ends_at_the_servers_limit() {
    let (_server, address) = serve(Limits { bytes: 1_000_000, ..Limits::default() }).await;
    let mut control = hello(address, &Hello::Session).await;
    let Reply::Open { cookie, most_bytes } = reply(&mut control).await else { panic!("no session") };
    assert_eq!(most_bytes, 1_000_000);
    let mut load = hello(address, &Hello::Load { cookie, direction: Direction::Download, flow: 0 }).await;
    let (mut got, mut bytes) = (0, vec![0; 1 << 16]);
    while let Ok(count @ 1..) = load.read(&mut bytes).await {
        got += count;
    }
    assert!(got <= 1_000_000 + (128 << 10), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_client_is_left() {
    let (server, address) = serve(Limits::default()).await;
    for wrong in [
        &b"get / http/1.1\r\n\r\n"[..],
        b"suimeas1\xff\xff",
        b"suimeas1\x00\x01\xff",
        b"suimeas0\x00\x01\x00",
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(wrong).await.unwrap();
        let mut bytes = [0; 16];
        let end = timeout(Duration::from_secs(2), stream.read(&mut bytes)).await.expect("it is left");
        assert!(matches!(end, Ok(0) | Err(_)), "{wrong:?}");
    }
    assert_eq!(server.report().opened, 0);
}

/// A datagram of a recording: `kind` is the last letter of its name.
fn recorded(kind: u8, cookie: [u8; 16], number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[..4].copy_from_slice(&[b's', b'u', b'i', kind]);
    bytes[4..20].copy_from_slice(&cookie);
    bytes[20..24].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The lengths of what comes until nothing more does.
async fn lengths(socket: &UdpSocket) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let Some(length) = answer(socket).await {
        lengths.push(length);
    }
    lengths
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_sends_data_to_its_session_only_and_no_more_than_is_acknowledged() {
    let limits = Limits { bytes: 30 * 1_400, ..Limits::default() };
    let (server, address) = serve(limits).await;
    let mut control = hello(address, &Hello::Recording).await;
    let Reply::Open { cookie, .. } = reply(&mut control).await else { panic!("no session") };
    let mut other = hello(address, &Hello::Session).await;
    let Reply::Open { cookie: measuring, .. } = reply(&mut other).await else { panic!("no session") };
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(address).await.unwrap();
    let elsewhere = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    elsewhere.connect(address).await.unwrap();
    let call = recorded(b'c', cookie, 0, 32);
    elsewhere.send(&call).await.unwrap();
    assert_eq!(lengths(&elsewhere).await, [0; 0], "an address that has proved nothing");
    socket.send(&recorded(b'c', measuring, 0, 32)).await.unwrap();
    assert_eq!(lengths(&socket).await, [0; 0], "a session that is no recording");
    socket.send(&call).await.unwrap();
    assert_eq!(lengths(&socket).await, [1_372; 10]);
    // More calls, what was acknowledged before, and what was never sent.
    for more in [&call, &recorded(b'k', cookie, 99, 32), &recorded(b'k', cookie, u32::MAX, 32)] {
        socket.send(more).await.unwrap();
        assert_eq!(lengths(&socket).await, [0; 0]);
    }
    for (length, answered) in [(1_372, vec![32]), (1_371, vec![]), (32, vec![])] {
        socket.send(&recorded(b'd', cookie, 0, length)).await.unwrap();
        assert_eq!(lengths(&socket).await, answered, "{length}");
    }
    // One that says that everything came gets what the session may have, and nothing beyond.
    let mut all = 10;
    for number in 9..60 {
        socket.send(&recorded(b'k', cookie, number, 32)).await.unwrap();
        let mut bytes = [0; 2_000];
        while timeout(Duration::from_millis(20), socket.recv(&mut bytes)).await.is_ok() {
            all += 1;
        }
    }
    assert_eq!(all, 30);
    drop(control);
    tokio::time::sleep(Duration::from_millis(100)).await;
    socket.send(&call).await.unwrap();
    assert_eq!(lengths(&socket).await, [0; 0], "the session is over");
    assert_eq!(server.report().open, 1);
}
