//! Converts Rust's errors to the exceptions of `ropewalk.errors`.

use std::fmt::Display;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use ropewalk_scenario::{Problem, ProblemKind, ScenarioError as FileError};

/// The classes are written in Python, where an exception can have two bases and attributes.
mod python {
    pyo3::import_exception!(ropewalk.errors, BindError);
    pyo3::import_exception!(ropewalk.errors, ClosedError);
    pyo3::import_exception!(ropewalk.errors, ConnectError);
    pyo3::import_exception!(ropewalk.errors, ModelError);
    pyo3::import_exception!(ropewalk.errors, NetError);
    pyo3::import_exception!(ropewalk.errors, OptionError);
    pyo3::import_exception!(ropewalk.errors, RunError);
    pyo3::import_exception!(ropewalk.errors, ScenarioError);
    pyo3::import_exception!(ropewalk.errors, TimedOut);
}

/// A model refused its arguments.
pub(crate) fn model(text: impl Display) -> PyErr {
    python::ModelError::new_err(text.to_string())
}

/// A run failed.
pub(crate) fn run(text: impl Display) -> PyErr {
    python::RunError::new_err(text.to_string())
}

/// The sockets can no longer be used, or not in this process.
pub(crate) fn net(text: impl Display) -> PyErr {
    python::NetError::new_err(text.to_string())
}

/// A local address cannot be used.
pub(crate) fn bind(text: impl Display) -> PyErr {
    python::BindError::new_err(text.to_string())
}

/// An association could not be established.
pub(crate) fn connect(text: impl Display) -> PyErr {
    python::ConnectError::new_err(text.to_string())
}

/// An association has ended.
pub(crate) fn closed(text: impl Display) -> PyErr {
    python::ClosedError::new_err(text.to_string())
}

/// An operation exceeded its timeout.
pub(crate) fn timed_out(text: impl Display) -> PyErr {
    python::TimedOut::new_err(text.to_string())
}

/// An invalid option of a socket.
pub(crate) fn option(text: impl Display) -> PyErr {
    python::OptionError::new_err(text.to_string())
}

/// An invalid argument.
pub(crate) fn value(text: impl Display) -> PyErr {
    PyValueError::new_err(text.to_string())
}

/// An invalid scenario: the message as people read it, and each problem as a dict.
pub(crate) fn scenario(py: Python<'_>, mut error: FileError) -> PyErr {
    for problem in &mut error.problems {
        // The scenario crate names overrides as the command line spells them.
        for option in ["set", "vary"] {
            if let Some(set) = problem.source.strip_prefix(&format!("--{option} ")) {
                problem.source = format!("{option}: {set}");
            }
        }
    }
    let problems: PyResult<Vec<_>> = error.problems.iter().map(|p| problem(py, p)).collect();
    match problems.and_then(|list| PyList::new(py, list)) {
        Ok(list) => python::ScenarioError::new_err((error.to_string(), list.unbind())),
        Err(error) => error,
    }
}

fn problem<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyDict>> {
    // Line 0 means the entire file, for which Python has None.
    let position = |n: usize| (problem.line > 0).then_some(n);
    let dict = PyDict::new(py);
    dict.set_item("kind", kind(problem.kind))?;
    dict.set_item("source", &problem.source)?;
    dict.set_item("line", position(problem.line))?;
    dict.set_item("column", position(problem.column))?;
    dict.set_item("key", &problem.key)?;
    dict.set_item("message", &problem.message)?;
    dict.set_item("hint", &problem.help)?;
    Ok(dict)
}

const fn kind(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Unreadable => "unreadable",
        ProblemKind::Syntax => "syntax",
        ProblemKind::UnknownKey => "unknown-key",
        ProblemKind::WrongType => "wrong-type",
        ProblemKind::WrongUnit => "wrong-unit",
        ProblemKind::UnknownName => "unknown-name",
        ProblemKind::OutOfRange => "out-of-range",
        ProblemKind::Missing => "missing",
        ProblemKind::Conflict => "conflict",
        ProblemKind::Duplicate => "duplicate",
    }
}
