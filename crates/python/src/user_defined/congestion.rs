//! Congestion control in Python.

use pyo3::intern;
use pyo3::prelude::*;
use suimon_algorithms::Probe;
use suimon_algorithms::congestion::{
    Ack, Congestion, CongestionControl, CongestionKind, Delivery, Limits, MarkResponse,
};
use suimon_algorithms::queue::Ecn;
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::{copied, probe, raise, seconds};
use crate::errors::of_argument;

/// What the sender must obey.
#[pyclass(name = "Limits", module = "suimon")]
pub(crate) struct PyLimits(Limits);

fn bytes(name: &str, value: f64) -> PyResult<Bytes> {
    if value.is_nan() || value < 0.0 {
        return Err(of_argument(name, &format!("{value} is no size; accepted: bytes from zero on")));
    }
    Ok(if value >= Bytes::MAX.as_f64() { Bytes::MAX } else { Bytes::from_f64(value) })
}

#[pymethods]
impl PyLimits {
    #[getter]
    fn cwnd_bytes(&self) -> u64 {
        self.0.cwnd.get()
    }
    #[setter]
    fn set_cwnd_bytes(&mut self, value: f64) -> PyResult<()> {
        self.0.cwnd = bytes("cwnd_bytes", value)?;
        Ok(())
    }
    #[getter]
    fn ssthresh_bytes(&self) -> u64 {
        self.0.ssthresh.get()
    }
    #[setter]
    fn set_ssthresh_bytes(&mut self, value: f64) -> PyResult<()> {
        self.0.ssthresh = bytes("ssthresh_bytes", value)?;
        Ok(())
    }
    #[getter]
    fn space_bytes(&self) -> u64 {
        self.0.space.get()
    }
    #[setter]
    fn set_space_bytes(&mut self, value: f64) -> PyResult<()> {
        self.0.space = bytes("space_bytes", value)?;
        Ok(())
    }
    #[getter]
    fn pacing_bps(&self) -> Option<f64> {
        self.0.pacing.map(Rate::as_bps_f64)
    }
    #[setter]
    fn set_pacing_bps(&mut self, value: Option<f64>) -> PyResult<()> {
        if let Some(bps) = value.filter(|bps| bps.is_nan() || *bps < 1.0) {
            return Err(of_argument(
                "pacing_bps",
                &format!("{bps} is no rate; accepted: 1 bit/s or more, None"),
            ));
        }
        self.0.pacing = value.map(|bps| Rate::from_bps(bps as u64));
        Ok(())
    }
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }
}

/// An acknowledgement.
#[pyclass(name = "Ack", module = "suimon", frozen)]
pub(crate) struct PyAck(Ack);

#[pymethods]
impl PyAck {
    #[getter]
    fn now_s(&self) -> f64 {
        seconds(self.0.now)
    }
    #[getter]
    fn newly_acked_bytes(&self) -> u64 {
        self.0.newly_acked.get()
    }
    #[getter]
    fn delivered_bytes(&self) -> u64 {
        self.0.delivered.get()
    }
    #[getter]
    fn marked_bytes(&self) -> u64 {
        self.0.marked.get()
    }
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(Duration::as_secs_f64)
    }
    #[getter]
    fn snd_una(&self) -> u64 {
        self.0.snd_una
    }
    #[getter]
    fn snd_nxt(&self) -> u64 {
        self.0.snd_nxt
    }
    #[getter]
    fn flight_size_bytes(&self) -> u64 {
        self.0.flight_size.get()
    }
    #[getter]
    fn prior_flight_size_bytes(&self) -> u64 {
        self.0.prior_flight_size.get()
    }
    #[getter]
    fn snd_wnd_bytes(&self) -> u64 {
        self.0.snd_wnd.get()
    }
    #[getter]
    fn mss_bytes(&self) -> u64 {
        self.0.mss.get()
    }
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited
    }
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
    #[getter]
    fn in_recovery(&self) -> bool {
        self.0.in_recovery
    }
    #[getter]
    fn slow_start_credit_bytes(&self) -> u64 {
        self.0.slow_start_credit().get()
    }
    #[getter]
    fn avoidance_credit_bytes(&self) -> u64 {
        self.0.avoidance_credit().get()
    }
}

/// A congestion event.
#[pyclass(name = "Congestion", module = "suimon", frozen)]
pub(crate) struct PyCongestion(Congestion);

#[pymethods]
impl PyCongestion {
    #[getter]
    fn now_s(&self) -> f64 {
        seconds(self.0.now)
    }
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            CongestionKind::Loss => "loss",
            CongestionKind::Ecn => "ecn",
            CongestionKind::Timeout => "timeout",
        }
    }
    #[getter]
    fn flight_size_bytes(&self) -> u64 {
        self.0.flight_size.get()
    }
    #[getter]
    fn used_window_bytes(&self) -> u64 {
        self.0.used_window.get()
    }
    #[getter]
    fn snd_nxt(&self) -> u64 {
        self.0.snd_nxt
    }
    #[getter]
    fn mss_bytes(&self) -> u64 {
        self.0.mss.get()
    }
}

/// A sample of the delivery rate.
#[pyclass(name = "Delivery", module = "suimon", frozen)]
pub(crate) struct PyDelivery(Delivery);

#[pymethods]
impl PyDelivery {
    #[getter]
    fn total_bytes(&self) -> u64 {
        self.0.total.get()
    }
    #[getter]
    fn total_when_sent_bytes(&self) -> u64 {
        self.0.total_when_sent.get()
    }
    #[getter]
    fn rate_bps(&self) -> Option<f64> {
        self.0.rate.map(Rate::as_bps_f64)
    }
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(Duration::as_secs_f64)
    }
    #[getter]
    fn next_departure_s(&self) -> f64 {
        seconds(self.0.next_departure)
    }
}

/// An object of Python that controls congestion.
#[derive(Debug)]
pub(super) struct Adapter {
    object: Py<PyAny>,
    /// One for all events, since the object need not keep it.
    limits: Py<PyLimits>,
    models_delivery: bool,
    marks_by_share: bool,
}

impl Clone for Adapter {
    fn clone(&self) -> Self {
        Self::new(copied(&self.object))
    }
}

impl Adapter {
    pub(super) fn new(object: Py<PyAny>) -> Self {
        let made = Python::attach(|py| {
            let bound = object.bind(py);
            let flag = |name: &str| bound.getattr(name)?.is_truthy();
            Ok::<_, PyErr>((
                flag("models_delivery")?,
                flag("marks_by_share")?,
                Py::new(py, PyLimits(Limits::initial(Bytes::ZERO)))?,
            ))
        });
        let (models_delivery, marks_by_share, limits) = made.unwrap_or_else(|error| raise(error));
        Self { object, limits, models_delivery, marks_by_share }
    }

    /// Calls a method that may change `limits`.
    fn tell(
        &self,
        limits: &mut Limits,
        call: impl FnOnce(&Bound<'_, PyAny>, &Bound<'_, PyLimits>) -> PyResult<()>,
    ) {
        let told = Python::attach(|py| {
            let shared = self.limits.bind(py);
            shared.borrow_mut().0 = *limits;
            call(self.object.bind(py), shared)?;
            *limits = shared.borrow().0;
            Ok::<_, PyErr>(())
        });
        told.unwrap_or_else(|error| raise(error));
    }
}

impl CongestionControl for Adapter {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        self.tell(limits, |object, limits| {
            object.call_method1(intern!(object.py(), "on_established"), (seconds(now), limits)).map(drop)
        });
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        self.tell(limits, |object, limits| {
            let event = Py::new(object.py(), PyAck(*ack))?;
            object.call_method1(intern!(object.py(), "on_ack"), (event, limits)).map(drop)
        });
        at_least_a_segment(limits, ack.mss);
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.tell(limits, |object, limits| {
            let event = Py::new(object.py(), PyCongestion(*event))?;
            object.call_method1(intern!(object.py(), "on_congestion"), (event, limits)).map(drop)
        });
        at_least_a_segment(limits, event.mss);
    }

    fn on_spurious(&mut self, now: Instant, limits: &mut Limits) {
        self.tell(limits, |object, limits| {
            object.call_method1(intern!(object.py(), "on_spurious"), (seconds(now), limits)).map(drop)
        });
    }

    fn models_delivery(&self) -> bool {
        self.models_delivery
    }

    fn mark_response(&self) -> MarkResponse {
        if self.marks_by_share { MarkResponse::ByShare(Ecn::Capable) } else { MarkResponse::Once }
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        let told = Python::attach(|py| {
            let event = Py::new(py, PyDelivery(*delivery))?;
            self.object.bind(py).call_method1(intern!(py, "on_delivery"), (event,)).map(drop)
        });
        told.unwrap_or_else(|error| raise(error));
    }

    fn probe(&self, out: &mut dyn Probe) {
        probe(&self.object, out);
    }
}

/// A window below one segment would send nothing for ever.
fn at_least_a_segment(limits: &mut Limits, mss: Bytes) {
    limits.cwnd = limits.cwnd.max(mss);
    limits.ssthresh = limits.ssthresh.max(mss);
}
