//! Two ends of a QUIC connection, as pure state machines: a server that sends without end, and a client that reads.

use std::time::Instant;

use suimon_algorithms::queue::Ecn;

/// One end of a connection.
pub(crate) trait Peer {
    /// The next datagram that leaves at `now`, with its ECN field.
    fn transmit(&mut self, now: Instant) -> Option<(Vec<u8>, Ecn)>;
    /// A datagram arrives.
    fn receive(&mut self, now: Instant, datagram: &[u8], ecn: Ecn);
    /// The time to call `on_timeout`.
    fn timeout(&mut self) -> Option<Instant>;
    /// That time has come.
    fn on_timeout(&mut self, now: Instant);
    /// Bytes of the stream that arrived in order.
    fn read(&self) -> u64;
}

/// What the server sends by.
#[derive(Debug, Clone)]
pub(crate) enum Control {
    /// The CUBIC that the stack brings along.
    StacksCubic,
    /// A sender of this project.
    Sender(suimon_quic::SenderConfig),
}

/// Bytes in flight that both ends have room for: more than any window here.
const WINDOW: u32 = 8 << 20;
const SERVER: &str = "192.0.2.1:443";
const CLIENT: &str = "192.0.2.2:50000";
/// The randomness of an endpoint: connection identifiers, skipped packet numbers.
const SEED: [u8; 32] = [7; 32];

/// TLS of both ends. The certificate's length does not change from run to run, so packets have the same sizes.
fn tls() -> (rustls::ServerConfig, rustls::ClientConfig) {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("the system has randomness");
    let mut params = rcgen::CertificateParams::new(vec!["far".to_owned()]).expect("a plain name");
    params.serial_number = Some(rcgen::SerialNumber::from(1));
    let certificate = params.self_signed(&key).expect("a key that was just made");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).expect("a certificate that was just made");
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let versions = [&rustls::version::TLS13];
    let provider = || std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions)
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("the certificate is of that key");
    let client = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions)
        .expect("ring has TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, client)
}

/// Both ends over one stack, whose crate is `$stack`. The calls that stacks of one descent have in common stand here; those
/// that differ are handed in.
macro_rules! peers {
    ($stack:ident, endpoint: $endpoint:expr, handle: $handle:expr, one: $one:expr, own: $own:ident) => {
        use std::sync::Arc;
        use std::time::Instant;

        use bytes::BytesMut;
        use suimon_algorithms::queue::Ecn;
        use $stack::congestion::{ControllerFactory, $own};
        use $stack::crypto::rustls::{QuicClientConfig, QuicServerConfig};
        use $stack::{
            ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
            EndpointConfig, ServerConfig, StreamId, Transmit, TransportConfig, VarInt,
        };

        use super::{CLIENT, Control, Peer, SEED, SERVER, WINDOW, tls};

        struct End {
            endpoint: Endpoint,
            connection: Option<(ConnectionHandle, Connection)>,
            stream: Option<StreamId>,
            read: u64,
            /// Answers of the endpoint itself.
            answers: Vec<Vec<u8>>,
            other: std::net::SocketAddr,
        }

        /// The server, which sends, and the client.
        pub(crate) fn pair(control: &Control, now: Instant) -> [Box<dyn Peer>; 2] {
            let (server_tls, client_tls) = tls();
            let factory: Arc<dyn ControllerFactory + Send + Sync> = match control {
                Control::StacksCubic => Arc::new($own::default()),
                Control::Sender(config) => Arc::new(config.clone()),
            };
            let mut transport = TransportConfig::default();
            transport
                .congestion_controller_factory(factory)
                .stream_receive_window(VarInt::from_u32(WINDOW))
                .receive_window(VarInt::from_u32(WINDOW))
                .send_window(u64::from(WINDOW));
            let transport = Arc::new(transport);
            let crypto = QuicServerConfig::try_from(server_tls).expect("ring has the first cipher");
            let mut server_config = ServerConfig::with_crypto(Arc::new(crypto));
            server_config.transport_config(transport.clone());
            let crypto = QuicClientConfig::try_from(client_tls).expect("ring has the first cipher");
            let mut client_config = ClientConfig::new(Arc::new(crypto));
            client_config.transport_config(transport);
            let mut config = EndpointConfig::default();
            config.rng_seed(Some(SEED));
            let config = Arc::new(config);
            let end = |endpoint, other: &str| End {
                endpoint,
                connection: None,
                stream: None,
                read: 0,
                answers: Vec::new(),
                other: other.parse().expect("an address"),
            };
            let server = end($endpoint(config.clone(), Some(Arc::new(server_config))), CLIENT);
            let mut client = end($endpoint(config, None), SERVER);
            let connected = client.endpoint.connect(now, client_config, client.other, "far");
            client.connection = Some(connected.expect("the first connection"));
            [Box::new(server), Box::new(client)]
        }

        impl End {
            /// Does what the program does: the server writes as much as it may, the client reads what came.
            fn work(&mut self) {
                let Some((_, connection)) = &mut self.connection else { return };
                // What is writable or readable is tried without being told.
                while connection.poll().is_some() {}
                if connection.is_handshaking() {
                    return;
                }
                if connection.side().is_server() {
                    self.stream = self.stream.or_else(|| connection.streams().open(Dir::Uni));
                    if let Some(stream) = self.stream {
                        let mut stream = connection.send_stream(stream);
                        while stream.write(&[0; 16_384]).is_ok() {}
                    }
                } else {
                    self.stream = self.stream.or_else(|| connection.streams().accept(Dir::Uni));
                    if let Some(stream) = self.stream {
                        let mut stream = connection.recv_stream(stream);
                        let mut chunks = stream.read(true).expect("nobody else reads it");
                        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                            self.read += chunk.bytes.len() as u64;
                        }
                        // The credit that it gives goes out with the next datagrams.
                        let _ = chunks.finalize();
                    }
                }
            }

            /// Passes what the connection tells its endpoint, and the other way round.
            fn exchange(&mut self) {
                let Some((handle, connection)) = &mut self.connection else { return };
                while let Some(event) = connection.poll_endpoint_events() {
                    if let Some(event) = self.endpoint.handle_event(*handle, event) {
                        connection.handle_event(event);
                    }
                }
            }

            fn answer(&mut self, buffer: &[u8], transmit: &Transmit) {
                self.answers.push(buffer[..transmit.size].to_vec());
            }
        }

        impl Peer for End {
            fn transmit(&mut self, now: Instant) -> Option<(Vec<u8>, Ecn)> {
                if let Some(answer) = self.answers.pop() {
                    return Some((answer, Ecn::NotCapable));
                }
                self.work();
                self.exchange();
                let (_, connection) = self.connection.as_mut()?;
                let mut buffer = Vec::new();
                let transmit = connection.poll_transmit(now, $one, &mut buffer)?;
                buffer.truncate(transmit.size);
                let ecn = match transmit.ecn {
                    None => Ecn::NotCapable,
                    Some(EcnCodepoint::Ect0) => Ecn::Capable,
                    Some(EcnCodepoint::Ect1) => Ecn::L4s,
                    Some(EcnCodepoint::Ce) => Ecn::CongestionExperienced,
                };
                Some((buffer, ecn))
            }

            fn receive(&mut self, now: Instant, datagram: &[u8], ecn: Ecn) {
                let ecn = match ecn {
                    Ecn::NotCapable => None,
                    Ecn::Capable => Some(EcnCodepoint::Ect0),
                    Ecn::L4s => Some(EcnCodepoint::Ect1),
                    Ecn::CongestionExperienced => Some(EcnCodepoint::Ce),
                };
                let mut buffer = Vec::new();
                let event =
                    $handle(&mut self.endpoint, now, self.other, ecn, BytesMut::from(datagram), &mut buffer);
                match event {
                    Some(DatagramEvent::ConnectionEvent(_, event)) => {
                        if let Some((_, connection)) = &mut self.connection {
                            connection.handle_event(event);
                        }
                    }
                    Some(DatagramEvent::NewConnection(incoming)) => {
                        match self.endpoint.accept(incoming, now, &mut buffer, None) {
                            Ok(accepted) => self.connection = Some(accepted),
                            Err(refused) => {
                                if let Some(transmit) = &refused.response {
                                    self.answer(&buffer, transmit);
                                }
                            }
                        }
                    }
                    Some(DatagramEvent::Response(transmit)) => self.answer(&buffer, &transmit),
                    None => {}
                }
                self.exchange();
            }

            fn timeout(&mut self) -> Option<Instant> {
                self.connection.as_mut()?.1.poll_timeout()
            }

            fn on_timeout(&mut self, now: Instant) {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_timeout(now);
                }
                self.exchange();
            }

            fn read(&self) -> u64 {
                self.read
            }
        }
    };
}

pub(crate) mod quinn {
    peers!(
        quinn_proto,
        endpoint: |config, server| Endpoint::new(config, server, true, None),
        handle: |end: &mut Endpoint, now, other, ecn, data, out| end.handle(now, other, None, ecn, data, out),
        one: 1,
        own: CubicConfig
    );
}

pub(crate) mod noq {
    use noq_proto::FourTuple;

    peers!(
        noq_proto,
        endpoint: |config, server| Endpoint::new(config, server, true),
        handle: |end: &mut Endpoint, now, other, ecn, data, out| {
            end.handle(now, FourTuple::new(other, None), ecn, data, out)
        },
        one: std::num::NonZeroUsize::MIN,
        own: CubicConfig
    );
}
