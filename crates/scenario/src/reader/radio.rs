//! What radios are before their keys say: every key that must be there replaces a part.

use suimon_model::{Cell, Hsdpa, Medium};
use suimon_radio::hsdpa::{Policy, UserParameters};
use suimon_radio::wlan::{Parameters, Standard};
use suimon_units::{Decibels, Rate};

/// A terminal that stands still.
pub(super) fn any_terminal() -> Hsdpa {
    let profile = "ST".parse().expect("the profile of a terminal that stands still");
    Hsdpa::new(UserParameters::new(profile, Decibels::ZERO))
}

/// A cell without a name.
pub(super) fn any_cell() -> Cell {
    Cell { name: String::new(), scheduler: Policy::RoundRobin }
}

/// A medium without a name.
pub(super) fn any_medium() -> Medium {
    Medium { name: String::new(), parameters: Parameters::new(Standard::B, Rate::ZERO) }
}
