//! Events about streams that were reset or added (RFC 6525), as `ropewalk.net` shows them.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ropewalk_runtime::endpoint::{
    Outcome, ReconfigurationError, Reconfigured, ResetDirection, Streams,
};

use crate::error;

/// The direction of that name.
pub(super) fn direction(name: &str) -> PyResult<ResetDirection> {
    match name {
        "outgoing" => Ok(ResetDirection::Outgoing),
        "incoming" => Ok(ResetDirection::Incoming),
        "both" => Ok(ResetDirection::Both),
        _ => Err(error::option(format_args!(
            "direction = {name:?}: outgoing, incoming, both are known"
        ))),
    }
}

/// The exception for a request that was not made.
pub(super) fn not_requested(reason: ReconfigurationError) -> PyErr {
    match reason {
        ReconfigurationError::Closing => error::closed(reason),
        ReconfigurationError::InProgress => error::net(reason),
        ReconfigurationError::NotSupported
        | ReconfigurationError::NoSuchStream
        | ReconfigurationError::TooManyStreams
        | ReconfigurationError::Empty => error::option(reason),
    }
}

const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Performed => "performed",
        Outcome::Denied => "denied",
        Outcome::Failed => "failed",
    }
}

fn numbers(streams: &Streams) -> Vec<u16> {
    streams.listed().iter().map(|stream| stream.0).collect()
}

/// The fields of a `StreamEvent`.
pub(super) fn dict<'py>(py: Python<'py>, event: &Reconfigured) -> PyResult<Bound<'py, PyDict>> {
    let (kind, outcome, direction, streams, added) = match event {
        Reconfigured::ResetByPeer(all) => {
            ("streams-reset", Outcome::Performed, Some("incoming"), numbers(all), (0, 0))
        }
        Reconfigured::Reset(all, outcome) => {
            ("streams-reset", *outcome, Some("outgoing"), numbers(all), (0, 0))
        }
        Reconfigured::PeerResetRefused(all, outcome) => {
            ("streams-reset", *outcome, Some("incoming"), numbers(all), (0, 0))
        }
        Reconfigured::Association { outcome, .. } => {
            ("association-reset", *outcome, None, Vec::new(), (0, 0))
        }
        Reconfigured::StreamsAdded { outgoing, incoming, outcome } => {
            ("streams-added", *outcome, None, Vec::new(), (*outgoing, *incoming))
        }
    };
    let dict = PyDict::new(py);
    dict.set_item("kind", kind)?;
    dict.set_item("outcome", outcome_name(outcome))?;
    dict.set_item("direction", direction)?;
    dict.set_item("streams", streams)?;
    dict.set_item("outgoing", added.0)?;
    dict.set_item("incoming", added.1)?;
    Ok(dict)
}
