//! Parts of the command that a build may lack: each is a cargo feature, all are on by default.

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::Args;
use suimon_study::VERSION;

use crate::error::CliError;

/// A part: its cargo feature, and what it brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    feature: &'static str,
    brings: &'static str,
    is_here: bool,
}

/// Defines parts and the list of all.
macro_rules! parts {
    ($($name:ident $feature:literal: $brings:literal;)*) => {
        impl Part {
            $(pub(crate) const $name: Self =
                Self { feature: $feature, brings: $brings, is_here: cfg!(feature = $feature) };)*
            const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

parts! {
    BOND "bond": "several interfaces as one";
    BPF "bpf": "congestion control and queue policies for the kernel";
    CAPTURE "capture": "packet captures";
    GATEWAY "gateway": "split TCP in front of a radio";
    LIVE "live": "emulated links";
    MEASURE "measure": "a line measured from both ends";
    PARQUET "parquet": "Parquet files";
    VIEW "view": "links shown while they run";
}

impl Part {
    /// Refuses what needs this part, where this build lacks it.
    pub(crate) fn require(self) -> Result<(), CliError> {
        if self.is_here { Ok(()) } else { self.refuse() }
    }

    /// The refusal of what needs this part.
    pub(crate) fn refuse<T>(self) -> Result<T, CliError> {
        Err(CliError::Without(self))
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (cargo feature \"{}\")", self.brings, self.feature)
    }
}

/// What `suimon --version` says: the version, and the parts that this build lacks.
pub(crate) static VERSION_LINE: LazyLock<String> = LazyLock::new(|| {
    let missing: Vec<_> = Part::ALL.iter().filter(|part| !part.is_here).map(|part| part.feature).collect();
    if missing.is_empty() { VERSION.to_owned() } else { format!("{VERSION} without {}", missing.join(", ")) }
});

/// Not in this build
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Anything {
    /// Whatever would have been done
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<OsString>,
}

/// The module of a command that needs a part; where this build lacks that part, one that takes anything and says why it
/// is refused.
macro_rules! module_of_part {
    ($feature:literal, $part:ident, $module:ident) => {
        #[cfg(feature = $feature)]
        mod $module;
        #[cfg(not(feature = $feature))]
        mod $module {
            pub(crate) use crate::part::Anything as Arguments;

            pub(crate) fn execute<T>(_arguments: &Arguments) -> Result<T, crate::error::CliError> {
                crate::part::Part::$part.refuse()
            }
        }
    };
}
