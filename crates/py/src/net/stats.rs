//! Statistics of an association, under the names that results use.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use ropewalk_runtime::endpoint::{PathStats, PathStatus, Stats};

/// The name of a path's status in Python.
pub(super) const fn status(status: PathStatus) -> &'static str {
    match status {
        PathStatus::Unconfirmed => "unconfirmed",
        PathStatus::Active => "active",
        PathStatus::PotentiallyFailed => "potentially-failed",
        PathStatus::Inactive => "inactive",
    }
}

/// All statistics as a dict.
pub(super) fn dict<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let paths: Vec<_> = stats.paths.iter().map(|one| path(py, one)).collect::<PyResult<_>>()?;
    let dict = PyDict::new(py);
    dict.set_item("at_s", stats.at.as_nanos() as f64 * 1e-9)?;
    dict.set_item("paths", PyList::new(py, paths)?)?;
    dict.set_item("blocked_s", stats.sender.blocked.as_nanos() as f64 * 1e-9)?;
    dict.set_item("out_of_order_bytes", stats.out_of_order_bytes)?;
    dict.set_item("mean_out_of_order_bytes", stats.mean_out_of_order_bytes)?;
    dict.set_item("max_out_of_order_bytes", stats.max_out_of_order_bytes)?;
    Ok(dict)
}

fn path<'py>(py: Python<'py>, path: &PathStats) -> PyResult<Bound<'py, PyDict>> {
    let counted = &path.counters;
    let dict = PyDict::new(py);
    let local = path.local.as_ref();
    dict.set_item("link", local.and_then(|local| local.link()))?;
    dict.set_item("local", local.map(|local| local.address.to_string()))?;
    dict.set_item("remote", path.remote.map(|address| address.to_string()))?;
    dict.set_item("status", status(path.status))?;
    dict.set_item("sent_packets", counted.sent_packets)?;
    dict.set_item("retransmitted_packets", counted.retransmitted)?;
    dict.set_item("lost_packets", counted.lost)?;
    dict.set_item("delivered_bytes", counted.delivered_bytes)?;
    dict.set_item("received_bytes", path.received_bytes)?;
    dict.set_item("timeouts", counted.timeouts)?;
    dict.set_item("cwnd_bytes", path.cwnd_bytes)?;
    dict.set_item("in_flight_bytes", path.in_flight_bytes)?;
    dict.set_item("srtt_s", path.srtt_s)?;
    Ok(dict)
}
