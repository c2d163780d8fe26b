//! Control of an association: its status, timers and parameters, and undelivered messages (RFC 9260, 11.1; RFC
//! 6458, 8).

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use ropewalk_apps::extensions::chunk_names;
use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::{
    AssociationStatus, Parameters, ReliabilityPolicy, State, Undelivered,
};

use super::association::Association;
use super::open::{accepted_names, accepted_requests};
use crate::error;

/// Bytes, stream, payload protocol identifier, unordered, whole, bytes reported in gap ack blocks.
type UndeliveredFields = (Py<PyBytes>, u16, u32, bool, bool, usize);

/// The control calls of an association. It keeps the association.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct AssociationControl {
    association: Py<Association>,
}

impl AssociationControl {
    pub(super) const fn new(association: Py<Association>) -> Self {
        Self { association }
    }

    /// The association, in the process that opened it.
    fn association<'py>(&self, py: Python<'py>) -> PyResult<PyRef<'py, Association>> {
        let association = self.association.bind(py).borrow();
        association.check_process()?;
        Ok(association)
    }
}

#[pymethods]
impl AssociationControl {
    /// Messages that were never sent, or those that were sent and not acknowledged.
    fn undelivered(&self, py: Python<'_>, sent: bool) -> PyResult<Vec<UndeliveredFields>> {
        let association = self.association(py)?;
        let native = association.native();
        let found = py.detach(|| if sent { native.unacknowledged() } else { native.unsent() });
        let fields = |message: Undelivered| {
            let Undelivered { stream, ppid, unordered, bytes, whole, reported, .. } = message;
            (PyBytes::new(py, &bytes).unbind(), stream, ppid, unordered, whole, reported)
        };
        Ok(found.into_iter().map(fields).collect())
    }

    /// Why it has ended; none if it has not.
    fn close_reason(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let association = self.association(py)?;
        let native = association.native();
        Ok(py.detach(|| native.close_reason()).map(|reason| reason.to_string()))
    }

    /// State, windows and queues, as a dict; none once it is gone.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let association = self.association(py)?;
        let native = association.native();
        let found = py.detach(|| native.status().map(|status| (status, native.stream_counts())));
        found.map(|(status, streams)| status_dict(py, &status, streams)).transpose()
    }

    /// Retransmission timeout and interval of HEARTBEATs of a path, seconds; none if there is no such path.
    fn path_timers(&self, py: Python<'_>, path: usize) -> PyResult<Option<(f64, Option<f64>)>> {
        let association = self.association(py)?;
        let native = association.native();
        let timers = py.detach(|| native.path_timers(path));
        Ok(timers.map(|timers| (seconds(timers.rto), timers.heartbeat_interval.map(seconds))))
    }

    /// Makes a path the primary one; returns whether it exists.
    fn set_primary(&self, py: Python<'_>, path: usize) -> PyResult<bool> {
        let association = self.association(py)?;
        let native = association.native();
        Ok(py.detach(|| native.set_primary(path)))
    }

    /// Whether and how often an idle path is probed; returns whether it exists.
    fn set_heartbeats(
        &self,
        py: Python<'_>,
        path: usize,
        enabled: bool,
        interval_s: Option<f64>,
    ) -> PyResult<bool> {
        let interval = interval_s.map(|s| duration("interval", s)).transpose()?;
        let association = self.association(py)?;
        let native = association.native();
        Ok(py.detach(|| native.set_heartbeats(path, enabled, interval)))
    }

    /// Probes a path now; returns whether that was possible.
    fn request_heartbeat(&self, py: Python<'_>, path: usize) -> PyResult<bool> {
        let association = self.association(py)?;
        let native = association.native();
        Ok(py.detach(|| native.request_heartbeat(path)))
    }

    /// The code point of a path's packets, or of those of all paths; returns whether the path exists.
    fn set_dscp(&self, py: Python<'_>, path: Option<usize>, dscp: u8) -> PyResult<bool> {
        let dscp = super::open::dscp(dscp)?;
        let association = self.association(py)?;
        let native = association.native();
        Ok(py.detach(|| native.set_dscp(path, dscp)))
    }

    /// Most consecutive errors of a path; returns whether it exists.
    fn set_path_max_retrans(
        &self,
        py: Python<'_>,
        path: usize,
        most: Option<u32>,
    ) -> PyResult<bool> {
        let association = self.association(py)?;
        let native = association.native();
        Ok(py.detach(|| native.set_path_max_retrans(path, most)))
    }

    /// The protocol parameters as a dict; none once it is gone.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let association = self.association(py)?;
        let native = association.native();
        let found = py.detach(|| native.parameters());
        found.map(|parameters| parameters_dict(py, &parameters)).transpose()
    }

    /// Changes those parameters that the dict has; returns whether the association is still there.
    fn set_parameters(&self, py: Python<'_>, changes: &Bound<'_, PyDict>) -> PyResult<bool> {
        let association = self.association(py)?;
        let native = association.native();
        let Some(mut parameters) = py.detach(|| native.parameters()) else { return Ok(false) };
        for (name, value) in changes {
            change(&mut parameters, &name.extract::<String>()?, &value)?;
        }
        py.detach(|| native.set_parameters(parameters)).map_err(error::option)?;
        Ok(true)
    }

    /// Number of messages of a stream, or of all, that a rule, or any, has given up: before and after parts of them were sent.
    fn abandoned_messages(
        &self,
        py: Python<'_>,
        stream: Option<u16>,
        policy: Option<&str>,
    ) -> PyResult<(u64, u64)> {
        let policy = policy.map(reliability_policy).transpose()?;
        let association = self.association(py)?;
        let native = association.native();
        let counts = py.detach(|| native.abandoned_messages(stream, policy));
        Ok((counts.unsent, counts.sent))
    }

    /// Which requests of the peer are performed.
    #[getter]
    fn accepted_requests(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        let association = self.association(py)?;
        let native = association.native();
        Ok(accepted_names(py.detach(|| native.accepted_requests())))
    }

    /// Changes which requests of the peer are performed.
    fn set_accepted_requests(&self, py: Python<'_>, names: Vec<String>) -> PyResult<()> {
        let accepted = accepted_requests(&names)?;
        let association = self.association(py)?;
        let native = association.native();
        py.detach(|| native.set_accepted_requests(accepted));
        Ok(())
    }

    /// What the peer says about the layer above SCTP.
    #[getter]
    fn peer_adaptation(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        let association = self.association(py)?;
        let native = association.native();
        Ok(py.detach(|| native.peer_adaptation()))
    }

    /// Chunks that this end has to authenticate.
    #[getter]
    fn peer_authenticated_chunks(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        let association = self.association(py)?;
        let native = association.native();
        Ok(chunk_names(py.detach(|| native.peer_authenticated_chunks())))
    }

    /// Whether own addresses that appear and disappear are announced.
    fn set_follow_interfaces(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        let association = self.association(py)?;
        let native = association.native();
        py.detach(|| native.set_follow_interfaces(on));
        Ok(())
    }
}

const fn state_name(state: &State) -> &'static str {
    match state {
        State::Closed => "closed",
        State::CookieWait { .. } => "cookie-wait",
        State::CookieEchoed { .. } => "cookie-echoed",
        State::Established => "established",
        State::ShutdownPending => "shutdown-pending",
        State::ShutdownSent { .. } => "shutdown-sent",
        State::ShutdownReceived { .. } => "shutdown-received",
        State::ShutdownAckSent { .. } => "shutdown-ack-sent",
        State::Ended(_) => "ended",
    }
}

/// The fields of a `Status`.
fn status_dict<'py>(
    py: Python<'py>,
    status: &AssociationStatus,
    streams: (u16, u16),
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("state", state_name(&status.state))?;
    dict.set_item("peer_window_bytes", status.peer_window_bytes)?;
    dict.set_item("chunks_in_flight", status.chunks_in_flight)?;
    dict.set_item("waiting_bytes", status.waiting_bytes)?;
    dict.set_item("receive_free_bytes", status.receive_free_bytes)?;
    dict.set_item("outgoing_streams", streams.0)?;
    dict.set_item("incoming_streams", streams.1)?;
    dict.set_item("primary", status.primary)?;
    Ok(dict)
}

/// The fields of `Parameters`.
fn parameters_dict<'py>(py: Python<'py>, parameters: &Parameters) -> PyResult<Bound<'py, PyDict>> {
    let Parameters { rto, failure, .. } = *parameters;
    let dict = PyDict::new(py);
    dict.set_item("rto_initial_s", seconds(rto.initial))?;
    dict.set_item("rto_min_s", seconds(rto.min))?;
    dict.set_item("rto_max_s", seconds(rto.max))?;
    dict.set_item("association_max_retrans", parameters.association_max_retrans)?;
    dict.set_item("path_max_retrans", failure.path_max_retrans)?;
    dict.set_item("potentially_failed_max_retrans", failure.potentially_failed)?;
    dict.set_item("max_init_retransmits", parameters.max_init_retransmits)?;
    dict.set_item("heartbeat_interval_s", seconds(parameters.heartbeat_interval))?;
    dict.set_item("heartbeat_burst", parameters.heartbeat_burst)?;
    dict.set_item("max_burst", parameters.max_burst)?;
    dict.set_item("sack_delay_s", seconds(parameters.sack_delay))?;
    dict.set_item("sack_every_packets", parameters.sack_every_packets)?;
    dict.set_item("cookie_life_s", seconds(parameters.cookie_life))?;
    Ok(dict)
}

/// Changes the parameter of that name.
fn change(parameters: &mut Parameters, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let Parameters { rto, failure, .. } = parameters;
    let counted = match name {
        "association_max_retrans" => &mut parameters.association_max_retrans,
        "path_max_retrans" => &mut failure.path_max_retrans,
        "potentially_failed_max_retrans" => &mut failure.potentially_failed,
        "max_init_retransmits" => &mut parameters.max_init_retransmits,
        "heartbeat_burst" => &mut parameters.heartbeat_burst,
        "max_burst" => &mut parameters.max_burst,
        "sack_every_packets" => &mut parameters.sack_every_packets,
        _ => {
            let timed = match name {
                "rto_initial_s" => &mut rto.initial,
                "rto_min_s" => &mut rto.min,
                "rto_max_s" => &mut rto.max,
                "heartbeat_interval_s" => &mut parameters.heartbeat_interval,
                "sack_delay_s" => &mut parameters.sack_delay,
                "cookie_life_s" => &mut parameters.cookie_life,
                _ => return Err(error::option(format_args!("there is no parameter {name:?}"))),
            };
            *timed = duration(name, value.extract()?)?;
            return Ok(());
        }
    };
    *counted = value.extract().map_err(|_| {
        error::option(format_args!("{name} = {value}: give a number from 0 to {}", u32::MAX))
    })?;
    Ok(())
}

fn reliability_policy(name: &str) -> PyResult<ReliabilityPolicy> {
    match name {
        "lifetime" => Ok(ReliabilityPolicy::Lifetime),
        "retransmissions" => Ok(ReliabilityPolicy::Retransmissions),
        "priority" => Ok(ReliabilityPolicy::Priority),
        _ => Err(error::option(format_args!(
            "policy = {name:?}: lifetime, retransmissions, priority are known"
        ))),
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 * 1e-9
}

/// # Errors
/// It is negative, or not a number, or a day or more.
pub(super) fn duration(option: &str, seconds: f64) -> PyResult<Duration> {
    if (0.0..86_400.0).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(error::option(format_args!(
        "{option} = {seconds}: give seconds, at least 0 and less than a day"
    )))
}
