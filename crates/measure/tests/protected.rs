//! Browsers that come by HTTPS, and the certificates that let them.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use suimon_measure::server::{Limits, Server, Tls};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const SOON: Duration = Duration::from_secs(5);

/// A certificate of the host `far` that signs itself, and its key, in files.
struct Made {
    folder: TempDir,
    roots: RootCertStore,
}

impl Made {
    fn new() -> Self {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["far".to_owned()]).unwrap();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("cert.pem"), cert.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        Self { folder, roots }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tls(&self) -> Tls {
        Tls::read(&self.path("cert.pem"), &self.path("key.pem")).unwrap()
    }

    /// A connection of a client that trusts nobody else.
    async fn connect(&self, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("far").unwrap();
        timeout(SOON, TlsConnector::from(Arc::new(config)).connect(name, stream)).await?
    }

    /// A connection that has become a WebSocket.
    async fn socket(&self, address: SocketAddr, path: &str) -> TlsStream<TcpStream> {
        let mut stream = self.connect(address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: far\r\nOrigin: https://far\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(SOON, stream.read_u8()).await.unwrap().unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        stream
    }
}

async fn serve(limits: Limits) -> (Server, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::new(limits, |_, _, _| Vec::new());
    tokio::spawn(server.clone().serve(listener));
    (server, address)
}

/// A short frame of the server.
async fn message(stream: &mut TlsStream<TcpStream>) -> Vec<u8> {
    let read = async {
        let [_, length] = [stream.read_u8().await.unwrap(), stream.read_u8().await.unwrap()];
        let mut payload = vec![0; usize::from(length)];
        stream.read_exact(&mut payload).await.unwrap();
        payload
    };
    timeout(SOON, read).await.expect("it answers")
}

/// Sends a probe, whose answer tells what has arrived of the loads.
async fn arrived(control: &mut TlsStream<TcpStream>) -> f64 {
    let mut question = vec![0x82, 0x80 | 24];
    question.extend([0; 4 + 24]);
    control.write_all(&question).await.unwrap();
    f64::from_le_bytes(message(control).await[16..].try_into().unwrap())
}

/// Sends probes until so much has arrived; what has in the end.
async fn has_arrived(control: &mut TlsStream<TcpStream>, least: f64) -> f64 {
    let begun = Instant::now();
    loop {
        match arrived(control).await {
            all if all >= least => return all,
            less => assert!(begun.elapsed() < SOON, "{less} of {least} bytes"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_and_its_websockets_go_over_tls_and_beside_it() {
    let made = Made::new();
    let (server, address) = serve(Limits::default()).await;
    server.protect(made.tls());
    let mut page = String::new();
    let mut stream = made.connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: far\r\n\r\n").await.unwrap();
    // The connection ends with the answer, and need not say so before.
    let _ = timeout(SOON, stream.read_to_string(&mut page)).await.unwrap();
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("</html>\n"), "{page}");
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: far\r\n\r\n").await.unwrap();
    let mut same = String::new();
    let _ = timeout(SOON, plain.read_to_string(&mut same)).await.unwrap();
    assert_eq!(same.split_once("\r\n\r\n").unwrap().1, page.split_once("\r\n\r\n").unwrap().1);

    let mut control = made.socket(address, "/session").await;
    let first = String::from_utf8(message(&mut control).await).unwrap();
    let cookie = first.split('"').find(|part| part.len() == 32).unwrap_or_else(|| panic!("{first}"));
    assert_eq!(arrived(&mut control).await, 0.0);
    let load = |way: &str| format!("/load?cookie={cookie}&direction={way}&flow=0");
    let mut download = made.socket(address, &load("download")).await;
    let mut bytes = vec![0; 1 << 20];
    timeout(SOON, download.read_exact(&mut bytes)).await.unwrap().unwrap();
    // A binary message of one frame (RFC 6455 §5.2).
    assert_eq!(bytes[..2], [0x82, 127]);
    has_arrived(&mut control, f64::from(1 << 20)).await;
    drop(download);
    let before = arrived(&mut control).await;
    let mut upload = made.socket(address, &load("upload")).await;
    upload.write_all(&bytes).await.unwrap();
    has_arrived(&mut control, before + f64::from(1 << 20)).await;
    assert_eq!((server.report().open, server.report().opened), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_takes_the_place_of_the_one_before() {
    let [old, new] = [Made::new(), Made::new()];
    let (server, address) = serve(Limits::default()).await;
    assert!(old.connect(address).await.is_err(), "no certificate yet");
    server.protect(old.tls());
    old.connect(address).await.unwrap();
    server.protect(new.tls());
    assert!(old.connect(address).await.is_err());
    new.connect(address).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_handshake_and_what_is_none_end() {
    let made = Made::new();
    let (server, address) = serve(Limits::default()).await;
    server.protect(made.tls());
    for (sent, most) in [
        (&[22, 3, 1, 0, 5, 1, 2, 3, 4, 5][..], Duration::from_secs(2)),
        // The head of a record, and no more.
        (&[22, 3, 1, 1, 0], Duration::from_secs(8)),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let mut said = Vec::new();
        let _ = timeout(most, stream.read_to_end(&mut said)).await.expect("it is left");
        assert!(said.len() < 20, "an alert at most: {said:?}");
    }
    made.connect(address).await.unwrap();
}

#[test]
fn a_certificate_of_no_use_is_refused_by_its_file_and_the_reason() {
    let [made, other] = [Made::new(), Made::new()];
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (name, text) in [("broken.pem", broken), ("locked.pem", locked), ("half.pem", &broken[..40])] {
        fs::write(made.path(name), text).unwrap();
    }
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| made.path(name));
    for (certificate, key, file, reason) in [
        (made.path("none"), key.clone(), "none", "No such file"),
        (key.clone(), key.clone(), "key.pem", "no certificate is in it; accepted: certificates as PEM"),
        (made.path("half.pem"), key.clone(), "half.pem", "missing section end"),
        (made.path("broken.pem"), key.clone(), "broken.pem", "invalid peer certificate"),
        (cert.clone(), made.path("none"), "none", "No such file"),
        (
            cert.clone(),
            cert.clone(),
            "cert.pem",
            "no private key is in it; accepted: a private key as PEM, without",
        ),
        (cert.clone(), made.path("locked.pem"), "locked.pem", "no private key is in it"),
        (cert.clone(), other.path("key.pem"), "key.pem", "it is not the key of the certificate in"),
    ] {
        let said = Tls::read(&certificate, &key).unwrap_err().to_string();
        assert!(said.contains(file) && said.contains(reason), "{file}, {reason}: {said}");
    }
    let both = [fs::read_to_string(&key).unwrap(), fs::read_to_string(&cert).unwrap()].concat();
    fs::write(made.path("both.pem"), both).unwrap();
    Tls::read(&made.path("both.pem"), &made.path("both.pem")).unwrap();
}
