//! Answers to those who ask how a program does: a Unix socket for its `status` command, a page for Prometheus.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::descriptors::{accept, pause};

/// Where the program called `name` answers unless told otherwise.
#[must_use]
pub fn socket_path(name: &str) -> PathBuf {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(|| PathBuf::from("/run"), PathBuf::from);
    folder.join(format!("{name}.sock"))
}

/// Asks the process behind the socket at `path`.
///
/// # Errors
/// Where nobody answers there, or says something else.
pub async fn ask<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
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
pub async fn serve_status<T: Serialize>(listener: UnixListener, report: Arc<dyn Fn() -> T + Send + Sync>) {
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

/// The text of a page, made anew for each who asks.
pub type Page = Arc<dyn Fn() -> String + Send + Sync>;

/// Answers Prometheus with `metrics`, for ever.
pub async fn serve_metrics(listener: TcpListener, metrics: Page) {
    let mut answers = Answers::default();
    loop {
        let (socket, _) = accept(&listener).await;
        answers.begin(answer(socket, metrics.clone()));
    }
}

async fn answer(mut socket: TcpStream, metrics: Page) -> io::Result<()> {
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
        ("200 OK", metrics())
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
