//! Measures, or reads what was recorded.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use suimon_measure::client::{MeasureError, Plan, Progress, measure};
use suimon_measure::protocol::MAX_FLOWS;
use suimon_measure::{Direction, Line, PORT, Recording};
use tokio::sync::watch;

use super::{ClientOptions, flent, save, show};
use crate::error::CliError;

/// The load of a direction, at least and at most.
const LOADS: [suimon_units::Duration; 2] =
    [suimon_units::Duration::from_secs(1), suimon_units::Duration::from_secs(20)];

pub(super) fn execute(server: &str, options: &ClientOptions) -> Result<(), CliError> {
    let plan = plan(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let recording = runtime.block_on(async {
        let told = stopped_by_ctrl_c();
        let bar = Bar::new();
        let mut refused = None;
        for address in addresses(server).await? {
            match measure(address, &plan, told.clone(), |progress| bar.show(progress)).await {
                Ok(recording) => return Ok(recording),
                // The next address may be reached.
                Err(error @ MeasureError::Connect { .. }) => refused = Some(error),
                Err(error) => return Err(CliError::Measure(error)),
            }
        }
        Err(refused.map_or_else(|| unknown(server, "it has no address"), CliError::Measure))
    })?;
    if let Some(file) = &options.record {
        fs::write(file, serde_json::to_vec(&recording).map_err(io::Error::from)?)?;
    }
    deliver(&recording, server, options)
}

/// Holds true after the first Ctrl-C.
pub(super) fn stopped_by_ctrl_c() -> watch::Receiver<bool> {
    let (stop, told) = watch::channel(false);
    tokio::spawn(async move {
        // A second Ctrl-C ends the program as ever.
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.send_replace(true);
            let _ = tokio::signal::ctrl_c().await;
            std::process::exit(130);
        }
    });
    told
}

pub(super) fn describe(file: &Path, options: &ClientOptions) -> Result<(), CliError> {
    let wrong = |problem: String| CliError::Option {
        option: "--read",
        problem: format!("{}: {problem}; accepted: a file that --record wrote", file.display()),
    };
    let text = fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let recording = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    deliver(&recording, &file.display().to_string(), options)
}

fn deliver(recording: &Recording, to: &str, options: &ClientOptions) -> Result<(), CliError> {
    let Some(line) = Line::of(recording) else {
        return Err(CliError::Input("the measurement ended before a probe came back".to_owned()));
    };
    if let Some(file) = &options.save {
        save::scenario(&line, to, file)?;
    }
    if let Some(file) = &options.csv {
        save::table(&line, recording, file)?;
    }
    if let Some(file) = &options.flent {
        flent::write(&line, recording, to, file)?;
    }
    if let Some(file) = &options.prometheus {
        save::metrics(&line, to, file)?;
    }
    let mut out = io::stdout().lock();
    if options.json {
        let text = serde_json::to_string_pretty(&show::json(&line, to)).map_err(io::Error::from)?;
        writeln!(out, "{text}")?;
    } else {
        write!(out, "{}", show::text(&line, to, options.save.as_deref()))?;
    }
    Ok(())
}

fn plan(options: &ClientOptions) -> Result<Plan, CliError> {
    let refuse = |option, problem: String| Err(CliError::Option { option, problem });
    if options.load < LOADS[0] || options.load > LOADS[1] {
        return refuse("--load", format!("{}: accepted: from 1s to 20s", options.load));
    }
    if options.flows == 0 || options.flows > MAX_FLOWS {
        return refuse("--flows", format!("{}: accepted: from 1 to {MAX_FLOWS}", options.flows));
    }
    if options.megabytes == 0 {
        return refuse("--megabytes", "0: accepted: at least 1".to_owned());
    }
    Ok(Plan {
        load: Duration::from_nanos(options.load.as_nanos()),
        flows: options.flows,
        bytes: options.megabytes.saturating_mul(1_000_000),
        responsiveness: options.rpm,
        ..Plan::default()
    })
}

/// The addresses of `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or an address of IPv6.
pub(super) async fn addresses(server: &str) -> Result<Vec<SocketAddr>, CliError> {
    let host_and_port = match server.parse::<std::net::IpAddr>() {
        Ok(address) => return Ok(vec![SocketAddr::new(address, PORT)]),
        Err(_) if server.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => server.to_owned(),
        Err(_) => format!("{server}:{PORT}"),
    };
    let found = tokio::net::lookup_host(&host_and_port).await;
    found.map(Iterator::collect).map_err(|error| unknown(server, &error.to_string()))
}

pub(super) fn unknown(server: &str, problem: &str) -> CliError {
    CliError::Option {
        option: "HOST",
        problem: format!("{server}: {problem}; accepted: a name or an address, as in vps.example or [2001:db8::1]:7423"),
    }
}

/// How far a measurement is, on standard error where that is a terminal.
struct Bar(ProgressBar);

/// Steps of the bar.
const STEPS: u64 = 1_000;

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::new(STEPS);
        let style = ProgressStyle::with_template("{bar:30} {msg}").expect("the template is constant");
        bar.set_style(style);
        Self(bar)
    }

    fn show(&self, progress: Progress) {
        self.0.set_position((progress.share * STEPS as f64) as u64);
        let rtt = progress.rtt_ms.map_or_else(|| "no answer yet".to_owned(), |ms| format!("round trip {ms:.0} ms"));
        let load = match progress.direction {
            None => "idle".to_owned(),
            Some(direction) => format!("{} {:.1} MB", Direction::as_str(direction), progress.bytes as f64 / 1e6),
        };
        self.0.set_message(format!("{load}, {rtt}"));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
