//! Changes of paths and of the ends' addresses (RFC 5061), as `ropewalk.net` shows them.

use std::net::IpAddr;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ropewalk_runtime::endpoint::{
    AddressChange, AddressError, PathEvent, PathStatus, Refusal, SharedKeyError,
};

use super::stats;
use crate::error;

/// The address in this text.
pub(super) fn address(text: &str) -> PyResult<IpAddr> {
    text.parse().map_err(|_| {
        error::option(format_args!("{text:?} is not an address without a port, as 192.0.2.7"))
    })
}

/// The exception for a request about addresses that was not made.
pub(super) fn not_requested(reason: AddressError) -> PyErr {
    match reason {
        AddressError::Closing => error::closed(reason),
        AddressError::TooMany => error::net(reason),
        AddressError::NotSupported | AddressError::Unsuitable | AddressError::LastAddress => {
            error::option(reason)
        }
    }
}

/// The exception for a secret that was not changed.
pub(super) fn key_refused(reason: SharedKeyError) -> PyErr {
    error::option(reason)
}

fn refusal_name(refusal: Refusal) -> String {
    match refusal {
        Refusal::Unresolvable => "unresolvable".to_owned(),
        Refusal::Invalid => "invalid".to_owned(),
        Refusal::LastAddress => "last-address".to_owned(),
        Refusal::Resources => "resources".to_owned(),
        Refusal::SourceAddress => "source-address".to_owned(),
        Refusal::NotPermitted => "not-permitted".to_owned(),
        Refusal::Other(cause) => format!("cause {cause}"),
    }
}

/// The kind of a change, the address, and why the peer refused it.
fn of_change(change: AddressChange) -> (&'static str, IpAddr, Option<Refusal>) {
    match change {
        AddressChange::Added(ip) => ("address-added", ip, None),
        AddressChange::Removed(ip) => ("address-removed", ip, None),
        AddressChange::Primary(ip) => ("primary-requested", ip, None),
        AddressChange::OwnAdded(ip, answer) => ("own-address-added", ip, answer.err()),
        AddressChange::OwnRemoved(ip, answer) => ("own-address-removed", ip, answer.err()),
        AddressChange::OwnPrimary(ip, answer) => ("own-primary-requested", ip, answer.err()),
    }
}

/// The fields of a `PathEvent`.
pub(super) fn dict<'py>(py: Python<'py>, event: &PathEvent) -> PyResult<Bound<'py, PyDict>> {
    let (mut path, mut status): (Option<usize>, Option<PathStatus>) = (None, None);
    let (mut address, mut refusal, mut key) = (None, None, None);
    let kind = match *event {
        PathEvent::Changed(id, found) => {
            (path, status) = (Some(id.index()), Some(found));
            "changed"
        }
        PathEvent::Restarted => "restarted",
        PathEvent::PeerUsesKey(id) => {
            key = Some(id);
            "peer-uses-key"
        }
        PathEvent::Address(change) => {
            let (kind, ip, refused) = of_change(change);
            (address, refusal) = (Some(ip.to_string()), refused.map(refusal_name));
            kind
        }
    };
    let dict = PyDict::new(py);
    dict.set_item("kind", kind)?;
    dict.set_item("path", path)?;
    dict.set_item("status", status.map(stats::status))?;
    dict.set_item("address", address)?;
    dict.set_item("refusal", refusal)?;
    dict.set_item("key", key)?;
    Ok(dict)
}
