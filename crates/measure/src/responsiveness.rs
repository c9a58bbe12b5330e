//! Responsiveness under working conditions, in round trips a minute (draft-ietf-ippm-responsiveness-08).
//!
//! Foreign probes are requests over new connections beside the load. There is no TLS and no HTTP/2 here, so the responsiveness is that
//! of the draft's case of TCP only, and the round-trip times of the load's own connections are those of TCP, which the draft
//! allows where requests cannot be multiplexed into them.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::clock::Clock;
use crate::recording::{Loaded, Span};

/// A request over a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignProbe {
    /// When the connection was asked for, in microseconds of the client's clock.
    pub sent_us: u64,
    /// How long it took to come about (`tcp_f` of the draft), in microseconds.
    pub tcp_us: u64,
    /// From the request to the end of its answer of one byte (`http_f`), in microseconds.
    pub http_us: u64,
}

/// Responsiveness of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Responsiveness {
    /// Round trips a minute: the mean of those below.
    pub rpm: f64,
    /// The same over new connections beside the load.
    pub foreign_rpm: f64,
    /// The same over the connections of the load.
    pub loaded_rpm: f64,
    /// Trimmed mean of the time that a connection takes to come about.
    pub tcp_f_ms: f64,
    /// Trimmed mean of the time of a request over it.
    pub http_f_ms: f64,
    /// Trimmed mean of the round-trip time of the load's connections.
    pub http_l_ms: f64,
    /// Requests over new connections.
    pub probes: usize,
}

/// Intervals of a second that count: the last ones of the load (MAD in "Test Parameters").
const LAST_US: u64 = 4_000_000;
/// The trimmed mean is that of the lowest so many (TMP).
const TRIMMED: f64 = 0.95;
/// Foreign probes take no more of the line than that (PTC), and that many bytes each.
const SHARE: f64 = 0.05;
const PROBE_BYTES: f64 = 1_000.0;
/// Between one foreign probe and the next, at least and at most.
const PACE: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(400)];
/// A probe that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(4);
/// The file of one byte.
pub(crate) const SMALL: &str = "/small";

impl Responsiveness {
    /// The responsiveness beside a load, where foreign probes came back in its last seconds.
    pub(crate) fn of(load: &Loaded, probes: &[ForeignProbe]) -> Option<Self> {
        let last =
            Span { from_us: load.span.to_us.saturating_sub(LAST_US).max(load.span.from_us), ..load.span };
        let foreign: Vec<_> = probes.iter().filter(|probe| last.has(probe.sent_us)).collect();
        let ms = |us: fn(&ForeignProbe) -> u64| foreign.iter().map(|probe| us(probe) as f64 / 1e3).collect();
        let tcp_f_ms = trimmed_mean(ms(|probe| probe.tcp_us))?;
        let http_f_ms = trimmed_mean(ms(|probe| probe.http_us))?;
        // The sender's clock is another one where it is the server; its last look is as late as the load.
        let end = load.sender.iter().map(|sample| sample.at_us).max()?;
        let of_load = load
            .sender
            .iter()
            .filter(|sample| sample.at_us.saturating_add(LAST_US) >= end && sample.srtt_us > 0);
        let http_l_ms = trimmed_mean(of_load.map(|sample| sample.srtt_us as f64 / 1e3).collect())?;
        // "For the TCP-Only Case".
        let foreign_rpm = 60_000.0 / f64::midpoint(tcp_f_ms, http_f_ms);
        let loaded_rpm = 60_000.0 / http_l_ms;
        let rpm = f64::midpoint(foreign_rpm, loaded_rpm);
        Some(Self { rpm, foreign_rpm, loaded_rpm, tcp_f_ms, http_f_ms, http_l_ms, probes: foreign.len() })
    }
}

/// The mean of the lowest 95 of 100.
fn trimmed_mean(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.truncate((values.len() as f64 * TRIMMED).ceil() as usize);
    let sum: f64 = values.iter().sum();
    (sum > 0.0).then(|| sum / values.len() as f64)
}

/// The pace of foreign probes on a line that carries `bps`.
pub(crate) fn pace(bps: f64) -> Duration {
    let seconds = PROBE_BYTES * 8.0 / (SHARE * bps.max(1.0));
    Duration::from_secs_f64(seconds.clamp(PACE[0].as_secs_f64(), PACE[1].as_secs_f64()))
}

/// Sends foreign probes to `server` for ever, at this pace; those that came back are in `done`.
pub(crate) async fn probe(
    server: SocketAddr,
    clock: Clock,
    pace: Duration,
    done: Arc<Mutex<Vec<ForeignProbe>>>,
) {
    let mut paces = interval(pace);
    paces.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        paces.tick().await;
        let done = Arc::clone(&done);
        tokio::spawn(async move {
            // What does not come back in time is no sample.
            if let Ok(Ok(probe)) = timeout(PATIENCE, ask(server, clock)).await {
                done.lock().expect("no one panics while holding it").push(probe);
            }
        });
    }
}

async fn ask(server: SocketAddr, clock: Clock) -> io::Result<ForeignProbe> {
    let socket = if server.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    let sent_us = clock.now_us();
    let begun = Instant::now();
    let mut stream = socket.connect(server).await?;
    let tcp_us = micros(begun.elapsed());
    stream.set_nodelay(true)?;
    let asked = Instant::now();
    stream.write_all(format!("GET {SMALL} HTTP/1.1\r\nHost: {server}\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(4_096).read_to_end(&mut answer).await?;
    if !answer.starts_with(b"HTTP/1.1 200") {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(ForeignProbe { sent_us, tcp_us, http_us: micros(asked.elapsed()) })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Sample;

    #[test]
    fn responsiveness_is_that_of_the_drafts_case_of_tcp_only() {
        let span = Span { from_us: 1_000_000, to_us: 11_000_000 };
        let sample = |nth: u64| Sample {
            // Before the last four seconds, it waited longer.
            srtt_us: if nth < 600 { 900_000 } else { 200_000 },
            at_us: 77_000_000 + nth * 10_000,
            ..Sample::default()
        };
        let load = Loaded { span, sender: (0..=1_000).map(sample).collect(), receiver: Vec::new() };
        let probe = |nth: u64| ForeignProbe {
            sent_us: 7_000_000 + nth * 100_000,
            // One of twenty is far off, and trimmed.
            tcp_us: if nth % 20 == 7 { 3_000_000 } else { 50_000 },
            http_us: 150_000,
        };
        let mut probes: Vec<_> = (0..40).map(probe).collect();
        probes.push(ForeignProbe { sent_us: 6_999_999, tcp_us: 1, http_us: 1 });
        let found = Responsiveness::of(&load, &probes).unwrap();
        assert_eq!(
            (found.probes, found.tcp_f_ms, found.http_f_ms, found.http_l_ms),
            (40, 50.0, 150.0, 200.0)
        );
        // 60000 / 100 and 60000 / 200.
        assert_eq!((found.foreign_rpm, found.loaded_rpm, found.rpm), (600.0, 300.0, 450.0));
        assert_eq!(Responsiveness::of(&load, &probes[40..]), None);
        assert_eq!(Responsiveness::of(&Loaded { sender: Vec::new(), ..load.clone() }, &probes), None);
        let never = Sample { at_us: u64::MAX, srtt_us: 300_000, ..Sample::default() };
        let found = Responsiveness::of(&Loaded { sender: vec![never], ..load }, &probes).unwrap();
        assert_eq!(found.http_l_ms, 300.0);
    }

    #[test]
    fn probes_take_a_twentieth_of_a_slow_line_at_most() {
        assert_eq!(pace(1e9), PACE[0]);
        assert_eq!(pace(0.0), PACE[1]);
        assert_eq!(pace(1.6e6), Duration::from_millis(100));
    }
}
