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
use crate::output::{check_folder, naming};
use crate::error::CliError;

/// The load of a direction, at least and at most.
const LOADS: [suimon_units::Duration; 2] =
    [suimon_units::Duration::from_secs(1), suimon_units::Duration::from_secs(20)];

pub(super) fn execute(server: &str, options: &ClientOptions) -> Result<(), CliError> {
    let plan = plan(options)?;
    check_folders(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let recording = runtime.block_on(async {
        let (told, bar) = (stopped_by_ctrl_c(), Bar::new());
        let show = |progress: Progress| bar.show(progress.share, so_far(&progress));
        first_that_answers(server, async |address| measure(address, &plan, told.clone(), show).await).await
    })?;
    let recorded = match &options.record {
        Some(file) => write_recording(&recording, file).map_err(naming("--record", file)),
        None => Ok(()),
    };
    deliver(&recording, server, options).and(recorded)
}

fn write_recording(recording: &Recording, file: &Path) -> Result<(), CliError> {
    Ok(fs::write(file, serde_json::to_vec(recording).map_err(io::Error::from)?)?)
}

/// Writes a line, and what was seen of it, into a file.
type Writer = fn(&Line, &Recording, &str, &Path) -> Result<(), CliError>;

/// The files that options name.
fn files(options: &ClientOptions) -> impl Iterator<Item = (&'static str, &Path, Writer)> {
    let files: [(_, _, Writer); 4] = [
        ("--save", &options.save, |line, _, to, file| save::scenario(line, to, file)),
        ("--csv", &options.csv, |line, recording, _, file| save::table(line, recording, file)),
        ("--flent", &options.flent, flent::write),
        ("--prometheus", &options.prometheus, |line, _, to, file| save::metrics(line, to, file)),
    ];
    files.into_iter().filter_map(|(option, file, write)| Some((option, file.as_deref()?, write)))
}

fn check_folders(options: &ClientOptions) -> Result<(), CliError> {
    let named = files(options).map(|(option, file, _)| (option, file));
    let mut all = named.chain(options.record.as_deref().map(|file| ("--record", file)));
    all.try_for_each(|(option, file)| check_folder(option, file))
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
    check_folders(options)?;
    let wrong = |problem: String| CliError::Option {
        option: "--read",
        problem: format!("{}: {problem}; accepted: a file that --record wrote", file.display()),
    };
    let text = fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let recording: Recording = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    if !recording.is_in_time() {
        return Err(wrong("it has times that no measurement has".to_owned()));
    }
    deliver(&recording, &file.display().to_string(), options)
}

fn deliver(recording: &Recording, to: &str, options: &ClientOptions) -> Result<(), CliError> {
    let Some(line) = Line::of(recording) else {
        return Err(CliError::Input("the measurement ended before a probe came back".to_owned()));
    };
    // A file that cannot be written leaves the others, and what was found is shown.
    let shown = show(&line, to, options);
    let written = files(options)
        .map(|(option, file, write)| write(&line, recording, to, file).map_err(naming(option, file)))
        .fold(Ok(()), Result::and);
    written.and(shown)
}

fn show(line: &Line, to: &str, options: &ClientOptions) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    if options.json {
        let text = serde_json::to_string_pretty(&show::json(line, to)).map_err(io::Error::from)?;
        writeln!(out, "{text}")?;
    } else {
        write!(out, "{}", show::text(line, to, options.save.as_deref()))?;
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

/// What `attempt` gives at the first address of `server` that is reached.
pub(super) async fn first_that_answers<T>(
    server: &str,
    mut attempt: impl AsyncFnMut(SocketAddr) -> Result<T, MeasureError>,
) -> Result<T, CliError> {
    let mut refused = None;
    for address in addresses(server).await? {
        match attempt(address).await {
            // The next address may be reached.
            Err(error @ MeasureError::Connect { .. }) => refused = Some(error),
            done => return Ok(done?),
        }
    }
    Err(refused.map_or_else(|| unknown(server, "it has no address"), CliError::Measure))
}

/// The addresses of `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or an address of IPv6.
async fn addresses(server: &str) -> Result<Vec<SocketAddr>, CliError> {
    let host_and_port = match server.parse::<std::net::IpAddr>() {
        Ok(address) => return Ok(vec![SocketAddr::new(address, PORT)]),
        Err(_) if server.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => server.to_owned(),
        Err(_) => format!("{server}:{PORT}"),
    };
    let found = tokio::net::lookup_host(&host_and_port).await;
    found.map(Iterator::collect).map_err(|error| unknown(server, &error.to_string()))
}

fn unknown(server: &str, problem: &str) -> CliError {
    CliError::Option {
        option: "HOST",
        problem: format!("{server}: {problem}; accepted: a name or an address, as in vps.example or [2001:db8::1]:7423"),
    }
}

fn so_far(progress: &Progress) -> String {
    let rtt = progress.rtt_ms.map_or_else(|| "no answer yet".to_owned(), |ms| format!("round trip {ms:.0} ms"));
    let load = match progress.direction {
        None => "idle".to_owned(),
        Some(direction) => format!("{} {:.1} MB", Direction::as_str(direction), progress.bytes as f64 / 1e6),
    };
    format!("{load}, {rtt}")
}

/// How far something is, on standard error where that is a terminal.
pub(super) struct Bar(ProgressBar);

/// Steps of the bar.
const STEPS: u64 = 1_000;

impl Bar {
    pub(super) fn new() -> Self {
        let style = ProgressStyle::with_template("{bar:30} {msg}").expect("the template is constant");
        Self(ProgressBar::new(STEPS).with_style(style))
    }

    /// Shows a share of the whole, from 0 to 1, and what there is to say.
    pub(super) fn show(&self, share: f64, message: String) {
        self.0.set_position((share * STEPS as f64) as u64);
        self.0.set_message(message);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
