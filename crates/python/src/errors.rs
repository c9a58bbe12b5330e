//! Exceptions: the command's messages, with the names that Python's arguments have.

use pyo3::prelude::*;
use suimon_scenario::ScenarioError;
use suimon_study::{Input, StudyError};

mod exceptions {
    #![allow(missing_docs, reason = "suimon/errors.py documents them")]
    pyo3::import_exception!(suimon.errors, FileError);
    pyo3::import_exception!(suimon.errors, InputError);
    pyo3::import_exception!(suimon.errors, InternalError);
}

pub(crate) use exceptions::{FileError, InputError, InternalError};

/// Something that goes out as an exception.
pub(crate) struct Failure(pub(crate) PyErr);

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        Self(match error {
            StudyError::Scenario(error) => of_scenario(&error),
            StudyError::Input { input, problem } => of_argument(argument(input), &problem),
            StudyError::Folder { .. } | StudyError::Claims { .. } => InputError::new_err(error.to_string()),
            StudyError::Report(error) => FileError::new_err(error.to_string()),
        })
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self(of_scenario(&error))
    }
}

/// A refusal of what the argument called `name` holds.
pub(crate) fn of_argument(name: &str, problem: &str) -> PyErr {
    InputError::new_err(format!("{name}: {problem}"))
}

fn of_scenario(error: &ScenarioError) -> PyErr {
    // A comparison has no file: its keys are arguments.
    if let ("comparison", Some(key)) = (error.source_name(), error.key()) {
        let name = match key {
            "cc" => "senders",
            "queue" => "queues",
            key => key,
        };
        return of_argument(name, &error.problem().to_string());
    }
    InputError::new_err(error.to_string())
}

/// What Python calls a part of a question.
fn argument(input: Input) -> &'static str {
    match input {
        Input::Link => "link",
        Input::Paths => "paths",
        Input::Schedulers => "schedulers",
        Input::Buffer => "buffer",
        Input::Schemes => "senders",
        Input::Queues => "queues",
        Input::Flows => "flows",
        Input::Profile => "profile",
        Input::Paper => "name",
        Input::Experiment => "experiment",
    }
}
