//! How a bond's sessions do, for people and for Prometheus.

use serde::{Deserialize, Serialize};
use suimon_service::Metrics;

use crate::client::Client;
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

type OfSession = fn(&SessionStatus) -> f64;
type OfPath = fn(&PathStatusView) -> Option<f64>;

/// Name, kind, meaning, value.
const SESSION_METRICS: [(&str, &str, &str, OfSession); 10] = [
    ("streams", "gauge", "Open streams.", |s| s.streams as f64),
    ("sessions_ended_total", "counter", "Sessions of a client that ended.", |s| s.ended as f64),
    ("sent_bytes_total", "counter", "Bytes of the aggregate sent.", |s| s.session.sent_bytes as f64),
    ("received_bytes_total", "counter", "Bytes received in order.", |s| s.session.received_bytes as f64),
    ("reorder_bytes", "gauge", "Bytes that wait for others, sent earlier.", |s| {
        s.session.reorder_bytes as f64
    }),
    ("duplicate_bytes_total", "counter", "Bytes that came twice.", |s| s.session.duplicate_bytes as f64),
    ("realtime_bytes_total", "counter", "Bytes of real-time and redundant flows sent.", |s| {
        s.session.realtime_bytes as f64
    }),
    ("copied_bytes_total", "counter", "Bytes that went over a second path too.", |s| {
        s.session.copied_bytes as f64
    }),
    ("streams_bytes", "gauge", "Bytes that streams hold.", |s| s.session.streams_bytes as f64),
    ("unacknowledged_bytes", "gauge", "Bytes kept until the other end has them.", |s| {
        s.session.unacknowledged_bytes as f64
    }),
];

const PATH_METRICS: [(&str, &str, &str, OfPath); 13] = [
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
    ("path_queue_seconds", "gauge", "Smoothed round-trip time beyond the least.", |p| {
        p.queue_ms.map(|ms| ms / 1e3)
    }),
    ("path_loss_ratio", "gauge", "Part of the segments sent again in the last five to ten seconds.", |p| {
        Some(p.loss)
    }),
    ("path_retransmitted_segments_total", "counter", "Segments sent again over this connection.", |p| {
        Some(p.retransmitted_segments as f64)
    }),
    ("path_connections_total", "counter", "Connections made over this path.", |p| Some(p.connections as f64)),
    ("path_stalled", "gauge", "1 where data is under way and none of it arrives.", |p| {
        Some(f64::from(u8::from(p.stalled)))
    }),
];

/// The sessions as Prometheus reads them.
#[must_use]
pub fn metrics(report: &Report) -> String {
    let mut out = Metrics::new("suimon_bond");
    let client = |session: &SessionReport| ("client", session.client.clone().unwrap_or_default());
    for (name, kind, help, value) in SESSION_METRICS {
        let samples = report.sessions.iter().map(|session| ([client(session)], value(&session.status)));
        out.add((name, kind, help), samples);
    }
    let paths: Vec<_> = (report.sessions.iter())
        .flat_map(|session| session.status.paths.iter().map(move |path| (session, path)))
        .collect();
    for (name, kind, help, value) in PATH_METRICS {
        let samples = paths.iter().filter_map(|(session, path)| {
            Some(([client(session), ("path", path.name.clone())], value(path)?))
        });
        out.add((name, kind, help), samples);
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_paths_are_escaped() {
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
}
