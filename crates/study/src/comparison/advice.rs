//! What to change about a line, ranked by runs: each change is simulated, and none is recommended by a rule.

use suimon_algorithms::registry::{AlgorithmSpec, Registry};
use suimon_report::{Advice, CHANGE_AXIS, Grade, RunSummary, UNCHANGED, rank, summarise};
use suimon_results::{ApplicationResult, RunResult};
use suimon_scenario::{Buffer, Capacity, LinkSpec, Scheme};
use suimon_units::{Bytes, Rate};

use super::{QueueName, SenderName};
use crate::error::StudyError;

/// A queue in front of the line works only where packets wait there and not behind it.
const SHAPED: f64 = 0.95;
/// Size of a packet, by which buffers are counted.
const PACKET: Bytes = Bytes::new(1_500);
/// Changes that are told.
const TOLD: usize = 5;
/// A change helps where it takes away this share of the waiting time at least.
const LEAST_GAIN: f64 = 0.1;

/// A line, and what runs at its ends.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) link: LinkSpec,
    pub(super) queue: AlgorithmSpec,
    pub(super) sender: Scheme,
}

/// A change of a setting.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// The change in a few words, which tell it from the others.
    pub(super) name: String,
    /// The setting under it.
    pub(super) setting: Setting,
    /// Commands and entries of menus that make it.
    how: Vec<String>,
    /// Changes of one kind are alternatives: the best of them is told.
    kind: &'static str,
}

/// Changes worth trying about `today`.
pub(super) fn changes(today: &Setting, registry: &Registry) -> Result<Vec<Change>, StudyError> {
    let mut changes = Vec::new();
    if today.queue.name() == "droptail" {
        changes.extend(buffers(today));
    }
    if let Capacity::Rate(rate) = today.link.link.capacity {
        for queue in ["fq-codel", "cake"] {
            if rate != Rate::MAX && today.queue.name() != queue {
                changes.push(shaped(today, QueueName::from(queue).read(registry)?, rate));
            }
        }
    }
    for sender in ["fs-at", "bbr"] {
        let read = SenderName::from(sender).read(registry)?;
        if read != today.sender {
            changes.push(Change {
                name: format!("{sender} at the sender"),
                how: sender_commands(sender),
                setting: Setting { sender: read, ..today.clone() },
                kind: sender,
            });
        }
    }
    Ok(changes)
}

/// Shorter buffers: from two bandwidth-delay products down to a quarter of one.
fn buffers(today: &Setting) -> Vec<Change> {
    let packets = match today.link.link.buffer {
        Buffer::Packets(count) => count,
        Buffer::Bytes(size) => size.whole(PACKET),
        Buffer::Unbounded => u64::MAX,
    };
    let Some(rate) = today.link.link.capacity.mean_rate() else { return Vec::new() };
    let product = rate.amount_in(today.link.rtt).whole(PACKET);
    let was = if packets == u64::MAX { "unbounded".to_owned() } else { packets.to_string() };
    let mut sizes: Vec<u64> =
        [2 * product, product, product / 2, product / 4].map(|size| size.max(10)).into();
    sizes.dedup();
    let shorter = sizes.into_iter().filter(|size| *size < packets);
    let change = |size: u64| {
        let mut link = today.link.clone();
        link.hold(Buffer::Packets(size));
        Change {
            name: format!("buffer {was} -> {size} packets"),
            how: vec![
                format!(
                    "tc qdisc replace dev eth0 root pfifo limit {size}   # where the queue builds: router, modem"
                ),
                format!("or the menu of the router or modem: buffer (queue length) of {size} packets"),
            ],
            setting: Setting { link, ..today.clone() },
            kind: "buffer",
        }
    };
    shorter.map(change).collect()
}

/// A shaper with `queue` in the router, a little slower than the line, so that packets wait there.
fn shaped(today: &Setting, queue: AlgorithmSpec, rate: Rate) -> Change {
    let mut link = today.link.clone();
    let down = rate.scaled(SHAPED);
    link.link.capacity = Capacity::Rate(down);
    link.hold(Buffer::Packets(10_240));
    link.back = link.back.map(|up| up.scaled(SHAPED));
    let up = link.back;
    let kbit = |rate: Rate| rate.as_bps() / 1_000;
    let name = queue.name().to_owned();
    let egress = |device: &str, rate: Rate| match name.as_str() {
        "cake" => vec![format!("tc qdisc replace dev {device} root cake bandwidth {}kbit", kbit(rate))],
        _ => vec![
            format!("tc qdisc replace dev {device} root handle 1: htb default 1"),
            format!("tc class add dev {device} parent 1: classid 1:1 htb rate {}kbit", kbit(rate)),
            format!("tc qdisc add dev {device} parent 1:1 fq_codel"),
        ],
    };
    let mut how = vec![format!(
        "OpenWrt, menu SQM QoS: download {} kbit/s{}, queue discipline {}",
        kbit(down),
        up.map_or_else(String::new, |up| format!(", upload {} kbit/s", kbit(up))),
        if name == "cake" { "cake (piece_of_cake.qos)" } else { "fq_codel (simple.qos)" },
    )];
    how.push("or on a router with Linux, eth0 toward the provider and br0 toward the home:".to_owned());
    how.extend(up.into_iter().flat_map(|up| egress("eth0", up)));
    how.extend(egress("br0", down));
    Change {
        name: format!("{} at 95 % of the rate", queue.label()),
        setting: Setting { link, queue, ..today.clone() },
        how,
        kind: if name == "cake" { "cake" } else { "fq-codel" },
    }
}

/// What makes a host send by `name`.
fn sender_commands(name: &str) -> Vec<String> {
    let kernel = name.replace('-', "_");
    let load = match name {
        "bbr" => "modprobe tcp_bbr".to_owned(),
        _ => format!("suimon cc load {name}"),
    };
    vec![
        format!("{load} && sysctl -w net.ipv4.tcp_congestion_control={kernel}"),
        "at whoever sends: this host for uploads, the server for downloads".to_owned(),
    ]
}

/// The changes that help, best first, with what each does; `results` hold the runs under them, and today's.
pub(super) fn ranked(changes: &[Change], results: &[RunResult]) -> Vec<Advice> {
    let summaries = summarise(results);
    let of = |name: &str| -> Vec<&RunSummary<'_>> {
        let is_of =
            |run: &RunResult| run.labels.iter().any(|(axis, value)| axis == CHANGE_AXIS && value == name);
        summaries.iter().filter(|summary| is_of(summary.run)).collect()
    };
    let Some(today) = Effect::of(&of(UNCHANGED)) else { return Vec::new() };
    let mut helpful: Vec<(&Change, Effect)> = Vec::new();
    for change in changes {
        let Some(effect) = Effect::of(&of(&change.name)) else { continue };
        if !effect.helps(&today) {
            continue;
        }
        match helpful.iter_mut().find(|(other, _)| other.kind == change.kind) {
            Some(known) if effect.key(&today) < known.1.key(&today) => *known = (change, effect),
            Some(_) => {}
            None => helpful.push((change, effect)),
        }
    }
    helpful.sort_by_key(|(_, effect)| effect.key(&today));
    helpful.truncate(TOLD);
    helpful.into_iter().map(|(change, effect)| effect.advice(&today, change)).collect()
}

/// What the call has of a line, and the load.
#[derive(Debug, Clone, Copy)]
struct Effect {
    grade: Grade,
    /// The 95th percentile of the call's waiting time, in milliseconds.
    waiting_ms: f64,
    loss: f64,
    goodput: f64,
    page_s: Option<f64>,
}

impl Effect {
    /// The mean over the runs of one setting.
    fn of(summaries: &[&RunSummary<'_>]) -> Option<Self> {
        let count = summaries.len() as f64;
        let mean = |value: &dyn Fn(&RunSummary<'_>) -> Option<f64>| {
            let values: Option<Vec<f64>> = summaries.iter().map(|summary| value(summary)).collect();
            values.filter(|values| !values.is_empty()).map(|values| values.iter().sum::<f64>() / count)
        };
        let worst = |value: fn(&ApplicationResult) -> Option<f64>| {
            move |summary: &RunSummary<'_>| {
                let calls = summary.run.applications.iter().filter(|application| application.kind.is_call());
                calls.filter_map(value).reduce(f64::max)
            }
        };
        Some(Self {
            grade: summaries.iter().filter_map(|summary| summary.grade).max()?,
            waiting_ms: mean(&worst(|call| Some(call.waiting_p95()?.as_millis_f64())))?,
            loss: mean(&worst(|call| Some(call.loss())))?,
            goodput: mean(&|summary| Some(summary.total.goodput.as_bps_f64()))?,
            page_s: mean(&|summary| {
                let page = summary.run.applications.iter().find_map(ApplicationResult::completion_median)?;
                Some(page.as_secs_f64())
            }),
        })
    }

    /// By rank first, then by the call's waiting time.
    fn key(&self, today: &Self) -> (u8, u64) {
        (rank(self.grade, self.goodput / today.goodput), (self.waiting_ms * 1e3) as u64)
    }

    fn helps(&self, today: &Self) -> bool {
        self.grade <= today.grade && self.waiting_ms <= today.waiting_ms * (1.0 - LEAST_GAIN)
    }

    fn advice(&self, today: &Self, change: &Change) -> Advice {
        Advice {
            change: change.name.clone(),
            grade_before: today.grade,
            grade: self.grade,
            waiting_before_ms: today.waiting_ms,
            waiting_ms: self.waiting_ms,
            loss_before_percent: today.loss * 100.0,
            loss_percent: self.loss * 100.0,
            goodput_percent: 100.0 * (self.goodput / today.goodput - 1.0),
            page_before_s: today.page_s,
            page_s: self.page_s,
            how: change.how.clone(),
        }
    }
}
