//! `suimon link`: what a link lets through, drawn and exported.

use std::io::{IsTerminal, Write};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use suimon_algorithms::RandomStream;
use suimon_scenario::radio::hsdpa;
use suimon_scenario::trace::Opportunities;
use suimon_scenario::{Capacity, Hsdpa, LinkSpec};
use suimon_simulator::saturate;
use suimon_study::numbers::whole;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::error::CliError;
use crate::output::tell;

const EXAMPLE: &str = "\
Examples:
  suimon link describe \"hsdpa VA30 0dB\"
  suimon link describe \"wifi 802.11b 11Mbit\" --json
  suimon link export \"hsdpa PA3 10dB\" --length 120s > cell.down

A link is what suimon compare takes; a round-trip time may be left out.";

/// Draw what a link lets through, or write it as a trace
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Draw the rate over time and print its numbers
    Describe {
        #[command(flatten)]
        options: Options,
        /// Print JSON instead
        #[arg(long)]
        json: bool,
    },
    /// Print a trace in Mahimahi's format: when packets of 1500 bytes leave the link if they always wait
    Export {
        #[command(flatten)]
        options: Options,
    },
}

#[derive(Debug, Args)]
struct Options {
    /// The link, as in "hsdpa PA3 10dB"
    #[arg(value_name = "LINK")]
    link: String,
    /// How long to look, at most an hour
    #[arg(long, value_name = "TIME", default_value = "60s")]
    length: Duration,
    /// Seed of the randomness; suimon compare has the same channel with the same seed
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
}

/// Longest that a link is looked at.
const MAX_LENGTH: Duration = Duration::from_secs(3_600);
/// Most packets that are counted, so that a fast link does not fill the memory.
const MAX_PACKETS: usize = 50_000_000;
/// Columns and rows of the drawing.
const COLUMNS: usize = 72;
const ROWS: usize = 8;
/// The rate's percentiles are of samples this long.
const SAMPLE: Duration = Duration::from_millis(100);

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match &arguments.action {
        Action::Export { options } => {
            let (_, times) = options.look()?;
            let since = times.iter().map(|at| at.saturating_since(Instant::ZERO));
            let trace = Opportunities::over(since, options.length)?;
            if out.is_terminal() {
                tell("one line is a millisecond at which 1500 bytes may leave; to keep them: > my.trace");
            }
            out.write_all(trace.to_text().as_bytes())?;
        }
        Action::Describe { options, json } => {
            let (capacity, times) = options.look()?;
            let seen = Seen::new(options, &capacity, &times);
            if *json {
                writeln!(out, "{:#}", seen.json())?;
            } else {
                out.write_all(seen.text().as_bytes())?;
            }
        }
    }
    Ok(())
}

impl Options {
    /// The link, and when packets leave it.
    fn look(&self) -> Result<(Capacity, Vec<Instant>), CliError> {
        let refuse = |option, problem: String| CliError::Option { option, problem };
        if self.length == Duration::ZERO || self.length > MAX_LENGTH {
            let problem =
                format!("\"{}\" is out of range; accepted: more than 0s to {MAX_LENGTH}", self.length);
            return Err(refuse("--length", problem));
        }
        let capacity =
            LinkSpec::parse_capacity(&self.link).map_err(|error| CliError::of_link("LINK", &error))?;
        if let Capacity::Rate(rate) = capacity {
            let most = Rate::of(Capacity::OPPORTUNITY * MAX_PACKETS as u64, self.length);
            if rate > most {
                let problem =
                    format!("{rate} is too fast to look at for {}; accepted: up to {most}", self.length);
                return Err(refuse("LINK", problem));
            }
        }
        let mut times = Vec::new();
        saturate(&capacity, self.seed, Capacity::OPPORTUNITY, self.length, &mut |at| times.push(at));
        Ok((capacity, times))
    }
}

/// What was seen of a link.
struct Seen<'a> {
    link: &'a str,
    seed: u64,
    length: Duration,
    mean: Rate,
    /// 5th, 50th and 95th percentile of the rate over [`SAMPLE`].
    percentiles: [Rate; 3],
    /// Mean rate of each column.
    columns: Vec<Rate>,
    longest_gap: Duration,
    radio: Option<Radio>,
}

/// What a terminal of an HSDPA cell reports, and how its blocks fare.
struct Radio {
    doppler_hz: f64,
    coherence: Option<Duration>,
    sinr_mean_db: f64,
    sinr_deviation_db: f64,
    cqi_mean: f64,
    /// Share of TTIs by CQI.
    cqi_shares: Vec<f64>,
    first_error_rate: f64,
    transmissions_a_block: f64,
    /// Bits a second that the reported CQI allows, headers and repetitions included.
    nominal: Rate,
}

impl<'a> Seen<'a> {
    fn new(options: &'a Options, capacity: &Capacity, times: &[Instant]) -> Self {
        let binned = |bins: usize| {
            let width = options.length / bins as u64;
            let mut counts = vec![0_u64; bins];
            for at in times {
                let bin = at.as_nanos().saturating_sub(1) / width.as_nanos().max(1);
                counts[(bin as usize).min(bins - 1)] += 1;
            }
            counts.into_iter().map(|count| Rate::of(Capacity::OPPORTUNITY * count, width)).collect::<Vec<_>>()
        };
        let samples = (options.length.as_nanos() / SAMPLE.as_nanos()).max(1) as usize;
        let mut sorted = binned(samples);
        sorted.sort_unstable();
        let gaps = times.windows(2).map(|pair| pair[1].saturating_since(pair[0]));
        Self {
            link: &options.link,
            seed: options.seed,
            length: options.length,
            mean: Rate::of(Capacity::OPPORTUNITY * times.len() as u64, options.length),
            percentiles: [5, 50, 95].map(|percent| sorted[(samples - 1) * percent / 100]),
            columns: binned(COLUMNS),
            longest_gap: gaps.max().unwrap_or(options.length),
            radio: match capacity {
                Capacity::Hsdpa(terminal) => Some(Radio::new(terminal, options)),
                _ => None,
            },
        }
    }

    fn json(&self) -> Value {
        let columns: Vec<u64> = self.columns.iter().map(|rate| rate.as_bps()).collect();
        let [p5, p50, p95] = self.percentiles.map(Rate::as_bps);
        json!({
            "link": self.link,
            "seed": self.seed,
            "length_s": self.length.as_secs_f64(),
            "rate_mean_bps": self.mean.as_bps(),
            "rate_p5_bps": p5,
            "rate_p50_bps": p50,
            "rate_p95_bps": p95,
            "longest_gap_ms": self.longest_gap.as_millis_f64(),
            "rate_over_time_bps": columns,
            "hsdpa": self.radio.as_ref().map(|radio| json!({
                "doppler_hz": radio.doppler_hz,
                "coherence_time_ms": radio.coherence.map(Duration::as_millis_f64),
                "sinr_mean_db": radio.sinr_mean_db,
                "sinr_deviation_db": radio.sinr_deviation_db,
                "cqi_mean": radio.cqi_mean,
                "cqi_shares": radio.cqi_shares,
                "first_block_error_rate": radio.first_error_rate,
                "transmissions_a_block": radio.transmissions_a_block,
                "rate_of_cqi_bps": radio.nominal.as_bps(),
            })),
        })
    }

    fn text(&self) -> String {
        let [p5, p50, p95] = self.percentiles;
        let mut text = format!("{}, {} with seed {}\n\n", self.link, self.length, self.seed);
        text += &drawing(&self.columns);
        let column = self.length / COLUMNS as u64;
        text += &format!("         0 to {}, {column:.0} a column\n\n", self.length);
        let mut row = |name: &str, value: String| text += &format!("{name:<22}{value}\n");
        row("mean rate", format!("{:.3}", self.mean));
        row("5 / 50 / 95 % of time", format!("{p5:.2} / {p50:.2} / {p95:.2}, over {SAMPLE}"));
        row("longest gap", format!("{:.1}", self.longest_gap));
        let Some(radio) = &self.radio else { return text };
        row("signal", format!("{:.1} dB, deviation {:.1} dB", radio.sinr_mean_db, radio.sinr_deviation_db));
        row("Doppler shift", format!("{:.1} Hz", radio.doppler_hz));
        let coherence = radio.coherence.map_or("-, it stands still".to_owned(), |time| {
            format!("{time:.1}, until the envelope's correlation is one half")
        });
        row("coherence time", coherence);
        row("rate of the CQI", format!("{:.3}, before repetitions", radio.nominal));
        row(
            "block errors",
            format!(
                "{:.1} % of first transmissions; {:.2} transmissions a block",
                100.0 * radio.first_error_rate,
                radio.transmissions_a_block
            ),
        );
        row("mean CQI", format!("{:.1}", radio.cqi_mean));
        text += &histogram(&radio.cqi_shares);
        text
    }
}

impl Radio {
    fn new(terminal: &Hsdpa, options: &Options) -> Self {
        let random = |what: &str| RandomStream::new(options.seed, &format!("link bottleneck {what}"));
        let mut channel = hsdpa::Channel::new(&terminal.user, &mut |what| random(what));
        let ttis = (options.length.as_nanos() / hsdpa::TTI.as_nanos()).max(1);
        let mut shares = vec![0.0; usize::from(hsdpa::Cqi::MAX.get()) + 1];
        let (mut sum, mut squares, mut payload) = (0.0, 0.0, Bytes::ZERO);
        for n in 0..ttis {
            let reception = channel.at(n);
            // As a wide-band receiver sees it, not as the cell is told.
            let sinr_db = 10.0 * reception.sinr.log10();
            sum += sinr_db;
            squares += sinr_db * sinr_db;
            shares[usize::from(reception.report.cqi.get())] += 1.0 / ttis as f64;
            payload += terminal.user.category.payload(reception.report.cqi);
        }
        let mean = sum / ttis as f64;
        let totals = hsdpa::Cell::saturated(&terminal.user, ttis, &mut |what| random(what));
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        Self {
            doppler_hz: terminal.user.profile.doppler_hz(),
            coherence: terminal.user.profile.coherence_time(),
            sinr_mean_db: mean,
            sinr_deviation_db: (squares / ttis as f64 - mean * mean).max(0.0).sqrt(),
            cqi_mean: shares.iter().enumerate().map(|(cqi, share)| cqi as f64 * share).sum(),
            cqi_shares: shares,
            first_error_rate: share(totals.failed_first, totals.blocks),
            transmissions_a_block: share(totals.transmissions, totals.blocks),
            nominal: Rate::of(payload, hsdpa::TTI * ttis),
        }
    }
}

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Rates as bars side by side, with the highest beside the top.
fn drawing(columns: &[Rate]) -> String {
    let most = columns.iter().max().copied().unwrap_or(Rate::ZERO).as_bps_f64().max(1.0);
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        let label = match row {
            _ if row + 1 == ROWS => format!("{:>7.2}", most / 1e6),
            0 => format!("{:>7}", "Mbit/s"),
            _ => " ".repeat(7),
        };
        let bar = |rate: &Rate| {
            let eighths = (rate.as_bps_f64() / most * (ROWS * 8) as f64).round() as usize;
            EIGHTHS[eighths.saturating_sub(row * 8).min(8)]
        };
        let line: String = columns.iter().map(bar).collect();
        text += format!("{label} ▕{}", line.trim_end()).trim_end();
        text.push('\n');
    }
    text
}

/// Shares by CQI, those that occur.
fn histogram(shares: &[f64]) -> String {
    let most = shares.iter().copied().fold(0.0, f64::max);
    let shown = shares.iter().enumerate().filter(|(_, share)| **share >= 0.000_5);
    let line = |(cqi, share): (usize, &f64)| {
        let bar = "█".repeat((share / most * 48.0).round() as usize);
        format!("  CQI {cqi:>2} {:>5.1} %  {bar}", 100.0 * share).trim_end().to_owned() + "\n"
    };
    shown.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawing_is_as_high_as_its_highest_rate() {
        let rates = [0, 1_000_000, 2_000_000].map(Rate::from_bps);
        let drawn = drawing(&rates);
        let lines: Vec<_> = drawn.lines().collect();
        assert_eq!(lines.len(), ROWS);
        assert_eq!((lines[0], lines[ROWS / 2]), ("   2.00 ▕  █", "        ▕ ██"));
        assert_eq!(lines[ROWS - 1], " Mbit/s ▕ ██");
    }

    #[test]
    fn the_histogram_shows_what_occurs() {
        assert_eq!(histogram(&[0.0, 0.25, 0.75]).lines().count(), 2);
        assert!(histogram(&[0.0, 0.25, 0.75]).contains("CQI  2  75.0 %"));
    }
}
