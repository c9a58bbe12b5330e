//! Links shown while they run, of a command that was built without it: each wish is refused.

use clap::Args;

/// Options of commands that emulate links; not in this build.
#[derive(Debug, Args, Default)]
pub(crate) struct ViewOptions {
    #[arg(long, hide = true)]
    view: bool,
    #[arg(long, hide = true)]
    web: Option<String>,
}

impl ViewOptions {
    /// Whether anything is to be shown.
    pub(crate) fn is_wanted(&self) -> bool {
        self.view || self.web.is_some()
    }
}

#[cfg(feature = "live")]
mod shown {
    use suimon_emulator::LinkStatistics;
    use suimon_linux::terminal::PseudoTerminal;

    use super::ViewOptions;
    use crate::error::CliError;
    use crate::part::Part;

    /// Whoever shows links: nobody can.
    #[derive(Debug)]
    pub(crate) enum View {}

    impl View {
        pub(crate) fn post(&self, _group: &str, _links: &[LinkStatistics]) {
            match *self {}
        }

        pub(crate) fn has_terminal(&self) -> bool {
            match *self {}
        }
    }

    impl Drop for View {
        fn drop(&mut self) {
            match *self {}
        }
    }

    impl ViewOptions {
        pub(crate) fn takes_terminal(&self) -> Result<bool, CliError> {
            if self.is_wanted() { Part::VIEW.refuse() } else { Ok(false) }
        }

        pub(crate) fn show(&self, _title: &str, _program: Option<PseudoTerminal>) -> Result<View, CliError> {
            Part::VIEW.refuse()
        }
    }
}

#[cfg(feature = "live")]
pub(crate) use shown::View;
