//! Exceptions: the command's messages, with the names that Python's arguments have.

use pyo3::prelude::*;
use suimon_scenario::ScenarioError;
use suimon_study::StudyError;

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
            StudyError::Input { input, problem } => of_argument(&input, &problem),
            StudyError::Report(error) => FileError::new_err(error.to_string()),
            error => InputError::new_err(error.to_string()),
        })
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self(InputError::new_err(error.to_string()))
    }
}

/// A refusal of what the argument called `name` holds.
pub(crate) fn of_argument(name: &str, problem: &str) -> PyErr {
    InputError::new_err(format!("{name}: {problem}"))
}
