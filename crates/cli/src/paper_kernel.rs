//! `suimon paper NAME --kernel`: a paper's experiments on the running kernel, beside the simulator.

use std::io::{self, Write};
use std::path::Path;
use std::thread;

use comfy_table::Table;
use suimon_lab::controls::hold_missing;
use suimon_lab::kernel::{Experiment, Program, Results, Row, Told, Transfer};
use suimon_live::Links;
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_study::Observer;
use suimon_units::Duration;

use crate::error::CliError;
use crate::guests::{Guests, LabOptions, Only};
use crate::live::{LiveOptions, live_with};
use crate::plain_table::{print_json, table};
use crate::progress::{Progress, simulate};
use crate::view::ViewOptions;

/// Runs the experiment in `folder` and prints it.
///
/// # Errors
/// Where it cannot be run; and at the end where a bar is missed.
pub(crate) fn execute(
    folder: &Path,
    json: bool,
    live: &LiveOptions,
    view: &ViewOptions,
) -> Result<(), CliError> {
    let experiment = Experiment::read(folder)?;
    let on_kernel = |runs: &[Run], transfers: &[Transfer<'_>]| {
        if live.is_virtual() {
            in_guests(&experiment, folder, live.lab(), runs, transfers)
        } else {
            here(runs, transfers, view)
        }
    };
    let results: Results = experiment.measure(on_kernel, simulate)?;
    if json {
        print_json(&results)?;
    } else {
        print(&experiment.description, &results)?;
    }
    match results.bars.iter().filter(|bar| bar.holds == Some(false)).count() {
        0 => Ok(()),
        1 => Err(CliError::ClaimsBroken("a claim".to_owned(), "does")),
        missed => Err(CliError::ClaimsBroken(format!("{missed} claims"), "do")),
    }
}

/// Makes all on this kernel: runs, and then programs' transfers, all at once. In a guest that has one of them to make it
/// makes this one, and hands it over; programs' numbers follow on those of runs.
fn here(
    runs: &[Run],
    transfers: &[Transfer<'_>],
    view: &ViewOptions,
) -> Result<(Vec<RunResult>, Vec<Told>), CliError> {
    let names = &hold_missing(runs)?.names;
    if let Some(only) = Only::here()
        && let Some(transfer) = only.0.checked_sub(runs.len()).and_then(|nth| transfers.get(nth))
    {
        return Ok((Vec::new(), only.hand_over(&[transfer.run(names)?])?));
    }
    let results = live_with(runs, names, Links::Emulated, view)?;
    let observer = Progress::new(time(transfers));
    let told = thread::scope(|scope| {
        let make = |transfer: &Transfer<'_>| {
            let told = transfer.run(names);
            observer.advance(transfer.time());
            told
        };
        let running: Vec<_> = transfers.iter().map(|transfer| scope.spawn(move || make(transfer))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().map(join).collect::<Result<_, _>>()
    })?;
    Ok((results, told))
}

/// Makes each of all in a guest of its own.
fn in_guests(
    experiment: &Experiment,
    folder: &Path,
    options: &LabOptions,
    runs: &[Run],
    transfers: &[Transfer<'_>],
) -> Result<(Vec<RunResult>, Vec<Told>), CliError> {
    // A guest finds them under their own names only.
    let files: Vec<_> =
        experiment.files().chain([folder]).filter_map(|file| file.canonicalize().ok()).collect();
    let mut programs: Vec<_> = transfers.iter().map(|transfer| transfer.program.command()).collect();
    programs.dedup();
    programs.extend(programs.first().map(|_| "ping"));
    let guests = Guests::of_command(&["--kernel"], &files, options)?.with_programs(&programs);
    let results = guests.run_all(0..runs.len(), suimon_study::total_duration(runs))?;
    let told = guests.run_all(runs.len()..runs.len() + transfers.len(), time(transfers))?;
    Ok((results, told))
}

/// The time that all take, one after another.
fn time(transfers: &[Transfer<'_>]) -> Duration {
    transfers.iter().map(Transfer::time).fold(Duration::ZERO, |sum, time| sum + time)
}

/// Prints all tables.
fn print(description: &str, results: &Results) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{description}\n\n{}\n", rows(&results.rows).trim_fmt())?;
    writeln!(out, "{}", bars(results).trim_fmt())?;
    let late = results.rows.iter().filter_map(|row| row.kernel.lateness_p99_ms).fold(0.0, f64::max);
    writeln!(out, "\nThe emulator gave 99 % of packets at most {late:.2} ms late, on the worst link.")?;
    if !results.programs.is_empty() {
        writeln!(
            out,
            "\nPrograms of everybody's on the kernel, with ping beside them\n\n{}",
            programs(results)
        )?;
    }
    for reason in &results.left_out {
        writeln!(out, "\nLeft out: {reason}")?;
    }
    Ok(())
}

fn rows(rows: &[Row]) -> Table {
    let mut numbers = table(&[
        "link",
        "cc",
        "kbit/s: kernel",
        "simulator",
        "backlog, packets: kernel",
        "simulator",
        "most",
        "95 % waited: kernel",
        "simulator",
        "agree",
    ]);
    for Row { link, cc, kernel, simulator, throughput_agrees, backlog_agrees } in rows {
        numbers.add_row([
            link.clone(),
            cc.clone(),
            format!("{:.0}", kernel.throughput_kbps),
            format!("{:.0}", simulator.throughput_kbps),
            format!("{:.1}", kernel.backlog_mean_packets),
            format!("{:.1}", simulator.backlog_mean_packets),
            format!("{:.0} / {:.0}", kernel.backlog_max_packets, simulator.backlog_max_packets),
            format!("{:.0} ms", kernel.delay_p95_ms),
            format!("{:.0} ms", simulator.delay_p95_ms),
            match (throughput_agrees, backlog_agrees) {
                (true, true) => "both",
                (true, false) => "throughput",
                (false, true) => "backlog",
                (false, false) => "neither",
            }
            .to_owned(),
        ]);
    }
    numbers
}

fn bars(results: &Results) -> Table {
    let mut bars = table(&["claim", "bar", "kernel", "simulator", ""]);
    for bar in &results.bars {
        let verdict = match bar.holds {
            Some(true) => "holds",
            Some(false) => "missed",
            None => "",
        };
        bars.add_row([
            bar.claim.clone(),
            bar.bar.clone(),
            format!("{:.1} %", 100.0 * bar.kernel),
            format!("{:.1} %", 100.0 * bar.simulator),
            verdict.to_owned(),
        ]);
    }
    bars
}

fn programs(results: &Results) -> String {
    let mut programs = table(&["program", "link", "cc", "kbit/s", "ping: median", "95 %"]);
    for row in &results.programs {
        let ping = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0} ms"));
        programs.add_row([
            match row.program {
                Program::Iperf3 => "iperf3".to_owned(),
                Program::Http => "HTTP, curl".to_owned(),
            },
            row.link.clone(),
            row.cc.clone(),
            format!("{:.0}", row.throughput_kbps),
            ping(row.ping_p50_ms),
            ping(row.ping_p95_ms),
        ]);
    }
    programs.trim_fmt()
}
