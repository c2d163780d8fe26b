//! Compares the printed results of papers with the models, the simulator and other simulators.
//!
//! Every item takes its numbers and claims from `papers/`, which the binary contains. A number `agrees` or
//! `differs`, within a stated tolerance; a claim holds or fails. `papers/*/reasons.toml` explains each
//! difference by the rule that causes it.
//!
//! ```
//! use ropewalk_lab::reproduce::{Options, find, reproduce};
//!
//! let done = reproduce(&find("sarwar2013/table2"), &Options::default())?;
//! assert!(done.rows.iter().all(|row| row.verdict.is_good()));
//! # Ok::<(), String>(())
//! ```

mod alheid;
mod catalogue;
mod csv;
mod data;
mod decide;
mod expected;
mod figures;
mod interval;
#[cfg(test)]
mod inventory;
mod judge;
mod peers;
mod plan;
mod quantity;
mod row;
mod sample;
mod sarwar;
mod sensitivity;
mod slot;
pub mod text;
mod wallace;

use std::collections::{BTreeMap, BTreeSet};

pub use catalogue::{ITEMS, Item, find};
pub use data::FOLDERS;
pub use expected::Reading;
pub use plan::{Progress, RunKey};
pub use row::{Figure, FigureSeries, Origin, Row, Seeds, Style, Value, Verdict};
pub use sensitivity::{Sensitivity, sensitivity, sensitivity_simulations};

use expected::{Expected, ExpectedVerdict, Reason};
use plan::Runs;

/// Options of a reproduction.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Number of threads for the simulations; results do not depend on it.
    pub threads: usize,
    /// Called whenever a simulation ends.
    pub progress: Progress<'a>,
}

impl Default for Options<'_> {
    /// All cores, without progress reports.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads, progress: &|_, _, _| {} }
    }
}

/// Result of a reproduction.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// Numbers and claims, in the order of [`ITEMS`].
    pub rows: Vec<Row>,
    /// Figures for the report page.
    pub figures: Vec<Figure>,
    /// Error messages of the simulations that failed.
    pub failures: Vec<String>,
    /// Number of simulations.
    pub simulations: usize,
}

impl Reproduction {
    /// Differing rows without a reason.
    pub fn unexplained(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_unexplained())
    }

    /// Number of rows with each verdict, the good ones first.
    pub fn counts(&self) -> Vec<(Verdict, usize)> {
        use Verdict::{Agrees, ClaimFails, ClaimHolds, Differs, Failed, Shown, Undecided};
        let count = |verdict| self.rows.iter().filter(|row| row.verdict == verdict).count();
        let all = [Agrees, ClaimHolds, Shown, Undecided, Differs, ClaimFails, Failed];
        let all = all.map(|verdict| (verdict, count(verdict)));
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// Title of the paper in this folder.
pub fn title(paper: &str) -> String {
    let folder = data::folder(paper);
    let known = folder.and_then(|folder| expected::expected(folder).ok().flatten());
    known.map_or_else(|| "ns-2 2.35, CMT-SCTP round robin".to_owned(), |expected| expected.title)
}

/// Readings of the paper in this folder: choices that its text leaves open, fixed for all of its items.
pub fn readings(paper: &str) -> Vec<Reading> {
    let folder = data::folder(paper);
    let known = folder.and_then(|folder| expected::expected(folder).ok().flatten());
    known.map_or_else(Vec::new, |expected| expected.readings)
}

/// A reason in a file that no row needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedReason {
    /// Folder.
    pub paper: String,
    /// Item without the paper.
    pub item: String,
    /// The case, which agrees or does not exist.
    pub case: String,
}

/// Reproduces these items.
///
/// # Errors
/// A message if a file of the papers is malformed. A failed simulation is not an error: its rows report it, and
/// [`Reproduction::failures`] lists it.
pub fn reproduce(items: &[Item], options: &Options<'_>) -> Result<Reproduction, String> {
    let papers = Papers::load()?;
    let runs = Runs::execute(papers.keys(items)?, options.threads, options.progress);
    let (mut rows, mut drawn) = (Vec::new(), Vec::new());
    for item in ITEMS.iter().filter(|item| items.contains(item)) {
        rows.extend(papers.rows(*item, &runs)?);
        let sources =
            figures::FigureSources { expected: papers.expected.get(item.paper), runs: &runs };
        // A figure without its runs is left out; the rows of these runs state the cause.
        drawn.extend(figures::figures(*item, sources).unwrap_or_default());
    }
    for row in rows.iter_mut().filter(|row| !row.verdict.is_good()) {
        papers.explain(row);
    }
    let (failures, simulations) = (runs.failures(), runs.count());
    Ok(Reproduction { rows, figures: drawn, failures, simulations })
}

/// Number of simulations of these items, for a progress bar.
///
/// # Errors
/// A message if a file of the papers is malformed.
pub fn simulations(items: &[Item]) -> Result<usize, String> {
    Ok(Papers::load()?.keys(items)?.len())
}

/// Reasons for rows of `done` that need none. `done` should cover all items.
///
/// # Errors
/// A message if a file of the papers is malformed.
pub fn unused_reasons(done: &Reproduction) -> Result<Vec<UnusedReason>, String> {
    let papers = Papers::load()?;
    let mut unused = Vec::new();
    for (paper, reasons) in &papers.reasons {
        for reason in reasons {
            for case in &reason.cases {
                let off = |row: &Row| {
                    row.paper == *paper
                        && row.case == *case
                        && !row.verdict.is_good()
                        && reason.is_about(&row.item, case, &row.quantity)
                };
                if !done.rows.iter().any(off) {
                    let (paper, item) = ((*paper).to_owned(), reason.item.clone());
                    unused.push(UnusedReason { paper, item, case: case.clone() });
                }
            }
        }
    }
    Ok(unused)
}

/// The contents of every folder.
struct Papers {
    expected: BTreeMap<&'static str, Expected>,
    reasons: BTreeMap<&'static str, Vec<Reason>>,
}

impl Papers {
    fn load() -> Result<Self, String> {
        let mut papers = Self { expected: BTreeMap::new(), reasons: BTreeMap::new() };
        for folder in &FOLDERS {
            if let Some(expected) = expected::expected(folder)? {
                papers.expected.insert(folder.name, expected);
            }
            papers.reasons.insert(folder.name, expected::reasons(folder)?.reasons);
        }
        Ok(papers)
    }

    fn entries(&self, item: Item) -> impl Iterator<Item = (&Expected, &expected::Entry)> {
        let expected = self.expected.get(item.paper).into_iter();
        let all = expected.flat_map(|paper| paper.items.iter().map(move |entry| (paper, entry)));
        all.filter(move |(_, entry)| entry.group == item.name)
    }

    fn keys(&self, items: &[Item]) -> Result<BTreeSet<RunKey>, String> {
        let mut keys = BTreeSet::new();
        for item in items {
            keys.extend(self.entries(*item).flat_map(|(paper, e)| judge::keys(paper, e)));
            keys.extend(figures::keys(*item));
            if item.paper == "ns2" {
                keys.extend(peers::keys(item.name)?);
            }
        }
        Ok(keys)
    }

    fn rows(&self, item: Item, runs: &Runs) -> Result<Vec<Row>, String> {
        if item.paper == "ns2" {
            return peers::rows(item.name, runs);
        }
        let mut rows: Vec<Row> = self
            .entries(item)
            .flat_map(|(paper, entry)| judge::judge(paper, entry, runs))
            .collect();
        if item.name == "tmaxblock" {
            peers::beside_blocking_times(&mut rows, runs)?;
        }
        Ok(rows)
    }

    /// Adds the reason to a differing row.
    fn explain(&self, row: &mut Row) {
        if row.verdict == Verdict::Failed {
            return;
        }
        let reasons = self.reasons.get(row.paper.as_str()).into_iter().flatten();
        let known = reasons.filter(|r| r.is_about(&row.item, &row.case, &row.quantity));
        row.reason = known.map(|reason| reason.text.clone()).next();
        if row.reason.is_none() {
            row.reason = self.known_beforehand(row);
        }
    }

    /// The note of a statement that is known not to hold.
    fn known_beforehand(&self, row: &Row) -> Option<String> {
        let items = &self.expected.get(row.paper.as_str())?.items;
        let entry = items
            .iter()
            .find(|e| e.group == row.item && e.case == row.case && e.quantity == row.quantity)?;
        let known = entry.expected_verdict == ExpectedVerdict::Differs;
        entry.note.clone().filter(|_| known)
    }
}
