//! What an experiment is: hosts, routers and links, the flows over them, and what to record.
//!
//! A [`Scenario`] is what the simulator runs and the emulator follows. [`Scenario::check`] says whether it can be run;
//! `suimon-scenario` reads one from files and from lines of text, and has checked it.

#![forbid(unsafe_code)]

mod capacity;
mod check;
mod error;
mod flow;
mod halves;
mod impairments;
mod link;
mod profile;
mod run;
mod scenario;
mod topology;

pub use capacity::{Capacity, Cell, Hsdpa, Medium, Serving, radios};
pub use error::{Invalid, Problem};
pub use flow::{
    Aggregate, DEFAULT_RECEIVER, Flow, Gateway, OnOff, RECEIVERS_SENDER, Start, TcpFlow, Traffic, UdpFlow,
    scheme_label,
};
pub use impairments::{Detour, ImpairmentState, Impairments, Loss, Outage, Reordering};
pub use link::Link;
pub use profile::{
    AfterSilence, CwndValidation, LossDetection, RecoveryAlgorithm, RtoMinimum, RttSample, StackProfile,
};
pub use run::Run;
pub use scenario::{Record, Scenario, Window};
pub use suimon_algorithms::queue::Buffer;
pub use suimon_radio as radio;
