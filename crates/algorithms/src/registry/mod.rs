//! Every algorithm there is: one line each, in the file of its role.

mod congestion;
mod estimate;
mod path;
mod queue;
mod receiver;
mod shaper;
mod spec;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use strum::VariantArray;

pub use self::congestion::{BuildCongestion, BuildWrapper, CONGESTION, WRAPPERS};
pub use self::estimate::{BuildEstimator, ESTIMATORS};
pub use self::path::{BuildPath, PATHS};
pub use self::queue::{BuildEarly, BuildEarlyWrapper, EARLY, EARLY_WRAPPERS, QUEUES, Queue, build_queue};
pub use self::receiver::{BuildReceiver, RECEIVERS};
pub use self::shaper::{BuildShaper, SHAPERS};
pub use self::spec::{AlgorithmSpec, SpecError};
use crate::parameters::Parameter;
use crate::user_defined::{AddError, Build, UserDefined, check_name};

/// An algorithm as users see it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Description {
    /// As written in scenarios and on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The paper or RFC that defines it.
    pub source: &'static str,
    /// Its colour in every chart, as `#rrggbb`.
    pub colour: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

impl Description {
    /// The description of the algorithm `name`.
    #[must_use]
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        source: &'static str,
        colour: &'static str,
        parameters: &'static [Parameter],
    ) -> Self {
        Self { name, summary, source, colour, parameters }
    }
}

/// The role of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, VariantArray)]
pub enum Role {
    /// Congestion control at the sender.
    Congestion,
    /// Window advertisement at the receiver.
    Receiver,
    /// Queue discipline at a link.
    Queue,
    /// Choice of the connection, where several carry one stream.
    Path,
    /// Estimator of round-trip times from passing packets.
    Estimator,
    /// Choice of the rate of a link that is shaped.
    Shaper,
}

impl Role {
    /// Every role.
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Congestion => "congestion control",
            Self::Receiver => "receive window",
            Self::Queue => "queue discipline",
            Self::Path => "path scheduler",
            Self::Estimator => "round-trip time estimator",
            Self::Shaper => "shaper",
        })
    }
}

/// The algorithms that names stand for: the built-in lines, and behind them those that a program adds.
///
/// A clone is cheap, and shares the lines added so far. An [`AlgorithmSpec`] keeps the builder of its algorithm,
/// so the registry that it was read with may change or end.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    added: Vec<Arc<UserDefined>>,
}

impl Registry {
    /// The built-in lines alone.
    #[must_use]
    pub const fn standard() -> Self {
        Self { added: Vec::new() }
    }

    /// Adds an algorithm. An algorithm of the same role and name that was added before goes on where it is in use, and
    /// is not found any more.
    ///
    /// # Errors
    /// When a built-in line has the name, or it is none.
    pub fn add(&mut self, description: Description, build: Build) -> Result<(), AddError> {
        check_name(description.name)?;
        self.added.retain(|one| one.description.name != description.name || one.build.role() != build.role());
        self.added.push(Arc::new(UserDefined { description, build }));
        Ok(())
    }

    /// Every algorithm of a role: the built-in lines in their order, then those added.
    #[must_use]
    pub fn descriptions(&self, role: Role) -> Vec<&Description> {
        descriptions(role).into_iter().chain(self.added(role).map(|one| &one.description)).collect()
    }

    /// Reads `name[+name][:parameter=value]...`.
    ///
    /// # Errors
    /// When a name, a parameter or a value is not known; the message lists what is.
    pub fn parse(&self, role: Role, text: &str) -> Result<AlgorithmSpec, SpecError> {
        AlgorithmSpec::read(self, role, text)
    }

    fn added(&self, role: Role) -> impl Iterator<Item = &Arc<UserDefined>> {
        self.added.iter().filter(move |one| one.build.role() == role)
    }

    /// The registered name of the role that `text` spells in another way: in capitals, or with other marks between the
    /// parts (`BBR`, `fq_codel`); else `text`.
    #[must_use]
    pub fn registered<'a>(&'a self, role: Role, text: &'a str) -> &'a str {
        let letters = |text: &'a str| {
            text.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).map(|c| c.to_ascii_lowercase())
        };
        let known = || self.descriptions(role).into_iter().map(|description| description.name);
        let is_known = known().any(|name| name == text);
        let spelled = known().find(|name| !is_known && letters(name).eq(letters(text)));
        spelled.unwrap_or(text)
    }

    /// The algorithm of that name in the role.
    fn find(&self, role: Role, name: &str) -> Option<Line> {
        let built_in = descriptions(role).into_iter().find(|d| d.name == name).map(Line::BuiltIn);
        let added = || self.added(role).find(|one| one.description.name == name);
        built_in.or_else(|| added().map(|one| Line::UserDefined(Arc::clone(one))))
    }
}

/// A line of the registry.
#[derive(Debug, Clone)]
enum Line {
    BuiltIn(&'static Description),
    UserDefined(Arc<UserDefined>),
}

impl Line {
    fn description(&self) -> &Description {
        match self {
            Self::BuiltIn(description) => description,
            Self::UserDefined(one) => &one.description,
        }
    }

    /// The builder, where a program added the line.
    fn user_defined(&self) -> Option<&Build> {
        match self {
            Self::BuiltIn(_) => None,
            Self::UserDefined(one) => Some(&one.build),
        }
    }
}

/// Every built-in algorithm of a role, in the order of the lists.
#[must_use]
pub fn descriptions(role: Role) -> Vec<&'static Description> {
    match role {
        Role::Congestion => described(CONGESTION).chain(described(WRAPPERS)).collect(),
        Role::Receiver => described(RECEIVERS).collect(),
        Role::Queue => QUEUES.iter().chain(described(EARLY)).chain(described(EARLY_WRAPPERS)).collect(),
        Role::Path => described(PATHS).collect(),
        Role::Estimator => described(ESTIMATORS).collect(),
        Role::Shaper => described(SHAPERS).collect(),
    }
}

fn described<B>(lines: &'static [(Description, B)]) -> impl Iterator<Item = &'static Description> {
    lines.iter().map(|(description, _)| description)
}

/// The builder of the algorithm that `description` names.
fn builder<B: Copy>(lines: &[(Description, B)], description: &Description) -> Option<B> {
    lines.iter().find(|(known, _)| known.name == description.name).map(|(_, build)| *build)
}
