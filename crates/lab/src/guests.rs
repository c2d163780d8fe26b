//! Registry of custom schedulers by name.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use ropewalk_base::Time;
use ropewalk_engine::scheduler::Scheduler;
use ropewalk_scenario::{GuestNameError, Scenario, add_guest_scheduler};

use crate::engine_config;
use crate::run::{RunError, RunOptions, Setup};

/// The types for writing a scheduler, for crates that depend on this one only.
pub use ropewalk_engine::scheduler::{
    CustomScheduler, Decision, DelaySource, IllegalDecision, PathSet, PathView, Reason, Schedule,
    SentReport, View,
};

type Make = Arc<dyn Fn() -> Box<dyn CustomScheduler> + Send + Sync>;

static MAKERS: RwLock<BTreeMap<String, Make>> = RwLock::new(BTreeMap::new());

/// Makes a custom scheduler available to scenarios under a name: from now on, `transfer.scheduler = "name"`
/// selects it in every run, comparison and sweep of this program. `make` is called once for each run.
/// Registering a name again replaces the scheduler.
///
/// # Errors
/// If the name is that of a built-in scheduler, or has other characters than lower-case letters, digits and
/// hyphens.
///
/// # Examples
/// See the guide `docs/guides/write-a-scheduler.md`.
pub fn register_scheduler(
    name: &str,
    make: impl Fn() -> Box<dyn CustomScheduler> + Send + Sync + 'static,
) -> Result<(), GuestNameError> {
    add_guest_scheduler(name)?;
    let mut makers = MAKERS.write().unwrap_or_else(PoisonError::into_inner);
    let replaced = makers.insert(name.to_owned(), Arc::new(make));
    // Dropping a replaced scheduler may take locks of its own, so release this one first.
    drop(makers);
    drop(replaced);
    Ok(())
}

/// The scheduler of a run: from the options, otherwise by its name in the scenario.
pub(crate) fn scheduler(scenario: &Scenario, options: &RunOptions) -> Result<Scheduler, RunError> {
    let chosen = match (&options.scheduler, scenario.scheduler.guest) {
        (Some(scheduler), _) => scheduler.clone(),
        (None, Some(name)) => Scheduler::Custom(make(name)?),
        (None, None) => engine_config::scheduler(&scenario.scheduler)
            .map_err(|e| RunError::Scheduler(e.to_string()))?,
    };
    Ok(match chosen {
        Scheduler::Custom(mut guest) => {
            let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
            guest.on_paths(&names);
            Scheduler::Custom(Box::new(Watched { guest, now: Time::ZERO, fault: None }))
        }
        built_in => built_in,
    })
}

fn make(name: &str) -> Result<Box<dyn CustomScheduler>, RunError> {
    let makers = MAKERS.read().unwrap_or_else(PoisonError::into_inner);
    let make = makers.get(name).cloned();
    // Call `make` without the lock: it may call any function, this module's included.
    drop(makers);
    let make = make.ok_or_else(|| {
        RunError::Scheduler(format!("nobody registered what makes the scheduler {name:?}"))
    })?;
    Ok(make())
}

/// The error of a custom scheduler at a sending end, if one failed.
pub(crate) fn fault(setup: &Setup) -> Option<RunError> {
    setup.transfers.iter().find_map(|transfer| {
        let scheduler = setup.world.host(transfer.sender).machine.scheduler();
        let text = scheduler.fault()?;
        Some(RunError::Guest { name: scheduler.name().to_owned(), text })
    })
}

/// Wraps a custom scheduler and blocks it after its first illegal decision. The run then ends with a diagnosis
/// instead of continuing with different decisions than the scheduler intended.
struct Watched {
    guest: Box<dyn CustomScheduler>,
    now: Time,
    fault: Option<String>,
}

impl Schedule for Watched {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        if self.fault.is_some() {
            return Decision::blocked(Reason::Custom);
        }
        self.now = view.now;
        self.guest.decide(view)
    }

    fn on_sent(&mut self, sent: &SentReport) {
        self.guest.on_sent(sent);
    }

    fn resends_when_blocked(&self) -> bool {
        self.guest.resends_when_blocked()
    }

    fn shares_window(&self) -> bool {
        self.guest.shares_window()
    }
}

impl CustomScheduler for Watched {
    fn name(&self) -> &str {
        self.guest.name()
    }

    fn clone_box(&self) -> Box<dyn CustomScheduler> {
        let (now, fault) = (self.now, self.fault.clone());
        Box::new(Self { guest: self.guest.clone_box(), now, fault })
    }

    fn on_refused(&mut self, why: &IllegalDecision) {
        self.guest.on_refused(why);
        self.fault
            .get_or_insert_with(|| format!("its decision at {} is not legal: {why}", self.now));
    }

    fn fault(&self) -> Option<String> {
        self.guest.fault().or_else(|| self.fault.clone())
    }

    fn is_thinking(&self) -> bool {
        self.guest.is_thinking()
    }
}
