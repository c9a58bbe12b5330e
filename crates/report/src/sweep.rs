//! Telling apart axes that name things (algorithms) from axes that sweep over a quantity (rates).

use suimon_results::RunResult;
use suimon_units::{Bytes, Duration, Probability, Rate};

use crate::page::Unit;

/// The number that an axis value stands for, where it is a quantity: `1Mbit`, `90ms`, `0.5%`, `16`.
pub(crate) fn quantity(value: &str) -> Option<f64> {
    let number = value.parse::<f64>().ok();
    let rate = || value.parse::<Rate>().ok().map(Rate::as_bps_f64);
    let time = || value.parse::<Duration>().ok().map(Duration::as_secs_f64);
    let size = || value.parse::<Bytes>().ok().map(Bytes::as_f64);
    let share = || value.parse::<Probability>().ok().map(Probability::get);
    number.or_else(rate).or_else(time).or_else(size).or_else(share).filter(|number| number.is_finite())
}

/// The unit of an axis whose values are quantities.
pub(crate) fn unit(value: &str) -> Unit {
    if value.parse::<f64>().is_ok() {
        Unit::Other(String::new())
    } else if value.parse::<Rate>().is_ok() {
        Unit::BitsPerSecond
    } else if value.parse::<Duration>().is_ok() {
        Unit::Seconds
    } else if value.parse::<Bytes>().is_ok() {
        Unit::Bytes
    } else {
        Unit::Other(String::new())
    }
}

/// The axis over which curves run from point to point: the first whose values are all quantities and
/// of which there are at least two. Seeds are repetitions, not a quantity.
pub(crate) fn swept_axis(runs: &[RunResult]) -> Option<String> {
    let first = runs.first()?;
    let swept = |axis: &str| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| quantity(label(run, axis)?)).collect();
        values.is_some_and(|values| values.windows(2).any(|pair| pair[0].total_cmp(&pair[1]).is_ne()))
    };
    first.labels.iter().map(|(axis, _)| axis).find(|axis| *axis != "seed" && swept(axis)).cloned()
}

/// The value of `axis` in `run`.
pub(crate) fn label<'a>(run: &'a RunResult, axis: &str) -> Option<&'a str> {
    run.labels.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::run;

    #[test]
    fn quantities_are_told_from_names() {
        assert_eq!(quantity("1.4Mbit"), Some(1.4e6));
        assert_eq!(quantity("90ms"), Some(0.09));
        assert_eq!(quantity("96kB"), Some(96_000.0));
        assert_eq!(quantity("0.5%"), Some(0.005));
        assert_eq!(quantity("16"), Some(16.0));
        assert_eq!(quantity("cubic"), None);
        assert_eq!(quantity("inf"), None);
        let units = ["1.4Mbit", "90ms", "96kB", "16", "0.5%"].map(unit);
        assert_eq!(units.each_ref().map(Unit::as_str), ["bps", "s", "bytes", "", ""]);
    }

    #[test]
    fn the_swept_axis_has_quantities_that_differ_and_is_not_the_seed() {
        let runs = |axes: &[&[(&str, &str)]]| -> Vec<RunResult> {
            axes.iter().map(|labels| run(labels, vec![], vec![])).collect()
        };
        let matrix = runs(&[
            &[("cc", "reno"), ("seed", "1"), ("delay", "9ms"), ("rate", "1Mbit")],
            &[("cc", "reno"), ("seed", "2"), ("delay", "9ms"), ("rate", "2Mbit")],
        ]);
        assert_eq!(swept_axis(&matrix).as_deref(), Some("rate"));
        assert_eq!(swept_axis(&runs(&[&[("cc", "reno")], &[("cc", "cubic")]])), None);
        assert_eq!(swept_axis(&[]), None);
    }
}
