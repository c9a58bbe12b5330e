//! Views of results: terminal tables, CSV, Parquet, JSON and one self-contained HTML page.
//!
//! Every view takes the [`RunResult`](suimon_results::RunResult)s of one command and a
//! [`ReportHeader`] that says what made them, and gives the same bytes for the same input: no view
//! asks for the time, the host or the environment.

#![forbid(unsafe_code)]

mod advice;
mod capture;
mod csv;
mod document;
mod error;
mod estimate;
mod grade;
mod header;
mod heat_map;
mod json;
mod numbers;
mod observations;
mod page;
#[cfg(feature = "parquet")]
mod parquet;
mod results_table;
#[cfg(test)]
mod samples;
mod sentence;
mod streams;
mod summary;
mod svg;
mod sweep;
mod table;
mod tables;
mod terminal;
mod topology;
mod verdict;

pub use crate::advice::{Advice, CHANGE_AXIS, UNCHANGED, advice_table, rank, terminal_advice};
pub use crate::capture::{
    CaptureTables, capture_figures, capture_json, capture_losses, capture_notes, capture_page_tables,
    capture_verdict, terminal_capture,
};
pub use crate::csv::write_csv;
pub use crate::error::ReportError;
pub use crate::estimate::Estimate;
pub use crate::grade::{GRADE_THRESHOLDS, Grade, LOSS_THRESHOLDS};
pub use crate::header::ReportHeader;
pub use crate::heat_map::{Heat, HeatMap, terminal_heat_maps};
pub use crate::json::{JSON_SCHEMA_VERSION, JsonDetail, json, write_json};
pub use crate::observations::observations;
pub use crate::page::{
    Axis, Figure, FigureSeries, Page, Point, Scale, SeriesStyle, TextRow, TextTable, Unit,
    delay_distribution, throughput_against_backlog,
};
#[cfg(feature = "parquet")]
pub use crate::parquet::write_parquet;
pub use crate::sentence::sentence;
pub use crate::streams::StreamTotals;
pub use crate::summary::{FlowTotals, RunSummary, summarise};
pub use crate::table::{Numbers, Table, TableColumn, Values};
pub use crate::tables::Tables;
pub use crate::terminal::{
    TerminalOptions, latex, terminal, terminal_misses, terminal_summary, terminal_verdicts,
};
pub use crate::topology::{Topology, TopologyFlows, TopologyLink};
pub use crate::verdict::{Basis, Headings, Verdict, VerdictRow, VerdictTable};
pub use svg::{Curve, Panel, Picture};
