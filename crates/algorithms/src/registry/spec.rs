//! An algorithm chosen by name, with its settings.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{CONGESTION, Description, EARLY, EARLY_WRAPPERS, Line, Registry, Role, WRAPPERS, described};
use super::{congestion, queue};
use crate::parameters::{Arguments, ParameterError, Value};
use crate::user_defined::Build;

/// An algorithm with its parameters, chosen by name: `cubic`, `vegas:alpha=2`, `fs-at+cubic:mode=fit`.
#[derive(Debug, Clone)]
pub struct AlgorithmSpec {
    role: Role,
    /// Outermost first; the last one is no wrapper. There is one at least.
    layers: Vec<Layer>,
    label: String,
}

/// One of the algorithms that a spec names, with its settings.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    line: Line,
    pub(super) arguments: Arguments,
}

impl Layer {
    pub(super) fn description(&self) -> &Description {
        self.line.description()
    }

    /// The builder, where a program added the algorithm.
    pub(super) fn user_defined(&self) -> Option<&Build> {
        self.line.user_defined()
    }
}

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// Nothing of that role has the name.
    #[error("unknown {role} \"{name}\"; accepted: {accepted}")]
    UnknownName {
        /// The role.
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
    /// The wrapper does not work over the name behind the `+`.
    #[error("\"{wrapper}\" does not work over \"{name}\"; behind a \"+\" accepted: {accepted}")]
    NotWrapped {
        /// As the user wrote it.
        name: String,
        /// The wrapper before the `+`.
        wrapper: String,
        /// The names that the wrapper works over.
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
    /// Reads `name[+name][:parameter=value]...` of the built-in algorithms; [`Registry::parse`] also knows others.
    ///
    /// # Errors
    /// When a name, a parameter or a value is not known; the message lists what is.
    pub fn parse(role: Role, text: &str) -> Result<Self, SpecError> {
        Registry::standard().parse(role, text)
    }

    pub(super) fn read(registry: &Registry, role: Role, text: &str) -> Result<Self, SpecError> {
        let mut parts = text.trim().split(':');
        let names = parts.next().unwrap_or_default();
        let mut settings = Vec::new();
        for part in parts {
            let (name, value) =
                part.split_once('=').ok_or_else(|| SpecError::NotASetting { text: part.to_owned() })?;
            settings.push((name.trim(), value.trim()));
        }
        Self::with_settings(registry, role, names, &settings)
    }

    /// The algorithm called `names` (`fs-at+cubic`) with `settings`, pairs of parameter and value.
    fn with_settings(
        registry: &Registry,
        role: Role,
        names: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self, SpecError> {
        let Wrapping { wrappers, inner, below } = Wrapping::of(registry, role);
        let mut layers = Vec::new();
        let mut names: Vec<_> = names.split('+').map(|name| registry.registered(role, name.trim())).collect();
        if let Some(wrapper) = names.last().filter(|last| wrappers.contains(last)) {
            names.push(below(wrapper));
        }
        for (position, name) in names.iter().enumerate() {
            let line = registry.find(role, name).ok_or_else(|| SpecError::UnknownName {
                role,
                name: (*name).to_owned(),
                accepted: self::names(registry.descriptions(role)).join(", "),
            })?;
            let is_last = position + 1 == names.len();
            if !is_last && !wrappers.contains(name) {
                let name = (*name).to_owned();
                return Err(SpecError::NotAWrapper { role, name, accepted: wrappers.join(", ") });
            }
            if is_last && position > 0 && !inner.contains(name) {
                let wrapper = names[position - 1].to_owned();
                let name = (*name).to_owned();
                return Err(SpecError::NotWrapped { name, wrapper, accepted: inner.join(", ") });
            }
            let arguments = Arguments::defaults(line.description().parameters);
            layers.push(Layer { line, arguments });
        }
        let mut label = Self::short_name(&layers, below);
        for (name, text) in settings {
            let Some((parameter, arguments)) = layers.iter_mut().find_map(|Layer { line, arguments }| {
                let parameter = line.description().parameters.iter().find(|p| p.name == *name)?;
                Some((parameter, arguments))
            }) else {
                return Err(SpecError::Parameter(ParameterError::Unknown {
                    algorithm: label.split(':').next().unwrap_or_default().to_owned(),
                    parameter: (*name).to_owned(),
                    accepted: Self::parameter_names(&layers),
                }));
            };
            let value = parameter.parse(text)?;
            if value != parameter.default {
                label.push_str(&format!(":{name}={text}"));
            }
            arguments.set(parameter.name, value);
        }
        Ok(Self { role, layers, label })
    }

    fn short_name(layers: &[Layer], below: fn(&str) -> &'static str) -> String {
        // The default below a wrapper goes without saying.
        let shown = match layers {
            [first, inner] if inner.description().name == below(first.description().name) => {
                core::slice::from_ref(first)
            }
            all => all,
        };
        shown.iter().map(|layer| layer.description().name).collect::<Vec<_>>().join("+")
    }

    fn parameter_names(layers: &[Layer]) -> String {
        let parameters = layers.iter().flat_map(|layer| layer.description().parameters);
        let names: Vec<_> = parameters.map(|parameter| parameter.name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// Whether a program added it, or an algorithm that it works over, to the registry.
    #[must_use]
    pub fn is_user_defined(&self) -> bool {
        self.layers.iter().any(|layer| layer.user_defined().is_some())
    }

    /// The role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Name of the outermost algorithm.
    #[must_use]
    pub fn name(&self) -> &str {
        self.layers[0].description().name
    }

    /// Name and settings that differ from the defaults: the text that parses back to this.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The colour of the outermost algorithm in every chart.
    #[must_use]
    pub fn colour(&self) -> &str {
        self.layers[0].description().colour
    }

    /// The outermost algorithm.
    ///
    /// # Panics
    /// When this is not of `role`.
    pub(super) fn outermost(&self, role: Role) -> &Layer {
        assert_eq!(self.role, role, "{self} was read as another");
        &self.layers[0]
    }

    /// The algorithms that work over others, outermost first, and the one below them all.
    ///
    /// # Panics
    /// As [`AlgorithmSpec::outermost`].
    pub(super) fn wrappers_and_inner(&self, role: Role) -> (&[Layer], &Layer) {
        assert_eq!(self.role, role, "{self} was read as another");
        let (inner, wrappers) = self.layers.split_last().expect("a name has a part");
        (wrappers, inner)
    }

    /// Every parameter with its value, outermost algorithm first.
    pub fn arguments(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.layers.iter().flat_map(|layer| layer.arguments.iter())
    }
}

/// The algorithms of a role that work over others of it.
struct Wrapping<'a> {
    wrappers: Vec<&'a str>,
    /// The algorithms that they work over.
    inner: Vec<&'a str>,
    /// The algorithm below a wrapper where the name gives none.
    below: fn(&str) -> &'static str,
}

impl<'a> Wrapping<'a> {
    fn of(registry: &'a Registry, role: Role) -> Self {
        match role {
            Role::Congestion => Self {
                wrappers: names(described(WRAPPERS)),
                inner: congestion_controls(registry),
                below: congestion::below,
            },
            Role::Queue => Self {
                wrappers: names(described(EARLY_WRAPPERS)),
                inner: names(described(EARLY)),
                below: |_| queue::BELOW,
            },
            Role::Receiver | Role::Path | Role::Estimator | Role::Shaper => {
                Self { wrappers: Vec::new(), inner: Vec::new(), below: |_| "" }
            }
        }
    }
}

fn congestion_controls(registry: &Registry) -> Vec<&str> {
    let added = registry.added(Role::Congestion).map(|one| one.description.name);
    names(described(CONGESTION)).into_iter().chain(added).collect()
}

fn names<'a>(all: impl IntoIterator<Item = &'a Description>) -> Vec<&'a str> {
    all.into_iter().map(|description| description.name).collect()
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
        assert!(message.ends_with("accepted: fs-at, fs-at-open, hystart-plus-plus, abe"), "{message}");
        let message = congestion("vegas:gamma").unwrap_err().to_string();
        assert!(message.contains("name=value"), "{message}");
        let message = congestion("vegas:delta=1").unwrap_err().to_string();
        assert!(message.contains("vegas has no parameter \"delta\"; accepted: alpha, beta"), "{message}");
        let message = congestion("").unwrap_err().to_string();
        assert!(message.contains("accepted: reno"), "{message}");
        assert!(AlgorithmSpec::parse(Role::Queue, "fs-at").is_err());
    }
}
