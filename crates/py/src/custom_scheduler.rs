//! Schedulers written in Python.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyList, PySet, PyString, PyTuple};
use ropewalk_base::{Duration, Time};
use ropewalk_lab as lab;
use ropewalk_lab::custom_schedulers::{
    CustomScheduler, Decision, IllegalDecision, PathSet, PathView, Reason, Schedule, SentReport,
    View,
};

use crate::error;
use crate::view::{Path, Sent, Window};

/// Ask again after this many seconds, or as soon as anything changes.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Wait {
    #[pyo3(get)]
    seconds: f64,
}

#[pymethods]
impl Wait {
    #[new]
    fn new(seconds: f64) -> PyResult<Self> {
        if !(seconds > 0.0 && seconds < 1e6) {
            let text =
                format!("Wait({seconds}): give seconds, more than 0 and less than a million");
            return Err(PyValueError::new_err(text));
        }
        Ok(Self { seconds })
    }

    /// For `pickle` and `copy`.
    fn __getnewargs__(&self) -> (f64,) {
        (self.seconds,)
    }

    fn __repr__(&self) -> String {
        format!("Wait({})", self.seconds)
    }
}

/// Minimum wait: a scheduler that asks again at every nanosecond would never end.
const MIN_WAIT_S: f64 = 1e-6;

impl Wait {
    fn after(&self, now: Time) -> Time {
        now + Duration::from_nanos((self.seconds.max(MIN_WAIT_S) * 1e9) as u64)
    }
}

/// Schedulers written in Python, by the names by which scenarios select them. Scenarios share this object: a
/// scheduler that is added later is known to them as well.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
#[derive(Default)]
pub(crate) struct CustomSchedulers {
    schedulers: Mutex<lab::CustomSchedulers>,
}

impl CustomSchedulers {
    /// The schedulers as they are now.
    pub(crate) fn current(&self) -> lab::CustomSchedulers {
        self.schedulers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl CustomSchedulers {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds a scheduler; `make`, called without arguments, makes one.
    fn add(&self, name: String, make: Py<PyAny>) -> PyResult<()> {
        let make = Arc::new(make);
        let called = name.clone();
        let scheduler = move || -> Box<dyn CustomScheduler> {
            Box::new(PythonScheduler {
                name: called.clone(),
                make: Arc::clone(&make),
                paths: Vec::new(),
                made: None,
                fault: None,
            })
        };
        // A replaced scheduler is dropped after the lock is released: dropping it may call Python.
        let mut schedulers = self.current();
        schedulers.add(&name, scheduler).map_err(error::value)?;
        let mut stored = self.schedulers.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = std::mem::replace(&mut *stored, schedulers);
        drop(stored);
        drop(replaced);
        Ok(())
    }

    /// The names in alphabetical order.
    fn names(&self) -> Vec<String> {
        self.current().names().into_iter().map(str::to_owned).collect()
    }
}

/// A scheduler in Python. Its object is created by the first decision, because the scheduler of the receiving end of a
/// transfer decides nothing.
struct PythonScheduler {
    name: String,
    make: Arc<Py<PyAny>>,
    paths: Vec<String>,
    made: Option<PythonObject>,
    fault: Option<String>,
}

struct PythonObject {
    object: Py<PyAny>,
    select: Py<PyAny>,
    on_sent: Option<Py<PyAny>>,
    window: Option<Window>,
    /// The name, for messages.
    now: Time,
}

impl PythonObject {
    fn new(object: Bound<'_, PyAny>) -> PyResult<Self> {
        let select = object.getattr("select")?.unbind();
        let on_sent = object.getattr_opt("on_sent")?.map(Bound::unbind);
        Ok(Self { object: object.unbind(), select, on_sent, window: None, now: Time::ZERO })
    }

    fn ask(&mut self, py: Python<'_>, view: &View<'_>, names: &[String]) -> PyResult<Decision> {
        self.now = view.now;
        let window = match &mut self.window {
            Some(window) if window.fits(view) => window,
            stale => stale.insert(Window::new(py, view, names)?),
        };
        let look = window.show(py, view)?;
        let answer = self.select.bind(py).call1((look,))?;
        decision(view, names, &answer)
    }
}

impl PythonScheduler {
    /// What to do instead of what failed: nothing, for ever. The run ends when it is seen.
    fn fail(&mut self, py: Python<'_>, error: &PyErr) -> Decision {
        self.fault.get_or_insert_with(|| notified(py, error));
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            // This is not a failure of the scheduler: it is raised again after the run. Must be last, because
            // it takes effect in the next line of Python.
            let again = py.import("_thread").and_then(|t| t.call_method0("interrupt_main"));
            debug_assert!(again.is_ok(), "every interpreter has it");
        }
        Decision::blocked(Reason::Custom)
    }
}

/// An exception in the format of the interpreter.
fn notified(py: Python<'_>, error: &PyErr) -> String {
    let lines = || -> PyResult<Vec<String>> {
        let parts = (error.get_type(py), error.value(py), error.traceback(py));
        py.import("traceback")?.call_method1("format_exception", parts)?.extract()
    };
    lines().map_or_else(|_| error.to_string(), |lines| lines.concat().trim_end().to_owned())
}

impl Schedule for PythonScheduler {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        // If no path is open, there is nothing to select.
        if self.fault.is_some() || view.open_for_head().next().is_none() {
            return view.nobody();
        }
        Python::attach(|py| {
            let made = match &mut self.made {
                Some(made) => made,
                none => match self.make.bind(py).call0().and_then(PythonObject::new) {
                    Ok(made) => none.insert(made),
                    Err(error) => return self.fail(py, &error),
                },
            };
            made.ask(py, view, &self.paths).unwrap_or_else(|error| self.fail(py, &error))
        })
    }

    fn on_sent(&mut self, sent: &SentReport) {
        let on_sent = self.made.as_ref().and_then(|made| made.on_sent.as_ref());
        let Some(on_sent) = on_sent.filter(|_| self.fault.is_none()) else { return };
        let notified = Python::attach(|py| on_sent.bind(py).call1((Sent::from(sent),)).map(drop));
        if let Err(error) = notified {
            Python::attach(|py| self.fail(py, &error));
        }
    }
}

impl CustomScheduler for PythonScheduler {
    fn name(&self) -> &str {
        &self.name
    }

    fn clone_box(&self) -> Box<dyn CustomScheduler> {
        let (name, make) = (self.name.clone(), Arc::clone(&self.make));
        let (paths, fault) = (self.paths.clone(), self.fault.clone());
        let mut copy = Self { name, make, paths, made: None, fault };
        if let Some(made) = &self.made {
            Python::attach(|py| {
                let deep =
                    py.import("copy").and_then(|m| m.call_method1("deepcopy", (&made.object,)));
                match deep.and_then(PythonObject::new) {
                    Ok(made) => copy.made = Some(made),
                    Err(error) => drop(copy.fail(py, &error)),
                }
            });
        }
        Box::new(copy)
    }

    fn on_paths(&mut self, names: &[&str]) {
        self.paths = names.iter().map(|&name| name.to_owned()).collect();
    }

    fn on_refused(&mut self, why: &IllegalDecision) {
        let at = self.made.as_ref().map_or(Time::ZERO, |made| made.now);
        let text = format!("select() at {at}: {}", refusal(why, &self.paths));
        self.fault.get_or_insert(text);
    }

    fn fault(&self) -> Option<String> {
        self.fault.clone()
    }
}

/// Why the engine rejected the selection, in the terms of the Python view.
fn refusal(why: &IllegalDecision, names: &[String]) -> String {
    let name = |index: usize| names.get(index).map_or("?", String::as_str);
    match why {
        IllegalDecision::ClosedPath(path) => format!(
            "path {:?} is closed (not usable, or its window is full); choose from view.open",
            name(path.index())
        ),
        IllegalDecision::BeyondReach { position, limit } => format!(
            "position {position} is out of reach: it must be below view.takeable_chunks, {limit}"
        ),
        other => other.to_string(),
    }
}

/// Converts an answer of `select()`.
fn decision(view: &View<'_>, names: &[String], answer: &Bound<'_, PyAny>) -> PyResult<Decision> {
    if answer.is_none() {
        return Ok(view.nobody());
    }
    if let Ok(wait) = answer.cast::<Wait>() {
        return Ok(Decision::wait(wait.get().after(view.now), Reason::Custom));
    }
    if let Ok(pair) = answer.cast::<PyTuple>() {
        let (place, position) = pair
            .extract::<(Bound<'_, PyAny>, u64)>()
            .map_err(|_| wrong(answer, "a tuple is (path, position), with a position from 0"))?;
        return to(view, names, &place, Some(position));
    }
    to(view, names, answer, None)
}

/// Send on a path, or copies on several. Without a position, the head of the queue.
fn to(
    view: &View<'_>,
    names: &[String],
    place: &Bound<'_, PyAny>,
    position: Option<u64>,
) -> PyResult<Decision> {
    let many = place.is_instance_of::<PySet>()
        || place.is_instance_of::<PyFrozenSet>()
        || place.is_instance_of::<PyList>();
    if !many {
        let path = path_of(view, names, place)?;
        return Ok(Decision::send(path.id, position.unwrap_or(0), Reason::Custom));
    }
    let mut set = PathSet::EMPTY;
    for place in place.try_iter()? {
        let path = path_of(view, names, &place?)?;
        set = set.with(path.id);
    }
    Ok(Decision::copies(set, position.unwrap_or(0), Reason::Custom))
}

/// The path that an answer names: an object of the view, a number from 0, or a name.
fn path_of<'a>(
    view: &View<'a>,
    names: &[String],
    place: &Bound<'_, PyAny>,
) -> PyResult<&'a PathView> {
    let index = if let Ok(path) = place.cast::<Path>() {
        Some(path.try_borrow()?.index)
    } else if let Ok(text) = place.cast::<PyString>() {
        let text = text.to_string_lossy();
        names.iter().position(|name| *name == text)
    } else if let Ok(number) = place.extract::<i64>() {
        usize::try_from(number).ok()
    } else {
        let help = "answer a path of view.open, its number or name; (path, position); a set of \
                    paths for copies; ropewalk.Wait(seconds); or None";
        return Err(wrong(place, help));
    };
    index.and_then(|index| view.paths.get(index)).ok_or_else(|| {
        let shown = place.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        let text = format!(
            "select() answered {shown}: there is no such path; there are: {}",
            names.join(", ")
        );
        PyValueError::new_err(text)
    })
}

fn wrong(answer: &Bound<'_, PyAny>, help: &str) -> PyErr {
    let shown = answer.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    let kind = answer.get_type().name().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    PyTypeError::new_err(format!("select() answered {shown}, a {kind}: {help}"))
}
