//! A link between two hosts, from arguments.

use std::collections::HashMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use suimon_scenario::Capacity;
use suimon_study::problem_of_link;
use suimon_units::Duration;

use crate::arguments::quantity;
use crate::errors::{Failure, of_argument};

/// A link, checked.
#[pyclass(frozen, module = "suimon._suimon")]
pub(crate) struct LinkSpec {
    spec: suimon_scenario::LinkSpec,
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
    /// The link of `words`, which say how fast it is, at a distance, with further `keys`; or all of one in a line.
    /// Refusals of the words name the `argument`.
    #[staticmethod]
    fn of_words(
        argument: &str,
        words: &str,
        delay: Option<&str>,
        rtt: Option<&str>,
        keys: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let mut keys = texts(keys)?;
        if delay.is_none() && rtt.is_none() && keys.is_empty() && suimon_scenario::LinkSpec::is_line(words) {
            let spec = suimon_scenario::LinkSpec::parse(words)
                .map_err(|error| of_argument("link", &problem_of_link(&error)))?;
            return Ok(Self::new(spec, words.to_owned()));
        }
        // What is no key of the link is one of its radio.
        let mut line = vec![words.to_owned()];
        keys.retain(|(name, value)| {
            let of_link = suimon_scenario::LinkSpec::settable().any(|known| known == name);
            if !of_link {
                line.push(format!("{name}={}", joined(value)));
            }
            of_link
        });
        let mut spec = capacity_of(argument, &line.join(" "))?;
        let near = matches!(spec.link.capacity, Capacity::Wifi(_));
        let rtt = round_trip(delay, rtt, near.then_some(Duration::ZERO))?;
        if !near || rtt > Duration::ZERO {
            line.push(joined(&rtt.to_string()));
        }
        spec.rtt = rtt;
        Self::with_keys(spec, line, &keys)
    }

    /// The link that is recorded at `path`.
    #[staticmethod]
    fn of_trace(
        path: PathBuf,
        delay: Option<&str>,
        rtt: Option<&str>,
        keys: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let keys = texts(keys)?;
        let mut spec = suimon_scenario::LinkSpec::recorded(&path, Duration::ZERO).map_err(Failure::from)?;
        let rtt = round_trip(delay, rtt, None)?;
        spec.rtt = rtt;
        let rtt_word = joined(&rtt.to_string());
        let line = vec![format!("trace={}", path.display()), rtt_word.clone()];
        let link = Self::with_keys(spec, line, &keys)?;
        let buffer = match keys.as_slice() {
            [] => None,
            [(name, buffer)] if name == "buffer" => Some(joined(buffer)),
            _ => return Ok(link),
        };
        // The field of its own takes a path with blanks too.
        let mut fields = HashMap::from([("trace", path.to_string_lossy().into_owned()), ("rtt", rtt_word)]);
        fields.extend(buffer.map(|buffer| ("buffer", buffer)));
        Ok(Self { fields, ..link })
    }

    /// The tables of a scenario that describe it, in TOML: `link`, and `[[medium]]` where it has one.
    fn tables(&self) -> PyResult<String> {
        self.spec.tables().map_err(|error| of_argument("link", &problem_of_link(&error)))
    }
}

impl LinkSpec {
    fn new(spec: suimon_scenario::LinkSpec, line: String) -> Self {
        Self { rtt_s: spec.rtt.as_secs_f64(), spec, fields: HashMap::from([("link", line.clone())]), line }
    }

    /// The same with `keys`, which follow in `line` in the order of the command.
    fn with_keys(
        mut spec: suimon_scenario::LinkSpec,
        mut line: Vec<String>,
        keys: &[(String, String)],
    ) -> PyResult<Self> {
        let known: Vec<_> = suimon_scenario::LinkSpec::settable().collect();
        if let Some((name, _)) = keys.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(of_argument(name, &format!("unknown; accepted: {}", known.join(", "))));
        }
        for name in known {
            let Some((_, value)) = keys.iter().find(|(key, _)| key == name) else { continue };
            let word =
                spec.set_key(name, value).map_err(|error| of_argument(name, &error.problem().to_string()))?;
            line.push(word);
        }
        Ok(Self::new(spec, line.join(" ")))
    }
}

/// The keyword arguments that are not left out, as texts.
fn texts(keys: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for (name, value) in keys {
        let text = match value.cast::<PyBool>() {
            Ok(flag) => flag.is_true().to_string(),
            Err(_) if value.is_none() => continue,
            Err(_) => value.str()?.to_string(),
        };
        texts.push((name.extract()?, text));
    }
    Ok(texts)
}

/// The round-trip time of a link whose one-way delay or round-trip time is given; `otherwise` where neither is.
fn round_trip(delay: Option<&str>, rtt: Option<&str>, otherwise: Option<Duration>) -> PyResult<Duration> {
    match (delay, rtt) {
        (Some(_), Some(_)) => Err(of_argument("rtt", "goes without delay, which is half of it")),
        (Some(delay), None) => Ok(quantity::<Duration>("delay", delay)? * 2),
        (None, Some(rtt)) => quantity("rtt", rtt),
        (None, None) => otherwise.ok_or_else(|| {
            let accepted = "one way, such as delay=\"90ms\"; or both, such as rtt=\"180ms\"";
            of_argument("delay", &format!("missing; accepted: {accepted}"))
        }),
    }
}

/// The link that the words of the argument called `name` say, without its distance.
fn capacity_of(name: &str, words: &str) -> PyResult<suimon_scenario::LinkSpec> {
    let read = suimon_scenario::LinkSpec::parse_with_rtt(words, Duration::ZERO);
    read.map_err(|error| of_argument(name, &problem_of_link(&error)))
}

/// A quantity as one word.
fn joined(text: &str) -> String {
    text.split_whitespace().collect()
}
