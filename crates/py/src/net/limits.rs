//! Limits on what peers may make a listener store, and counters of refusals.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::{Counters, Limit, Limits};

use super::association_control::duration;
use crate::error;

/// The usual limits, with these changes: names with numbers, or with seconds if the name ends so.
pub(super) fn limits(changes: &[(String, f64)]) -> PyResult<Limits> {
    let mut limits = Limits::default();
    for (name, value) in changes {
        change(&mut limits, name, *value)?;
    }
    Ok(limits)
}

fn change(limits: &mut Limits, name: &str, value: f64) -> PyResult<()> {
    let counted = match name {
        "associations" => &mut limits.associations,
        "associations_per_key" => &mut limits.associations_per_key,
        "associations_per_prefix" => &mut limits.associations_per_prefix,
        "half_open" => &mut limits.half_open,
        "half_open_per_key" => &mut limits.half_open_per_key,
        "half_open_per_prefix" => &mut limits.half_open_per_prefix,
        "accept_queue" => &mut limits.accept_queue,
        "memory" => {
            limits.memory = number(name, value)?;
            return Ok(());
        }
        _ => {
            *timed(limits, name)? = duration(name, value)?;
            return Ok(());
        }
    };
    *counted = usize::try_from(number(name, value)?).unwrap_or(usize::MAX);
    Ok(())
}

fn timed<'a>(limits: &'a mut Limits, name: &str) -> PyResult<&'a mut Duration> {
    match name {
        "half_open_timeout_s" => Ok(&mut limits.half_open_timeout),
        "accept_timeout_s" => Ok(&mut limits.accept_timeout),
        "setup_timeout_s" => Ok(&mut limits.setup_timeout),
        "silent_timeout_s" => Ok(&mut limits.silent_timeout),
        "vanished_timeout_s" => Ok(&mut limits.vanished_timeout),
        _ => Err(error::option(format_args!("limits: there is no limit {name:?}"))),
    }
}

/// # Errors
/// It is not a whole number from 1 that a computer has room for.
fn number(name: &str, value: f64) -> PyResult<u64> {
    // Every integer up to this limit is exact.
    if value.fract() == 0.0 && (1.0..=9e15).contains(&value) {
        return Ok(value as u64);
    }
    Err(error::option(format_args!("limits: {name} = {value}: give a whole number from 1")))
}

/// The fields of `Counters`.
pub(super) fn counters<'py>(py: Python<'py>, counters: &Counters) -> PyResult<Bound<'py, PyDict>> {
    let refused = PyDict::new(py);
    for limit in Limit::ALL {
        refused.set_item(limit.name(), counters.limits.of(limit))?;
    }
    let dict = PyDict::new(py);
    dict.set_item("received", counters.received)?;
    dict.set_item("sent", counters.sent)?;
    dict.set_item("unknown", counters.unknown)?;
    dict.set_item("unauthenticated", counters.unauthenticated)?;
    dict.set_item("limits", refused)?;
    Ok(dict)
}
