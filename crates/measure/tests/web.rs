//! Browsers, and those who pretend to be one.

use std::net::SocketAddr;
use std::time::Duration;

use suimon_measure::server::{Document, Limits, Render, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

/// Room for more than one browser of this host.
const AMPLE: Limits = Limits {
    sessions: 99,
    of_network: 99,
    a_minute: 99,
    time: Duration::from_secs(60),
    recording: Duration::from_secs(60),
    bytes: 1_000_000,
};

async fn serve(limits: Limits) -> (Server, SocketAddr) {
    serve_with(limits, |line, recording, to| {
        let content = format!("{} {} {to}", line.idle.rtt_ms, recording.is_stream).into_bytes();
        vec![Document { name: "line.txt".to_owned(), media_type: "text/plain", content }]
    })
    .await
}

async fn serve_with(limits: Limits, render: Render) -> (Server, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::new(limits, render);
    tokio::spawn(server.clone().serve(listener));
    (server, address)
}

async fn said(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset has said what it had to say.
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes)).await.expect("it ends in time");
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(request.as_bytes()).await;
    said(&mut stream).await
}

fn upgrade(path: &str, more: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: far\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

/// A frame of a client (RFC 6455 §5.2), whose mask is zero.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | kind];
    match u16::try_from(payload.len()).unwrap() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Reads the head of an answer.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(Duration::from_secs(5), stream.read_u8()).await.unwrap().unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Reads a short frame of the server.
async fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let read = async {
        let [_, length] = [stream.read_u8().await.ok()?, stream.read_u8().await.ok()?];
        let mut payload = vec![0; usize::from(length)];
        stream.read_exact(&mut payload).await.ok()?;
        Some(payload)
    };
    timeout(Duration::from_secs(2), read).await.expect("it answers or ends")
}

/// Opens a session; its connection and its cookie.
async fn session(address: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(upgrade("/session", "Origin: http://far\r\n").as_bytes()).await.unwrap();
    let head = head(&mut stream).await;
    // The example of RFC 6455 §1.3.
    assert!(head.starts_with("HTTP/1.1 101") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    let first = String::from_utf8(message(&mut stream).await.unwrap()).unwrap();
    let cookie =
        first.split('"').find(|part| part.len() == 32).unwrap_or_else(|| panic!("{first}")).to_owned();
    (stream, cookie)
}

/// A browser's report, of one probe, and of one whose WebSocket was stuck.
const REPORT: &str = r#"{"probes":[[0,[500,9000]],null],"idle":[{"from_us":0,"to_us":100000}]}"#;

fn post(cookie: &str, body: &str) -> String {
    let length = body.len();
    format!("POST /results?cookie={cookie} HTTP/1.1\r\nHost: far:7\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_measures_and_its_result_has_an_address() {
    let (server, address) = serve(AMPLE).await;
    let (mut control, cookie) = session(address).await;
    let mut further = TcpStream::connect(address).await.unwrap();
    further.write_all(upgrade(&format!("/probes?cookie={cookie}"), "").as_bytes()).await.unwrap();
    assert!(head(&mut further).await.starts_with("HTTP/1.1 101"));
    let mut probes = Vec::new();
    for nth in 0..5_u32 {
        let mut question = [0; 24];
        question[..4].copy_from_slice(&nth.to_le_bytes());
        let socket = if nth % 2 == 0 { &mut control } else { &mut further };
        socket.write_all(&frame(2, &question)).await.unwrap();
        let answer = message(socket).await.unwrap();
        assert_eq!((answer.len(), &answer[..4]), (24, &nth.to_le_bytes()[..]), "as long as the question");
        let server_us = f64::from_le_bytes(answer[8..16].try_into().unwrap());
        let sent = 500 * nth;
        probes.push(format!("[{sent},[{server_us},{}]]", sent + 9_000));
    }
    let report =
        format!("{{\"probes\":[{}],\"idle\":[{{\"from_us\":0,\"to_us\":100000}}]}}", probes.join(","));
    let answer = ask(address, &post(&cookie, &report)).await;
    let name = answer.split('"').nth(3).unwrap_or_else(|| panic!("{answer}"));
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: far\r\n\r\n");
    let file = ask(address, &get(&format!("/results/{name}/line.txt"))).await;
    assert!(file.starts_with("HTTP/1.1 200") && file.ends_with("\r\n\r\n9 true far:7"), "{file}");
    assert!(ask(address, &get(&format!("/results/{name}/"))).await.contains("<!doctype html>"));
    for missing in ["/results/00/line.txt", "/results/", &format!("/results/{name}/passwd"), "/nothing"] {
        let answer = ask(address, &get(missing)).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{missing}: {answer}");
    }
    // What does not read, or is no line.
    for (body, status) in
        [("{}", "400"), ("{\"probes\":[],\"idle\":[]}", "422"), (&"7".repeat(600_000), "413")]
    {
        let (_control, cookie) = session(address).await;
        let answer = ask(address, &post(&cookie, body)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
    }
    let nobody = ask(address, &post(&"0".repeat(32), &report)).await;
    assert!(nobody.starts_with("HTTP/1.1 403"), "{nobody}");
    // Another host has another address.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut elsewhere = socket.connect(address).await.unwrap();
    elsewhere.write_all(post(&cookie, &report).as_bytes()).await.unwrap();
    assert!(said(&mut elsewhere).await.starts_with("HTTP/1.1 403"));
    drop(control);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(message(&mut further).await, None, "it ends with its session");
    assert!(ask(address, &post(&cookie, &report)).await.starts_with("HTTP/1.1 403"), "the session is over");
    assert_eq!((server.report().open, server.report().echoes), (0, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_one_report_and_room_for_no_second_one_meanwhile() {
    let (_server, address) = serve(AMPLE).await;
    let (_other, other) = session(address).await;
    let (_control, cookie) = session(address).await;
    let whole = post(&cookie, REPORT);
    let (first, rest) = whole.split_at(whole.len() - 9);
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(first.as_bytes()).await.unwrap();
    sleep(Duration::from_millis(200)).await;
    for body in [REPORT, &"7".repeat(500_000)] {
        let answer = ask(address, &post(&cookie, body)).await;
        assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    }
    half.write_all(rest.as_bytes()).await.unwrap();
    assert!(said(&mut half).await.starts_with("HTTP/1.1 200"));
    assert!(ask(address, &post(&cookie, REPORT)).await.starts_with("HTTP/1.1 409"));
    assert!(
        ask(address, &post(&other, REPORT)).await.starts_with("HTTP/1.1 200"),
        "another's counts for itself"
    );
}

// One thread, which whoever makes a result must not take.
#[tokio::test]
async fn probes_of_others_are_answered_while_a_result_is_made() {
    const LONG: Duration = Duration::from_secs(2);
    let slow: Render = |_, _, _| {
        std::thread::sleep(LONG);
        Vec::new()
    };
    let (_server, address) = serve_with(AMPLE, slow).await;
    let (_control, cookie) = session(address).await;
    let (mut other, _) = session(address).await;
    let begun = Instant::now();
    let made = tokio::spawn(async move { ask(address, &post(&cookie, REPORT)).await });
    sleep(LONG / 4).await;
    other.write_all(&frame(2, &[0; 24])).await.unwrap();
    assert_eq!(message(&mut other).await.unwrap().len(), 24);
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
    assert!(made.await.unwrap().starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_asks_for_nothing_from_elsewhere() {
    let (_server, address) = serve(Limits::default()).await;
    for path in ["/", "/page.css", "/page.js", "/probes.js", "/load.js"] {
        let answer = ask(address, &format!("GET {path} HTTP/1.1\r\nHost: far\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        assert!(answer.contains("content-security-policy: default-src 'none'"), "{path}: {answer}");
        assert!(!answer.contains("http://") && !answer.contains("https://"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_mean_no_good_get_no_session() {
    let (server, address) = serve(Limits::default()).await;
    let plain = "GET /session HTTP/1.1\r\nHost: far\r\n\r\n".to_owned();
    let load = |query: &str| upgrade(&format!("/load?{query}"), "");
    for (request, status) in [
        (upgrade("/session", "Origin: http://evil.example\r\n"), "403"),
        (plain, "426"),
        (load(""), "400"),
        (upgrade("/probes", ""), "400"),
        (upgrade("/probes?cookie=00", ""), "400"),
        (load("cookie=00&direction=upload&flow=0"), "400"),
        (load(&format!("cookie={}&direction=sideways&flow=0", "0".repeat(32))), "400"),
        (load(&format!("cookie={}&direction=upload&flow=32", "0".repeat(32))), "400"),
        (format!("GET / HTTP/1.1\r\nHost: far\r\nX: {}\r\n\r\n", "x".repeat(20_000)), "431"),
        ("DELETE / HTTP/1.1\r\nHost: far\r\n\r\n".to_owned(), "405"),
        ("POST /results HTTP/1.1\r\nHost: far\r\n\r\n".to_owned(), "403"),
        ("NONSENSE\r\n\r\n".to_owned(), "400"),
    ] {
        let answer = ask(address, &request).await;
        let first = answer.lines().next().unwrap_or_default();
        assert!(first.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {first}");
    }
    // What belongs to no session ends at once.
    let nobody = format!("cookie={}", "0".repeat(32));
    for request in
        [load(&format!("{nobody}&direction=download&flow=0")), upgrade(&format!("/probes?{nobody}"), "")]
    {
        let answer = ask(address, &request).await;
        assert!(answer.starts_with("HTTP/1.1 101") && answer.len() < 300, "{}", answer.len());
    }
    assert_eq!(server.report().opened, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_what_is_no_message_of_it() {
    let (server, address) =
        serve(Limits { of_network: 9, a_minute: 99, sessions: 9, ..Limits::default() }).await;
    for wrong in [
        frame(2, &[0; 23]),
        frame(1, b"sideways"),
        frame(2, &[0; 5_000]),
        vec![0xff; 40],
        frame(1, &[0xff; 9]),
    ] {
        let (mut control, _) = session(address).await;
        control.write_all(&wrong).await.unwrap();
        let before = Instant::now();
        while message(&mut control).await.is_some() {}
        assert!(before.elapsed() < Duration::from_secs(2));
    }
    sleep(Duration::from_millis(100)).await;
    assert_eq!(server.report().open, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_requests_take_no_more_places_than_an_address_has_and_end() {
    let (_server, address) = serve(Limits::default()).await;
    let mut halves = Vec::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HT").await.unwrap();
        halves.push(stream);
    }
    sleep(Duration::from_millis(200)).await;
    let mut more = TcpStream::connect(address).await.unwrap();
    let _ = more.write_all(b"GET / HTTP/1.1\r\nHost: far\r\n\r\n").await;
    assert_eq!(said(&mut more).await, "", "one too many is left at once");
    let before = Instant::now();
    for mut half in halves {
        let mut bytes = Vec::new();
        let _ = timeout(Duration::from_secs(8), half.read_to_end(&mut bytes)).await.expect("it is left");
    }
    assert!(before.elapsed() < Duration::from_secs(8));
    assert!(ask(address, "GET / HTTP/1.1\r\nHost: far\r\n\r\n").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_reads_nothing_ends_with_its_session_within_its_bytes() {
    let limits = Limits { time: Duration::from_millis(700), bytes: 1_000_000, ..Limits::default() };
    let (server, address) = serve(limits).await;
    let (control, cookie) = session(address).await;
    let mut loads = Vec::new();
    for flow in 0..4 {
        let mut load = TcpStream::connect(address).await.unwrap();
        let query = format!("/load?cookie={cookie}&direction=download&flow={flow}");
        load.write_all(upgrade(&query, "").as_bytes()).await.unwrap();
        loads.push(load);
    }
    let got = timeout(Duration::from_secs(3), async {
        sleep(Duration::from_millis(900)).await;
        let mut got = 0;
        for load in &mut loads {
            let mut bytes = vec![0; 1 << 20];
            while let Ok(count @ 1..) = load.read(&mut bytes).await {
                got += count;
            }
        }
        got
    });
    let got = got.await.expect("the session has ended");
    assert!(got <= 1_000_000 + (512 << 10), "{got}");
    assert_eq!(server.report().open, 0);
    drop(control);
}
