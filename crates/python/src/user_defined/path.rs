//! Path schedulers in Python.

use pyo3::intern;
use pyo3::prelude::*;
use suimon_algorithms::Probe;
use suimon_algorithms::path::{Data, PathId, PathScheduler, PathView, Placement, SendState};
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::{copied, probe, raise, seconds};
use crate::errors::InputError;

/// A path as its sender sees it.
#[pyclass(name = "Path", module = "suimon", frozen)]
pub(crate) struct PyPath {
    view: PathView,
    /// Its place among the paths.
    #[pyo3(get)]
    index: usize,
    /// Usable, and its send buffer takes the next chunk.
    #[pyo3(get)]
    has_room: bool,
    /// Has room, and nothing waits unsent.
    #[pyo3(get)]
    ready: bool,
}

#[pymethods]
impl PyPath {
    #[getter]
    fn usable(&self) -> bool {
        self.view.usable
    }
    #[getter]
    fn silent_s(&self) -> f64 {
        self.view.silent.as_secs_f64()
    }
    #[getter]
    fn can_copy(&self) -> bool {
        self.view.can_copy
    }
    #[getter]
    fn buffered_bytes(&self) -> u64 {
        self.view.status.buffered.get()
    }
    #[getter]
    fn unsent_bytes(&self) -> u64 {
        self.view.status.unsent.get()
    }
    #[getter]
    fn send_buffer_bytes(&self) -> u64 {
        self.view.status.send_buffer.get()
    }
    #[getter]
    fn cwnd_bytes(&self) -> u64 {
        self.view.status.cwnd.get()
    }
    #[getter]
    fn mss_bytes(&self) -> u64 {
        self.view.status.mss.get()
    }
    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        self.view.status.rtt.map(|rtt| rtt.srtt.as_secs_f64())
    }
    #[getter]
    fn rttvar_s(&self) -> Option<f64> {
        self.view.status.rtt.map(|rtt| rtt.rttvar.as_secs_f64())
    }
    #[getter]
    fn rtt_min_s(&self) -> Option<f64> {
        self.view.status.rtt_min.map(Duration::as_secs_f64)
    }
    #[getter]
    fn rate_bps(&self) -> Option<f64> {
        self.view.rate().map(Rate::as_bps_f64)
    }
}

/// What the sender knows when it has to decide.
#[pyclass(name = "SendState", module = "suimon", frozen, get_all)]
pub(crate) struct PySendState {
    paths: Vec<Py<PyPath>>,
    chunk_bytes: u64,
    unassigned_bytes: u64,
    window_bytes: u64,
    buffer_bytes: u64,
    next_fits: bool,
}

impl PySendState {
    fn new(py: Python<'_>, state: &SendState<'_>) -> PyResult<Self> {
        let with_room: Vec<_> = state.with_room().map(|(id, _)| id.0).collect();
        let ready: Vec<_> = state.ready().map(|(id, _)| id.0).collect();
        let path = |(index, view): (usize, &PathView)| {
            let (has_room, ready) = (with_room.contains(&index), ready.contains(&index));
            Py::new(py, PyPath { view: *view, index, has_room, ready })
        };
        Ok(Self {
            paths: state.paths.iter().enumerate().map(path).collect::<PyResult<_>>()?,
            chunk_bytes: state.chunk.get(),
            unassigned_bytes: state.unassigned.get(),
            window_bytes: state.window.get(),
            buffer_bytes: state.buffer.get(),
            next_fits: state.next_fits(),
        })
    }
}

/// An object of Python that schedules.
#[derive(Debug)]
pub(super) struct Adapter {
    object: Py<PyAny>,
}

impl Clone for Adapter {
    fn clone(&self) -> Self {
        Self::new(copied(&self.object))
    }
}

impl Adapter {
    pub(super) fn new(object: Py<PyAny>) -> Self {
        Self { object }
    }
}

/// What `place` may return.
#[derive(FromPyObject)]
enum Answer {
    Next(usize),
    Ahead(usize, u64),
    Copy(usize, String),
}

const ACCEPTED: &str = "None, a path's index, (index, bytes ahead), (index, \"copy\")";

impl PathScheduler for Adapter {
    fn place(&mut self, now: Instant, state: &SendState<'_>) -> Option<Placement> {
        let told = Python::attach(|py| {
            let shown = Py::new(py, PySendState::new(py, state)?)?;
            let given = self.object.bind(py).call_method1(intern!(py, "place"), (shown, seconds(now)))?;
            let refuse = || InputError::new_err(format!("place gave {given}; accepted: {ACCEPTED}"));
            if given.is_none() {
                return Ok(None);
            }
            let (path, data) = match given.extract::<Answer>().map_err(|_| refuse())? {
                Answer::Next(path) => (path, Data::Next),
                Answer::Ahead(path, bytes) => (path, Data::Ahead(Bytes::new(bytes))),
                Answer::Copy(path, word) if word == "copy" => (path, Data::Copy),
                Answer::Copy(..) => return Err(refuse()),
            };
            let view = state.paths.get(path).ok_or_else(refuse)?;
            // Asked again until it says nothing, so what cannot be done must not be said for ever.
            let possible = state.with_room().any(|(id, _)| id.0 == path)
                && match data {
                    Data::Next => state.next_fits(),
                    Data::Ahead(ahead) => ahead < state.unassigned && ahead + state.chunk <= state.window,
                    Data::Copy => view.can_copy,
                };
            Ok(possible.then_some(Placement { path: PathId(path), data }))
        });
        told.unwrap_or_else(|error| raise(error))
    }

    fn probe(&self, out: &mut dyn Probe) {
        probe(&self.object, out);
    }
}
