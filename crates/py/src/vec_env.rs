//! Simulations that stop at each decision, for the environments of `ropewalk.gym`.

use std::sync::{Mutex, MutexGuard};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use ropewalk_base::{Duration, Seed};
use ropewalk_lab::RunError;
use ropewalk_lab::episode::{
    Choice, Episode, EpisodeState, FEATURE_MOST, PATH_FEATURES, SHARED_FEATURES, Score,
    feature_count, features,
};
use ropewalk_scenario as file;

use crate::error;
use crate::scenario::Scenario;

/// One world and its counters.
struct EnvironmentSlot {
    episode: Option<Episode>,
    /// Source of the seeds of the episodes that begin automatically.
    seed: Seed,
    begun: u64,
    before: Score,
}

/// Several worlds of one scenario.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct VecEnv {
    environments: Mutex<Environments>,
}

/// The worlds.
struct Environments {
    scenario: file::Scenario,
    slots: Vec<EnvironmentSlot>,
    wait_limit: Duration,
    delay_weight: f64,
    results: Results,
}

/// The results of a step, one row for each world.
#[derive(Default)]
struct Results {
    observations: Vec<f32>,
    masks: Vec<u8>,
    rewards: Vec<f64>,
    terminated: Vec<u8>,
    truncated: Vec<u8>,
}

/// The arrays that a step fills: observations, action masks, rewards, terminated, truncated.
type Arrays = (PyBuffer<f32>, PyBuffer<u8>, PyBuffer<f64>, PyBuffer<u8>, PyBuffer<u8>);

#[pymethods]
impl VecEnv {
    /// Creates `count` worlds, which `reset` starts.
    #[new]
    fn new(scenario: &Scenario, count: usize, delay_weight: f64, wait_s: f64) -> PyResult<Self> {
        if count == 0 {
            return Err(error::value("there must be at least one environment"));
        }
        if !(1e-6..1e6).contains(&wait_s) {
            return Err(error::value(format!("wait_s={wait_s}: give seconds, at least 1e-6")));
        }
        if !(delay_weight >= 0.0 && delay_weight.is_finite()) {
            return Err(error::value(format!(
                "delay_weight={delay_weight}: must be 0 or more, per second"
            )));
        }
        let slot = |_| EnvironmentSlot {
            episode: None,
            seed: Seed::root(0),
            begun: 0,
            before: Score::default(),
        };
        let paths = scenario.checked().paths.len();
        let results = Results {
            observations: vec![0.0; count * feature_count(paths)],
            masks: vec![0; count * (paths + 1)],
            rewards: vec![0.0; count],
            terminated: vec![0; count],
            truncated: vec![0; count],
        };
        let wait_limit = Duration::from_nanos((wait_s * 1e9) as u64);
        let (scenario, slots) = (scenario.checked().clone(), (0..count).map(slot).collect());
        let environments = Environments { scenario, slots, wait_limit, delay_weight, results };
        Ok(Self { environments: Mutex::new(environments) })
    }

    /// Restarts world `index` with `seed` as the scenario's seed. The episodes that follow automatically use
    /// child seeds of that seed.
    fn reset(&self, py: Python<'_>, index: usize, seed: u64) -> PyResult<()> {
        let Environments { scenario, slots, wait_limit, .. } = &mut *self.environments()?;
        let slot = slots.get_mut(index).ok_or_else(|| error::value("no such environment"))?;
        let wait_limit = *wait_limit;
        py.detach(|| slot.begin_with(scenario, wait_limit, seed)).map_err(error::run)
    }

    /// Takes one decision in each world (a path from 0, or the number of paths to wait), and runs it until the
    /// next. A world that has ended is restarted instead, without a reward.
    fn step(&self, py: Python<'_>, actions: PyBuffer<i64>, arrays: Arrays) -> PyResult<()> {
        let actions = actions.to_vec(py)?;
        let mut environments = self.environments()?;
        if actions.len() != environments.slots.len() {
            let text =
                format!("{} actions for {} environments", actions.len(), environments.slots.len());
            return Err(error::value(text));
        }
        let vec_env = &mut *environments;
        py.detach(|| vec_env.step_all(&actions)).map_err(error::run)?;
        environments.write(py, &arrays)
    }

    /// Fills the arrays without a step: no rewards, and no running world has ended.
    fn observe(&self, py: Python<'_>, arrays: Arrays) -> PyResult<()> {
        let mut environments = self.environments()?;
        for index in 0..environments.slots.len() {
            environments.results.rewards[index] = 0.0;
            environments.write_row(index);
        }
        environments.write(py, &arrays)
    }

    /// Time in a world, s; user data delivered, bytes; and its total delay, byte-seconds.
    fn progress(&self, index: usize) -> PyResult<(f64, u64, f64)> {
        let environments = self.environments()?;
        let slot = environments.slots.get(index).and_then(|slot| slot.episode.as_ref());
        let episode = slot.ok_or_else(|| error::value("this environment was not reset"))?;
        let score = episode.score();
        Ok((episode.now().as_secs_f64(), score.delivered_bytes, score.delay_byte_s))
    }
}

impl EnvironmentSlot {
    fn begin_with(
        &mut self,
        scenario: &file::Scenario,
        wait_limit: Duration,
        seed: u64,
    ) -> Result<(), RunError> {
        (self.seed, self.begun) = (Seed::root(seed).child("episodes"), 0);
        self.begin(scenario, wait_limit, seed)
    }

    fn begin(
        &mut self,
        scenario: &file::Scenario,
        wait_limit: Duration,
        seed: u64,
    ) -> Result<(), RunError> {
        let mut scenario = scenario.clone();
        scenario.transfer.seed = seed;
        self.episode = Some(Episode::new(&scenario, wait_limit)?);
        self.begun += 1;
        self.before = Score::default();
        Ok(())
    }

    fn begin_next(
        &mut self,
        scenario: &file::Scenario,
        wait_limit: Duration,
    ) -> Result<(), RunError> {
        let seed = self.seed.child(&self.begun.to_string()).number();
        self.begin(scenario, wait_limit, seed)
    }

    /// The reward since the last call: delivered bits, each worth 1 minus `weight` times its delay in seconds,
    /// divided by the capacity.
    fn reward(&mut self, weight: f64) -> f64 {
        let Some(episode) = &self.episode else { return 0.0 };
        let (score, before) = (episode.score(), self.before);
        self.before = score;
        let bytes = (score.delivered_bytes - before.delivered_bytes) as f64;
        let delay = score.delay_byte_s - before.delay_byte_s;
        8.0 * (bytes - weight * delay) / episode.capacity_bps()
    }
}

impl VecEnv {
    /// Does not block: the stepping thread releases the interpreter and needs it again afterwards.
    fn environments(&self) -> PyResult<MutexGuard<'_, Environments>> {
        self.environments
            .try_lock()
            .map_err(|_| error::run("another thread uses these environments"))
    }
}

impl Environments {
    fn step_all(&mut self, actions: &[i64]) -> Result<(), RunError> {
        for (index, action) in actions.iter().enumerate() {
            let slot = &mut self.slots[index];
            match &mut slot.episode {
                Some(episode) if episode.state() == EpisodeState::AwaitsDecision => {
                    let path = usize::try_from(*action).unwrap_or(usize::MAX);
                    let wait = path >= self.scenario.paths.len();
                    episode.decide(if wait { Choice::Wait } else { Choice::Path(path) });
                    self.results.rewards[index] = slot.reward(self.delay_weight);
                }
                _ => {
                    slot.begin_next(&self.scenario, self.wait_limit)?;
                    self.results.rewards[index] = 0.0;
                }
            }
            self.write_row(index);
        }
        Ok(())
    }

    /// Writes the state of a world into the arrays.
    fn write_row(&mut self, index: usize) {
        let paths = self.scenario.paths.len();
        let results = &mut self.results;
        let masks = &mut results.masks[index * (paths + 1)..(index + 1) * (paths + 1)];
        let Some(episode) = &self.slots[index].episode else { return };
        let state = episode.state();
        let width = feature_count(paths);
        let row = &mut results.observations[index * width..(index + 1) * width];
        episode.observe(|observation| {
            features(observation, row);
            for (path, open) in masks[..paths].iter_mut().enumerate() {
                *open =
                    u8::from(state == EpisodeState::AwaitsDecision && observation.may_send(path));
            }
        });
        masks[paths] = 1;
        results.terminated[index] = u8::from(state == EpisodeState::Ended);
        results.truncated[index] = u8::from(state == EpisodeState::TimeLimit);
    }

    fn write(&self, py: Python<'_>, arrays: &Arrays) -> PyResult<()> {
        let results = &self.results;
        arrays.0.copy_from_slice(py, &results.observations)?;
        arrays.1.copy_from_slice(py, &results.masks)?;
        arrays.2.copy_from_slice(py, &results.rewards)?;
        arrays.3.copy_from_slice(py, &results.terminated)?;
        arrays.4.copy_from_slice(py, &results.truncated)
    }
}

/// Name and meaning of the numbers that describe a decision: those of each path, and the common ones.
type Features = (Vec<(&'static str, &'static str)>, Vec<(&'static str, &'static str)>, f32);

/// The meaning of the numbers of an observation, and their largest values.
#[pyfunction]
pub(crate) fn scheduler_features() -> Features {
    (PATH_FEATURES.to_vec(), SHARED_FEATURES.to_vec(), FEATURE_MOST)
}
