//! Live runs of a command that was built without them: each is refused.

use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_study::Pair;

use crate::error::CliError;
use crate::part::Part;
use crate::view::ViewOptions;

pub(crate) fn live(_runs: &[Run], _view: &ViewOptions) -> Result<Vec<RunResult>, CliError> {
    Part::LIVE.refuse()
}

pub(crate) fn beside_simulation(_runs: &[Run], _view: &ViewOptions) -> Result<Vec<Pair>, CliError> {
    Part::LIVE.refuse()
}
