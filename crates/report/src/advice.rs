//! What to change, as runs rank it.

use std::sync::Arc;

use serde::Serialize;

use crate::grade::Grade;
use crate::numbers::significant;
use crate::table::{Table, TableBuilder};

/// The axis of runs under a change.
pub const CHANGE_AXIS: &str = "change";
/// The value of [`CHANGE_AXIS`] of the run without a change.
pub const UNCHANGED: &str = "as it is";

/// A change that was tried, what it does for the call, and how it is made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The change in a few words.
    pub change: String,
    /// The call's grade without the change.
    pub grade_before: Grade,
    /// The call's grade under it.
    pub grade: Grade,
    /// 95th percentile of the time that packets of the call wait in queues without the change, in the worse direction.
    pub waiting_before_ms: f64,
    /// The same under it.
    pub waiting_ms: f64,
    /// Share of the call's packets that are lost without the change, in the worse direction.
    pub loss_before_percent: f64,
    /// The same under it.
    pub loss_percent: f64,
    /// Difference in the goodput of downloads and uploads.
    pub goodput_percent: f64,
    /// Median time that a small web page takes without the change.
    pub page_before_s: Option<f64>,
    /// The same under it.
    pub page_s: Option<f64>,
    /// Commands and entries of menus that make it.
    pub how: Vec<String>,
}

/// The rank of a change among others, least best: the steps of its grade below the best one, and one for each 20 % of the
/// goodput that it costs; `goodput` is relative to that without a change.
#[must_use]
pub fn rank(grade: Grade, goodput: f64) -> u8 {
    /// What counts as a grade.
    const COST: f64 = 0.2;
    grade as u8 + ((1.0 - goodput) / COST).clamp(0.0, 5.0) as u8
}

impl Advice {
    /// What the change does, in a line.
    #[must_use]
    pub fn effect(&self) -> String {
        let mut parts = vec![
            format!(
                "the call waits {} -> {} ms",
                significant(self.waiting_before_ms),
                significant(self.waiting_ms)
            ),
            format!(
                "loses {} -> {} %",
                significant(self.loss_before_percent),
                significant(self.loss_percent)
            ),
        ];
        if let (Some(before), Some(after)) = (self.page_before_s, self.page_s) {
            parts.push(format!("a page takes {} -> {} s", significant(before), significant(after)));
        }
        parts.push(format!("goodput {:+.0} %", self.goodput_percent));
        parts.push(format!("grade {} -> {}", self.grade_before, self.grade));
        parts.join(", ")
    }
}

/// The ranked changes as a table, best first; what makes each is a line a step.
#[must_use]
pub fn advice_table(advice: &[Advice]) -> Table {
    let mut t = TableBuilder::new("advice", advice);
    t.text("change", |a| Some(Arc::from(a.change.as_str())));
    t.text("grade_before", |a| Some(Arc::from(a.grade_before.to_string())));
    t.text("grade", |a| Some(Arc::from(a.grade.to_string())));
    t.number("waiting_before_ms", |a| Some(a.waiting_before_ms));
    t.number("waiting_ms", |a| Some(a.waiting_ms));
    t.number("loss_before_percent", |a| Some(a.loss_before_percent));
    t.number("loss_percent", |a| Some(a.loss_percent));
    t.number("goodput_percent", |a| Some(a.goodput_percent));
    t.number("page_before_s", |a| a.page_before_s);
    t.number("page_s", |a| a.page_s);
    t.text("how", |a| Some(Arc::from(a.how.join("\n"))));
    t.build()
}

/// The ranked changes for a terminal, each with what makes it.
#[must_use]
pub fn terminal_advice(advice: &[Advice]) -> String {
    if advice.is_empty() {
        return "What to change: no change that was tried makes the call wait less.\n".to_owned();
    }
    let mut text =
        "What to change, best first, by a run of each. 95 % of the call's packets wait no longer than said; a fifth of the \
         goodput counts as a grade.\n"
            .to_owned();
    for (nth, advice) in advice.iter().enumerate() {
        text += &format!("\n{}. {}: {}\n", nth + 1, advice.change, advice.effect());
        for line in &advice.how {
            text += &format!("   {line}\n");
        }
    }
    text
}
