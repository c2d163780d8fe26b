//! Collects the required simulations without duplicates and runs them on all cores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use ropewalk_base::Duration;
use ropewalk_scenario::Scenario;

use super::data;
use crate::compare::map_in_parallel;
use crate::{Run, RunOptions, run};

/// One simulation: a scenario file of a folder, with changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// Folder of the file.
    pub folder: String,
    /// File in it.
    pub file: String,
    /// Changes, as `key=value`.
    pub sets: Vec<String>,
    /// Whether to record series and the first seconds as well.
    pub series: bool,
}

impl RunKey {
    /// The file under this scheduler.
    pub fn new(folder: &str, file: &str, scheduler: &str) -> Self {
        let sets = vec![format!("transfer.scheduler={scheduler}")];
        Self { folder: folder.to_owned(), file: file.to_owned(), sets, series: false }
    }

    /// Adds an override.
    pub fn with(mut self, set: impl Into<String>) -> Self {
        self.sets.push(set.into());
        self
    }

    /// Records series with a point each `interval` (such as `1 s`).
    pub fn with_series(mut self, interval: &str) -> Self {
        self.sets.push(format!("record.interval={interval}"));
        self.series = true;
        self
    }

    /// A label for progress and messages.
    pub fn label(&self) -> String {
        format!("{}/{} {}", self.folder, self.file, self.sets.join(" ")).trim_end().to_owned()
    }

    /// The scenario.
    ///
    /// # Errors
    /// A message if the file does not exist, or if it is invalid.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let text = data::folder(&self.folder).and_then(|folder| folder.file(&self.file));
        let text = text.ok_or_else(|| format!("there is no file {}/{}", self.folder, self.file))?;
        Scenario::parse_with(text, &self.file, &self.sets).map_err(|e| e.to_string())
    }

    fn execute(&self) -> Result<Run, String> {
        // Figures show the first seconds packet by packet.
        let sequence = self.series.then(|| Duration::from_secs(5));
        let options = RunOptions { series: self.series, sequence, ..RunOptions::default() };
        run(&self.scenario()?, &options).map_err(|e| e.to_string())
    }
}

/// Called when a simulation ends, with the number of finished ones, their total number, and its label.
pub type Progress<'a> = &'a (dyn Fn(usize, usize, &str) + Sync);

/// Finished simulations.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    done: BTreeMap<RunKey, Result<Run, String>>,
}

impl Runs {
    /// Runs each of `keys` once, on `threads` threads. The results do not depend on the number of threads.
    pub fn execute(keys: BTreeSet<RunKey>, threads: usize, progress: Progress<'_>) -> Self {
        let keys: Vec<RunKey> = keys.into_iter().collect();
        let ended = AtomicUsize::new(0);
        let results = map_in_parallel(&keys, threads, |key| {
            let result = key.execute().map_err(|e| format!("{}: {e}", key.label()));
            progress(ended.fetch_add(1, Ordering::Relaxed) + 1, keys.len(), &key.label());
            result
        });
        let done = keys.into_iter().zip(results).collect();
        Self { done }
    }

    /// The run of this key.
    ///
    /// # Errors
    /// A message if the run failed, or if it was not requested, which is a defect of the item.
    pub fn get(&self, key: &RunKey) -> Result<&Run, String> {
        match self.done.get(key) {
            Some(Ok(run)) => Ok(run),
            Some(Err(error)) => Err(error.clone()),
            None => Err(format!("{}: this run is not in the plan", key.label())),
        }
    }

    /// Error messages of the failed runs.
    pub fn failures(&self) -> Vec<String> {
        self.done.values().filter_map(|result| result.as_ref().err().cloned()).collect()
    }

    /// Number of runs.
    pub fn count(&self) -> usize {
        self.done.len()
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use parking_lot::Mutex;

    fn keys() -> BTreeSet<RunKey> {
        let key = |scheduler| {
            RunKey::new("sarwar2013", "figures-1-2.toml", scheduler).with("transfer.duration=2 s")
        };
        [key("round-robin"), key("min-rtt"), key("daps")].into()
    }

    #[test]
    fn the_number_of_threads_does_not_show_in_the_results() {
        let quiet: Progress = &|_, _, _| {};
        let (one, three) = (Runs::execute(keys(), 1, quiet), Runs::execute(keys(), 3, quiet));
        for key in keys() {
            let delivered = |runs: &Runs| runs.get(&key).unwrap().result.delivered_packets;
            assert_eq!(delivered(&one), delivered(&three), "{}", key.label());
        }
    }

    #[test]
    fn progress_counts_to_the_end() {
        let seen = Mutex::new(Vec::new());
        Runs::execute(keys(), 1, &|done, of, _| seen.lock().push((done, of)));
        assert_eq!(*seen.lock(), [(1, 3), (2, 3), (3, 3)]);
    }

    #[test]
    fn a_run_that_cannot_be_made_is_a_failure_with_its_name() {
        let key = RunKey::new("sarwar2013", "figures-1-2.toml", "no-such-scheduler");
        let runs = Runs::execute([key.clone()].into(), 1, &|_, _, _| {});
        assert!(runs.get(&key).unwrap_err().contains("no-such-scheduler"));
        assert_eq!(runs.failures().len(), 1);
    }
}
