//! Answers to those who ask how it goes: a Unix socket for `suimon bond status`, a page for Prometheus.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::client::Client;
use crate::descriptors::{accept, pause};
use crate::server::Server;
use crate::status::{PathStatusView, SessionStatus};

/// The status of a program's sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// `client` or `server`.
    pub role: String,
    /// Sessions: one for a client.
    pub sessions: Vec<SessionReport>,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// The client's public key, for a server.
    pub client: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub status: SessionStatus,
}

impl Client {
    /// The status of the session.
    #[must_use]
    pub fn report(&self) -> Report {
        let session = SessionReport { client: None, status: self.status() };
        Report { role: "client".to_owned(), sessions: vec![session] }
    }
}

impl Server {
    /// The status of all sessions.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut sessions: Vec<_> = (self.status().into_iter())
            .map(|(key, status)| SessionReport { client: Some(key.to_string()), status })
            .collect();
        sessions.sort_by(|a, b| a.client.cmp(&b.client));
        Report { role: "server".to_owned(), sessions }
    }
}

/// Asks the process behind the socket at `path`.
///
/// # Errors
/// Where nobody answers there, or says something else.
pub async fn ask(path: &Path) -> io::Result<Report> {
    let mut socket = UnixStream::connect(path).await?;
    let mut text = Vec::new();
    timeout(ANSWER_TIMEOUT, socket.read_to_end(&mut text)).await??;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

/// Makes the socket at `path`, for its owner only; one that nobody serves any more is replaced.
///
/// # Errors
/// Where somebody serves it, something else is there, or the folder cannot be written.
pub async fn listen(path: &Path) -> io::Result<UnixListener> {
    if UnixStream::connect(path).await.is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process serves it"));
    }
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => {
            let problem = "is there and is no socket; accepted: a new name, or a socket that nobody serves";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers under way. Where too many are, the one that takes longest makes room, so that nobody keeps others from asking.
#[derive(Debug, Default)]
struct Answers(VecDeque<AbortHandle>);

impl Answers {
    fn begin(&mut self, answer: impl Future<Output = io::Result<()>> + Send + 'static) {
        self.0.retain(|other| !other.is_finished());
        if self.0.len() >= ANSWERS
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(tokio::spawn(timeout(ANSWER_TIMEOUT, answer)).abort_handle());
    }
}

/// Answers [`ask`], for ever.
pub async fn serve_status(listener: UnixListener, report: Arc<dyn Fn() -> Report + Send + Sync>) {
    let mut answers = Answers::default();
    loop {
        match listener.accept().await {
            Ok((mut socket, _)) => {
                let text = serde_json::to_vec(&report()).expect("plain data");
                answers.begin(async move { socket.write_all(&text).await });
            }
            Err(error) => pause(&error).await,
        }
    }
}

/// Answers Prometheus, for ever.
pub async fn serve_metrics(listener: TcpListener, report: Arc<dyn Fn() -> Report + Send + Sync>) {
    let mut answers = Answers::default();
    loop {
        let (socket, _) = accept(&listener).await;
        answers.begin(answer(socket, report.clone()));
    }
}

async fn answer(mut socket: TcpStream, report: Arc<dyn Fn() -> Report + Send + Sync>) -> io::Result<()> {
    let mut request = vec![0; 4096];
    let mut read = 0;
    while !request[..read].windows(4).any(|end| end == b"\r\n\r\n") && read < request.len() {
        let count = socket.read(&mut request[read..]).await?;
        if count == 0 {
            return Ok(());
        }
        read += count;
    }
    let request = String::from_utf8_lossy(&request[..read]);
    let (status, body) = if !names_this_host(&request) {
        // A page from elsewhere, whose name leads here, must not read on.
        ("421 Misdirected Request", "ask by an address or as localhost\n".to_owned())
    } else if request.starts_with("GET /metrics ") {
        ("200 OK", metrics(&report()))
    } else {
        ("404 Not Found", "see /metrics\n".to_owned())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body.as_bytes()).await?;
    socket.shutdown().await
}

/// Whether the request's Host is an address or localhost, rather than a name that somebody else gave to this host.
fn names_this_host(request: &str) -> bool {
    let field = |line: &str| {
        line.split_once(':')
            .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
            .map(|(_, host)| host.trim().to_owned())
    };
    let Some(host) = request.lines().skip(1).find_map(field) else { return false };
    let name = host.strip_prefix("localhost").is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    name || host.parse::<SocketAddr>().is_ok() || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

/// The value of a label, as Prometheus reads it.
fn label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

type OfSession = fn(&SessionStatus) -> f64;
type OfPath = fn(&PathStatusView) -> Option<f64>;

/// Name, kind, meaning, value.
const SESSION_METRICS: [(&str, &str, &str, OfSession); 8] = [
    ("streams", "gauge", "Open streams.", |s| s.streams as f64),
    ("sessions_ended_total", "counter", "Sessions of a client that ended.", |s| s.ended as f64),
    ("sent_bytes_total", "counter", "Bytes of the aggregate sent.", |s| s.session.sent_bytes as f64),
    ("received_bytes_total", "counter", "Bytes received in order.", |s| s.session.received_bytes as f64),
    ("reorder_bytes", "gauge", "Bytes that wait for others, sent earlier.", |s| {
        s.session.reorder_bytes as f64
    }),
    ("duplicate_bytes_total", "counter", "Bytes that came twice.", |s| s.session.duplicate_bytes as f64),
    ("streams_bytes", "gauge", "Bytes that streams hold.", |s| s.session.streams_bytes as f64),
    ("unacknowledged_bytes", "gauge", "Bytes kept until the other end has them.", |s| {
        s.session.unacknowledged_bytes as f64
    }),
];

const PATH_METRICS: [(&str, &str, &str, OfPath); 11] = [
    ("path_sent_bytes_total", "counter", "Bytes delivered over this connection.", |p| {
        Some(p.sent_bytes as f64)
    }),
    ("path_received_bytes_total", "counter", "Bytes that came over it.", |p| Some(p.received_bytes as f64)),
    ("path_sent_bits_per_second", "gauge", "Goodput out over the last half second.", |p| {
        Some(p.sent_bps as f64)
    }),
    ("path_received_bits_per_second", "gauge", "Goodput in over the last half second.", |p| {
        Some(p.received_bps as f64)
    }),
    ("path_send_buffer_bytes", "gauge", "Bytes in the kernel's send buffer.", |p| {
        Some(p.buffered_bytes as f64)
    }),
    ("path_unsent_bytes", "gauge", "Of these, bytes never sent.", |p| Some(p.unsent_bytes as f64)),
    ("path_congestion_window_bytes", "gauge", "Congestion window.", |p| Some(p.cwnd_bytes as f64)),
    ("path_rtt_seconds", "gauge", "Smoothed round-trip time.", |p| p.rtt_ms.map(|ms| ms / 1e3)),
    ("path_retransmitted_segments_total", "counter", "Segments sent again over this connection.", |p| {
        Some(p.retransmitted_segments as f64)
    }),
    ("path_connections_total", "counter", "Connections made over this path.", |p| Some(p.connections as f64)),
    ("path_stalled", "gauge", "1 where data is under way and none of it arrives.", |p| {
        Some(f64::from(u8::from(p.stalled)))
    }),
];

fn metrics(report: &Report) -> String {
    let mut out = String::new();
    let head = |out: &mut String, name: &str, kind: &str, help: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP suimon_bond_{name} {help}\n# TYPE suimon_bond_{name} {kind}");
    };
    let client = |session: &SessionReport| session.client.clone().unwrap_or_default();
    for (name, kind, help, value) in SESSION_METRICS {
        head(&mut out, name, kind, help);
        for session in &report.sessions {
            let _ = writeln!(
                out,
                "suimon_bond_{name}{{client=\"{}\"}} {}",
                client(session),
                value(&session.status)
            );
        }
    }
    for (name, kind, help, value) in PATH_METRICS {
        head(&mut out, name, kind, help);
        for session in &report.sessions {
            for path in &session.status.paths {
                if let Some(value) = value(path) {
                    let labels = format!("client=\"{}\",path=\"{}\"", client(session), label(&path.name));
                    let _ = writeln!(out, "suimon_bond_{name}{{{labels}}} {value}");
                }
            }
        }
    }
    out
}

/// Whoever reads more slowly is left.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Answers under way at once.
const ANSWERS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_no_socket_stays_and_a_socket_that_nobody_serves_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        std::fs::write(&file, "dear").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            let refused = listen(path).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{refused}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "dear");
        let socket = folder.path().join("socket");
        drop(listen(&socket).await.unwrap());
        let served = listen(&socket).await.unwrap();
        assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(listen(&socket).await.is_err(), "somebody serves it");
        drop(served);
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
        let session = SessionStatus {
            paths: vec![PathStatusView { name: "x\"} 1\n".to_owned(), ..PathStatusView::default() }],
            ..SessionStatus::default()
        };
        let report = Report {
            role: "server".to_owned(),
            sessions: vec![SessionReport { client: None, status: session }],
        };
        let text = metrics(&report);
        assert!(text.contains("path=\"x\\\"} 1\\n\"} 0"), "{text}");
    }

    #[test]
    fn only_requests_that_name_this_host_are_answered() {
        let request = |host: &str| format!("GET /metrics HTTP/1.1\r\nAccept: */*\r\nhost: {host}\r\n\r\n");
        for host in ["127.0.0.1:9464", "localhost", "localhost:9464", "[::1]:9464", "[::1]", "127.0.0.1"] {
            assert!(names_this_host(&request(host)), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:9464", ""] {
            assert!(!names_this_host(&request(host)), "{host}");
        }
        assert!(!names_this_host("GET /metrics HTTP/1.0\r\n\r\n"));
    }
}
