//! The input of a scheduler in Python: the engine's view, with the names that results use.
//!
//! The objects of a scheduler are created once and filled for each decision: creating them each time would cost
//! more than the decision.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use ropewalk_base::{Duration, Rate};
use ropewalk_lab::custom_schedulers::{DelaySource, PathView, SentReport, View};
use ropewalk_lab::episode::{Observation, feature_count, features};

/// One path. Read-only.
#[pyclass(name = "SchedulerPath", module = "ropewalk._ropewalk")]
pub(crate) struct Path {
    name: Py<PyString>,
    pub(crate) index: usize,
    open: bool,
    view: PathView,
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(Duration::as_secs_f64)
}

#[pymethods]
impl Path {
    /// Its number, from 0.
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyString> {
        self.name.clone_ref(py)
    }

    /// Whether it may take a chunk now.
    #[getter]
    fn open(&self) -> bool {
        self.open
    }

    /// Whether congestion control probes for more bandwidth, or has just done so.
    #[getter]
    fn probing(&self) -> bool {
        self.view.probing
    }

    #[getter]
    fn usable(&self) -> bool {
        self.view.usable
    }

    #[getter]
    fn cost(&self) -> u32 {
        self.view.cost
    }

    #[getter]
    fn weight(&self) -> f64 {
        self.view.weight
    }

    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        seconds(self.view.srtt)
    }

    #[getter]
    fn last_rtt_s(&self) -> Option<f64> {
        seconds(self.view.last_rtt)
    }

    #[getter]
    fn rttvar_s(&self) -> f64 {
        self.view.rttvar.as_secs_f64()
    }

    #[getter]
    fn queueing_s(&self) -> f64 {
        self.view.queueing.as_secs_f64()
    }

    #[getter]
    fn rtt_age_s(&self) -> f64 {
        self.view.rtt_age.as_secs_f64()
    }

    #[getter]
    fn forward_delay_s(&self) -> Option<f64> {
        seconds(self.view.forward_delay)
    }

    #[getter]
    fn delay_source(&self) -> &'static str {
        match self.view.delay_source {
            DelaySource::Oracle => "oracle",
            DelaySource::HalfRtt => "half-rtt",
            DelaySource::Timestamp => "timestamp",
        }
    }

    #[getter]
    fn cwnd_bytes(&self) -> u64 {
        self.view.cwnd
    }

    #[getter]
    fn ssthresh_bytes(&self) -> u64 {
        self.view.ssthresh
    }

    #[getter]
    fn window_bytes(&self) -> u64 {
        self.view.window
    }

    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.view.in_flight
    }

    #[getter]
    fn room_bytes(&self) -> u64 {
        self.view.room()
    }

    #[getter]
    fn delivered_bytes(&self) -> u64 {
        self.view.delivered
    }

    #[getter]
    fn burst_room_bytes(&self) -> u64 {
        self.view.burst_room
    }

    #[getter]
    fn rate_bps(&self) -> Option<f64> {
        self.view.rate.map(|rate: Rate| rate.as_bps() as f64)
    }

    #[getter]
    fn rate_confidence(&self) -> f64 {
        self.view.rate_confidence
    }

    #[getter]
    fn loss(&self) -> f64 {
        self.view.loss
    }

    #[getter]
    fn mtu_bytes(&self) -> u32 {
        self.view.mtu
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let name = self.name.bind(py).to_string_lossy();
        let state = if self.open { "open" } else { "closed" };
        format!("<SchedulerPath {}: {name}, {state}>", self.index)
    }
}

/// Everything that a scheduler may see. Read-only.
#[pyclass(name = "SchedulerView", module = "ropewalk._ropewalk")]
pub(crate) struct SchedulerView {
    observation: Observation,
    #[pyo3(get)]
    now_s: f64,
    #[pyo3(get)]
    backlog_chunks: u64,
    #[pyo3(get)]
    backlog_bytes: u64,
    #[pyo3(get)]
    takeable_chunks: u64,
    #[pyo3(get)]
    window_room_bytes: u64,
    #[pyo3(get)]
    receive_buffer_bytes: u64,
    #[pyo3(get)]
    acknowledged_chunks: u64,
    #[pyo3(get)]
    chunk_bytes: u64,
    #[pyo3(get)]
    closing: bool,
    #[pyo3(get)]
    epoch: u64,
    #[pyo3(get)]
    paths: Py<PyTuple>,
    #[pyo3(get)]
    open: Py<PyList>,
}

#[pymethods]
impl SchedulerView {
    /// The decision as the environments of `ropewalk.gym` observe it.
    fn features(&self) -> Vec<f32> {
        let mut row = vec![0.0; feature_count(self.observation.paths.len())];
        features(&self.observation, &mut row);
        row
    }
}

/// What was really sent, reported after the transmission. Read-only.
#[pyclass(frozen, name = "SentReport", module = "ropewalk._ropewalk", get_all)]
pub(crate) struct Sent {
    path: usize,
    position: u64,
    sequence: u64,
    bytes: u64,
}

impl From<&SentReport> for Sent {
    fn from(sent: &SentReport) -> Self {
        let SentReport { path, position, sequence, bytes } = *sent;
        Self { path: path.index(), position, sequence, bytes }
    }
}

/// The objects of one scheduler, which are reused for each decision.
pub(crate) struct Window {
    view: Py<SchedulerView>,
    paths: Vec<Py<Path>>,
}

impl Window {
    /// Creates objects for the paths of `view`, with the names `names`.
    pub(crate) fn new(py: Python<'_>, view: &View<'_>, names: &[String]) -> PyResult<Self> {
        let make = |(index, path): (usize, &PathView)| {
            let number = index.to_string();
            let name = names.get(index).unwrap_or(&number);
            let name = PyString::new(py, name).unbind();
            Py::new(py, Path { name, index, open: false, view: *path })
        };
        let paths: Vec<_> = view.paths.iter().enumerate().map(make).collect::<PyResult<_>>()?;
        let tuple = PyTuple::new(py, paths.iter().map(|path| path.bind(py)))?.unbind();
        let view = SchedulerView {
            observation: Observation::empty(paths.len()),
            now_s: 0.0,
            backlog_chunks: 0,
            backlog_bytes: 0,
            takeable_chunks: 0,
            window_room_bytes: 0,
            receive_buffer_bytes: 0,
            acknowledged_chunks: 0,
            chunk_bytes: 0,
            closing: false,
            epoch: 0,
            paths: tuple,
            open: PyList::empty(py).unbind(),
        };
        Ok(Self { view: Py::new(py, view)?, paths })
    }

    /// Whether it has as many paths as `view`.
    pub(crate) fn fits(&self, view: &View<'_>) -> bool {
        self.paths.len() == view.paths.len()
    }

    /// Fills the objects from `view`.
    pub(crate) fn show<'py>(
        &self,
        py: Python<'py>,
        view: &View<'_>,
    ) -> PyResult<&Bound<'py, SchedulerView>> {
        let open = PyList::empty(py);
        let anything = view.reach() > 0;
        for (object, path) in self.paths.iter().zip(view.paths) {
            let may_send = anything && path.is_open();
            let mut shown = object.bind(py).try_borrow_mut()?;
            shown.view = *path;
            shown.open = may_send;
            drop(shown);
            if may_send {
                open.append(object)?;
            }
        }
        let target = self.view.bind(py);
        let mut shown = target.try_borrow_mut()?;
        shown.observation.copy(view);
        shown.now_s = view.now.as_secs_f64();
        shown.backlog_chunks = view.backlog_chunks;
        shown.backlog_bytes = view.backlog_bytes;
        shown.takeable_chunks = view.takeable();
        shown.window_room_bytes = view.window_room;
        shown.receive_buffer_bytes = view.receive_buffer;
        shown.acknowledged_chunks = view.acknowledged_chunks;
        shown.chunk_bytes = view.chunk_bytes;
        shown.closing = view.closing;
        shown.epoch = view.epoch;
        shown.open = open.unbind();
        drop(shown);
        Ok(target)
    }
}
