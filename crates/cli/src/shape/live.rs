//! A shaper at a device, for as long as the command runs.

use std::io::{self, IsTerminal, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration as Time, Instant as Clock, SystemTime};

use serde::Serialize;
use suimon_algorithms::estimate::round_trips::{Backward, Forward, Passed, RoundTrips};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_algorithms::shaper::{Observed, RateController};
use suimon_capture::read_packet;
use suimon_linux::congestion::on_host;
use suimon_linux::packets::{Packets, Passing};
use suimon_linux::queue::{self, Options, ShapedDevice};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::error::CliError;
use crate::plain_table::clear_terminal;
use crate::queue::{policy_of, random_seed, until_signal};

/// What the user asked for.
pub(super) struct Request<'a> {
    pub(super) device: &'a str,
    pub(super) controller: &'a str,
    pub(super) policy: &'a str,
    pub(super) seconds: Option<u64>,
    pub(super) json: bool,
    pub(super) view: bool,
}

/// What the shaper believes, and why.
#[derive(Debug, Clone, Serialize)]
struct Belief {
    device: String,
    rate_mbps: f64,
    delivered_mbps: f64,
    bottleneck_wait_ms: f64,
    base_rtt_ms: Option<f64>,
    rtt_ms: Option<f64>,
    flows: u32,
    in_flight_bytes: u64,
    backlog_bytes: u64,
    marks: u64,
    drops: u64,
    /// Packets of several segments that were judged as one.
    super_packets: u64,
    because: String,
}

/// Room for packets that wait, in whichever time they leave: as in the simulation.
const ROOM: Bytes = Bytes::new(1_000_000);
/// Connections that are followed.
const PLACES: usize = 4_096;
/// How often it tells what it believes.
const TOLD_EVERY: Time = Time::from_secs(1);

/// Shapes the device until the process is told to stop.
pub(super) fn run(request: &Request<'_>) -> Result<(), CliError> {
    let stop = until_signal()?;
    on_host(|| shape(request, &stop))
}

fn shape(request: &Request<'_>, stop: &AtomicBool) -> Result<(), CliError> {
    let refuse = |error: &dyn std::fmt::Display| CliError::Input(error.to_string());
    let spec = AlgorithmSpec::parse(Role::Shaper, request.controller).map_err(|error| refuse(&error))?;
    let mut controller = spec.build_shaper();
    let rate = controller.initial();
    let (policy, settings) = policy_of(request.policy, rate, ROOM, random_seed()?)?;
    let mut packets = Packets::of(request.device)?;
    let status = Status::begin(request.device)?;
    // What a process that was killed together with its guard has left.
    queue::end_shaping(request.device);
    let guard = Guard::begin(request.device)?;
    let device = queue::shape(
        policy,
        &Options {
            device: request.device.to_owned(),
            rate,
            buffer: ROOM,
            in_front_of: false,
            incoming: false,
            settings,
        },
    )?;
    let mut shaper = Shaper {
        controller: &mut *controller,
        device,
        trips: RoundTrips::new(PLACES),
        rate,
        before: now(),
        last: Passed::default(),
    };
    let begun = Clock::now();
    let mut told = begun;
    let ends = || {
        let is_over = request.seconds.is_some_and(|seconds| begun.elapsed() >= Time::from_secs(seconds));
        is_over || stop.load(Ordering::Relaxed)
    };
    while !ends() {
        shaper.advance(&mut packets)?;
        if told.elapsed() >= TOLD_EVERY {
            told = Clock::now();
            let belief = shaper.belief(request.device)?;
            tell(&belief, request)?;
            status.tell(belief);
        }
    }
    drop(shaper);
    guard.release();
    Ok(())
}

/// A controller at work.
struct Shaper<'a> {
    controller: &'a mut dyn RateController,
    device: ShapedDevice,
    trips: RoundTrips,
    rate: Rate,
    before: Instant,
    /// What passed in the last interval.
    last: Passed,
}

/// The clock that packets' times are of.
fn now() -> Instant {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

impl Shaper<'_> {
    /// Follows packets for an interval, and then chooses the rate.
    fn advance(&mut self, packets: &mut Packets) -> Result<(), CliError> {
        let until = self.before + self.controller.interval();
        loop {
            let left = until.saturating_since(now());
            if left == Duration::ZERO {
                break;
            }
            packets.wait(left, &mut |packet| follow(&mut self.trips, packet))?;
        }
        let now = now();
        let passed = self.trips.take(now);
        self.rate = self.controller.on_interval(&Observed {
            now,
            elapsed: now.saturating_since(std::mem::replace(&mut self.before, now)),
            sent: passed.sent,
            delivered: passed.delivered,
            in_flight: passed.in_flight,
            unacknowledged: passed.unacknowledged,
            base_rtt: passed.base_rtt,
            rtt: passed.rtt,
            probe_rtt: None,
        });
        self.last = passed;
        Ok(self.device.set_rate(self.rate)?)
    }

    fn belief(&self, device: &str) -> Result<Belief, CliError> {
        let mut values: Vec<(&'static str, f64)> = Vec::new();
        self.controller.probe(&mut values);
        let value = |name| values.iter().find(|(each, _)| *each == name).map_or(0.0, |(_, value)| *value);
        let ms = |time: Option<Duration>| time.map(Duration::as_millis_f64);
        let counts = self.device.counts()?;
        let Passed { base_rtt, rtt, flows, in_flight, .. } = self.last;
        let (delivered, wait) = (value("delivery_bps") / 1e6, value("bottleneck_wait_ms"));
        let rate_mbps = self.rate.as_bps_f64() / 1e6;
        let because = match base_rtt {
            None => "no TCP packet with data was acknowledged yet, so nothing is limited".to_owned(),
            _ if flows == 0 => "nothing is in flight, so the rate stays".to_owned(),
            _ if rate_mbps > delivered => {
                format!("packets wait {wait:.0} ms at the bottleneck, less than may: more")
            }
            _ => format!("packets wait {wait:.0} ms at the bottleneck, more than may: less than arrives"),
        };
        Ok(Belief {
            device: device.to_owned(),
            rate_mbps,
            delivered_mbps: if delivered.is_finite() { delivered } else { 0.0 },
            bottleneck_wait_ms: wait,
            base_rtt_ms: ms(base_rtt),
            rtt_ms: ms(rtt),
            flows,
            in_flight_bytes: in_flight.get(),
            backlog_bytes: counts.backlog_bytes,
            marks: counts.marks,
            drops: counts.drops + counts.overflows,
            super_packets: counts.super_packets,
            because,
        })
    }
}

/// Shows a packet of the device to the estimator.
fn follow(trips: &mut RoundTrips, passing: &Passing<'_>) {
    let Some(packet) = read_packet(passing.at, passing.length, passing.data) else {
        if passing.leaves {
            trips.on_other(Bytes::new(passing.length.into()));
        }
        return;
    };
    let (now, flow) = (packet.time, packet.endpoints.connection().flow_id());
    match packet.tcp {
        Some(tcp) if passing.leaves => trips.on_forward(&Forward {
            now,
            flow,
            size: packet.size,
            seq: tcp.sequence,
            payload: u32::try_from(packet.payload.get()).unwrap_or(u32::MAX),
            resets: tcp.rst,
            opens_connection: tcp.syn && tcp.acknowledgement.is_none(),
            ts_ecr: tcp.timestamps.map(|times| times.echo),
        }),
        Some(tcp) => {
            if let Some(ack) = tcp.acknowledgement.or(tcp.rst.then_some(0)) {
                let ts_val = tcp.timestamps.map(|times| times.value);
                trips.on_backward(&Backward { now, flow, ack, sacked: tcp.sacked, resets: tcp.rst, ts_val });
            }
        }
        None if passing.leaves => trips.on_other(packet.size),
        None => {}
    }
}

fn tell(belief: &Belief, request: &Request<'_>) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    if request.json {
        serde_json::to_writer(&mut out, belief).map_err(io::Error::from)?;
        writeln!(out)?;
    } else if request.view && out.is_terminal() {
        clear_terminal()?;
        writeln!(out, "{}", page(belief))?;
    } else {
        writeln!(out, "{}", line(belief))?;
    }
    Ok(out.flush()?)
}

fn line(belief: &Belief) -> String {
    let Belief { rate_mbps, delivered_mbps, bottleneck_wait_ms, flows, backlog_bytes, because, .. } = belief;
    format!(
        "rate {rate_mbps:.2} Mbit/s, delivered {delivered_mbps:.2} Mbit/s; waits {bottleneck_wait_ms:.0} ms there, {:.1} kB here; \
         {flows} flows; {because}",
        *backlog_bytes as f64 / 1e3,
    )
}

fn page(belief: &Belief) -> String {
    let ms = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{time:.1} ms"));
    let rows = [
        ("rate", format!("{:.2} Mbit/s", belief.rate_mbps)),
        ("delivered", format!("{:.2} Mbit/s", belief.delivered_mbps)),
        ("wait at the bottleneck", format!("{:.0} ms", belief.bottleneck_wait_ms)),
        ("waiting here", format!("{:.1} kB", belief.backlog_bytes as f64 / 1e3)),
        ("in flight", format!("{:.1} kB", belief.in_flight_bytes as f64 / 1e3)),
        ("round trip, shortest and now", format!("{}, {}", ms(belief.base_rtt_ms), ms(belief.rtt_ms))),
        ("flows with data in flight", belief.flows.to_string()),
        ("marks, drops", format!("{}, {}", belief.marks, belief.drops)),
        ("because", belief.because.clone()),
    ];
    let text = rows.iter().map(|(name, value)| format!("{name:<30} {value}\n")).collect::<String>();
    format!("suimon shape {}\n\n{text}", belief.device)
}

/// Holds the device for this process alone, and answers those who ask what it believes.
struct Status(Arc<Mutex<Option<Belief>>>);

fn address(device: &str) -> io::Result<SocketAddr> {
    // Such names belong to a network namespace, as devices do, and go with the process.
    SocketAddr::from_abstract_name(format!("suimon-shape-{device}"))
}

impl Status {
    fn begin(device: &str) -> Result<Self, CliError> {
        let listener = UnixListener::bind_addr(&address(device)?).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => CliError::Input(format!("another process shapes {device} already")),
            _ => error.into(),
        })?;
        let latest = Arc::new(Mutex::new(None::<Belief>));
        let shared = Arc::clone(&latest);
        thread::spawn(move || {
            for mut asking in listener.incoming().flatten() {
                let belief = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // Who asks may have gone.
                let _ = serde_json::to_writer(&mut asking, &belief);
            }
        });
        Ok(Self(latest))
    }

    fn tell(&self, belief: Belief) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(belief);
    }
}

/// Prints what the shaper at `device` believes.
pub(super) fn status(device: &str) -> Result<(), CliError> {
    let nobody = |_| CliError::Input(format!("nobody shapes {device} in this network namespace"));
    let mut text = String::new();
    UnixStream::connect_addr(&address(device)?).map_err(nobody)?.read_to_string(&mut text)?;
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// A process that takes everything away where this one is killed.
struct Guard(Child);

impl Guard {
    fn begin(device: &str) -> Result<Self, CliError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["shape", device, "--guard"]).stdin(Stdio::piped()).stdout(Stdio::null());
        // An interruption from the terminal is for this process alone.
        Ok(Self(command.process_group(0).spawn()?))
    }

    /// Nothing is left to take away.
    fn release(mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            let _ = input.write_all(b"done");
        }
        let _ = self.0.wait();
    }
}

/// Waits until the process that started this one ends, and takes away what that has left.
pub(super) fn guard(device: &str) -> Result<(), CliError> {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    if text.is_empty() {
        on_host(|| {
            queue::end_shaping(device);
            Ok::<_, CliError>(())
        })?;
    }
    Ok(())
}
