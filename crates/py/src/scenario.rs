//! A scenario, stored as its text and the changes to it.

use std::path::PathBuf;

use pyo3::prelude::*;
use ropewalk_lab as lab;
use ropewalk_lab::sweep::Source;
use ropewalk_scenario::{self as file, Named, Override, SchedulerName};

use crate::custom_scheduler::CustomSchedulers;
use crate::error;

/// A checked scenario.
///
/// The text is kept as well: a change checks everything again, and an error can then point at the line that its
/// author wrote.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Scenario {
    text: String,
    name: String,
    sets: Vec<String>,
    seed: Option<u64>,
    schedulers: Py<CustomSchedulers>,
    checked: file::Scenario,
}

impl Scenario {
    pub(crate) fn checked(&self) -> &file::Scenario {
        &self.checked
    }

    /// The file name, or another name for messages.
    pub(crate) fn source(&self) -> Source {
        let (text, name, sets) = (self.text.clone(), self.name.clone(), self.sets.clone());
        let custom_schedulers = self.custom_schedulers();
        Source { text, name, sets, seed: self.seed, custom_schedulers }
    }

    /// The custom schedulers that it may select.
    pub(crate) fn custom_schedulers(&self) -> lab::CustomSchedulers {
        self.schedulers.get().current()
    }

    fn check(
        py: Python<'_>,
        text: String,
        name: String,
        sets: Vec<String>,
        seed: Option<u64>,
        schedulers: Py<CustomSchedulers>,
    ) -> PyResult<Self> {
        let overrides: Vec<_> =
            sets.iter().map(|change| Override { option: "--set", change }).collect();
        let mut checked = schedulers
            .get()
            .current()
            .parse(&text, &name, &overrides)
            .map_err(|problems| error::scenario(py, problems))?;
        // The seed is not set by an override: TOML's integers end at 2^63, and seeds have 64 bits.
        checked.transfer.seed = seed.unwrap_or(checked.transfer.seed);
        Ok(Self { text, name, sets, seed, schedulers, checked })
    }
}

#[pymethods]
impl Scenario {
    /// Reads a file; `sets` are overrides of the form `key=value`.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        sets: Vec<String>,
        seed: Option<u64>,
        schedulers: Py<CustomSchedulers>,
    ) -> PyResult<Self> {
        let file::ScenarioText { name, text } =
            file::ScenarioText::read(&path).map_err(|problems| error::scenario(py, problems))?;
        Self::check(py, text, name, sets, seed, schedulers)
    }

    /// Reads a text; messages use `name` for it.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        text: String,
        name: String,
        sets: Vec<String>,
        seed: Option<u64>,
        schedulers: Py<CustomSchedulers>,
    ) -> PyResult<Self> {
        Self::check(py, text, name, sets, seed, schedulers)
    }

    /// The same scenario with more overrides, and another seed if one is given.
    fn with_changes(&self, py: Python<'_>, sets: Vec<String>, seed: Option<u64>) -> PyResult<Self> {
        let sets = self.sets.iter().cloned().chain(sets).collect();
        let schedulers = self.schedulers.clone_ref(py);
        Self::check(py, self.text.clone(), self.name.clone(), sets, seed.or(self.seed), schedulers)
    }

    /// The text from which [`Scenario::parse`] makes the same scenario elsewhere.
    fn parts(&self) -> (String, String, Vec<String>, Option<u64>) {
        (self.text.clone(), self.name.clone(), self.sets.clone(), self.seed)
    }

    /// The scenario with every value written out.
    fn to_toml(&self) -> String {
        self.checked.to_toml()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn scheduler(&self) -> &str {
        self.checked.scheduler.label()
    }

    #[getter]
    fn protocol(&self) -> &'static str {
        self.checked.transfer.protocol.as_str()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.checked.transfer.seed
    }

    #[getter]
    fn path_names(&self) -> Vec<&str> {
        self.checked.paths.iter().map(|path| path.name.as_str()).collect()
    }
}

/// The names of the built-in schedulers.
#[pyfunction]
pub(crate) fn scheduler_names() -> Vec<&'static str> {
    SchedulerName::CHOICES.iter().map(|choice| choice.name).collect()
}
