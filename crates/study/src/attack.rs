//! The network on which a sender does worst beside its rivals: searched by chance and mutation, then made as simple as it
//! can be without losing what it shows.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use suimon_algorithms::random::RandomStream;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_results::RunResult;
use suimon_scenario::{Document, Run};
use suimon_units::Duration;

use crate::championship::jain_index;
use crate::error::StudyError;
use crate::simulate::{Observer, simulate_totals};

/// What the sender is to be bad at. Each is a ratio to the best rival on the same network: 1 is as good, 2 twice as bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Worst {
    /// The goodput of all flows but an upload.
    Utilisation,
    /// The 95th percentile of the queueing delay, beside rivals with as much goodput. One up to 5 ms is as good as none.
    Delay,
    /// Jain's index of the sender's own flows, beside rivals with as much goodput.
    Fairness,
    /// The goodput of CUBIC flows beside the sender, beside what more CUBIC flows in its place leave them.
    Harm,
}

/// Whose flows stand beside the sender's.
const OTHERS: &str = "cubic";
/// The name of the flow that goes the other way, which is no rival.
const UPLOADS: &str = "upload";
/// Queueing delay that no user notices (grade A+), in milliseconds.
const SHORT: f64 = 5.0;
/// As much goodput as another: this part of it.
const AS_MUCH: f64 = 0.95;

/// A request for a search.
#[derive(Debug, Clone)]
pub struct Attack {
    /// The sender.
    pub sender: String,
    /// What it is compared with.
    pub rivals: Vec<String>,
    /// What it is to be bad at.
    pub worst: Worst,
    /// How many networks are tried before the worst is made simpler.
    pub networks: usize,
    /// Decides which ones.
    pub seed: u64,
}

/// A value of each property of a network, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network([usize; PROPERTIES.len()]);

/// A property of networks: its values, the simplest of which is `simple`.
struct Property {
    key: &'static str,
    values: &'static [&'static str],
    simple: usize,
}

const fn property(key: &'static str, values: &'static [&'static str], simple: usize) -> Property {
    Property { key, values, simple }
}

const PROPERTIES: [Property; 11] = [
    property("rate", &["1Mbit", "2Mbit", "5Mbit", "10Mbit", "20Mbit", "50Mbit"], 3),
    property("delay", &["1ms", "3ms", "5ms", "10ms", "20ms", "40ms", "80ms", "160ms"], 4),
    property("buffer", &["0.25", "0.5", "1", "2", "4", "8", "16"], 2),
    property("queue", &["droptail", "red", "codel", "fq-codel", "pie", "dualpi2"], 0),
    property("loss", &["0%", "0.1%", "0.3%", "1%", "2%", "3%"], 0),
    property("jitter", &["0ms", "1ms", "5ms", "20ms"], 0),
    property("outages", &["", "8s..8500ms", "8s..10s"], 0),
    property("count", &["1", "2", "3", "4", "8"], 0),
    property("start", &["0s", "100ms", "2s", "8s"], 0),
    property("others", &["0", "1", "2", "4"], 0),
    // An upload, over this part of the rate and of the buffer.
    property("upload", &["", "0.1", "0.3", "1"], 0),
];
const COUNT: usize = 7;
const OTHERS_COUNT: usize = 9;
const UPLOAD: usize = 10;
/// Payload and headers of a full packet, by which buffers are counted, in bits.
const PACKET_BITS: f64 = 12_000.0;
/// How long each run is.
const DURATION: Duration = Duration::from_secs(20);
/// How many runs a network is judged by, each with another seed. The worst of hundreds of networks by one run each would
/// mostly be the unluckiest run.
const RUNS: usize = 3;

/// Parents of a generation, its children, and those of them that are new by chance rather than mutated.
const PARENTS: usize = 8;
const CHILDREN: usize = 16;
const STRANGERS: usize = 5;

/// About as many networks are tried while the worst is made simpler.
const SIMPLIFYING: usize = 20;

/// What a sender did, by the means of the runs.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The sender.
    pub sender: String,
    /// Goodput of all flows but the upload, in Mbit/s.
    pub goodput_mbps: f64,
    /// Of these, what the flows beside the sender's got.
    pub others_mbps: f64,
    /// The 95th percentile of the queueing delay, in milliseconds.
    pub delay_p95_ms: f64,
    /// Jain's index of the sender's flows.
    pub jain_index: f64,
}

/// What an attack found.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// How many times worse the sender is than the best rival.
    pub factor: f64,
    /// The best rival.
    pub rival: String,
    /// The sender first, then its rivals.
    pub outcomes: Vec<Outcome>,
    /// The scenario, which runs the sender and the best rival.
    pub scenario: String,
}

impl Network {
    fn simplest() -> Self {
        Self(PROPERTIES.each_ref().map(|property| property.simple))
    }

    fn any(random: &mut RandomStream) -> Self {
        Self(PROPERTIES.each_ref().map(|property| random.below(property.values.len() as u64) as usize))
    }

    /// This one with one property, or now and then two, of another value.
    fn mutated(mut self, random: &mut RandomStream) -> Self {
        for _ in 0..=random.below(2) {
            let nth = random.below(PROPERTIES.len() as u64) as usize;
            self.0[nth] = random.below(PROPERTIES[nth].values.len() as u64) as usize;
        }
        self
    }

    fn value(&self, nth: usize) -> &'static str {
        PROPERTIES[nth].values[self.0[nth]]
    }

    fn number(&self, nth: usize) -> u64 {
        self.value(nth).parse().unwrap_or(0)
    }

    fn rate_mbps(&self) -> f64 {
        self.value(0).trim_end_matches("Mbit").parse().unwrap_or(1.0)
    }

    /// Packets that the buffer holds: a part or a multiple of what is on the way.
    fn buffer(&self) -> u64 {
        let delay: f64 = self.value(1).trim_end_matches("ms").parse().unwrap_or(1.0);
        let products: f64 = self.value(2).parse().unwrap_or(1.0);
        ((self.rate_mbps() * 1e6 * 2.0 * delay * 1e-3 * products / PACKET_BITS) as u64).max(4)
    }

    /// The scenario with `senders` one after the other in the place of the first.
    fn scenario(&self, senders: &[&str]) -> String {
        let mut text = format!(
            "name = \"attack\"\nduration = \"{}s\"\nrecord_interval = \"off\"\nseeds = {RUNS}\n\
             [[link]]\nname = \"line\"\nbetween = [\"a\", \"b\"]\nrate = \"{}\"\ndelay = \"{}\"\nbuffer = \"{} packets\"\n",
            DURATION.as_secs_f64(),
            self.value(0),
            self.value(1),
            self.buffer()
        );
        for (nth, property) in PROPERTIES.iter().enumerate().take(COUNT).skip(3) {
            if self.0[nth] != property.simple {
                let _ = writeln!(text, "{} = \"{}\"", property.key, self.value(nth));
            }
        }
        let upload: Option<f64> = self.value(UPLOAD).parse().ok();
        if let Some(part) = upload {
            let (rate, packets) = (self.rate_mbps() * part, (self.buffer() as f64 * part).max(4.0));
            let _ =
                writeln!(text, "[link.reverse]\nrate = \"{rate}Mbit\"\nbuffer = \"{packets:.0} packets\"");
        }
        text += &self.flows("own", senders[0], self.number(COUNT));
        if self.number(OTHERS_COUNT) > 0 {
            text += &self.flows("others", OTHERS, self.number(OTHERS_COUNT));
        }
        if upload.is_some() {
            text += &format!(
                "[[flow]]\nname = \"{UPLOADS}\"\nfrom = \"b\"\nto = \"a\"\ncc = \"{OTHERS}\"\nwindow = \"16MB\"\n"
            );
        }
        if senders.len() > 1 {
            let _ = write!(text, "[[matrix]]\nname = \"cc\"\nset = \"flow.own.cc\"\nvalues = {senders:?}\n");
        }
        text
    }

    fn flows(&self, name: &str, cc: &str, count: u64) -> String {
        let start = self.value(8);
        let start = if start == "0s" { String::new() } else { format!("start = [\"0s\", \"{start}\"]\n") };
        let count = if count == 1 { String::new() } else { format!("count = {count}\n") };
        format!(
            "[[flow]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\ncc = \"{cc}\"\nwindow = \"16MB\"\n{count}{start}"
        )
    }
}

impl Attack {
    /// Runs the search.
    ///
    /// # Errors
    /// When a sender is not known.
    pub fn run(&self, observer: &dyn Observer) -> Result<Found, StudyError> {
        let senders = self.senders();
        for sender in &senders {
            AlgorithmSpec::parse(Role::Congestion, sender)
                .map_err(|error| StudyError::Input { input: "senders".into(), problem: error.to_string() })?;
        }
        let mut random = RandomStream::new(self.seed, "attack");
        let mut parents: Vec<(f64, Network)> = Vec::new();
        let mut left = self.networks.max(1);
        while left > 0 {
            let children: Vec<Network> =
                (0..left.min(CHILDREN)).map(|nth| self.child(nth, &parents, &mut random)).collect();
            left -= children.len();
            let judged = self.judge(&children, observer)?;
            parents.extend(judged.iter().map(|found| found.factor).zip(children));
            parents.sort_by(|a, b| b.0.total_cmp(&a.0));
            parents.dedup_by_key(|parent| parent.1.0);
            parents.truncate(PARENTS);
        }
        self.simplify(parents[0], observer)
    }

    /// About as much simulated time as a search takes.
    #[must_use]
    pub fn duration(&self) -> Duration {
        DURATION * (RUNS * self.senders().len() * (self.networks + SIMPLIFYING)) as u64
    }

    /// The sender, and the rivals that count.
    fn senders(&self) -> Vec<&str> {
        let rivals: Vec<&str> = match self.worst {
            Worst::Harm => vec![OTHERS],
            _ => self.rivals.iter().map(String::as_str).filter(|rival| *rival != self.sender).collect(),
        };
        [vec![self.sender.as_str()], rivals].concat()
    }

    fn child(&self, nth: usize, parents: &[(f64, Network)], random: &mut RandomStream) -> Network {
        let mut child = match parents.get(random.below(PARENTS as u64) as usize) {
            Some((_, parent)) if nth >= STRANGERS => parent.mutated(random),
            _ => Network::any(random),
        };
        // Without flows of its own kind or of others there is nobody to be unfair to.
        if self.worst == Worst::Fairness {
            child.0[COUNT] = child.0[COUNT].max(1);
        }
        if self.worst == Worst::Harm {
            child.0[OTHERS_COUNT] = child.0[OTHERS_COUNT].max(1);
        }
        child
    }

    /// The finding on each of `networks`.
    fn judge(&self, networks: &[Network], observer: &dyn Observer) -> Result<Vec<Found>, StudyError> {
        let senders = self.senders();
        let mut runs: Vec<Run> = Vec::new();
        for network in networks {
            for sender in &senders {
                runs.extend(Document::parse(&network.scenario(&[sender]), "attack")?.runs()?);
            }
        }
        let results = simulate_totals(&runs, observer);
        let of_network = |(network, results): (&Network, &[RunResult])| {
            let by_sender = senders.iter().zip(results.chunks(RUNS));
            let outcomes: Vec<Outcome> =
                by_sender.map(|(sender, results)| Outcome::mean(sender, results)).collect();
            let (factor, rival) = self.factor(&outcomes);
            let scenario = network.scenario(&[&self.sender, &rival]);
            Found { factor, rival, outcomes, scenario }
        };
        Ok(networks.iter().zip(results.chunks(RUNS * senders.len())).map(of_network).collect())
    }

    /// How many times worse the first is than the best of the others, and which that is.
    fn factor(&self, outcomes: &[Outcome]) -> (f64, String) {
        let own = &outcomes[0];
        let is_as_fast = |rival: &&Outcome| {
            matches!(self.worst, Worst::Utilisation | Worst::Harm)
                || rival.goodput_mbps >= AS_MUCH * own.goodput_mbps
        };
        let ratio = |rival: &Outcome| match self.worst {
            Worst::Utilisation => rival.goodput_mbps / own.goodput_mbps.max(1e-3),
            Worst::Delay => own.delay_p95_ms.max(SHORT) / rival.delay_p95_ms.max(SHORT),
            Worst::Fairness => rival.jain_index / own.jain_index.max(1e-3),
            Worst::Harm => rival.others_mbps / own.others_mbps.max(1e-3),
        };
        let rivals = outcomes[1..].iter().filter(is_as_fast).map(|rival| (ratio(rival), rival));
        // Nobody else has its goodput: nobody is better.
        rivals
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map_or((0.0, own.sender.clone()), |(factor, rival)| (factor, rival.sender.clone()))
    }

    /// The same with as many simplest values as leave nine tenths of the factor.
    fn simplify(
        &self,
        (worst, mut network): (f64, Network),
        observer: &dyn Observer,
    ) -> Result<Found, StudyError> {
        loop {
            let simplest = Network::simplest();
            let simpler: Vec<Network> = (0..PROPERTIES.len())
                .filter(|nth| network.0[*nth] != simplest.0[*nth])
                .map(|nth| {
                    let mut one = network;
                    one.0[nth] = simplest.0[nth];
                    one
                })
                .collect();
            let judged = self.judge(&simpler, observer)?;
            let kept = judged.iter().position(|found| found.factor >= 0.9 * worst);
            match kept {
                Some(nth) => network = simpler[nth],
                None => return Ok(self.judge(&[network], observer)?.remove(0)),
            }
        }
    }
}

impl Outcome {
    /// The means over `results`, which are at least one.
    fn mean(sender: &str, results: &[RunResult]) -> Self {
        let runs: Vec<Self> = results.iter().map(|result| Self::of(sender, result)).collect();
        let mean = |of: &dyn Fn(&Self) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        Self {
            sender: sender.to_owned(),
            goodput_mbps: mean(&|run| run.goodput_mbps),
            others_mbps: mean(&|run| run.others_mbps),
            delay_p95_ms: mean(&|run| run.delay_p95_ms),
            jain_index: mean(&|run| run.jain_index),
        }
    }

    fn of(sender: &str, result: &RunResult) -> Self {
        let own = |name: &str| name.starts_with("own");
        let goodput = |is: &dyn Fn(&str) -> bool| {
            let flows = result.flows.iter().filter(|flow| is(&flow.name));
            flows.fold(0.0, |sum, flow| sum + flow.goodput.as_bps_f64() / 1e6)
        };
        let own_flows = result.flows.iter().filter(|flow| own(&flow.name));
        Self {
            sender: sender.to_owned(),
            goodput_mbps: goodput(&|name| name != UPLOADS),
            others_mbps: goodput(&|name| !own(name) && name != UPLOADS),
            delay_p95_ms: result.queues.first().map_or(0.0, |queue| queue.delay_p95.as_millis_f64()),
            jain_index: jain_index(own_flows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unobserved;

    fn attack(sender: &str, rivals: &[&str], worst: Worst) -> Attack {
        let rivals = rivals.iter().map(|rival| (*rival).to_owned()).collect();
        Attack { sender: sender.to_owned(), rivals, worst, networks: 48, seed: 1 }
    }

    fn found(attack: &Attack) -> Found {
        attack.run(&Unobserved).unwrap()
    }

    #[test]
    fn it_finds_that_reno_queues_longer_than_vegas_and_the_scenario_shows_it_again() {
        let found = found(&attack("reno", &["vegas"], Worst::Delay));
        assert!(found.factor > 2.0 && found.rival == "vegas", "{found:?}");
        let runs = Document::parse(&found.scenario, "attack").unwrap().runs().unwrap();
        let results = simulate_totals(&runs, &Unobserved);
        let again = Outcome::mean("reno", &results[..RUNS]);
        assert_eq!(again.delay_p95_ms.to_bits(), found.outcomes[0].delay_p95_ms.to_bits());
        assert!(found.scenario.lines().count() <= 24, "{}", found.scenario);
    }

    #[test]
    fn a_network_is_judged_by_the_mean_of_its_runs() {
        let attack = attack("reno", &["cubic"], Worst::Utilisation);
        let mut network = Network::simplest();
        let loss = PROPERTIES.iter().position(|property| property.key == "loss").unwrap();
        network.0[loss] = 3;
        let found = attack.judge(&[network], &Unobserved).unwrap().remove(0);
        let runs = Document::parse(&found.scenario, "attack").unwrap().runs().unwrap();
        let results = simulate_totals(&runs, &Unobserved);
        let goodputs: Vec<f64> =
            results[..RUNS].iter().map(|result| Outcome::of("reno", result).goodput_mbps).collect();
        assert!(goodputs.windows(2).all(|two| two[0].to_bits() != two[1].to_bits()), "each has another seed");
        let mean = goodputs.iter().sum::<f64>() / RUNS as f64;
        assert!((found.outcomes[0].goodput_mbps - mean).abs() < 1e-9, "{goodputs:?}");
    }

    #[test]
    fn the_same_seed_finds_the_same_and_nobody_is_worse_than_itself() {
        let search = attack("cubic", &["cubic"], Worst::Harm);
        let (one, other) = (found(&search), found(&search));
        assert_eq!(one.scenario, other.scenario);
        assert!((0.99..1.01).contains(&one.factor), "{}", one.factor);
    }

    /// Each file is a finding of `suimon attack --cc fs-at-open --worst MEASURE --save FILE`. The number is how many times worse
    /// than its rival the sender is there, and 0 where the rival has less goodput, by the means of three runs, or of more where
    /// single runs differ much: a change of the sender makes none worse unnoticed.
    #[test]
    fn fs_at_open_is_no_worse_than_it_was_found_to_be() {
        let findings = [
            (Worst::Delay, 5.7, include_str!("../tests/attacks/delay.toml")),
            (Worst::Utilisation, 3.3, include_str!("../tests/attacks/utilisation.toml")),
            (Worst::Fairness, 1.7, include_str!("../tests/attacks/fairness.toml")),
            (Worst::Harm, 1.3, include_str!("../tests/attacks/harm.toml")),
            (Worst::Harm, 3.6, include_str!("../tests/attacks/harm-codel.toml")),
            (Worst::Delay, 2.1, include_str!("../tests/attacks/delay-2601.toml")),
            (Worst::Utilisation, 1.7, include_str!("../tests/attacks/utilisation-2601.toml")),
            (Worst::Fairness, 1.2, include_str!("../tests/attacks/fairness-2601.toml")),
            (Worst::Harm, 1.5, include_str!("../tests/attacks/harm-2601.toml")),
            (Worst::Utilisation, 1.6, include_str!("../tests/attacks/utilisation-upload.toml")),
            (Worst::Harm, 4.5, include_str!("../tests/attacks/harm-upload.toml")),
            (Worst::Delay, 0.0, include_str!("../tests/attacks/delay-fq-codel.toml")),
            (Worst::Utilisation, 8.9, include_str!("../tests/attacks/utilisation-jitter.toml")),
            (Worst::Fairness, 2.1, include_str!("../tests/attacks/fairness-upload.toml")),
            (Worst::Fairness, 1.4, include_str!("../tests/attacks/fairness-loss.toml")),
            (Worst::Harm, 2.0, include_str!("../tests/attacks/harm-outage.toml")),
            (Worst::Harm, 4.5, include_str!("../tests/attacks/harm-dualpi2-upload.toml")),
        ];
        for (worst, known, scenario) in findings {
            let runs = Document::parse(scenario, "attack").unwrap().runs().unwrap();
            let results = simulate_totals(&runs, &Unobserved);
            let by_sender = results.chunks(results.len() / 2);
            let outcomes: Vec<Outcome> = by_sender.map(|results| Outcome::mean("one", results)).collect();
            let (factor, _) = attack("fs-at-open", &["the rival"], worst).factor(&outcomes);
            assert!(factor <= known, "{worst:?}: {factor} times as bad, {known} known: {outcomes:?}");
        }
    }

    #[test]
    fn an_unknown_sender_is_refused_by_name() {
        let error = attack("fast", &["reno"], Worst::Utilisation).run(&Unobserved);
        assert!(error.unwrap_err().to_string().contains("\"fast\""));
    }

    #[test]
    fn every_value_of_every_property_makes_a_scenario() {
        for (nth, property) in PROPERTIES.iter().enumerate() {
            for value in 0..property.values.len() {
                let mut network = Network::simplest();
                network.0[nth] = value;
                let text = network.scenario(&["reno", "cubic"]);
                assert_eq!(
                    Document::parse(&text, "attack").unwrap().runs().unwrap().len(),
                    2 * RUNS,
                    "{text}"
                );
            }
        }
    }
}
