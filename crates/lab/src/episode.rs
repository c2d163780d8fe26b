//! A run that stops at each decision and lets somebody else take it.
//!
//! The world stands still where the scheduler is asked, and goes on from there: a run whose decisions
//! come from outside is, packet for packet, the run of a scheduler that decides likewise.

mod desk;
mod features;

use std::sync::Arc;

use ropewalk_base::{Duration, Time};
use ropewalk_engine::scheduler::{Decision, Reason, Scheduler};
use ropewalk_scenario::Scenario;

use crate::machine::Plan;
use crate::run::{RunError, RunOptions, Setup, Transfer, set_up};
use crate::wifi::rate_up;
use desk::{Asker, DecisionChannel};

pub use desk::Ask;
pub use features::{FEATURE_MOST, PATH_FEATURES, SHARED_FEATURES, feature_count, features};

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Send on this path, from 0, the first chunk that it may take. On a path that may take none, the
    /// same as to wait.
    Path(usize),
    /// Send nothing until something changes, or patience ends.
    Wait,
}

/// How far an episode is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It stands at a decision.
    Asked,
    /// All wanted bytes are delivered, or the association has ended.
    Ended,
    /// The scenario's time is over.
    TimeUp,
}

/// What was reached so far.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Score {
    /// User data handed over in order, bytes.
    pub delivered_bytes: u64,
    /// Delay from first transmission to in-order delivery, summed over all that data: byte-seconds.
    pub delay_byte_s: f64,
}

/// A run under way.
pub struct Episode {
    setup: Setup,
    ends: Transfer,
    desk: Arc<DecisionChannel>,
    stage: Stage,
    end: Time,
    patience: Duration,
    payload: f64,
    capacity_bps: f64,
}

impl Episode {
    /// Begins the scenario, and goes on to the first decision. `patience` is the longest that a
    /// [`Choice::Wait`] lasts, more than nothing.
    ///
    /// # Errors
    /// [`RunError`], also if there is not exactly one association, or if nothing is ever to be decided.
    pub fn new(scenario: &Scenario, patience: Duration) -> Result<Self, RunError> {
        if scenario.world.associations != 1 {
            let count = scenario.world.associations;
            let text =
                format!("world.associations = {count}: decisions are asked of one; make it 1");
            return Err(RunError::Scheduler(text));
        }
        assert!(!patience.is_zero(), "without patience a wait would never end");
        let desk = Arc::new(DecisionChannel::new(scenario.paths.len()));
        let guest = Scheduler::Custom(Box::new(Asker::new(Arc::clone(&desk))));
        let options = RunOptions { scheduler: Some(guest), ..RunOptions::default() };
        let setup = set_up(scenario, &options)?;
        let packet = scenario.transfer.packet;
        let capacity = scenario.paths.iter().map(|path| rate_up(path, packet).as_bps() as f64);
        let mut episode = Self {
            ends: setup.transfers[0],
            setup,
            desk,
            stage: Stage::TimeUp,
            end: Time::ZERO + scenario.transfer.duration,
            patience,
            payload: Plan::of(scenario).payload() as f64,
            capacity_bps: capacity.sum(),
        };
        episode.go_on();
        if episode.stage == Stage::Asked {
            return Ok(episode);
        }
        let diagnosis = "no decision was asked for; see loss, outages and delay of the first path";
        Err(RunError::Stuck { at: episode.now(), delivered: 0, diagnosis: diagnosis.to_owned() })
    }

    /// How far it is.
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.setup.world.now()
    }

    /// The mean rates of all paths together, bit/s.
    pub const fn capacity_bps(&self) -> f64 {
        self.capacity_bps
    }

    /// Looks at what is to be decided; once it is over, at what was decided last.
    pub fn look<T>(&self, at: impl FnOnce(&Ask) -> T) -> T {
        self.desk.look(at)
    }

    /// Takes the decision, and goes on to the next one. Does nothing once it is over.
    pub fn decide(&mut self, choice: Choice) -> Stage {
        if self.stage != Stage::Asked {
            return self.stage;
        }
        let position = |ask: &Ask, path| ask.position(path).map(|at| (ask.paths[path].id, at));
        let wanted = match choice {
            Choice::Path(path) => self.look(|ask| position(ask, path)),
            Choice::Wait => None,
        };
        let until = self.now() + self.patience;
        self.desk.answer(match wanted {
            Some((path, at)) => Decision::send(path, at, Reason::Custom),
            None => Decision::wait(until, Reason::Custom),
        });
        self.setup.world.poke(self.ends.sender);
        self.go_on();
        self.stage
    }

    /// What was reached so far.
    pub fn score(&self) -> Score {
        let stats = self.setup.world.host(self.ends.receiver).machine.receive_stats();
        let delay_s = stats.app_delay.mean() * 1e-9 * stats.delivered_chunks as f64;
        Score { delivered_bytes: stats.delivered_bytes, delay_byte_s: delay_s * self.payload }
    }

    fn go_on(&mut self) {
        self.stage = loop {
            if self.desk.is_asked() {
                break Stage::Asked;
            }
            let (sender, receiver) = (self.ends.sender, self.ends.receiver);
            let world = &mut self.setup.world;
            if world.host(receiver).done_at.is_some() || world.host(sender).closed.is_some() {
                break Stage::Ended;
            }
            if world.step_until(self.end).is_none() {
                world.run_until(self.end);
                break Stage::TimeUp;
            }
        };
    }
}

#[cfg(test)]
mod tests;
