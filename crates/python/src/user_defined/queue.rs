//! Queue disciplines in Python.

use std::sync::{Arc, Mutex};

use pyo3::intern;
use pyo3::prelude::*;
use suimon_algorithms::Probe;
use suimon_algorithms::queue::Ecn;
use suimon_algorithms::user_defined::{Arrival, Ticket, TicketQueue, Verdicts};
use suimon_units::{Instant, Rate};

use super::{probe, raise, seconds};
use crate::errors::InputError;

/// A packet that waits.
#[pyclass(name = "Packet", module = "suimon", frozen)]
pub(crate) struct PyPacket {
    arrival: Arrival,
    /// When it came.
    #[pyo3(get)]
    arrived_s: f64,
    verdicts: Arc<Mutex<Verdicts>>,
}

#[pymethods]
impl PyPacket {
    #[getter]
    fn size_bytes(&self) -> u64 {
        self.arrival.size.get()
    }
    #[getter]
    fn flow(&self) -> u32 {
        self.arrival.flow.0
    }
    #[getter]
    fn ecn_capable(&self) -> bool {
        self.arrival.ecn != Ecn::NotCapable
    }
    /// Drops it.
    fn drop(&self) {
        self.verdicts.lock().expect("nothing panics while it is held").drop.push(self.arrival.ticket);
    }
    /// Marks it, where it understands marks; tells whether it does.
    fn mark(&self) -> bool {
        self.verdicts.lock().expect("nothing panics while it is held").mark.push(self.arrival.ticket);
        self.ecn_capable()
    }
}

/// An object of Python that queues.
#[derive(Debug)]
pub(super) struct Adapter {
    object: Py<PyAny>,
    verdicts: Arc<Mutex<Verdicts>>,
}

impl Adapter {
    pub(super) fn new(object: Py<PyAny>) -> Self {
        Self { object, verdicts: Arc::default() }
    }

    /// Hands over what packets were told during a call.
    fn collect(&self, verdicts: &mut Verdicts) {
        std::mem::swap(verdicts, &mut self.verdicts.lock().expect("nothing panics while it is held"));
    }
}

impl TicketQueue for Adapter {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, verdicts: &mut Verdicts) {
        let told = Python::attach(|py| {
            let verdicts = Arc::clone(&self.verdicts);
            let packet = Py::new(py, PyPacket { arrival, arrived_s: seconds(now), verdicts })?;
            self.object.bind(py).call_method1(intern!(py, "enqueue"), (packet, seconds(now))).map(drop)
        });
        told.unwrap_or_else(|error| raise(error));
        self.collect(verdicts);
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Option<Ticket> {
        let told = Python::attach(|py| {
            let given = self.object.bind(py).call_method1(intern!(py, "dequeue"), (seconds(now),))?;
            if given.is_none() {
                return Ok(None);
            }
            match given.cast::<PyPacket>() {
                Ok(packet) => Ok(Some(packet.get().arrival.ticket)),
                Err(_) => {
                    let problem = format!("dequeue gave {given}; accepted: a packet that enqueue got, None");
                    Err(InputError::new_err(problem))
                }
            }
        });
        let ticket = told.unwrap_or_else(|error| raise(error));
        self.collect(verdicts);
        ticket
    }

    fn on_link_rate(&mut self, _now: Instant, rate: Rate) {
        let told = Python::attach(|py| {
            self.object.bind(py).setattr(intern!(py, "link_rate_bps"), rate.as_bps_f64())
        });
        told.unwrap_or_else(|error| raise(error));
    }

    fn probe(&self, out: &mut dyn Probe) {
        probe(&self.object, out);
    }
}
