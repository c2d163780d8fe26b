//! A run that pauses at each scheduling decision, for a decision from outside.
//!
//! Simulated time stands still during a decision. A run with decisions from outside is, packet for packet,
//! equal to the run of a built-in scheduler that decides in the same way.

mod decision_channel;
mod features;

use std::sync::Arc;

use ropewalk_base::{Duration, Time};
use ropewalk_engine::scheduler::{Decision, Reason, Scheduler};
use ropewalk_scenario::Scenario;

use crate::error::RunError;
use crate::machine::EngineSettings;
use crate::run::set_up;
use crate::setup::{RunOptions, Setup, Transfer};
use crate::wifi::rate_up;
use decision_channel::{ChannelScheduler, DecisionChannel};

pub use decision_channel::Observation;
pub use features::{FEATURE_MOST, PATH_FEATURES, SHARED_FEATURES, feature_count, features};

/// A scheduling decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Send on this path, counted from 0, the first chunk that it may take. Equals [`Self::Wait`] if it may
    /// take none.
    Path(usize),
    /// Send nothing until the state changes or `wait_limit` has passed.
    Wait,
}

/// State of an episode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpisodeState {
    /// Waiting for a decision.
    AwaitsDecision,
    /// All wanted bytes have been delivered, or the association has ended.
    Ended,
    /// The duration of the scenario has passed.
    TimeLimit,
}

/// Result so far.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Score {
    /// User data delivered in order, bytes.
    pub delivered_bytes: u64,
    /// Delay from first transmission to in-order delivery, summed over all delivered bytes, byte-seconds.
    pub delay_byte_s: f64,
}

/// A run in progress.
pub struct Episode {
    setup: Setup,
    ends: Transfer,
    channel: Arc<DecisionChannel>,
    state: EpisodeState,
    end: Time,
    wait_limit: Duration,
    payload: f64,
    capacity_bps: f64,
}

impl Episode {
    /// Starts the scenario and runs it to the first decision. `wait_limit` is the longest duration of a
    /// [`Choice::Wait`]; it must not be zero.
    ///
    /// # Errors
    /// [`RunError`], also if there is not exactly one association, or if the run never reaches a decision.
    pub fn new(scenario: &Scenario, wait_limit: Duration) -> Result<Self, RunError> {
        if scenario.world.associations != 1 {
            let count = scenario.world.associations;
            let text = format!(
                "world.associations = {count}: an episode controls one association; set it to 1"
            );
            return Err(RunError::Scheduler(text));
        }
        assert!(!wait_limit.is_zero(), "without patience a wait would never end");
        let channel = Arc::new(DecisionChannel::new(scenario.paths.len()));
        let scheduler = Scheduler::Custom(Box::new(ChannelScheduler::new(Arc::clone(&channel))));
        let options = RunOptions { scheduler: Some(scheduler), ..RunOptions::default() };
        let setup = set_up(scenario, &options)?;
        let packet = scenario.transfer.packet;
        let capacity = scenario.paths.iter().map(|path| rate_up(path, packet).as_bps() as f64);
        let mut episode = Self {
            ends: setup.transfers[0],
            setup,
            channel,
            state: EpisodeState::TimeLimit,
            end: Time::ZERO + scenario.transfer.duration,
            wait_limit,
            payload: EngineSettings::of(scenario).payload() as f64,
            capacity_bps: capacity.sum(),
        };
        episode.advance();
        if episode.state == EpisodeState::AwaitsDecision {
            return Ok(episode);
        }
        let diagnosis =
            "the scheduler had nothing to decide; see loss, outages and delay of the first path";
        Err(RunError::Stuck { at: episode.now(), delivered: 0, diagnosis: diagnosis.to_owned() })
    }

    /// The state of the episode.
    pub const fn state(&self) -> EpisodeState {
        self.state
    }

    /// The simulated time.
    pub fn now(&self) -> Time {
        self.setup.world.now()
    }

    /// The sum of the mean rates of all paths, bit/s.
    pub const fn capacity_bps(&self) -> f64 {
        self.capacity_bps
    }

    /// Reads the pending decision; after the end, the last one.
    pub fn observe<T>(&self, at: impl FnOnce(&Observation) -> T) -> T {
        self.channel.observe(at)
    }

    /// Applies the decision and runs to the next one. Does nothing after the end.
    pub fn decide(&mut self, choice: Choice) -> EpisodeState {
        if self.state != EpisodeState::AwaitsDecision {
            return self.state;
        }
        let id = |ask: &Observation, path| ask.may_send(path).then(|| ask.paths[path].id);
        let wanted = match choice {
            Choice::Path(path) => self.observe(|ask| id(ask, path)),
            Choice::Wait => None,
        };
        let until = self.now() + self.wait_limit;
        self.channel.answer(match wanted {
            Some(path) => Decision::send(path, 0, Reason::Custom),
            None => Decision::wait(until, Reason::Custom),
        });
        self.setup.world.wake_host_at_once(self.ends.sender);
        self.advance();
        self.state
    }

    /// The result so far.
    pub fn score(&self) -> Score {
        let stats = self.setup.world.host(self.ends.receiver).machine.receive_stats();
        let delay_s = stats.app_delay.mean() * 1e-9 * stats.delivered_chunks as f64;
        Score { delivered_bytes: stats.delivered_bytes, delay_byte_s: delay_s * self.payload }
    }

    fn advance(&mut self) {
        self.state = loop {
            if self.channel.awaits_decision() {
                break EpisodeState::AwaitsDecision;
            }
            let (sender, receiver) = (self.ends.sender, self.ends.receiver);
            let world = &mut self.setup.world;
            if world.host(receiver).done_at.is_some() || world.host(sender).closed.is_some() {
                break EpisodeState::Ended;
            }
            if world.step_until(self.end).is_none() {
                world.run_until(self.end);
                break EpisodeState::TimeLimit;
            }
        };
    }
}

#[cfg(test)]
mod tests;
