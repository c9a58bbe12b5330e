//! Algorithms written in Python, as the simulator takes them.
//!
//! An exception inside one ends the run: it unwinds to where the run began and comes out of the call there.

mod congestion;
mod path;
mod queue;

use std::any::Any;
use std::panic::resume_unwind;

pub(crate) use congestion::{PyAck, PyCongestion, PyDelivery, PyLimits};
pub(crate) use path::{PyPath, PySendState};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
pub(crate) use queue::PyPacket;
use suimon_algorithms::parameters::{Parameter, Range};
use suimon_algorithms::queue::Buffer;
use suimon_algorithms::registry::Description;
use suimon_algorithms::user_defined::Build;
use suimon_algorithms::{Arguments, Probe, Value};
use suimon_units::Instant;

use crate::errors::{InputError, of_argument};
use crate::registry::add;

/// An exception on its way out of a run.
struct Raised(PyErr);

/// Ends the run with `error`.
pub(crate) fn raise(error: PyErr) -> ! {
    resume_unwind(Box::new(Raised(error)))
}

/// The exception that unwound, or what else did.
pub(crate) fn raised(unwound: Box<dyn Any + Send>) -> Result<PyErr, Box<dyn Any + Send>> {
    unwound.downcast::<Raised>().map(|raised| raised.0)
}

/// Adds the algorithm of `class` to the registry; `parameters` are its keywords with default and help.
#[pyfunction]
pub(crate) fn add_algorithm(
    role: &str,
    class: Py<PyType>,
    name: String,
    summary: String,
    colour: String,
    parameters: Vec<(String, Bound<'_, PyAny>, String)>,
) -> PyResult<()> {
    let parameters = parameters
        .into_iter()
        .map(|(name, default, help)| parameter(name, &default, help))
        .collect::<PyResult<Vec<_>>>()?;
    // A line of the registry lasts as long as the program.
    let description =
        Description::new(interned(name), interned(summary), "Python", interned(colour), parameters.leak());
    let build = match role {
        "congestion control" => Build::Congestion(Box::new(move |arguments| {
            Box::new(congestion::Adapter::new(made(&class, arguments, None)))
        })),
        "queue discipline" => Build::Queue(Box::new(move |arguments, buffer| {
            Box::new(queue::Adapter::new(made(&class, arguments, Some(buffer))))
        })),
        _ => Build::Path(Box::new(move |arguments| {
            Box::new(path::Adapter::new(made(&class, arguments, None)))
        })),
    };
    add(description, build).map_err(|error| of_argument("name", &error.to_string()))
}

fn parameter(name: String, default: &Bound<'_, PyAny>, help: String) -> PyResult<Parameter> {
    // A flag is a whole number to Python too, so it is asked for first.
    let value = if let Ok(flag) = default.extract::<bool>() {
        Value::Flag(flag)
    } else if let Ok(count) = default.extract::<u64>() {
        Value::Count(count)
    } else if let Ok(number) = default.extract::<f64>() {
        Value::Number(number)
    } else {
        let problem = format!("{name} has no number or flag as its default; accepted: int, float, bool");
        return Err(InputError::new_err(problem));
    };
    Ok(Parameter::new(interned(name), interned(help), value, Range::Any))
}

/// An object of `class`, made with `arguments` as keywords; one that queues is told the link's `buffer`.
fn made(class: &Py<PyType>, arguments: &Arguments, buffer: Option<Buffer>) -> Py<PyAny> {
    let made = Python::attach(|py| {
        let keywords = PyDict::new(py);
        for (name, value) in arguments.iter() {
            match value {
                Value::Flag(flag) => keywords.set_item(name, flag)?,
                Value::Count(count) => keywords.set_item(name, count)?,
                Value::Number(number) => keywords.set_item(name, number)?,
                other => keywords.set_item(name, other.to_string())?,
            }
        }
        let object = class.bind(py).call((), Some(&keywords))?;
        if let Some(buffer) = buffer {
            let (packets, bytes) = match buffer {
                Buffer::Packets(packets) => (Some(packets), None),
                Buffer::Bytes(bytes) => (None, Some(bytes.get())),
                Buffer::Unbounded => (None, None),
            };
            object.setattr("buffer_packets", packets)?;
            object.setattr("buffer_bytes", bytes)?;
        }
        Ok(object.unbind())
    });
    made.unwrap_or_else(|error| raise(error))
}

/// Seconds since the run began.
/// A copy of an algorithm's object with all that it holds, as `copy.deepcopy` makes it.
fn copied(object: &Py<PyAny>) -> Py<PyAny> {
    let copy = Python::attach(|py| {
        let copied = py.import("copy")?.call_method1("deepcopy", (object,))?;
        Ok::<_, PyErr>(copied.unbind())
    });
    copy.unwrap_or_else(|error| raise(error))
}

fn seconds(at: Instant) -> f64 {
    at.as_secs_f64()
}

/// Tells what `object.probe()` says.
fn probe(object: &Py<PyAny>, out: &mut dyn Probe) {
    let told = Python::attach(|py| {
        let values = object.bind(py).call_method0(pyo3::intern!(py, "probe"))?;
        for (name, value) in values.cast::<PyDict>()?.iter() {
            let value: Option<f64> = value.extract()?;
            out.value(interned(name.extract::<String>()?), value.unwrap_or(f64::NAN));
        }
        Ok::<_, PyErr>(())
    });
    told.unwrap_or_else(|error| raise(error));
}

/// `name` as a text that lasts: each once, however often it is told.
fn interned(name: String) -> &'static str {
    static NAMES: std::sync::Mutex<std::collections::BTreeSet<&'static str>> =
        std::sync::Mutex::new(std::collections::BTreeSet::new());
    let mut names = NAMES.lock().expect("nothing panics while it is held");
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let lasting: &'static str = name.leak();
    names.insert(lasting);
    lasting
}
