//! Why a capture was refused.

use std::io;

/// A capture that cannot be read, and where.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct CaptureError {
    /// The file as the user wrote it, or "standard input".
    pub file: String,
    /// The problem.
    pub problem: CaptureProblem,
}

/// A problem of a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureProblem {
    /// The operating system refused.
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),
    /// The file is empty.
    #[error("empty; accepted: a pcap or pcapng capture")]
    Empty,
    /// The file is no capture.
    #[error("not a capture; accepted: pcap and pcapng, as tcpdump -w and Wireshark write them")]
    NotACapture,
    /// The file is compressed.
    #[error(
        "compressed; accepted: pcap and pcapng, so give it as {program} -dc FILE | suimon estimate --pcap -"
    )]
    Compressed {
        /// The program that decompresses it.
        program: &'static str,
    },
    /// The file ends before the first packet could begin.
    #[error("ends within its header, after {bytes} bytes")]
    HeaderCutOff {
        /// How long it is.
        bytes: u64,
    },
    /// Its packets start with headers that are not known here.
    #[error("link type {link_type} is not known; accepted: {accepted}")]
    LinkType {
        /// Its number in the registry of tcpdump.org.
        link_type: i32,
        /// The accepted link types.
        accepted: &'static str,
    },
    /// A place where no packet can be found, nor the start of the next.
    #[error("damaged at byte {offset}, after {packets} packets: {what}")]
    Damaged {
        /// Where, from the start of the file.
        offset: u64,
        /// How many packets were read before.
        packets: u64,
        /// The data found there.
        what: &'static str,
    },
}
