//! Identities: Ed25519 keys, pinned at both ends, and TLS 1.3 with raw public keys (RFC 7250) and nothing else.

use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
};

/// A public key: who an end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

/// A private key: the proof of it.
#[derive(Clone)]
pub struct PrivateKey {
    pkcs8: Vec<u8>,
    public: PublicKey,
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public)
    }
}

/// The reason that a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file cannot be read or written.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault, in words.
        problem: String,
    },
    /// A text is no public key.
    #[error("{0:?} is no public key: those are 44 characters, as `suimon bond keygen` prints them")]
    Text(String),
    /// The system has no randomness, or the library refuses the key.
    #[error("cannot make a key: {0}")]
    Make(String),
}

/// What a server that was restarted has in common with the one before, so that it can tell clients that it has lost their QUIC
/// connections (RFC 9000 §10.3).
#[derive(Clone)]
pub struct ResetSecret {
    /// The key of the tokens by which it proves this.
    pub(crate) token: [u8; 32],
    /// The key by which it knows identifiers of its connections.
    pub(crate) identifiers: u64,
}

impl fmt::Debug for ResetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetSecret")
    }
}

/// The first bytes of every Ed25519 public key as a SubjectPublicKeyInfo (RFC 8410 §4).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PEM_HEAD: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_FOOT: &str = "-----END PRIVATE KEY-----";

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| KeyError::Text(text.to_owned()))
    }
}

impl PublicKey {
    fn spki(self) -> Vec<u8> {
        [&SPKI_HEAD[..], &self.0].concat()
    }

    fn of_spki(spki: &[u8]) -> Option<Self> {
        spki.strip_prefix(&SPKI_HEAD)?.try_into().ok().map(Self)
    }

    /// The keys in `path`: one a line; text behind a key is for people, as are lines that begin with `#`.
    ///
    /// # Errors
    /// Where the file cannot be read or a line begins with something else.
    pub fn read_list(path: &Path) -> Result<Vec<Self>, KeyError> {
        let file = |problem: String| KeyError::File { path: path.to_owned(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| file(error.to_string()))?;
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let word = line.split_whitespace().next().filter(|word| !word.starts_with('#'));
            if let Some(word) = word {
                keys.push(word.parse().map_err(|error| file(format!("line {}: {error}", number + 1)))?);
            }
        }
        Ok(keys)
    }
}

impl PrivateKey {
    /// A new key.
    ///
    /// # Errors
    /// Where the system has no randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let pkcs8 = pkcs8.map_err(|_| KeyError::Make("the system gives no random numbers".into()))?;
        Self::of_pkcs8(pkcs8.as_ref().to_vec()).map_err(KeyError::Make)
    }

    fn of_pkcs8(pkcs8: Vec<u8>) -> Result<Self, String> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8).map_err(|error| error.to_string())?;
        let public = pair.public_key().as_ref().try_into().map_err(|_| "no Ed25519 key".to_owned())?;
        Ok(Self { pkcs8, public: PublicKey(public) })
    }

    /// The public half of the key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// What only the holder of this key can know, the same at each start.
    #[must_use]
    pub fn reset_secret(&self) -> ResetSecret {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.pkcs8);
        let derive = |purpose: &str| hmac::sign(&key, purpose.as_bytes());
        let (token, identifiers) = (derive("suimon-bond reset token"), derive("suimon-bond identifiers"));
        let token = token.as_ref().try_into().expect("SHA-256 gives 32 bytes");
        let identifiers = identifiers.as_ref().first_chunk().expect("SHA-256 gives more than 8 bytes");
        ResetSecret { token, identifiers: u64::from_be_bytes(*identifiers) }
    }

    /// Writes it to a new file that only its owner may read.
    ///
    /// # Errors
    /// Where the file is there already or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        let fail = |error: std::io::Error| KeyError::File {
            path: path.to_owned(),
            problem: match error.kind() {
                std::io::ErrorKind::AlreadyExists => "is there already; a key is not overwritten".into(),
                _ => error.to_string(),
            },
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // For its owner alone, without a name until it is whole: a full disk leaves nothing.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
        writeln!(file, "{PEM_HEAD}\n{}\n{PEM_FOOT}", STANDARD.encode(&self.pkcs8)).map_err(fail)?;
        file.as_file().sync_all().map_err(fail)?;
        file.persist_noclobber(path).map(drop).map_err(|refused| fail(refused.error))
    }

    /// Reads it from a file that only its owner may read.
    ///
    /// # Errors
    /// Where the file cannot be read, is open to others, or holds something else.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let file = |problem: String| KeyError::File { path: path.to_owned(), problem };
        let metadata = std::fs::metadata(path)
            .map_err(|error| file(format!("{error}; `suimon bond keygen {}` makes a key", path.display())))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(file("others may read this private key: chmod 600 it".into()));
        }
        let text = std::fs::read_to_string(path).map_err(|error| file(error.to_string()))?;
        let inside = text.trim().strip_prefix(PEM_HEAD).and_then(|rest| rest.strip_suffix(PEM_FOOT));
        let base64: String =
            inside.ok_or_else(|| file("holds no private key in PEM".into()))?.split_whitespace().collect();
        let pkcs8 = STANDARD.decode(base64).map_err(|error| file(format!("holds no key: {error}")))?;
        Self::of_pkcs8(pkcs8).map_err(|error| file(format!("holds no Ed25519 key: {error}")))
    }

    fn certified(&self) -> Result<Arc<CertifiedKey>, KeyError> {
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.pkcs8.clone()));
        let signing = provider().key_provider.load_private_key(der);
        let signing = signing.map_err(|error| KeyError::Make(error.to_string()))?;
        let public = CertificateDer::from(self.public.spki());
        Ok(Arc::new(CertifiedKey::new(vec![public], signing)))
    }
}

/// Both ends speak this version of the protocol and no other ([`VERSION`](crate::frame::VERSION)).
const ALPN: &[u8] = b"suimon-bond/3";

/// What a client says as the server's name, which TLS and QUIC want and nobody looks at: the key says who it is.
pub(crate) const SERVER_NAME: &str = "suimon-bond";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The keys of those who may come, which may change meanwhile.
#[derive(Debug, Clone, Default)]
pub struct AuthorizedKeys(Arc<RwLock<HashSet<PublicKey>>>);

impl AuthorizedKeys {
    /// From now on these may come and no others.
    pub(crate) fn set(&self, keys: impl IntoIterator<Item = PublicKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys.into_iter().collect();
    }

    /// Whether the holder of `key` may come.
    pub(crate) fn contains(&self, key: PublicKey) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }
}

impl FromIterator<PublicKey> for AuthorizedKeys {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        Self(Arc::new(RwLock::new(keys.into_iter().collect())))
    }
}

/// TLS of a server with `key` that takes in `clients`.
///
/// # Errors
/// Where the library refuses the key.
pub fn server_config(key: &PrivateKey, clients: &AuthorizedKeys) -> Result<ServerConfig, KeyError> {
    let verifier = Arc::new(Pinned { keys: clients.clone() });
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| KeyError::Make(error.to_string()))?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key.certified()?)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Nothing is resumed, so nothing of an earlier handshake can be replayed.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Ok(config)
}

/// TLS of a client with `key` that speaks with `server` only.
///
/// # Errors
/// Where the library refuses the key.
pub fn client_config(key: &PrivateKey, server: PublicKey) -> Result<ClientConfig, KeyError> {
    let verifier = Arc::new(Pinned { keys: [server].into_iter().collect() });
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| KeyError::Make(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key.certified()?)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

/// The other end's key, once TLS has verified it.
pub(crate) fn peer_key(certificates: Option<&[CertificateDer<'_>]>) -> Option<PublicKey> {
    PublicKey::of_spki(certificates?.first()?)
}

/// Takes these keys and no others.
#[derive(Debug)]
struct Pinned {
    keys: AuthorizedKeys,
}

impl Pinned {
    fn check(&self, end_entity: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        match PublicKey::of_spki(end_entity) {
            Some(key) if self.keys.contains(key) => Ok(()),
            Some(key) => Err(rustls::Error::General(format!("unknown key {key}"))),
            None => Err(CertificateError::BadEncoding.into()),
        }
    }
}

/// The common part of both verifiers: signatures of TLS 1.3 by raw Ed25519 keys, and nothing else.
macro_rules! raw_keys_only {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _certificate: &CertificateDer<'_>,
            _signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(rustls::Error::General("TLS 1.2 is not spoken".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let key = SubjectPublicKeyInfoDer::from(certificate.as_ref());
            let schemes = provider().signature_verification_algorithms;
            verify_tls13_signature_with_raw_key(message, &key, signed, &schemes)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    raw_keys_only!();
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    raw_keys_only!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.key");
        let key = PrivateKey::generate().unwrap();
        key.write(&path).unwrap();
        assert_eq!(PrivateKey::read(&path).unwrap().public(), key.public());
        assert_eq!(key.public().to_string().parse::<PublicKey>().unwrap(), key.public());
        assert!(key.write(&path).unwrap_err().to_string().contains("not overwritten"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        assert!(key.write(Path::new("/dev/full/x")).is_err());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(PrivateKey::read(&path).unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn a_list_of_keys_names_the_line_that_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients");
        let key = PrivateKey::generate().unwrap().public();
        std::fs::write(&path, format!("# vans\n{key} van 1\n\n")).unwrap();
        assert_eq!(PublicKey::read_list(&path).unwrap(), [key]);
        std::fs::write(&path, format!("{key}\nvan 2\n")).unwrap();
        assert!(
            PublicKey::read_list(&path).unwrap_err().to_string().contains("line 2: \"van\" is no public key")
        );
    }
}
