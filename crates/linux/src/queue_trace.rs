//! A trace of the packets that a queue's policy judged in the kernel, and the same policy in Rust on these packets.
//!
//! A trace is lines of JSON: a [`Head`], then a [`Record`] for each packet.

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};
use suimon_algorithms::queue::integer::{
    MAX_BACKLOG, MAX_NOW_NS, MAX_SIZE, Program, ProgramError, Settings, WORDS,
};
use suimon_algorithms::queue::policy::{Arrival, Verdict};
use suimon_algorithms::queue::{Backlog, DropReason, Ecn, FlowId};
use suimon_units::{Bytes, Instant};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first line of a trace: the policy, and its settings as the program has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The policy's name.
    pub policy: String,
    /// The rate of the link behind it.
    pub bytes_per_second: u64,
    /// The room of the queue.
    pub buffer_bytes: u64,
    /// What the generator of random numbers begins with.
    pub seed: u64,
    /// The policy's own numbers.
    pub words: [u64; WORDS],
}

/// A packet that arrived, and the verdict on it, as `bpf/queue/device.h` lays them out.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Record {
    /// Packets that arrived before it, since the policy was loaded: a gap means that records were lost.
    pub number: u64,
    /// The kernel's clock, in ns.
    pub now_ns: u64,
    /// The queue that it found.
    pub backlog_bytes: u64,
    /// The same in packets.
    pub backlog_packets: u64,
    /// Its size without the link's header.
    pub size_bytes: u64,
    /// The kernel's hash of its flow.
    pub flow: u32,
    /// Its ECN field: 0 where the transport does not understand marks.
    pub ecn: u16,
    /// 1: it opens a connection, and the policy has a use for that.
    #[serde(default)]
    pub opens_connection: u16,
    /// 0: passed, 1: marked, 2: dropped, 3: found no room.
    pub verdict: u32,
    /// Segments in it.
    pub segments: u32,
}

/// Verdicts by their numbers in a record, as `bpf/queue/policy.h` has them.
const VERDICTS: [Verdict; 4] =
    [Verdict::Pass, Verdict::Mark, Verdict::Drop(DropReason::Early), Verdict::Drop(DropReason::Overflow)];

impl Record {
    /// The verdict; none where no program writes this number.
    pub fn verdict(&self) -> Option<Verdict> {
        VERDICTS.get(self.verdict as usize).copied()
    }

    fn arrival(&self) -> Arrival {
        Arrival {
            now: Instant::from_nanos(self.now_ns),
            flow: FlowId(self.flow),
            size: Bytes::new(self.size_bytes),
            ecn: match self.ecn {
                0 => Ecn::NotCapable,
                1 => Ecn::L4s,
                2 => Ecn::Capable,
                _ => Ecn::CongestionExperienced,
            },
            opens_connection: self.opens_connection != 0,
            backlog: Backlog { packets: self.backlog_packets, bytes: Bytes::new(self.backlog_bytes) },
        }
    }

    /// The first number that no program writes, with what is accepted; `before` is the time of the packet before.
    fn wrong(&self, before: u64) -> Option<(&'static str, u64, u64, u64)> {
        let numbers = [
            ("now_ns", self.now_ns, before, MAX_NOW_NS),
            ("size_bytes", self.size_bytes, 1, MAX_SIZE),
            ("backlog_bytes", self.backlog_bytes, 0, MAX_BACKLOG),
            ("backlog_packets", self.backlog_packets, 0, MAX_BACKLOG),
        ];
        numbers.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value))
    }
}

/// The outcome of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// The policy's name.
    pub policy: &'static str,
    /// Packets that were judged.
    pub packets: usize,
    /// Packets on which the verdicts differ.
    pub differ: usize,
    /// Whether a packet is missing in the trace, behind which none can be judged.
    pub is_cut: bool,
}

/// The reason that a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It has no line.
    #[error("this is empty; accepted: a trace by --json --afresh")]
    Empty,
    /// A line is none of a trace.
    #[error("line {line}: {source}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The reason.
        source: serde_json::Error,
    },
    /// The first line has settings that no program has.
    #[error("line 1: {0}")]
    Settings(#[from] ProgramError),
    /// The trace begins in the middle.
    #[error("packet 0 is missing; accepted: a trace by --json --afresh")]
    NoFirst,
    /// A packet that no program records.
    #[error("packet {packet}: {what}: {value}; accepted: {least} to {most}")]
    OutOfRange {
        /// Its number.
        packet: u64,
        /// Which of its numbers.
        what: &'static str,
        /// As it was given.
        value: u64,
        /// The least that is accepted.
        least: u64,
        /// The most.
        most: u64,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Lets the policy in Rust judge the packets of `trace`, and compares its verdicts with those in the trace.
///
/// # Errors
/// The trace cannot be read, or no program wrote it.
pub fn replay(trace: impl BufRead) -> Result<Replayed, ReplayError> {
    let mut lines = trace.lines();
    let head = lines.next().ok_or(ReplayError::Empty)??;
    let Head { policy: name, bytes_per_second, buffer_bytes, seed, words } =
        serde_json::from_str(&head).map_err(|source| ReplayError::Line { line: 1, source })?;
    let program = Program::named(&name)?;
    let mut policy = program.policy(&Settings { bytes_per_second, buffer_bytes, seed, words })?;
    let mut records = Vec::<Record>::new();
    for (text, line) in lines.zip(2..) {
        records.push(serde_json::from_str(&text?).map_err(|source| ReplayError::Line { line, source })?);
    }
    // Records of several processors come in another order than their packets.
    records.sort_by_key(|record| record.number);
    let whole = records.iter().zip(0..).take_while(|(record, number)| record.number == *number).count();
    if whole == 0 && !records.is_empty() {
        return Err(ReplayError::NoFirst);
    }
    let (mut differ, mut before) = (0, 0);
    for record in &records[..whole] {
        if let Some((what, value, least, most)) = record.wrong(before) {
            return Err(ReplayError::OutOfRange { packet: record.number, what, value, least, most });
        }
        before = record.now_ns;
        differ += usize::from(Some(policy.judge(&record.arrival())) != record.verdict());
    }
    Ok(Replayed { policy: program.name, packets: whole, differ, is_cut: whole < records.len() })
}

#[cfg(test)]
mod tests {
    use suimon_units::Rate;

    use super::*;

    fn head() -> Head {
        let rate = Rate::from_bps(10_000_000);
        let (program, settings) = Program::read("red", rate, Bytes::new(100_000), 1).unwrap();
        let Settings { bytes_per_second, buffer_bytes, seed, words } = settings;
        Head { policy: program.name.to_owned(), bytes_per_second, buffer_bytes, seed, words }
    }

    fn packet(number: u64) -> Record {
        Record {
            number,
            now_ns: 1_000_000 * number,
            backlog_bytes: 0,
            backlog_packets: 0,
            size_bytes: 1_500,
            flow: 1,
            ecn: 2,
            opens_connection: 0,
            verdict: 0,
            segments: 1,
        }
    }

    fn of(head: &Head, records: &[Record]) -> Result<Replayed, ReplayError> {
        let mut text = serde_json::to_string(head).unwrap();
        for record in records {
            text += "\n";
            text += &serde_json::to_string(record).unwrap();
        }
        replay(text.as_bytes())
    }

    #[test]
    fn verdicts_are_compared_in_the_order_of_packets_up_to_one_that_is_missing() {
        let full = Record { backlog_bytes: 99_000, backlog_packets: 66, ..packet(2) };
        let replayed = of(&head(), &[packet(1), packet(0), full, packet(4)]).unwrap();
        assert_eq!(replayed, Replayed { policy: "red", packets: 3, differ: 1, is_cut: true });
        let replayed = of(&head(), &[packet(0), packet(1), Record { verdict: 3, ..full }]).unwrap();
        assert_eq!(replayed, Replayed { policy: "red", packets: 3, differ: 0, is_cut: false });
    }

    #[test]
    fn what_no_program_wrote_is_refused_with_its_place() {
        let zero = Head { words: [0; WORDS], ..head() };
        let unknown = Head { policy: "codel".to_owned(), ..head() };
        let first = packet(0);
        for (result, problem) in [
            (replay(&b""[..]), "empty"),
            (replay(&b"{}"[..]), "line 1: missing field"),
            (of(&zero, &[first]), "line 1: word 1: 0 is no setting of red; accepted: 1 to"),
            (of(&unknown, &[first]), "line 1: \"codel\" has no program"),
            (of(&head(), &[packet(1)]), "packet 0 is missing"),
            (
                of(&head(), &[first, Record { size_bytes: 1 << 40, ..packet(1) }]),
                "packet 1: size_bytes: 1099511627776",
            ),
            (
                of(&head(), &[Record { now_ns: 9, ..first }, Record { now_ns: 8, ..packet(1) }]),
                "accepted: 9 to",
            ),
        ] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
