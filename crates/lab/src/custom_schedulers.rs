//! Custom schedulers by name, for scenarios.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use ropewalk_base::Time;
use ropewalk_engine::scheduler::Scheduler;
use ropewalk_scenario::{
    Override, Scenario, ScenarioError, SchedulerNameError, check_scheduler_name,
};

use crate::error::RunError;

/// The types for writing a scheduler, for crates that only depend on this one.
pub use ropewalk_engine::scheduler::{
    CustomScheduler, Decision, DelaySource, IllegalDecision, PathSet, PathView, Reason, Schedule,
    SentReport, View,
};

type Make = Arc<dyn Fn() -> Box<dyn CustomScheduler> + Send + Sync>;

/// Custom schedulers, each with the name by which a scenario selects it. Scenarios that select one are read with
/// [`CustomSchedulers::parse`] and run with these schedulers in the options. A copy is cheap.
///
/// # Examples
/// See the guide `docs/guides/write-a-scheduler.md`.
#[derive(Clone, Default)]
pub struct CustomSchedulers {
    makers: Arc<BTreeMap<String, Make>>,
}

impl fmt::Debug for CustomSchedulers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.makers.keys()).finish()
    }
}

impl CustomSchedulers {
    /// Adds a scheduler, or replaces the one of this name. `make` is called once for each run.
    ///
    /// # Errors
    /// If the name is that of a built-in scheduler, or has other characters than lower-case letters, digits and
    /// hyphens.
    pub fn add(
        &mut self,
        name: &str,
        make: impl Fn() -> Box<dyn CustomScheduler> + Send + Sync + 'static,
    ) -> Result<(), SchedulerNameError> {
        check_scheduler_name(name)?;
        Arc::make_mut(&mut self.makers).insert(name.to_owned(), Arc::new(make));
        Ok(())
    }

    /// The names in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        self.makers.keys().map(String::as_str).collect()
    }

    /// Parses a scenario that may select one of these schedulers; see [`Scenario::parse_overridden`].
    ///
    /// # Errors
    /// All problems, first those of the text, then those of the overrides.
    pub fn parse(
        &self,
        text: &str,
        source_name: &str,
        overrides: &[Override<'_>],
    ) -> Result<Scenario, ScenarioError> {
        Scenario::parse_custom(text, source_name, overrides, &self.names())
    }

    pub(crate) fn make(&self, name: &str) -> Result<Box<dyn CustomScheduler>, RunError> {
        let make = self.makers.get(name).ok_or_else(|| {
            RunError::Scheduler(format!(
                "the scheduler {name:?} is not among the custom schedulers"
            ))
        })?;
        Ok(make())
    }
}

/// Prepares a scheduler for a run: reports the names of the paths to it and watches its decisions.
pub(crate) fn watched(mut custom: Box<dyn CustomScheduler>, paths: &[&str]) -> Scheduler {
    custom.on_paths(paths);
    Scheduler::Custom(Box::new(Watched { custom, now: Time::ZERO, fault: None }))
}

/// Wraps a custom scheduler and blocks it after its first illegal decision. The run then ends with a diagnosis
/// instead of continuing with different decisions than the scheduler intended.
struct Watched {
    custom: Box<dyn CustomScheduler>,
    now: Time,
    fault: Option<String>,
}

impl Schedule for Watched {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        if self.fault.is_some() {
            return Decision::blocked(Reason::Custom);
        }
        self.now = view.now;
        self.custom.decide(view)
    }

    fn on_sent(&mut self, sent: &SentReport) {
        self.custom.on_sent(sent);
    }

    fn resends_when_blocked(&self) -> bool {
        self.custom.resends_when_blocked()
    }
}

impl CustomScheduler for Watched {
    fn name(&self) -> &str {
        self.custom.name()
    }

    fn clone_box(&self) -> Box<dyn CustomScheduler> {
        let (now, fault) = (self.now, self.fault.clone());
        Box::new(Self { custom: self.custom.clone_box(), now, fault })
    }

    fn on_refused(&mut self, why: &IllegalDecision) {
        self.custom.on_refused(why);
        self.fault
            .get_or_insert_with(|| format!("its decision at {} is not legal: {why}", self.now));
    }

    fn fault(&self) -> Option<String> {
        self.custom.fault().or_else(|| self.fault.clone())
    }

    fn is_thinking(&self) -> bool {
        self.custom.is_thinking()
    }
}
