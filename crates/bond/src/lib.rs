//! Real interfaces as one pipe: streams over several connections, one for each interface, each over TLS or QUIC.
//!
//! The protocol is a pure core without I/O: [`frame`] is the wire format of one connection, [`mux`] the streams
//! within the aggregate, [`session`] both of them over the aggregation that the simulator uses too. Around it
//! is a shell on tokio: [`Client`] keeps a connection over each interface, [`Server`] takes them in.

#![forbid(unsafe_code)]

mod admission;
mod bond;
mod classes;
mod client;
mod connection;
pub mod control;
mod datagrams;
mod descriptors;
mod driver;
mod failover;
pub mod frame;
mod interfaces;
pub mod keys;
mod local;
pub mod mux;
mod quic;
mod relay;
pub mod ring;
mod server;
pub mod session;
pub mod status;
mod tls;
mod trial;
mod tun;
mod udp;

pub use bond::ClassedPacket;
pub use classes::{Classes, Selector};
pub use client::{Client, ClientConfigBond, ServerEnd};
pub use connection::{Carrier, Carriers};
pub use interfaces::Via;
pub use local::{serve_forward, serve_socks};
pub use server::{Server, ServerConfigBond};
pub use suimon_quic::SenderConfig;
pub use tun::{Fail, Routes, Tunnel, TunnelError};
pub use udp::QuicDoor;
