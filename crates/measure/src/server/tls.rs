//! The certificate by which browsers know this server.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A certificate with its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why a certificate is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of the certificate.
    #[error("{}: {reason}; accepted: certificates as PEM, the server's first and those that sign it behind", .file.display())]
    Certificate {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file of the key.
    #[error("{}: {reason}; accepted: a private key as PEM, without a password", .file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// They do not belong together.
    #[error("{}: it is not the key of the certificate in {}", .key.display(), .certificate.display())]
    OtherKey {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
}

impl Tls {
    /// Reads a certificate, with those that sign it, and its private key; both are PEM (RFC 7468), and may be in one file.
    ///
    /// # Errors
    /// Where a file does not read, holds none, or both do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let bad_certificate = |reason| TlsError::Certificate { file: certificate.to_owned(), reason };
        let bad_key = |reason| TlsError::Key { file: key.to_owned(), reason };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain = chain.map_err(|error| bad_certificate(said(&error)))?;
        if chain.is_empty() {
            return Err(bad_certificate("no certificate is in it".to_owned()));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| bad_key(said(&error)))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = provider.key_provider.load_private_key(private);
        let certified = CertifiedKey::new(chain, private.map_err(|error| bad_key(error.to_string()))?);
        certified.keys_match().map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                TlsError::OtherKey { key: key.to_owned(), certificate: certificate.to_owned() }
            }
            other => bad_certificate(other.to_string()),
        })?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has ciphers of TLS 1.3")
            .with_no_client_auth();
        let mut config = config.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        // A WebSocket begins as HTTP/1.1 (RFC 6455 §1.3).
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config).into()))
    }

    /// Protects a connection whose other end begins a handshake.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

fn said(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "no private key is in it".to_owned(),
        other => other.to_string(),
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Tls").finish_non_exhaustive()
    }
}
