//! Quantities out of Python's arguments.

use std::fmt::Display;
use std::str::FromStr;

use pyo3::prelude::*;

use crate::errors::of_argument;

/// The quantity that `text` gives for the argument called `name`.
pub(crate) fn quantity<T: FromStr<Err: Display>>(name: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error: T::Err| of_argument(name, &error.to_string()))
}
