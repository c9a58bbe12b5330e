//! Packet scripts for tests: packets of both ends, each at its millisecond, and silences.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use suimon_algorithms::congestion::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use suimon_algorithms::queue::Ecn;
use suimon_model::StackProfile;
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::Sender;
use crate::packet::{Packet, PacketKind, Sack};
use crate::tcp::Source;

/// Payload of a full segment, so that segment numbers are easy to read off.
pub(super) const MSS: u64 = 1_000;

pub(super) fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The profile of the RFCs' recovery with round numbers.
pub(super) fn profile() -> StackProfile {
    StackProfile { mss: Bytes::new(MSS), header: Bytes::new(40), ..StackProfile::rfc_6675() }
}

/// The profile of today's Linux with round numbers.
pub(super) fn linux() -> StackProfile {
    StackProfile { mss: Bytes::new(MSS), header: Bytes::new(40), ..StackProfile::linux_6() }
}

/// A congestion control that keeps its window and halves it when told to; writes down its calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Steady {
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) space: Option<Bytes>,
    pub(super) pacing: Option<Rate>,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) acks: Vec<Ack>,
    pub(super) cuts: Vec<CongestionKind>,
}

impl CongestionControl for Steady {
    fn on_established(&mut self, _now: Instant, limits: &mut Limits) {
        limits.space = self.space.unwrap_or(Bytes::MAX);
        limits.pacing = self.pacing;
    }
    fn on_ack(&mut self, ack: &Ack, _limits: &mut Limits) {
        self.log.lock().unwrap().acks.push(*ack);
    }
    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.log.lock().unwrap().cuts.push(event.kind);
        limits.ssthresh = event.flight_size / 2;
    }
}

/// A sender and the packets that pass it by.
///
/// Whatever the sender sends must be claimed by [`Script::sends`] before anything else happens to it, and
/// time passes only up to when it would act of itself: silence is asserted at every step.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) sender: Sender,
    now: Instant,
    sent: Vec<Packet>,
    /// The peer's last timestamp echo; it never goes back.
    echo: Instant,
    /// The times when each segment was first and last sent.
    times: BTreeMap<u64, (Instant, Instant)>,
    /// First byte beyond the window that the peer advertises with every ACK, counted from the ACK.
    pub(super) window: u64,
}

impl Script {
    pub(super) fn new(profile: StackProfile, cc: impl CongestionControl + 'static, source: Source) -> Self {
        let sender = Sender::new(Arc::new(profile), Box::new(cc), source);
        let times = BTreeMap::new();
        let (now, echo) = (Instant::ZERO, Instant::ZERO);
        Self { sender, now, sent: Vec::new(), echo, times, window: 1_000_000 }
    }

    /// A connection with endless data that is established at 100 ms and has sent its initial window.
    #[track_caller]
    pub(super) fn established(profile: StackProfile, cc: impl CongestionControl + 'static) -> Self {
        let window: Vec<_> = (0..profile.initial_window).map(|nth| nth.to_string()).collect();
        let mut script = Self::new(profile, cc, Source::new(None, None));
        script.opens(0).sends("syn");
        script.syn_ack(100, 0).sends(&window.join(" "));
        script
    }

    #[track_caller]
    pub(super) fn opens(&mut self, at: u64) -> &mut Self {
        self.passes(at);
        self.sender.source.resume(self.now);
        self.sender.open(self.now, &mut self.sent);
        self
    }

    /// An answer to the SYN that was sent at `echo`.
    #[track_caller]
    pub(super) fn syn_ack(&mut self, at: u64, echo: u64) -> &mut Self {
        self.arrives(at, Packet { ts_ecr: ms(echo), ..self.answer(PacketKind::SynAck, at, 0) }, &[])
    }

    /// An ACK for everything below segment `up_to`, caused by the latest copy of the missing segment.
    #[track_caller]
    pub(super) fn ack(&mut self, at: u64, up_to: u64) -> &mut Self {
        self.sack(at, up_to, &[])
    }

    /// The same with SACK blocks: segments from and up to.
    #[track_caller]
    pub(super) fn sack(&mut self, at: u64, up_to: u64, blocks: &[(u64, u64)]) -> &mut Self {
        let packet = self.ack_packet(at, up_to);
        self.arrives(at, packet, blocks)
    }

    /// The same, caused by the first copy of the missing segment, which was only late.
    #[track_caller]
    pub(super) fn late_ack(&mut self, at: u64, up_to: u64, blocks: &[(u64, u64)]) -> &mut Self {
        let missing = self.sender.board.snd_una();
        let ts_ecr = self.times[&missing].0;
        let packet = Packet { ts_ecr, ..self.ack_packet(at, up_to) };
        self.arrives(at, packet, blocks)
    }

    /// An ACK with an echo of a congestion mark.
    #[track_caller]
    pub(super) fn ecn_echo(&mut self, at: u64, up_to: u64) -> &mut Self {
        let packet = Packet { ecn_flag: true, ..self.ack_packet(at, up_to) };
        self.arrives(at, packet, &[])
    }

    /// The sender acts of itself, exactly at `at`.
    #[track_caller]
    pub(super) fn wakes(&mut self, at: u64) -> &mut Self {
        assert_eq!(self.due(), Some(ms(at)), "it would act at another time");
        self.passes(at);
        self.sender.on_wakeup(self.now, &mut self.sent);
        self
    }

    /// The sender's turn comes at `at`, which need not be a whole millisecond.
    pub(super) fn sender_turn(&mut self, at: Instant) {
        self.now = at;
        self.sender.on_wakeup(at, &mut self.sent);
        self.sends_something();
    }

    /// The application has changed its data.
    #[track_caller]
    pub(super) fn application(&mut self, at: u64, change: impl FnOnce(&mut Source, u64)) -> &mut Self {
        self.passes(at);
        let taken = self.sender.taken();
        change(&mut self.sender.source, taken);
        self.sender.on_wakeup(self.now, &mut self.sent);
        self
    }

    /// The sender sends just this: `syn`, segment numbers, an `r` before retransmissions, `+` after a segment that
    /// announces a window cut, `:n` after one of `n` bytes where these are not a full segment.
    #[track_caller]
    pub(super) fn sends(&mut self, expected: &str) -> &mut Self {
        let sent: Vec<_> = std::mem::take(&mut self.sent).iter().map(|packet| self.text(packet)).collect();
        assert_eq!(sent.join(" "), expected, "sent at {}", self.now);
        self
    }

    /// The sender may send anything now.
    pub(super) fn sends_something(&mut self) -> Vec<Packet> {
        let sent = std::mem::take(&mut self.sent);
        for packet in &sent {
            self.text(packet);
        }
        sent
    }

    #[track_caller]
    pub(super) fn sends_nothing(&mut self) -> &mut Self {
        self.sends("")
    }

    /// Window and flight in whole segments.
    pub(super) fn cwnd(&self) -> u64 {
        self.sender.limits().cwnd.whole(Bytes::new(MSS))
    }

    fn due(&self) -> Option<Instant> {
        [self.sender.timer(), self.sender.next_turn()].into_iter().flatten().min()
    }

    #[track_caller]
    fn passes(&mut self, at: u64) {
        assert!(self.sent.is_empty(), "{} packets sent at {} were not expected", self.sent.len(), self.now);
        assert!(self.due().is_none_or(|due| due >= ms(at)), "it would act before {at} ms: {:?}", self.due());
        assert!(self.now <= ms(at), "time goes back");
        self.now = ms(at);
    }

    #[track_caller]
    fn arrives(&mut self, at: u64, packet: Packet, blocks: &[(u64, u64)]) -> &mut Self {
        self.passes(at);
        let mut sack = Sack::new();
        for (from, to) in blocks {
            let end = (to * MSS).min(self.sender.board.snd_nxt());
            sack.push(from * MSS - packet.seq, end - from * MSS);
        }
        self.sender.on_packet(self.now, &packet, &sack, &mut self.sent);
        self
    }

    fn answer(&self, kind: PacketKind, at: u64, seq: u64) -> Packet {
        Packet { seq, bytes: self.window as u32, ..Packet::new(kind, ms(at)) }
    }

    fn ack_packet(&mut self, at: u64, up_to: u64) -> Packet {
        // A last segment may be short.
        let seq = (up_to * MSS).min(self.sender.board.snd_nxt());
        let mut packet = self.answer(PacketKind::Ack, at, seq);
        let caused_by = self.times.get(&self.sender.board.snd_una());
        self.echo = self.echo.max(caused_by.map_or(Instant::ZERO, |times| times.1));
        packet.ts_ecr = self.echo;
        packet
    }

    fn text(&mut self, packet: &Packet) -> String {
        assert_eq!(packet.ts_val, self.now);
        if packet.kind == PacketKind::Syn {
            return "syn".to_owned();
        }
        let again = self.times.contains_key(&packet.seq);
        self.times.entry(packet.seq).or_insert((self.now, self.now)).1 = self.now;
        let capable = self.sender.profile.ecn && !again;
        assert_eq!(packet.ecn == Ecn::Capable, capable, "new data alone is ECN-capable");
        let length = u64::from(packet.bytes);
        format!(
            "{}{}{}{}",
            if again { "r" } else { "" },
            packet.seq / MSS,
            if length == MSS { String::new() } else { format!(":{length}") },
            if packet.ecn_flag { "+" } else { "" },
        )
    }
}
