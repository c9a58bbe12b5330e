#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod config;
mod deliveries;
#[cfg(feature = "noq-1")]
mod noq_1;
#[cfg(feature = "quinn-0-11")]
mod quinn_0_11;
mod sender;
mod watch;

pub use config::{SenderConfig, SenderError};
pub use sender::{Loss, Sender};
pub use watch::{Seen, Watch};

/// The code of the page, which has to build.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/quic.md")]
struct Page;
