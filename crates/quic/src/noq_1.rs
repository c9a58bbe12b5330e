//! [`Sender`] as the controller of noq 1.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use suimon_units::Bytes;

use crate::{Loss, Sender, SenderConfig};

impl ControllerFactory for SenderConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.begin(now, current_mtu))
    }
}

impl Controller for Sender {
    // `on_sent` counts packets that elicit no acknowledgement, too.
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, _pn: u64) {
        self.on_sent(now, Bytes::new(u64::from(bytes)));
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        _pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.on_packet_acked(sent, Bytes::new(bytes));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest_acked: Option<u64>) {
        self.on_acks_end(now, Bytes::new(in_flight), app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let loss = match (is_ecn, is_persistent_congestion) {
            (true, _) => Loss::Mark,
            (false, true) => Loss::Persistent(Bytes::new(lost_bytes)),
            (false, false) => Loss::Packets(Bytes::new(lost_bytes)),
        };
        self.on_congestion(now, sent, loss);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.on_spurious_loss();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.set_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.window_of_stack().get()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window().get();
        metrics.ssthresh = self.ssthresh().map(Bytes::get);
        // In bytes a second.
        metrics.pacing_rate = self.pacing().map(|rate| rate.as_bps() / 8);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window().get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
