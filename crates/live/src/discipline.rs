//! A scenario's queue discipline as the kernel has it: a program of this project, or a discipline of the kernel's own.

use suimon_algorithms::parameters::{Arguments, Value};
use suimon_algorithms::queue::integer::Program;
use suimon_linux::queue::{POLICIES, Policy};
use suimon_model::{Buffer, Link};
use suimon_units::{Bytes, Rate};

/// How the kernel has a discipline.
#[derive(Debug, Clone)]
pub(crate) enum Discipline {
    /// A program in front of a token bucket, with its settings.
    Program(&'static Policy, Vec<u64>),
    /// What `tc qdisc add` is told, below a token bucket.
    Own(String),
    /// What it is told of a discipline that shapes by itself.
    Shaping(String),
}

/// Room of a queue that another one in front of it bounds.
const AMPLE: Bytes = Bytes::new(64_000_000);

impl Discipline {
    /// That of `link`, which sends at `rate`.
    ///
    /// # Errors
    /// What the kernel does not have, and what is accepted.
    pub(crate) fn of(link: &Link, rate: Rate, seed: u64) -> Result<Self, String> {
        let arguments = Arguments::of(link.queue.arguments());
        let ecn = if given(link, "ecn") == Some(Value::Flag(true)) { " ecn" } else { "" };
        let packets = match link.buffer {
            Buffer::Packets(packets) => packets,
            Buffer::Bytes(bytes) => (bytes.get() / FULL_PACKET.get()).max(1),
            Buffer::Unbounded => 10_000,
        };
        let below = given(link, "shaper") == Some(Value::Choice("tbf"));
        let needs_tbf = || format!("\"{}\"; accepted: with shaper=tbf", link.queue.label());
        match link.queue.name() {
            "droptail" => Ok(Self::Own(match link.buffer {
                Buffer::Packets(packets) => format!("pfifo limit {packets}"),
                _ => format!("bfifo limit {}", bytes_of(link).get()),
            })),
            "red" if arguments.choice("rules") == "linux" => Ok(Self::Own(red(link, &arguments, rate, ecn)?)),
            "pie-linux" if below => Ok(Self::Own(format!(
                "pie limit {packets} target {}us tupdate {}us{ecn}",
                arguments.duration("target").as_nanos() / 1_000,
                arguments.duration("tupdate").as_nanos() / 1_000,
            ))),
            "codel" if below => Ok(Self::Own(format!("codel limit {packets}{}", or_not(ecn)))),
            "fq-codel" if below => Ok(Self::Own(format!("fq_codel limit {packets}{}", or_not(ecn)))),
            "pie-linux" | "codel" | "fq-codel" => Err(needs_tbf()),
            "cake" => Ok(Self::Shaping(format!("cake bandwidth {}bit overhead 0", rate.as_bps()))),
            _ => Self::program(link, rate, seed),
        }
    }

    fn program(link: &Link, rate: Rate, seed: u64) -> Result<Self, String> {
        let label = link.queue.label();
        if given(link, "mark").is_some_and(|place| place != Value::Choice("arrival")) {
            return Err(format!(
                "\"{label}\": programs mark packets as they arrive; accepted: {label}:mark=arrival"
            ));
        }
        let text = label.replace(":mark=arrival", "");
        let (program, settings) =
            Program::read(&text, rate, bytes_of(link), seed).map_err(|error| error.to_string())?;
        let policy = POLICIES.iter().find(|policy| policy.name == program.name);
        let policy = policy.ok_or_else(|| format!("\"{}\" is not in this build", program.name))?;
        Ok(Self::Program(policy, settings.program_words()))
    }

    /// A program that passes everything, and by which a discipline of the kernel's own is watched.
    pub(crate) fn watcher(rate: Rate) -> (&'static Policy, Vec<u64>) {
        let (program, settings) =
            Program::read("red:min_th=60MB", rate, AMPLE, 1).expect("it is written here");
        let policy = POLICIES.iter().find(|policy| policy.name == program.name).expect("RED is built in");
        (policy, settings.program_words())
    }
}

const FULL_PACKET: Bytes = Bytes::new(1_500);

/// What may wait on `link`, in bytes.
pub(crate) fn bytes_of(link: &Link) -> Bytes {
    match link.buffer {
        Buffer::Bytes(bytes) => bytes,
        Buffer::Packets(packets) => FULL_PACKET * packets,
        Buffer::Unbounded => AMPLE,
    }
}

/// The value of this parameter of the link's discipline, where that has it.
fn given(link: &Link, name: &str) -> Option<Value> {
    link.queue.arguments().find_map(|(known, value)| (known == name).then_some(value))
}

fn or_not(ecn: &str) -> &str {
    if ecn.is_empty() { " noecn" } else { ecn }
}

/// `sch_red` with these arguments.
fn red(link: &Link, arguments: &Arguments, rate: Rate, ecn: &str) -> Result<String, String> {
    let [min_th, max_th] = ["min_th", "max_th"].map(|name| arguments.bytes(name).get());
    let average = arguments.bytes("mean_packet").get();
    let weight = arguments.number("w_q");
    let accepted = "accepted: min_th and max_th, and w_q a power of 1/2";
    let burst = burst_of(weight, min_th as f64 / average as f64)
        .filter(|_| min_th > 0 && max_th > min_th)
        .ok_or_else(|| format!("\"{}\": sch_red cannot be told this; {accepted}", link.queue.label()))?;
    Ok(format!(
        "red limit {} min {min_th} max {max_th} avpkt {average} burst {burst} probability {} bandwidth {}bit{ecn}",
        bytes_of(link).get(),
        arguments.number("max_p"),
        rate.as_bps(),
    ))
}

/// The burst for which `tc` gives `sch_red` the weight `w_q`: it takes the largest W = 2^-n for which
/// burst + 1 - min / avpkt <= (1 - (1 - W)^burst) / W (iproute2, `tc_red_eval_ewma`).
fn burst_of(w_q: f64, min_packets: f64) -> Option<u32> {
    let weight_of = |burst: u32| {
        let room = f64::from(burst) + 1.0 - min_packets;
        let reached = |weight: &f64| room <= (1.0 - (1.0 - weight).powi(burst as i32)) / weight;
        (1..32).map(|power| 0.5_f64.powi(power)).find(|weight| room >= 1.0 && reached(weight))
    };
    (1..10_000).find(|burst| weight_of(*burst) == Some(w_q))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_burst_gives_the_weight_that_was_asked_for() {
        // By `tc -d qdisc` after `red ... min 30000 avpkt 1000 burst 51`: ewma 5.
        let burst = burst_of(1.0 / 32.0, 30.0).expect("there is one");
        assert!(burst <= 51, "{burst}");
        assert_eq!(burst_of(0.002, 30.0), None);
    }
}
