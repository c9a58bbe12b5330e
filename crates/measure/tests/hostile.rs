//! Peers that mean no good.

use std::time::Duration;

use suimon_measure::client::{Plan, measure};
use suimon_measure::protocol::{Hello, MAX_FLOWS, PREFACE, Refusal, Reply, decode, encode};
use suimon_measure::server::{Limits, Server};
use suimon_measure::{Direction, Sample};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_resets_its_connection_before_it_is_answered_leaves_no_session() {
    let limits = Limits { sessions: 99, of_network: 99, a_minute: 99, ..Limits::default() };
    let (server, address) = serve(limits).await;
    for kind in [Hello::Session, Hello::Recording].iter().cycle().take(20) {
        let stream = hello(address, kind).await;
        // The connection is reset once it is dropped.
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
    let ended = timeout(Duration::from_secs(5), async {
        while server.report().opened < 20 || server.report().open > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    ended.await.unwrap_or_else(|_| panic!("{:?}", server.report()));
}

/// A server that tells of each second probe, and of loads, times that cannot be.
async fn serve_lies() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let echoes = UdpSocket::bind(address).await.unwrap();
    tokio::spawn(async move {
        let mut bytes = [0; 32];
        while let Ok((_, client)) = echoes.recv_from(&mut bytes).await {
            bytes[3] = b'a';
            // The last byte of the number, and the time.
            let is_even = bytes[23] % 2 == 0;
            bytes[24..].fill(if is_even { 0 } else { 0xff });
            let _ = echoes.send_to(&bytes, client).await;
        }
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(lie(stream));
        }
    });
    address
}

async fn lie(mut stream: TcpStream) {
    async fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
        let length = stream.read_u16().await.ok()?;
        let mut content = vec![0; usize::from(length)];
        stream.read_exact(&mut content).await.ok().map(|_| content)
    }
    let Ok(_) = stream.read_exact(&mut [0; PREFACE.len()]).await else { return };
    let Some(first) = message(&mut stream).await else { return };
    if decode::<Hello>(&first).unwrap() != Hello::Session {
        // A load, of which nothing comes.
        let _ = stream.read(&mut [0]).await;
        return;
    }
    let open = Reply::Open { cookie: [7; 16], most_bytes: 1_000_000 };
    stream.write_all(&encode(&open).unwrap()).await.unwrap();
    while message(&mut stream).await.is_some() {
        let sample = Sample { at_us: u64::MAX, srtt_us: 1, ..Sample::default() };
        for reply in [Reply::Samples(vec![sample]), Reply::End] {
            stream.write_all(&encode(&reply).unwrap()).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_a_server_that_cannot_be_are_left_out() {
    let address = serve_lies().await;
    let length = Duration::from_millis(200);
    let plan = Plan { idle: length, load: length, responsiveness: true, ..Plan::default() };
    let (_stop, told) = watch::channel(false);
    let recording = measure(address, &plan, told, |_| {}).await.unwrap();
    let answered = recording.probes.iter().filter(|probe| probe.answer.is_some()).count();
    assert!((2..recording.probes.len()).contains(&answered), "{answered} of {}", recording.probes.len());
    assert!(recording.probes.iter().all(|probe| probe.answer.is_none_or(|(server_us, _)| server_us == 0)));
    assert_eq!(recording.download.as_ref().unwrap().sender, []);
    assert_eq!(recording.upload.as_ref().unwrap().receiver, []);
    assert!(recording.is_in_time());
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
