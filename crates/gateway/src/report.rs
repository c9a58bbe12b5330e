//! How a gateway does, for people and for Prometheus.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use suimon_linux::tcp::{TcpState, tcp_state, unacknowledged};
use suimon_service::Metrics;
use suimon_units::{Bytes, Duration};

use crate::gateway::{Connection, Gateway};

/// The state of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Connections that were split since the start.
    pub split: u64,
    /// Connections that were not split, since their client or all clients had as many as they may.
    pub turned_away: u64,
    /// Connections whose server could not be reached.
    pub failed: u64,
    /// Bytes carried toward clients.
    pub to_radio_bytes: u64,
    /// Bytes carried toward servers.
    pub to_lan_bytes: u64,
    /// The clients that have connections.
    pub clients: Vec<ClientReport>,
}

/// One client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// Its address.
    pub client: String,
    /// Goodput toward it in the last second, in bits per second.
    pub to_radio_bps: u64,
    /// Goodput from it.
    pub to_lan_bps: u64,
    /// Bytes that the gateway holds for it: unacknowledged or unsent.
    pub held_bytes: u64,
    /// Bytes that wait at the radio: Σ flight · (1 − shortest round-trip time / round-trip time).
    pub queue_bytes: u64,
    /// Its connections, oldest first.
    pub connections: Vec<ConnectionReport>,
}

/// One connection, as the sender toward the client has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// The client's address and port.
    pub client: String,
    /// The server's.
    pub server: String,
    /// Seconds since it was split.
    pub open_s: f64,
    /// Goodput toward the client in the last second, in bits per second.
    pub to_radio_bps: u64,
    /// Goodput from it.
    pub to_lan_bps: u64,
    /// Bytes carried toward the client.
    pub to_radio_bytes: u64,
    /// Bytes carried from it.
    pub to_lan_bytes: u64,
    /// Smoothed round-trip time of the radio's side; none until measured.
    pub rtt_ms: Option<f64>,
    /// Its shortest of late.
    pub rtt_min_ms: Option<f64>,
    /// The same of the servers' side.
    pub lan_rtt_ms: Option<f64>,
    /// Congestion window toward the client.
    pub cwnd_bytes: u64,
    /// In flight toward the client.
    pub flight_bytes: u64,
    /// Bytes that the gateway holds for the client: unacknowledged or unsent.
    pub held_bytes: u64,
    /// Of those in flight, bytes that wait at the radio.
    pub queue_bytes: u64,
    /// Segments toward the client sent again.
    pub retransmitted_segments: u64,
}

fn read(value: &AtomicU64) -> u64 {
    value.load(Ordering::Relaxed)
}

/// Bytes of the flight that wait in a queue, by the round-trip times (Little's law; paper 1, Eq. 1).
fn queued(state: &TcpState) -> u64 {
    match (state.rtt_min, state.srtt) {
        (Some(least), Some(now)) if now > least => {
            let share = 1.0 - least.as_secs_f64() / now.as_secs_f64();
            (state.flight.get() as f64 * share) as u64
        }
        _ => 0,
    }
}

impl ConnectionReport {
    fn of(connection: &Connection) -> Self {
        let mut report = Self {
            client: connection.client.to_string(),
            server: connection.server.to_string(),
            open_s: connection.since.elapsed().as_secs_f64(),
            to_radio_bps: 8 * read(&connection.to_radio.in_last_second),
            to_lan_bps: 8 * read(&connection.to_lan.in_last_second),
            to_radio_bytes: read(&connection.to_radio.bytes),
            to_lan_bytes: read(&connection.to_lan.bytes),
            ..Self::default()
        };
        if let Ok(state) = tcp_state(&connection.radio) {
            report.rtt_ms = state.srtt.map(Duration::as_millis_f64);
            report.rtt_min_ms = state.rtt_min.map(Duration::as_millis_f64);
            report.cwnd_bytes = state.cwnd.get();
            report.flight_bytes = state.flight.get();
            report.queue_bytes = queued(&state);
            report.retransmitted_segments = state.retransmissions;
        }
        report.held_bytes = unacknowledged(&connection.radio).map_or(0, Bytes::get);
        let lan = tcp_state(&connection.lan).ok().and_then(|state| state.srtt);
        report.lan_rtt_ms = lan.map(Duration::as_millis_f64);
        report
    }
}

impl Gateway {
    /// The state of all connections.
    #[must_use]
    pub fn report(&self) -> Report {
        let totals = self.totals();
        let mut report = Report {
            split: read(&totals.split),
            turned_away: read(&totals.turned_away),
            failed: read(&totals.failed),
            to_radio_bytes: read(&totals.to_radio),
            to_lan_bytes: read(&totals.to_lan),
            clients: Vec::new(),
        };
        let mut clients: BTreeMap<_, ClientReport> = BTreeMap::new();
        for connection in self.connections() {
            let one = ConnectionReport::of(&connection);
            report.to_radio_bytes += one.to_radio_bytes;
            report.to_lan_bytes += one.to_lan_bytes;
            let client = clients.entry(connection.client.ip()).or_default();
            client.client = connection.client.ip().to_string();
            client.to_radio_bps += one.to_radio_bps;
            client.to_lan_bps += one.to_lan_bps;
            client.held_bytes += one.held_bytes;
            client.queue_bytes += one.queue_bytes;
            client.connections.push(one);
        }
        report.clients = clients.into_values().collect();
        report
    }
}

impl ClientReport {
    /// The mean round-trip time of its connections' radio side, in milliseconds; none before the first is measured.
    #[must_use]
    pub fn rtt_ms(&self) -> Option<f64> {
        let rtts: Vec<_> = self.connections.iter().filter_map(|one| one.rtt_ms).collect();
        (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64)
    }

    /// The shortest of late, in milliseconds.
    #[must_use]
    pub fn rtt_min_ms(&self) -> Option<f64> {
        self.connections.iter().filter_map(|one| one.rtt_min_ms).min_by(f64::total_cmp)
    }
}

type OfGateway = fn(&Report) -> u64;
type OfClient = fn(&ClientReport) -> Option<f64>;

/// Name, kind, meaning, value.
const GATEWAY_METRICS: [(&str, &str, &str, OfGateway); 6] = [
    ("connections", "gauge", "Open connections.", |r| {
        r.clients.iter().map(|client| client.connections.len() as u64).sum()
    }),
    ("split_total", "counter", "Connections that were split.", |r| r.split),
    ("turned_away_total", "counter", "Connections beyond a limit, not split.", |r| r.turned_away),
    ("failed_total", "counter", "Connections whose server could not be reached.", |r| r.failed),
    ("to_radio_bytes_total", "counter", "Bytes carried toward clients.", |r| r.to_radio_bytes),
    ("to_lan_bytes_total", "counter", "Bytes carried toward servers.", |r| r.to_lan_bytes),
];

const CLIENT_METRICS: [(&str, &str, &str, OfClient); 7] = [
    ("client_connections", "gauge", "Open connections of a client.", |c| Some(c.connections.len() as f64)),
    ("client_to_radio_bits_per_second", "gauge", "Goodput toward it over the last second.", |c| {
        Some(c.to_radio_bps as f64)
    }),
    ("client_to_lan_bits_per_second", "gauge", "Goodput from it over the last second.", |c| {
        Some(c.to_lan_bps as f64)
    }),
    ("client_held_bytes", "gauge", "Bytes held for it.", |c| Some(c.held_bytes as f64)),
    ("client_queue_bytes", "gauge", "Bytes that wait for it at the radio.", |c| Some(c.queue_bytes as f64)),
    ("client_rtt_seconds", "gauge", "Mean round-trip time of its connections.", |c| {
        c.rtt_ms().map(|ms| ms / 1e3)
    }),
    ("client_rtt_min_seconds", "gauge", "Their shortest of late.", |c| c.rtt_min_ms().map(|ms| ms / 1e3)),
];

/// The state as Prometheus reads it.
#[must_use]
pub fn metrics(report: &Report) -> String {
    let mut out = Metrics::new("suimon_gateway");
    for (name, kind, help, value) in GATEWAY_METRICS {
        out.add((name, kind, help), [([], value(report) as f64)]);
    }
    for (name, kind, help, value) in CLIENT_METRICS {
        let samples = (report.clients.iter())
            .filter_map(|client| Some(([("client", client.client.clone())], value(client)?)));
        out.add((name, kind, help), samples);
    }
    out.finish()
}
