//! The native half of the Python package: what `python/suimon` is built on.
//!
//! Nothing here is for users; the package checks arguments, documents and types what this module offers. Runs
//! take place without the interpreter's lock, and a signal such as Ctrl-C stops them. What goes wrong becomes an
//! exception with the command's message; the extension is built to unwind, so that nothing ends the interpreter.

#![forbid(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "what Python hands over is converted into owned values")]

mod arguments;
mod compare;
mod errors;
mod link;
mod paper;
mod registry;
mod results;
mod scenario;
mod sweep;
mod table;
mod user_defined;
mod work;

use pyo3::prelude::*;

/// The native half of the package suimon.
#[pymodule]
mod _suimon {
    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::compare::{command, compare, keywords, measured};
    #[pymodule_export]
    use crate::link::LinkSpec;
    #[pymodule_export]
    use crate::paper::{paper, papers};
    #[pymodule_export]
    use crate::registry::{algorithms, profiles};
    #[pymodule_export]
    use crate::results::Findings;
    #[pymodule_export]
    use crate::scenario::{Document, default_scenario};
    #[pymodule_export]
    use crate::sweep::{Folder, Sweep};
    #[pymodule_export]
    use crate::table::{Column, Table};
    #[pymodule_export]
    use crate::user_defined::{
        PyAck, PyCongestion, PyDelivery, PyLimits, PyPacket, PyPath, PySendState, add_algorithm,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        if cfg!(panic = "abort") {
            let problem = "this build would end the interpreter where an exception belongs; build it by \
                           `pip install .`, which takes the profile \"python\"";
            return Err(PyImportError::new_err(problem));
        }
        module.add("__version__", suimon_study::VERSION)
    }
}
