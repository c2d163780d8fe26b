//! Options of a run, and the world that is prepared for it.

use ropewalk_base::{Duration, Time};
use ropewalk_engine::scheduler::Scheduler;
use ropewalk_netsim::{HostId, World};
use ropewalk_scenario::Scenario;

use crate::custom_schedulers::{self, CustomSchedulers};
use crate::endpoint::Endpoint;
use crate::engine_config;
use crate::error::RunError;
use crate::machine::{EngineSettings, SimPayload};
use crate::network::PathLinks;

/// Data to record in addition to the result.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Whether to record time series at the scenario's interval.
    pub series: bool,
    /// Length of the initial part whose arrivals are all recorded, for sequence-time plots.
    pub sequence: Option<Duration>,
    /// Length of the initial part whose packets are all listed, with their arrivals.
    pub packets: Option<Duration>,
    /// A scheduler instead of the scenario's.
    pub scheduler: Option<Scheduler>,
    /// The custom schedulers that the scenario may select by name.
    pub custom_schedulers: CustomSchedulers,
    /// Index of the association whose arrivals and packets are recorded, and its decisions if the scenario requests them;
    /// from 0. Recording all associations would exceed the memory.
    pub association: u32,
}

/// The endpoints of one association.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Sender.
    pub sender: HostId,
    /// Receiver.
    pub receiver: HostId,
    /// Start time.
    pub start: Time,
}

/// A world that is ready to run, with its transfers.
pub(crate) struct Setup {
    pub world: World<SimPayload, Endpoint>,
    pub transfers: Vec<Transfer>,
    /// The links of each association's paths.
    pub links: Vec<Vec<PathLinks>>,
    /// Whether the scheduler is a custom one.
    pub custom_scheduler: bool,
}

impl Setup {
    /// The error of a custom scheduler at a sending end, if one failed.
    pub fn scheduler_fault(&self) -> Option<RunError> {
        if !self.custom_scheduler {
            return None;
        }
        self.transfers.iter().find_map(|transfer| {
            let scheduler = self.world.host(transfer.sender).machine.scheduler();
            let text = scheduler.fault()?;
            Some(RunError::CustomScheduler { name: scheduler.name().to_owned(), text })
        })
    }
}

/// The settings of all associations but the first.
pub(crate) fn others(scenario: &Scenario) -> EngineSettings {
    let Some(congestion) = scenario.world.other_congestion else {
        return EngineSettings::of(scenario);
    };
    let mut changed = scenario.clone();
    changed.transfer.congestion = congestion;
    EngineSettings::of(&changed)
}

/// The scheduler of a run: from the options, otherwise by its name in the scenario.
pub(crate) fn scheduler(scenario: &Scenario, options: &RunOptions) -> Result<Scheduler, RunError> {
    let chosen = match (&options.scheduler, &scenario.scheduler.custom) {
        (Some(scheduler), _) => scheduler.clone(),
        (None, Some(name)) => Scheduler::Custom(options.custom_schedulers.make(name)?),
        (None, None) => engine_config::scheduler(&scenario.scheduler)
            .map_err(|e| RunError::Scheduler(e.to_string()))?,
    };
    Ok(match chosen {
        Scheduler::Custom(custom) => {
            let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
            custom_schedulers::watched(custom, &names)
        }
        built_in => built_in,
    })
}
