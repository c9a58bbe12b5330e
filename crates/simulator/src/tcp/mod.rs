//! TCP's mechanics, apart from congestion control: connection, scoreboard, recovery, timers, windows.

mod delayed_ack;
mod ranges;
mod rcv_ssthresh;
mod receiver;
mod recovery;
mod rto;
mod sack_compression;
mod scoreboard;
mod sender;
mod source;

pub(crate) use receiver::Receiver;
pub(crate) use sender::{Counters, Sender};
pub(crate) use source::Source;
