//! Operations: calls that take time.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBool;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::association::Association;
use super::callback_thread::CompletedCall;
use super::net_runtime::NetRuntime;
use crate::error;

/// Interval at which a wait checks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(100);

/// Longest timeout; longer ones mean no timeout.
const LONGEST_S: f64 = 1e9;

/// The result of an operation.
pub(super) enum Outcome {
    Nothing,
    /// Whether there is something to take.
    Arrived(bool),
    Association(Association),
    /// The document, the scenario, and the names and texts of its traces.
    Measured(String, String, Vec<(String, String)>),
}

impl Outcome {
    pub fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Self::Nothing => py.None(),
            Self::Arrived(arrived) => PyBool::new(py, arrived).to_owned().into_any().unbind(),
            Self::Association(association) => Py::new(py, association)?.into_any(),
            Self::Measured(document, scenario, traces) => {
                (document, scenario, traces).into_pyobject(py)?.into_any().unbind()
            }
        })
    }
}

type Work = Pin<Box<dyn Future<Output = PyResult<Outcome>> + Send>>;

/// An operation. It begins when it is waited for, which is possible only once.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Operation {
    net_runtime: &'static NetRuntime,
    /// The message at a timeout: what did not happen.
    missed: &'static str,
    state: Mutex<State>,
}

enum State {
    Idle(Work),
    Running(AbortHandle),
    Spent,
}

impl Operation {
    pub(super) fn new(
        net_runtime: &'static NetRuntime,
        missed: &'static str,
        work: impl Future<Output = PyResult<Outcome>> + Send + 'static,
    ) -> Self {
        Self { net_runtime, missed, state: Mutex::new(State::Idle(Box::pin(work))) }
    }

    fn put(&self, state: State) -> State {
        let mut place = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut place, state)
    }

    fn take(&self) -> PyResult<Work> {
        self.net_runtime.check()?;
        match self.put(State::Spent) {
            State::Idle(work) => Ok(work),
            other => {
                self.put(other);
                Err(error::net("an operation is waited for once"))
            }
        }
    }
}

#[pymethods]
impl Operation {
    /// Waits for the operation, at most this many seconds, with the interpreter released.
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Py<PyAny>> {
        let limit = seconds.filter(|s| *s < LONGEST_S).map(duration).transpose()?;
        let work = self.take()?;
        let race = async {
            let limit = async {
                match limit {
                    Some(limit) => sleep(limit).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                result = work => Some(result),
                () = limit => None,
            }
        };
        let mut race = pin!(race);
        loop {
            let slice = async { timeout(SLICE, race.as_mut()).await };
            match py.detach(|| self.net_runtime.runtime.block_on(slice)) {
                Ok(Some(result)) => return result?.into_python(py),
                Ok(None) => {
                    let text = format!("{} within {} s", self.missed, seconds.unwrap_or_default());
                    return Err(error::timed_out(text));
                }
                Err(_) => py.check_signals()?,
            }
        }
    }

    /// Starts the operation. Returns a tuple with the result if it is done immediately. Otherwise, returns
    /// `None`, and another thread calls `done(result, error)` at the end.
    fn start(&self, py: Python<'_>, done: Py<PyAny>) -> PyResult<Option<(Py<PyAny>,)>> {
        let (mut work, net_runtime) = (self.take()?, self.net_runtime);
        let first = py.detach(|| {
            let _inside = net_runtime.runtime.enter();
            work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        });
        if let Poll::Ready(result) = first {
            return Ok(Some((result?.into_python(py)?,)));
        }
        let task = net_runtime.runtime.spawn(async move {
            let result = work.await;
            net_runtime.callback_thread.call(CompletedCall { result, done });
        });
        self.put(State::Running(task.abort_handle()));
        Ok(None)
    }

    /// Cancels the operation if it has been started.
    fn cancel(&self) {
        if let State::Running(task) = self.put(State::Spent) {
            task.abort();
        }
    }
}

/// # Errors
/// The timeout is negative or not a number.
pub(super) fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        error::option(format_args!("timeout = {seconds}: give seconds, 0 or more, or None"))
    })
}
