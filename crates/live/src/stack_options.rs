//! Options of the kernel's TCP, so that a flow behaves as its scenario says; a scenario beyond them is refused.

use std::collections::BTreeMap;

use suimon_linux::RouteMetrics;
use suimon_model::{Flow, Gateway, StackProfile, TcpFlow, Traffic};
use suimon_units::Bytes;

/// The kernel's names of congestion controls, where they are neither the simulator's names nor those with underscores.
pub type KernelNames = BTreeMap<String, String>;

/// The congestion controls that a kernel needs for `tcp`, as users write them: its own, and that of its gateway.
pub fn senders(tcp: &TcpFlow) -> impl Iterator<Item = &str> {
    std::iter::once(tcp.cc.label()).chain(tcp.gateway.as_ref().map(gateway_sender))
}

/// The congestion control of a gateway: FS-AT with one target for each client has a program of its own.
fn gateway_sender(gateway: &Gateway) -> &str {
    if gateway.shared && gateway.cc.label() == "fs-at" { "fs-at-shared" } else { gateway.cc.label() }
}

/// The congestion control of the kernel that the one called `name` simulates, where both have other names.
#[must_use]
pub fn kernels_own(name: &str) -> Option<&'static str> {
    match name {
        "cubic-linux" => Some("cubic"),
        "vegas-linux" => Some("vegas"),
        _ => None,
    }
}

/// The key at fault, and the fault.
pub(crate) type Refusal = (&'static str, String);

/// TCP's options for a flow.
pub(crate) struct FlowOptions {
    /// The kernel's name of its congestion control; none for datagrams.
    pub(crate) kernel_cc: Option<String>,
    pub(crate) sender: RouteMetrics,
    pub(crate) receiver: RouteMetrics,
}

/// The kernel's options for all flows.
pub(crate) struct StackOptions<'a> {
    available: &'a [String],
    names: &'a KernelNames,
    /// The same for all flows, as far as known.
    pub(crate) timestamps: Option<bool>,
    /// Differences from the scenario.
    pub(crate) notes: Vec<String>,
}

impl<'a> StackOptions<'a> {
    /// Where the kernel has the congestion controls `available`, some of them as `names` says.
    pub(crate) fn new(available: &'a [String], names: &'a KernelNames) -> Self {
        Self { available, names, timestamps: None, notes: Vec::new() }
    }

    /// The options of `flow`, which may be the half of a split connection that leads to its gateway.
    pub(crate) fn of(&mut self, flow: &Flow, is_inward: bool) -> Result<FlowOptions, Refusal> {
        match &flow.traffic {
            Traffic::Tcp(tcp) => self.of_tcp(tcp, is_inward),
            Traffic::Udp(udp) if udp.on_off.is_some() => Err(on_off()),
            Traffic::Udp(udp) if udp.echo => {
                Err(("echo", "datagrams come back in simulations only; accepted: false".to_owned()))
            }
            Traffic::Udp(udp) if udp.packet < MIN_DATAGRAM => {
                Err(("packet", format!("{} is no datagram; accepted: at least {MIN_DATAGRAM}", udp.packet)))
            }
            Traffic::Udp(_) => Ok(FlowOptions {
                kernel_cc: None,
                sender: RouteMetrics::default(),
                receiver: RouteMetrics::default(),
            }),
        }
    }

    fn of_tcp(&mut self, tcp: &TcpFlow, is_inward: bool) -> Result<FlowOptions, Refusal> {
        if tcp.on_off.is_some_and(|on_off| on_off.reconnect) {
            let problem = "a live flow keeps its connection; accepted: false".to_owned();
            return Err(("on_off.reconnect", problem));
        }
        // A gateway leaves its window to the kernel, which measures as DRS does.
        let (key, accepted) = if is_inward { ("gateway.receiver", "drs") } else { ("receiver", "fixed") };
        if tcp.receiver.name() != accepted {
            let problem =
                format!("\"{}\" does not run in a kernel; accepted: {accepted}", tcp.receiver.label());
            return Err((key, problem));
        }
        let kernel_cc = match &tcp.gateway {
            Some(gateway) => self
                .kernel_cc(gateway_sender(gateway), gateway.cc.name())
                .map_err(|(_, problem)| ("gateway.cc", problem))?,
            None => self.kernel_cc(tcp.cc.label(), tcp.cc.name())?,
        };
        let profile = &tcp.profile;
        let header = if profile.timestamps { 52 } else { 40 };
        if profile.header != Bytes::new(header) {
            let problem = format!(
                "{}, but the kernel's headers are 52 B with timestamps and 40 B without; accepted: {header}B",
                profile.header
            );
            return Err(("stack.header", problem));
        }
        if self.timestamps.is_some_and(|timestamps| timestamps != profile.timestamps) {
            let problem =
                "not the same for all flows; accepted: true for all or false for all, as hosts have it";
            return Err(("stack.timestamps", problem.to_owned()));
        }
        self.timestamps = Some(profile.timestamps);
        let kernel = StackProfile::linux_6();
        if profile.name != kernel.name {
            self.note(format!(
                "Live: the kernel's TCP stands in for the profile {}; of that it has the segment size, the initial window, the least \
                 retransmission timeout, ECN, timestamps, and whether every segment is acknowledged.",
                profile.name
            ));
        }
        Ok(FlowOptions {
            kernel_cc: Some(kernel_cc),
            sender: RouteMetrics {
                ecn: profile.ecn,
                initial_window: (profile.initial_window != kernel.initial_window)
                    .then_some(profile.initial_window),
                rto_min_millis: (profile.rto_min != kernel.rto_min)
                    .then(|| (profile.rto_min.as_nanos() / 1_000_000) as u32),
                quick_ack: false,
            },
            receiver: RouteMetrics { quick_ack: !profile.delayed_ack, ..RouteMetrics::default() },
        })
    }

    /// The kernel's name of the congestion control that users write as `label`, and that `name` is without its options.
    fn kernel_cc(&mut self, label: &str, name: &str) -> Result<String, Refusal> {
        let called =
            |name: &str| self.names.get(name).cloned().unwrap_or_else(|| name.replace(['-', '+', '.'], "_"));
        let exactly = called(label);
        let (kernels, stands_in) = match name {
            _ if self.available.contains(&exactly) => (exactly, false),
            // The kernel has one CUBIC, the latest.
            "cubic-2.1" => ("cubic".to_owned(), true),
            name => match kernels_own(name) {
                Some(own) => (own.to_owned(), label != name),
                None => (called(name), true),
            },
        };
        if !self.available.contains(&kernels) {
            let problem = format!(
                "this kernel has no \"{label}\"; accepted: {}; others once \"suimon cc load NAME\" has loaded them",
                self.available.join(", ")
            );
            return Err(("cc", problem));
        }
        if stands_in {
            self.note(format!("Live: the kernel's {kernels} as it is stands in for {label}."));
        }
        Ok(kernels)
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// IP and UDP headers, and a byte.
const MIN_DATAGRAM: Bytes = Bytes::new(29);

fn on_off() -> Refusal {
    ("on_off", "datagrams with random silence are for simulations; accepted: none".to_owned())
}
