//! Every algorithm there is: one line each.

use std::fmt;

use crate::congestion::{
    CongestionControl, bbr, bic, compound, cubic, cubic_2_1, dctcp, fs_at, highspeed, htcp, prague, reno,
    scalable, vegas,
};
use crate::estimate::{RttEstimator, autocorrelation, bursts, handshake, slow_start};
use crate::own;
use crate::parameters::{Arguments, Parameter, ParameterError};
use crate::path::{
    PathScheduler, blest, ecf, least_buffered, look_ahead, lowest_rtt, redundant, round_robin,
};
use crate::queue::early::{Early, EarlyDetection, EarlyQueue};
use crate::queue::{
    Buffer, Packet, QueueDiscipline, ared, cake, codel, dpd, drop_tail, dualpi2, even, fq_codel, pie, red,
    rem, rtt_aqm, shyu, sred,
};
use crate::random::RandomStream;
use crate::receiver::{ReceiveWindow, drs, fixed};

/// What users see of an algorithm.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// As written in scenarios and on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The paper or RFC that defines it.
    pub source: &'static str,
    /// Its colour in every chart, as `#rrggbb`.
    pub colour: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

/// Builds a congestion control.
pub type BuildCongestion = fn(&Arguments) -> Box<dyn CongestionControl>;
/// Builds a congestion control around another.
pub type BuildWrapper = fn(&Arguments, Box<dyn CongestionControl>) -> Box<dyn CongestionControl>;
/// Builds early detection for a queue with room for the buffer.
pub type BuildEarly = fn(&Arguments, Buffer) -> Early<Box<dyn EarlyDetection>>;
/// Builds early detection around another.
pub type BuildEarlyWrapper = fn(&Arguments, Early<Box<dyn EarlyDetection>>) -> Early<Box<dyn EarlyDetection>>;
/// Builds a receive window; the first argument is the receive buffer.
pub type BuildReceiver = fn(suimon_units::Bytes, &Arguments) -> Box<dyn ReceiveWindow>;

/// Builds an estimator of round-trip times.
pub type BuildEstimator = fn(&Arguments) -> Box<dyn RttEstimator>;

/// Builds a path scheduler.
pub type BuildPath = fn(&Arguments) -> Box<dyn PathScheduler>;

/// Congestion controls.
pub const CONGESTION: &[(Description, BuildCongestion)] = &[
    (reno::DESCRIPTION, reno::build),
    (cubic::DESCRIPTION, cubic::build),
    (cubic_2_1::DESCRIPTION, cubic_2_1::build),
    (bic::DESCRIPTION, bic::build),
    (vegas::DESCRIPTION, vegas::build),
    (compound::DESCRIPTION, compound::build),
    (highspeed::DESCRIPTION, highspeed::build),
    (scalable::DESCRIPTION, scalable::build),
    (htcp::DESCRIPTION, htcp::build),
    (bbr::DESCRIPTION, bbr::build),
    (dctcp::DESCRIPTION, dctcp::build),
    (prague::DESCRIPTION, prague::build),
];

/// Congestion controls that work over another: `fs-at+cubic`. Alone they work over Reno.
pub const WRAPPERS: &[(Description, BuildWrapper)] = &[(fs_at::DESCRIPTION, fs_at::build)];

/// Receive windows.
pub const RECEIVERS: &[(Description, BuildReceiver)] =
    &[(fixed::DESCRIPTION, fixed::build), (drs::DESCRIPTION, drs::build)];

/// Path schedulers.
pub const PATHS: &[(Description, BuildPath)] = &[
    (least_buffered::DESCRIPTION, |_| Box::new(least_buffered::LeastBuffered)),
    (look_ahead::DESCRIPTION, |arguments| Box::new(look_ahead::LookAhead::new(arguments))),
    (round_robin::DESCRIPTION, |arguments| Box::new(round_robin::RoundRobin::new(arguments))),
    (lowest_rtt::DESCRIPTION, |_| Box::new(lowest_rtt::LowestRtt)),
    (blest::DESCRIPTION, |arguments| Box::new(blest::Blest::new(arguments))),
    (ecf::DESCRIPTION, |arguments| Box::new(ecf::Ecf::new(arguments))),
    (redundant::DESCRIPTION, |_| Box::new(redundant::Redundant)),
];

/// Queue disciplines; [`build_queue`] has their builders, since those are generic over the packet.
pub const QUEUES: &[Description] = &[
    drop_tail::DESCRIPTION,
    codel::DESCRIPTION,
    fq_codel::DESCRIPTION,
    pie::DESCRIPTION,
    dualpi2::DESCRIPTION,
    cake::DESCRIPTION,
];

/// Queue disciplines that are early detection, which others may work over.
pub const EARLY: &[(Description, BuildEarly)] = &[
    (red::DESCRIPTION, |arguments, buffer| red::early(arguments, buffer).boxed()),
    (ared::DESCRIPTION, |arguments, buffer| ared::early(arguments, buffer).boxed()),
    (rem::DESCRIPTION, |arguments, buffer| rem::early(arguments, buffer).boxed()),
    (sred::DESCRIPTION, |arguments, buffer| sred::early(arguments, buffer).boxed()),
    (shyu::DESCRIPTION, |arguments, buffer| shyu::early(arguments, buffer).boxed()),
    (rtt_aqm::DESCRIPTION, |arguments, buffer| rtt_aqm::early(arguments, buffer).boxed()),
];

/// Queue disciplines that work over early detection: `dpd+red`. Alone they work over RED.
pub const EARLY_WRAPPERS: &[(Description, BuildEarlyWrapper)] =
    &[(dpd::DPD, dpd::build_dpd), (dpd::DPD_QT, dpd::build_dpd_qt), (even::DESCRIPTION, even::build)];

/// Estimators of round-trip times.
pub const ESTIMATORS: &[(Description, BuildEstimator)] = &[
    (bursts::DESCRIPTION, bursts::build),
    (autocorrelation::DESCRIPTION, autocorrelation::build),
    (handshake::DESCRIPTION, handshake::build),
    (slow_start::DESCRIPTION, slow_start::build),
];

/// Builds the queue discipline that `spec` names, with room for `buffer`.
///
/// # Panics
/// When `spec` does not name a queue discipline; [`AlgorithmSpec::parse`] makes sure that it does.
#[must_use]
pub fn build_queue<P: Packet + Send + 'static>(
    spec: &AlgorithmSpec,
    buffer: Buffer,
    random: RandomStream,
) -> Box<dyn QueueDiscipline<P>> {
    let (description, arguments) = &spec.layers[0];
    match description.name {
        "droptail" => Box::new(drop_tail::DropTail::new(buffer)),
        "codel" => Box::new(codel::CoDelQueue::new(arguments, buffer)),
        "fq-codel" => Box::new(fq_codel::FqCoDel::new(arguments, buffer, random)),
        "pie" => Box::new(pie::Pie::new(arguments, buffer, random)),
        "dualpi2" => Box::new(dualpi2::DualPi2::new(arguments, buffer)),
        "cake" => Box::new(cake::Cake::new(arguments, buffer, random)),
        // As a type of its own it costs no indirect call a packet.
        "red" => Box::new(EarlyQueue::new(red::early(arguments, buffer), buffer, random)),
        _ => own::queue(description, arguments, buffer)
            .unwrap_or_else(|| Box::new(EarlyQueue::new(spec.build_early(buffer), buffer, random))),
    }
}

/// What an algorithm is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Congestion control at the sender.
    Congestion,
    /// Window advertisement at the receiver.
    Receiver,
    /// Queue discipline at a link.
    Queue,
    /// Estimator of round-trip times from passing packets.
    Estimator,
    /// Choice of the connection, where several carry one stream.
    Path,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::Congestion, Self::Receiver, Self::Queue, Self::Path, Self::Estimator];
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Congestion => "congestion control",
            Self::Receiver => "receive window",
            Self::Queue => "queue discipline",
            Self::Estimator => "round-trip time estimator",
            Self::Path => "path scheduler",
        })
    }
}

/// Every algorithm of a role, in the order of the registry; behind them those that the program brought along.
pub fn descriptions(role: Role) -> Vec<&'static Description> {
    let mut all = built_in(role);
    all.extend(own::descriptions(role));
    all
}

/// Every algorithm of a role that has its line here.
pub(crate) fn built_in(role: Role) -> Vec<&'static Description> {
    match role {
        Role::Congestion => {
            CONGESTION.iter().map(|(d, _)| d).chain(WRAPPERS.iter().map(|(d, _)| d)).collect()
        }
        Role::Receiver => RECEIVERS.iter().map(|(d, _)| d).collect(),
        Role::Queue => {
            let early = EARLY.iter().map(|(d, _)| d).chain(EARLY_WRAPPERS.iter().map(|(d, _)| d));
            QUEUES.iter().chain(early).collect()
        }
        Role::Estimator => ESTIMATORS.iter().map(|(d, _)| d).collect(),
        Role::Path => PATHS.iter().map(|(d, _)| d).collect(),
    }
}

/// The algorithms of a role that work over others of it.
#[derive(Default)]
struct Wrapping {
    wrappers: Vec<&'static str>,
    /// What they work over.
    inner: Vec<&'static str>,
    /// What they work over where nothing else is said.
    default: &'static str,
}

impl Wrapping {
    fn of(role: Role) -> Self {
        match role {
            Role::Congestion => Self {
                wrappers: WRAPPERS.iter().map(|(d, _)| d.name).collect(),
                inner: CONGESTION
                    .iter()
                    .map(|(d, _)| d.name)
                    .chain(own::descriptions(role).iter().map(|d| d.name))
                    .collect(),
                default: reno::DESCRIPTION.name,
            },
            Role::Queue => Self {
                wrappers: EARLY_WRAPPERS.iter().map(|(d, _)| d.name).collect(),
                inner: EARLY.iter().map(|(d, _)| d.name).collect(),
                default: red::DESCRIPTION.name,
            },
            Role::Receiver | Role::Estimator | Role::Path => Self::default(),
        }
    }
}

/// An algorithm with its parameters, chosen by name: `cubic`, `vegas:alpha=2`, `fs-at+cubic:mode=fit`.
#[derive(Debug, Clone)]
pub struct AlgorithmSpec {
    role: Role,
    /// Outermost first; the last one is no wrapper.
    layers: Vec<(&'static Description, Arguments)>,
    label: String,
}

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// Nothing of that role has the name.
    #[error("unknown {role} \"{name}\"; accepted: {accepted}")]
    UnknownName {
        /// What was looked for.
        role: Role,
        /// As the user wrote it.
        name: String,
        /// The names there are.
        accepted: String,
    },
    /// A name that is not a wrapper stands before a `+`.
    #[error("\"{name}\" does not work over another {role}; before a \"+\" accepted: {accepted}")]
    NotAWrapper {
        /// The role.
        role: Role,
        /// As the user wrote it.
        name: String,
        /// The wrappers there are.
        accepted: String,
    },
    /// What stands behind a `+` is nothing that a wrapper works over.
    #[error("\"{wrapper}\" does not work over \"{name}\"; behind a \"+\" accepted: {accepted}")]
    NotWrapped {
        /// As the user wrote it.
        name: String,
        /// What stands before it.
        wrapper: String,
        /// What there is to work over.
        accepted: String,
    },
    /// A setting is not of the form `name=value`.
    #[error("\"{text}\" is not a setting; accepted: name=value, as in vegas:alpha=2:beta=4")]
    NotASetting {
        /// As the user wrote it.
        text: String,
    },
    /// A parameter was refused.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

impl AlgorithmSpec {
    /// Reads `name[+name][:parameter=value]...`.
    ///
    /// # Errors
    /// When a name, a parameter or a value is not known; the message lists what is.
    pub fn parse(role: Role, text: &str) -> Result<Self, SpecError> {
        let mut parts = text.trim().split(':');
        let names = parts.next().unwrap_or_default();
        let mut settings = Vec::new();
        for part in parts {
            let (name, value) =
                part.split_once('=').ok_or_else(|| SpecError::NotASetting { text: part.to_owned() })?;
            settings.push((name.trim(), value.trim()));
        }
        Self::with_settings(role, names, &settings)
    }

    /// The algorithm called `names` (`fs-at+cubic`) with `settings`, pairs of parameter and value.
    ///
    /// # Errors
    /// As [`AlgorithmSpec::parse`].
    pub fn with_settings(role: Role, names: &str, settings: &[(&str, &str)]) -> Result<Self, SpecError> {
        let known = descriptions(role);
        let Wrapping { wrappers, inner, default } = Wrapping::of(role);
        let mut layers = Vec::new();
        let mut names: Vec<_> = names.split('+').map(str::trim).collect();
        if names.last().is_some_and(|last| wrappers.contains(last)) {
            names.push(default);
        }
        for (position, name) in names.iter().enumerate() {
            let description =
                known.iter().find(|d| d.name == *name).ok_or_else(|| SpecError::UnknownName {
                    role,
                    name: (*name).to_owned(),
                    accepted: known.iter().map(|d| d.name).collect::<Vec<_>>().join(", "),
                })?;
            let is_last = position + 1 == names.len();
            let name = || description.name.to_owned();
            if !is_last && !wrappers.contains(&description.name) {
                return Err(SpecError::NotAWrapper { role, name: name(), accepted: wrappers.join(", ") });
            }
            if is_last && position > 0 && !inner.contains(&description.name) {
                let wrapper = names[position - 1].to_owned();
                return Err(SpecError::NotWrapped { name: name(), wrapper, accepted: inner.join(", ") });
            }
            layers.push((*description, Arguments::defaults(description.parameters)));
        }
        let mut label = Self::short_name(&layers, default);
        for (name, text) in settings {
            let (parameter, arguments) = layers
                .iter_mut()
                .find_map(|(d, arguments)| {
                    d.parameters.iter().find(|p| p.name == *name).map(|p| (p, arguments))
                })
                .ok_or_else(|| ParameterError::Unknown {
                    algorithm: label.split(':').next().unwrap_or_default().to_owned(),
                    parameter: (*name).to_owned(),
                    accepted: Self::parameter_names(&layers_of(&names, &known)),
                })?;
            let value = parameter.parse(text)?;
            if value != parameter.default {
                label.push_str(&format!(":{name}={text}"));
            }
            arguments.set(parameter.name, value);
        }
        Ok(Self { role, layers, label })
    }

    fn short_name(layers: &[(&'static Description, Arguments)], default: &str) -> String {
        // The default below a wrapper goes without saying.
        let shown = match layers {
            [first, (inner, _)] if inner.name == default => std::slice::from_ref(first),
            all => all,
        };
        shown.iter().map(|(d, _)| d.name).collect::<Vec<_>>().join("+")
    }

    fn parameter_names(layers: &[&'static Description]) -> String {
        let names: Vec<_> = layers.iter().flat_map(|d| d.parameters).map(|p| p.name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// Whether the program brought it, or what it works over, along.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.layers.iter().any(|(description, _)| own::is_own(description))
    }

    /// What it is for.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Name of the outermost algorithm.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.layers[0].0.name
    }

    /// Name and settings that differ from the defaults: the text that parses back to this.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The colour of the outermost algorithm in every chart.
    #[must_use]
    pub fn colour(&self) -> &'static str {
        self.layers[0].0.colour
    }

    /// Every parameter with its value, outermost algorithm first.
    pub fn arguments(&self) -> impl Iterator<Item = (&'static str, crate::Value)> {
        self.layers.iter().flat_map(|(_, arguments)| arguments.iter())
    }

    /// Builds the congestion control.
    ///
    /// # Panics
    /// When this is not a congestion control.
    #[must_use]
    pub fn build_congestion(&self) -> Box<dyn CongestionControl> {
        let (wrappers, [(inner, arguments)]) = self.layers.split_at(self.layers.len() - 1) else {
            unreachable!("split_at leaves exactly one layer")
        };
        let registered = CONGESTION.iter().find(|(d, _)| d.name == inner.name);
        let innermost = registered
            .map(|(_, build)| build(arguments))
            .or_else(|| own::congestion(inner, arguments))
            .expect("parse puts a registered congestion control last");
        wrappers.iter().rev().fold(innermost, |inner, (wrapper, arguments)| {
            let (_, build) = WRAPPERS
                .iter()
                .find(|(d, _)| d.name == wrapper.name)
                .expect("parse puts only registered wrappers before the last");
            build(arguments, inner)
        })
    }

    /// Builds the early detection of a queue with room for `buffer`.
    fn build_early(&self, buffer: Buffer) -> Early<Box<dyn EarlyDetection>> {
        let (wrappers, [(inner, arguments)]) = self.layers.split_at(self.layers.len() - 1) else {
            unreachable!("split_at leaves exactly one layer")
        };
        let (_, build) = EARLY
            .iter()
            .find(|(d, _)| d.name == inner.name)
            .expect("a queue discipline that no arm of build_queue names is early detection");
        wrappers.iter().rev().fold(build(arguments, buffer), |early, (wrapper, arguments)| {
            let (_, build) = EARLY_WRAPPERS
                .iter()
                .find(|(d, _)| d.name == wrapper.name)
                .expect("parse puts only registered wrappers before the last");
            build(arguments, early)
        })
    }

    /// Builds the receive window over a receive buffer of `buffer`.
    ///
    /// # Panics
    /// When this is not a receive window.
    #[must_use]
    pub fn build_receiver(&self, buffer: suimon_units::Bytes) -> Box<dyn ReceiveWindow> {
        let (description, arguments) = &self.layers[0];
        let (_, build) = RECEIVERS
            .iter()
            .find(|(d, _)| d.name == description.name)
            .expect("parse accepts only registered receive windows for this role");
        build(buffer, arguments)
    }

    /// Builds the estimator of round-trip times.
    ///
    /// # Panics
    /// When this is not an estimator.
    #[must_use]
    pub fn build_estimator(&self) -> Box<dyn RttEstimator> {
        let (description, arguments) = &self.layers[0];
        let (_, build) = ESTIMATORS
            .iter()
            .find(|(d, _)| d.name == description.name)
            .expect("parse accepts only registered estimators for this role");
        build(arguments)
    }

    /// Builds the path scheduler.
    ///
    /// # Panics
    /// When this is not a path scheduler.
    #[must_use]
    pub fn build_path(&self) -> Box<dyn PathScheduler> {
        let (description, arguments) = &self.layers[0];
        let registered = PATHS.iter().find(|(d, _)| d.name == description.name);
        registered
            .map(|(_, build)| build(arguments))
            .or_else(|| own::path(description, arguments))
            .expect("parse accepts only registered path schedulers for this role")
    }
}

fn layers_of(names: &[&str], known: &[&'static Description]) -> Vec<&'static Description> {
    names.iter().filter_map(|name| known.iter().find(|d| d.name == *name).copied()).collect()
}

impl PartialEq for AlgorithmSpec {
    fn eq(&self, other: &Self) -> bool {
        self.role == other.role && self.label == other.label
    }
}

impl fmt::Display for AlgorithmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn congestion(text: &str) -> Result<AlgorithmSpec, SpecError> {
        AlgorithmSpec::parse(Role::Congestion, text)
    }

    #[test]
    fn a_wrapper_alone_works_over_reno() {
        assert_eq!(congestion("fs-at").unwrap().label(), "fs-at");
        assert_eq!(congestion("fs-at+reno"), congestion("fs-at"));
        assert_eq!(congestion("fs-at+cubic").unwrap().label(), "fs-at+cubic");
    }

    #[test]
    fn a_label_parses_back_and_leaves_defaults_out() {
        let spec = congestion("fs-at+cubic:mode=fit").unwrap();
        assert_eq!(spec.label(), "fs-at+cubic:mode=fit");
        assert_eq!(congestion(spec.label()), Ok(spec));
        assert_eq!(congestion("fs-at:mode=printed").unwrap().label(), "fs-at");
    }

    #[test]
    fn a_queue_discipline_over_another_is_labelled_alike() {
        let queue = |text: &str| AlgorithmSpec::parse(Role::Queue, text);
        assert_eq!(queue("dpd").unwrap().label(), "dpd");
        assert_eq!(queue("dpd+red"), queue("dpd"));
        let settings = "dpd-qt:multiplier=5:max_p=0.02";
        assert_eq!(queue(settings).unwrap().label(), settings);
        assert_eq!(queue("dpd+dpd-qt+red").unwrap().label(), "dpd+dpd-qt+red");
        let message = queue("dpd+droptail").unwrap_err().to_string();
        let expected = "\"dpd\" does not work over \"droptail\"; behind a \"+\" accepted: red";
        assert!(message.starts_with(expected), "{message}");
        let message = queue("red+dpd").unwrap_err().to_string();
        let expected = "\"red\" does not work over another queue discipline; before a \"+\" accepted: dpd";
        assert!(message.starts_with(expected), "{message}");
    }

    #[test]
    fn refusals_list_what_is_accepted() {
        let message = congestion("fast").unwrap_err().to_string();
        assert!(
            message.starts_with("unknown congestion control \"fast\"; accepted: reno, cubic"),
            "{message}"
        );
        let message = congestion("cubic+reno").unwrap_err().to_string();
        assert!(message.ends_with("accepted: fs-at"), "{message}");
        let message = congestion("vegas:gamma").unwrap_err().to_string();
        assert!(message.contains("name=value"), "{message}");
        let message = congestion("vegas:delta=1").unwrap_err().to_string();
        assert!(message.contains("vegas has no parameter \"delta\"; accepted: alpha, beta"), "{message}");
        let message = congestion("").unwrap_err().to_string();
        assert!(message.contains("accepted: reno"), "{message}");
        assert!(AlgorithmSpec::parse(Role::Queue, "fs-at").is_err());
    }
}
