//! Writes a page with made-up results, for looking at and for testing the page itself.
//!
//! `cargo run -p suimon-report --example sample_page -- page.html`

use std::path::PathBuf;
use std::process::ExitCode;

use suimon_report::{
    Axis, Figure, FigureSeries, Page, Point, ReportHeader, SeriesStyle, TerminalOptions, TextRow, TextTable,
    Topology, TopologyFlows, TopologyLink, Unit, Verdict, VerdictRow, VerdictTable, terminal,
};
use suimon_results::{Column, FlowResult, QueueResult, RunResult, Series};
use suimon_units::{Bytes, Duration, Instant, Rate};

/// Name, colour, share of the link used, mean backlog in packets, depth of the sawtooth in packets.
const ALGORITHMS: [(&str, &str, f64, f64, f64); 6] = [
    ("reno", "#7f7f7f", 0.962, 49.0, 14.0),
    ("cubic", "#cc3311", 0.975, 58.0, 8.0),
    ("vegas", "#228833", 0.931, 2.4, 1.5),
    ("bbr", "#aa3377", 0.948, 9.0, 9.0),
    ("fs-at", "#0077bb", 0.968, 4.2, 2.0),
    ("fs-at:mode=fit", "#0077bb", 0.955, 3.1, 1.0),
];
const SECONDS: u64 = 60;
const LINK: Rate = Rate::from_bps(3_600_000);
const PACKET: f64 = 1_500.0;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: sample_page FILE.html");
        return ExitCode::FAILURE;
    };
    let header = ReportHeader {
        title: "Six senders on a 3.6 Mbit/s downlink, as in /srv/captures/2026-11-22/downlink-of-the-third-floor/part-17.pcapng"
            .to_owned(),
        description:
            "One download over a link with a 96 kB drop-tail buffer and 90 ms of propagation delay each \
                      way. The numbers on this page are made up; it shows what a report looks like."
                .to_owned(),
        command: "suimon compare downlink.toml --cc reno,cubic,vegas,bbr,fs-at,fs-at:mode=fit".to_owned(),
        version: "0.1.0".to_owned(),
        scenario_text: Some("name = \"downlink\"\nseed = 7\n\n[[link]]\nrate = \"3.6Mbit\"\n".to_owned()),
    };
    let runs: Vec<RunResult> = ALGORITHMS.into_iter().map(run).collect();
    let mut page = Page::new(&header, &runs);
    page.figures.push(window_figure());
    page.verdicts.push(verdicts());
    page.topology = Some(network());
    page.tables.push(table());
    page.notes.push("A name such as <b>bold</b> or </script> is only ever text.".to_owned());
    print!("{}", terminal(&header, &runs, TerminalOptions { colour: true, ..TerminalOptions::default() }));
    match page.write(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run((algorithm, colour, share, backlog, depth): (&str, &str, f64, f64, f64)) -> RunResult {
    let goodput = LINK.scaled(share * 0.965);
    let duration = Duration::from_secs(SECONDS);
    let wait = |packets: f64| LINK.transmission_time(Bytes::from_f64(packets * PACKET));
    let base = Duration::from_millis(180);
    let losses = if depth > 5.0 { 41 } else { 0 };
    RunResult {
        scenario: "downlink".to_owned(),
        labels: vec![("cc".to_owned(), algorithm.to_owned())],
        seed: 7,
        duration,
        measured: Duration::from_secs(SECONDS - 5),
        flows: vec![FlowResult {
            name: "download".to_owned(),
            algorithm: algorithm.to_owned(),
            colour: colour.to_owned(),
            start: Instant::ZERO,
            completed: None,
            delivered: goodput.amount_in(Duration::from_secs(SECONDS - 5)),
            goodput,
            packets_sent: 16_400,
            retransmissions: losses,
            packets_lost: losses,
            packets_marked: 0,
            window_cuts: losses / 4,
            timeouts: losses / 40,
            spurious: 0,
            rtt_min: Some(base),
            rtt_mean: Some(base + wait(backlog)),
            rtt_max: Some(base + wait(backlog + depth)),
            rate_spread: None,
            datagrams: None,
        }],
        aggregates: vec![],
        applications: vec![],
        queues: vec![QueueResult {
            name: "downlink".to_owned(),
            discipline: "droptail".to_owned(),
            colour: "#888888".to_owned(),
            packets: 16_400,
            bytes: Bytes::new(24_600_000),
            utilisation: Some(share),
            backlog_mean_packets: backlog,
            backlog_mean_bytes: backlog * PACKET,
            backlog_max_packets: (backlog + depth) as u64,
            backlog_max_bytes: Bytes::from_f64((backlog + depth) * PACKET),
            delay_mean: wait(backlog),
            delay_p50: wait(backlog),
            delay_p95: wait(backlog + 0.8 * depth),
            delay_p99: wait(backlog + 0.95 * depth),
            delay_max: wait(backlog + depth),
            dropped_overflow: losses,
            dropped_early: 0,
            lost_on_link: 0,
            marked: 0,
        }],
        events: vec![],
        events_not_kept: 0,
        windows: Vec::new(),
        flow_series: vec![flow_series(share, backlog, depth)],
        aggregate_series: vec![],
        queue_series: vec![queue_series(backlog, depth)],
        emulated: vec![],
        notes: vec![],
    }
}

/// Samples every 20 ms.
fn times() -> Vec<Instant> {
    (0..SECONDS * 50).map(|i| Instant::from_nanos(i * 20_000_000)).collect()
}

/// Packets that wait at `time`: a start, then a sawtooth around the mean.
fn waiting(time: Instant, backlog: f64, depth: f64) -> f64 {
    let seconds = time.as_secs_f64();
    let ripple = (seconds * 37.0).sin() * 0.06 * depth;
    let rise = (seconds / 2.5).min(1.0);
    let tooth = (seconds / (4.0 + depth / 3.0)).fract() * 2.0 - 1.0;
    (rise * (backlog + depth * tooth) + ripple).max(0.0)
}

fn column(name: &str, value: impl Fn(Instant) -> f64) -> Column {
    Column { name: name.to_owned(), values: times().into_iter().map(value).collect() }
}

fn flow_series(share: f64, backlog: f64, depth: f64) -> Series {
    let wait_ms = move |time| waiting(time, backlog, depth) * PACKET * 8.0 / LINK.as_bps_f64() * 1e3;
    let window = move |time| 81_000.0 + waiting(time, backlog, depth) * PACKET;
    Series {
        subject: "download".to_owned(),
        times: times(),
        columns: vec![
            column("goodput_bps", move |time| {
                let seconds = time.as_secs_f64();
                let wobble = 1.0 - 0.04 * (seconds * 1.7).sin().abs() - 0.02 * (seconds * 11.0).cos().abs();
                LINK.as_bps_f64() * share * wobble * (seconds / 1.5).min(1.0)
            }),
            column("cwnd_bytes", window),
            column(
                "ssthresh_bytes",
                move |time| {
                    if time.as_secs_f64() < 3.0 { f64::NAN } else { window(time) * 0.7 }
                },
            ),
            column("rtt_ms", move |time| 180.0 + wait_ms(time)),
            column("srtt_ms", move |time| 180.0 + 0.9 * wait_ms(time)),
        ],
    }
}

fn queue_series(backlog: f64, depth: f64) -> Series {
    Series {
        subject: "downlink".to_owned(),
        times: times(),
        columns: vec![
            column("backlog_packets", move |time| waiting(time, backlog, depth).round()),
            column("backlog_bytes", move |time| waiting(time, backlog, depth).round() * PACKET),
        ],
    }
}

fn network() -> Topology {
    let link = |from, to, text: &[&str]| TopologyLink {
        from,
        to,
        text: text.iter().map(|line| (*line).to_owned()).collect(),
    };
    Topology {
        nodes: ["server", "base station", "phone"].map(str::to_owned).into(),
        links: vec![
            link(0, 1, &["1 Gbit/s, 80 ms"]),
            link(1, 2, &["→ 3.6 Mbit/s, 10 ms, 96 kB, droptail", "← 384 kbit/s, 10 ms"]),
        ],
        flows: vec![TopologyFlows { from: 0, to: 2, names: "download".to_owned() }],
    }
}

fn table() -> TextTable {
    let row = |cells: &[&str], muted| TextRow {
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
        muted,
    };
    TextTable {
        title: "Estimators".to_owned(),
        columns: ["Estimator", "Verdict", "Error (%)"].map(str::to_owned).into(),
        rows: vec![row(&["bursts", "close", "3.51"], false), row(&["handshake", "fails", "69.8"], true)],
    }
}

/// Backlog over the link's rate, with a published curve beside it.
fn window_figure() -> Figure {
    let rates = [64e3, 128e3, 256e3, 384e3, 1e6, 2e6, 3.6e6];
    let curve = |name: &str, colour: &str, style, window: f64| FigureSeries {
        name: name.to_owned(),
        colour: colour.to_owned(),
        style,
        points: rates
            .into_iter()
            .map(|rate| {
                let y = (window - rate * 0.18 / 8.0 / PACKET).max(0.6);
                let interval = (style == SeriesStyle::LineAndPoints).then_some((0.9 * y, 1.2 * y));
                Point { interval, ..Point::from((rate, y)) }
            })
            .collect(),
    };
    Figure {
        title: "Mean backlog over the link's rate".to_owned(),
        x: Axis::logarithmic("Link rate", Unit::BitsPerSecond),
        y: Axis::linear("Mean backlog", Unit::Packets),
        series: vec![
            curve("reno, published", "#7f7f7f", SeriesStyle::DashedLine, 65.0),
            curve("reno", "#7f7f7f", SeriesStyle::LineAndPoints, 63.5),
            curve("fs-at", "#0077bb", SeriesStyle::LineAndPoints, 14.0),
        ],
        caption: Some("The window less what the path itself holds.".to_owned()),
    }
}

fn verdicts() -> VerdictTable {
    let row = |claim: &str, paper: &str, tolerance: &str, measured: &str, verdict| VerdictRow {
        claim: claim.to_owned(),
        paper: paper.to_owned(),
        tolerance: tolerance.to_owned(),
        measured: measured.to_owned(),
        verdict,
        basis: None,
        cause: None,
    };
    VerdictTable {
        headings: suimon_report::Headings::Paper,
        title: "Claims".to_owned(),
        note: Some("Made up as well.".to_owned()),
        rows: vec![
            row("FS-AT's mean backlog against Reno's", "−91 %", "± 3 points", "−91.4 %", Verdict::Reproduced),
            row("Vegas reaches Reno's throughput", "yes", "2 %", "−3.2 %", Verdict::NotReproduced),
            row("The same over HSDPA", "yes", "2 %", "–", Verdict::NotTested),
        ],
    }
}
