//! A link between two hosts, from arguments.

use std::collections::HashMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use suimon_scenario::Capacity;
use suimon_scenario::trace::read_capacity;
use suimon_study::problem_of_link;
use suimon_units::Duration;

use crate::arguments::quantity;
use crate::errors::{Failure, of_argument};

/// A link, checked.
#[pyclass(frozen, module = "suimon._suimon")]
pub(crate) struct LinkSpec {
    /// As `suimon compare --link` takes it.
    #[pyo3(get)]
    line: String,
    /// The fields of a comparison that give it.
    #[pyo3(get)]
    fields: HashMap<&'static str, String>,
    /// Round-trip time without queueing.
    #[pyo3(get)]
    rtt_s: f64,
}

#[pymethods]
impl LinkSpec {
    /// The link that a line such as `2Mbit 180ms 96kB` describes.
    #[staticmethod]
    fn of_line(line: &str) -> PyResult<Self> {
        let spec = suimon_scenario::LinkSpec::parse(line)
            .map_err(|error| of_argument("link", &problem_of_link(&error)))?;
        Ok(Self::new(&spec, line.to_owned()))
    }

    /// The link of `capacity`, words that a line may begin with, or of a recorded `trace`.
    #[staticmethod]
    #[pyo3(signature = (*, argument, capacity=None, trace=None, delay=None, rtt=None, buffer=None, loss=None, jitter=None, reorder=None, outages=None))]
    #[allow(clippy::too_many_arguments, reason = "one for each keyword of the constructor")]
    fn of_parts(
        argument: &str,
        capacity: Option<&str>,
        trace: Option<PathBuf>,
        delay: Option<&str>,
        rtt: Option<&str>,
        buffer: Option<&str>,
        loss: Option<&str>,
        jitter: Option<&str>,
        reorder: Option<&str>,
        outages: Option<&str>,
    ) -> PyResult<Self> {
        let capacity_words = match (&trace, capacity) {
            (Some(path), _) => format!("trace={}", path.display()),
            (None, words) => words.unwrap_or_default().to_owned(),
        };
        let capacity = match &trace {
            Some(path) => read_capacity(path).map_err(Failure::from)?,
            None => capacity_of(argument, &capacity_words)?,
        };
        let near = matches!(capacity, Capacity::Wifi(_));
        let rtt: Duration = match (delay, rtt) {
            (Some(_), Some(_)) => return Err(of_argument("rtt", "goes without delay, which is half of it")),
            (Some(delay), None) => quantity::<Duration>("delay", delay)? * 2,
            (None, Some(rtt)) => quantity("rtt", rtt)?,
            (None, None) if near => Duration::ZERO,
            (None, None) => {
                let accepted = "one way, such as delay=\"90ms\"; or both, such as rtt=\"180ms\"";
                return Err(of_argument("delay", &format!("missing; accepted: {accepted}")));
            }
        };
        let mut words = vec![capacity_words];
        if !near || rtt > Duration::ZERO {
            words.push(joined(&rtt.to_string()));
        }
        let mut spec = suimon_scenario::LinkSpec::new(capacity, rtt);
        if let Some(buffer) = buffer {
            spec.set_buffer(buffer).map_err(|error| of_argument("buffer", &error.problem().to_string()))?;
            words.push(joined(buffer));
        }
        let options = [("loss", loss), ("jitter", jitter), ("reorder", reorder), ("outages", outages)];
        let is_plain = options.iter().all(|(_, value)| value.is_none());
        for (name, value) in options.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            let word = format!("{name}={}", joined(value));
            spec.set(&word).map_err(|error| of_argument(name, &error.problem().to_string()))?;
            words.push(word);
        }
        let link = Self::new(&spec, words.join(" "));
        Ok(match trace {
            // The field of its own takes a path with blanks too.
            Some(path) if is_plain => {
                let trace = path.to_string_lossy().into_owned();
                let mut fields = HashMap::from([("trace", trace), ("rtt", joined(&rtt.to_string()))]);
                fields.extend(buffer.map(|buffer| ("buffer", joined(buffer))));
                Self { fields, ..link }
            }
            _ => link,
        })
    }
}

impl LinkSpec {
    fn new(spec: &suimon_scenario::LinkSpec, line: String) -> Self {
        Self { rtt_s: spec.rtt.as_secs_f64(), fields: HashMap::from([("link", line.clone())]), line }
    }
}

/// What the words of the argument called `name` say.
fn capacity_of(name: &str, words: &str) -> PyResult<Capacity> {
    suimon_scenario::LinkSpec::parse_capacity(words)
        .map_err(|error| of_argument(name, &problem_of_link(&error)))
}

/// A quantity as one word.
fn joined(text: &str) -> String {
    text.split_whitespace().collect()
}
