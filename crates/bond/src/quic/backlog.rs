//! What a QUIC connection has to send, and how much of it the stack is given.

use quinn_proto::{ConnectionStats, FrameStats};
use suimon_quic::Seen;
use suimon_units::Bytes;

use super::{ETHERNET_MTU, PACKET_OVERHEAD};

/// What a connection has to send.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Bytes of frames that the stack does not have.
    pub(super) in_outbox: u64,
    /// Bytes given to the stack, or lost, and not sent since. Too many where what was lost is not sent again, as a report, until the next
    /// acknowledgement tells.
    pub(super) in_stack: u64,
    /// It sends again what persistent congestion took, from a window of two packets on. What a packet or two have lost is sent again at
    /// once, on its own streams, and holds up nothing new.
    pub(super) is_recovering: bool,
    /// Bytes that the sender takes for bytes in flight until the next acknowledgement, and the stack does not: those that elicit no
    /// acknowledgement, and lost probes of the path's MTU.
    miscounted: u64,
    /// The sender and the stack at the look before.
    before: Seen,
    frames: u64,
    lost_probes: u64,
}

impl Backlog {
    /// Bytes that were not sent.
    pub(super) fn unsent(&self) -> u64 {
        self.in_outbox + self.in_stack
    }

    /// Bytes in flight, as the stack counts them.
    pub(super) fn in_flight(&self) -> u64 {
        self.before.in_flight.get().saturating_sub(self.miscounted)
    }

    /// Takes in what was sent, acknowledged and lost since the look before.
    pub(super) fn on_look(&mut self, seen: &Seen, stats: &ConnectionStats) {
        let before = std::mem::replace(&mut self.before, *seen);
        let sent = (seen.sent - before.sent).get();
        if seen.acknowledged > before.acknowledged {
            self.miscounted = 0;
            if seen.app_limited {
                self.in_stack = 0;
            }
        }
        let frames = eliciting(&stats.frame_tx);
        if std::mem::replace(&mut self.frames, frames) == frames {
            self.miscounted += sent;
        } else {
            self.in_stack = self.in_stack.saturating_sub(sent);
        }
        let lost_probes = stats.path.lost_plpmtud_probes;
        self.miscounted += (lost_probes - self.lost_probes) * u64::from(ETHERNET_MTU);
        self.lost_probes = lost_probes;
        let lost = (seen.lost - before.lost).get();
        self.in_stack += lost;
        // Nothing held the stack back at its last turn.
        if lost == 0 && self.in_flight() == 0 {
            self.in_stack = 0;
        }
        self.is_recovering = self.in_stack > 0 && (self.is_recovering || seen.persistent > before.persistent);
    }

    /// Bytes that the stack can send at once, of what it has not got: as much as the `window` has room for in packets of `mtu`.
    ///
    /// While data waits for room in it, quinn-proto 0.11.19 sends no acknowledgements either (`poll_transmit`), so that the other end
    /// takes the path for dead.
    pub(super) fn room(&self, window: Bytes, mtu: Bytes) -> u64 {
        // It sends a packet where a whole one does not fill the window.
        let packets = window.get().saturating_sub(1 + self.in_flight()) / mtu.get();
        (packets * mtu.get().saturating_sub(PACKET_OVERHEAD)).saturating_sub(self.in_stack)
    }
}

/// Frames sent that elicit an acknowledgement. Others that do so are rare: a packet of these is miscounted until the next
/// acknowledgement.
fn eliciting(frames: &FrameStats) -> u64 {
    let credit = frames.max_data + frames.max_stream_data + frames.max_streams_uni;
    frames.stream + frames.datagram + frames.ping + frames.crypto + credit
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: Bytes = Bytes::new(1_200);

    /// A connection that a test moves.
    #[derive(Default)]
    struct Connection {
        backlog: Backlog,
        seen: Seen,
        stats: ConnectionStats,
    }

    impl Connection {
        fn send(&mut self, bytes: u64, elicits: bool) {
            self.seen.sent += Bytes::new(bytes);
            self.seen.in_flight += Bytes::new(bytes);
            self.stats.frame_tx.stream += u64::from(elicits);
            self.look();
        }

        /// The sender learns what is in flight.
        fn acknowledge(&mut self, bytes: u64, in_flight: u64, app_limited: bool) {
            self.seen.app_limited = app_limited;
            self.seen.acknowledged += Bytes::new(bytes);
            self.seen.in_flight = Bytes::new(in_flight);
            self.look();
        }

        fn lose(&mut self, bytes: u64, persistent: u64) {
            self.seen.lost += Bytes::new(bytes);
            self.seen.persistent += persistent;
            self.seen.in_flight = self.seen.in_flight.saturating_sub(Bytes::new(bytes));
            self.look();
        }

        fn look(&mut self) {
            self.backlog.on_look(&self.seen, &self.stats);
        }

        fn recovers(&self) -> (u64, bool) {
            (self.backlog.in_stack, self.backlog.is_recovering)
        }
    }

    #[test]
    fn after_persistent_congestion_a_connection_recovers_until_it_has_sent_again_what_was_lost() {
        let mut connection = Connection::default();
        connection.backlog.in_stack = 50_000;
        connection.send(50_000, true);
        assert_eq!(connection.recovers(), (0, false));
        connection.lose(1_200, 0);
        assert_eq!(connection.recovers(), (1_200, false), "one packet holds up nothing");
        connection.send(1_200, true);
        assert_eq!(connection.recovers(), (0, false));
        // Two probes, whose loss is no data's.
        connection.send(2_400, true);
        connection.lose(50_000, 1);
        assert_eq!(connection.recovers(), (50_000, true));
        connection.send(2_400, true);
        assert_eq!(connection.recovers(), (47_600, true));
        connection.send(47_600, true);
        assert_eq!(connection.recovers(), (0, false));
        connection.lose(1_200, 1);
        connection.acknowledge(1_200, 48_800, false);
        assert_eq!(connection.recovers(), (1_200, true));
        connection.acknowledge(1_200, 47_600, true);
        assert_eq!(connection.recovers(), (0, false), "a report is not sent again");
        connection.lose(47_600, 1);
        assert_eq!(connection.recovers(), (47_600, true), "all was lost");
        connection.look();
        assert_eq!(connection.recovers(), (0, false), "and the stack sends nothing of it again");
    }

    #[test]
    fn the_stack_is_given_whole_packets_that_leave_the_window_unfilled() {
        let mut connection = Connection::default();
        let payload = 1_200 - PACKET_OVERHEAD;
        assert_eq!(connection.backlog.room(MTU * 10, MTU), 9 * payload, "a tenth would fill it");
        let window = MTU * 10 + Bytes::new(1);
        assert_eq!(connection.backlog.room(window, MTU), 10 * payload);
        connection.send(8 * 1_200, true);
        assert_eq!(connection.backlog.room(window, MTU), 2 * payload);
        connection.backlog.in_stack = 1_000;
        assert_eq!(connection.backlog.room(window, MTU), 2 * payload - 1_000);
        assert_eq!(connection.backlog.room(MTU * 4, MTU), 0, "the window was cut");
    }

    #[test]
    fn what_the_stack_does_not_count_takes_no_room() {
        let mut connection = Connection::default();
        let idle = connection.backlog.room(MTU * 10, MTU);
        for _ in 0..500 {
            connection.send(40, false);
        }
        assert_eq!(connection.backlog.room(MTU * 10, MTU), idle, "acknowledgements");
        connection.send(1_200, true);
        assert!(connection.backlog.room(MTU * 10, MTU) < idle);
        connection.acknowledge(1_200, 1_500, true);
        assert_eq!(connection.backlog.in_flight(), 1_500);
        connection.stats.path.lost_plpmtud_probes += 1;
        connection.look();
        assert_eq!(connection.backlog.in_flight(), 0);
    }
}
