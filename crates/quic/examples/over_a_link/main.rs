//! A download over a link, by QUIC with each stack's own CUBIC and with senders of Suimon, and by TCP in Suimon's simulator.
//!
//! `cargo run -p suimon-quic --example over_a_link -- "2Mbit 180ms 96kB" cubic,fs-at`

mod peer;
mod world;

use std::error::Error;
use std::process::ExitCode;

use suimon_algorithms::registry::Registry;
use suimon_link::Transmitter;
use suimon_quic::SenderConfig;
use suimon_results::QueueResult;
use suimon_scenario::{LinkSpec, drop_tail};
use suimon_study::{Comparison, Unobserved, simulate};
use suimon_units::{Duration, Rate};

use crate::peer::{Control, noq, quinn};
use crate::world::download;

const LINK: &str = "2Mbit 180ms 96kB";
const SENDERS: &str = "cubic,fs-at,fs-at-open,bbr";
/// As long as a comparison lasts by itself.
const DURATION: Duration = Duration::from_secs(60);
const SEED: u64 = 1;

fn main() -> ExitCode {
    match compare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn compare() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let link = arguments.next().unwrap_or_else(|| LINK.to_owned());
    let senders = arguments.next().unwrap_or_else(|| SENDERS.to_owned());
    let links = LinkSpec::parse(&link)?.links(&drop_tail());
    if Transmitter::new(&links[0], SEED).is_radio() {
        return Err(
            format!("{link}: a radio model has a driver of its own; accepted: a rate or a trace").into()
        );
    }
    let configs: Vec<(&str, SenderConfig)> =
        senders.split(',').map(|name| Ok((name, name.parse()?))).collect::<Result<_, Box<dyn Error>>>()?;
    println!("| Stack | Sender | Goodput | Queueing delay, mean | 95 of 100 | Packets sent | Dropped |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (name, pair) in [("quinn", quinn::pair as fn(&_, _) -> _), ("noq", noq::pair)] {
        let own = ("its own CUBIC", Control::StacksCubic);
        let ours = configs.iter().map(|(sender, config)| (*sender, Control::Sender(config.clone())));
        for (sender, control) in std::iter::once(own).chain(ours) {
            let result = download(&links, SEED, DURATION, |now| pair(&control, now));
            print_row(name, sender, result.goodput, result.sent.len() as u64, &result.queue);
        }
    }
    for (sender, _) in &configs {
        let mut comparison = Comparison::over(&link)?;
        comparison.senders = vec![(*sender).into()];
        for result in simulate(&comparison.runs(&Registry::standard())?, &Unobserved) {
            let flow = &result.flows[0];
            print_row("TCP, simulated", sender, flow.goodput, flow.packets_sent, &result.queues[0]);
        }
    }
    Ok(())
}

fn print_row(stack: &str, sender: &str, goodput: Rate, packets: u64, queue: &QueueResult) {
    println!(
        "| {stack} | {sender} | {:.2} Mbit/s | {:.0} ms | {:.0} ms | {packets} | {} |",
        goodput.as_bps_f64() / 1e6,
        queue.delay_mean.as_millis_f64(),
        queue.delay_p95.as_millis_f64(),
        queue.dropped_overflow,
    );
}
