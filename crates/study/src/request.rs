//! Requests, whose fields are options.

use clap::{Args, Command};

/// The request of which nothing is said: each field has its option's default.
///
/// # Panics
/// When an option has no default that reads, and may not be left out.
#[must_use]
pub fn defaults<R: Args>() -> R {
    let nothing = R::augment_args(Command::new("suimon")).get_matches_from(["suimon"]);
    R::from_arg_matches(&nothing).expect("each option has a default that reads, or may be left out")
}
