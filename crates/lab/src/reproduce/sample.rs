//! Runs of a statement with its own seeds: subject and reference.

use ropewalk_scenario::SchedulerName;

use super::decide::Spread;
use super::expected::{Entry, Expected};
use super::judge::{Pair, fraction};
use super::plan::{RunKey, Runs};
use super::quantity;
use super::row::Seeds;
use crate::compare::estimate;

/// The simulation of a file with one seed, under the paper's readings.
fn key(scheduler: &str, expected: &Expected, file: &str, seed: u64) -> RunKey {
    let key = RunKey::new(&expected.paper, file, scheduler);
    let key = expected.changes.iter().fold(key, |key, set| key.with(set.as_str()));
    key.with(format!("transfer.seed={seed}"))
}

fn value(
    scheduler: &str,
    expected: &Expected,
    (file, quantity): (&str, &str),
    seed: u64,
    runs: &Runs,
) -> Result<f64, String> {
    let key = key(scheduler, expected, file, seed);
    quantity::of_run(&runs.get(&key)?.result, &key.scenario()?, quantity)
}

/// `count` consecutive seeds that are specific to `name`; the first is derived from the FNV-1a hash of the
/// name.
pub fn seeds(name: &str, count: u32) -> impl Iterator<Item = u64> + use<> {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // Below 2^53, so that every document represents the seeds exactly.
    let first = (hash >> 24) << 12;
    (0..u64::from(count)).map(move |i| first + i)
}

fn seeds_of(expected: &Expected, entry: &Entry) -> impl Iterator<Item = u64> + use<> {
    let count = entry.seeds.or(expected.seeds).unwrap_or(1).max(1);
    seeds(&format!("{}/{}", expected.paper, entry.id), count)
}

/// The runs that a statement requires.
pub fn keys(expected: &Expected, entry: &Entry) -> Vec<RunKey> {
    let named = [entry.subject.as_deref(), entry.against.as_deref()];
    let schedulers: Vec<&str> =
        named.into_iter().flatten().filter(|name| is_scheduler(name)).collect();
    let mut keys = Vec::new();
    for file in entry.scenario.iter().chain(&entry.scenarios) {
        for seed in seeds_of(expected, entry) {
            keys.extend(schedulers.iter().map(|name| key(name, expected, file, seed)));
        }
    }
    keys
}

fn is_scheduler(name: &str) -> bool {
    name.parse::<SchedulerName>().is_ok()
}

/// Subject and reference of a statement for each seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pairs: Vec<Pair>,
}

impl Sample {
    /// A sample of at least one pair.
    pub fn new(pairs: Vec<Pair>) -> Self {
        assert!(!pairs.is_empty(), "a sample has a seed");
        Self { pairs }
    }

    /// The means.
    pub fn mean(&self) -> Pair {
        let count = self.pairs.len() as f64;
        let mean = |of: fn(&Pair) -> f64| self.pairs.iter().map(of).sum::<f64>() / count;
        if self.is_deterministic() {
            return self.pairs[0];
        }
        Pair { subject: mean(|p| p.subject), reference: mean(|p| p.reference) }
    }

    /// Whether all seeds gave the same values.
    pub fn is_deterministic(&self) -> bool {
        self.pairs.iter().all(|pair| *pair == self.pairs[0])
    }

    /// The seeds in the form of rows.
    pub fn seeds(&self) -> Seeds {
        match self.pairs.len() {
            1 => Seeds::Drawn(1),
            _ if self.is_deterministic() => Seeds::Deterministic,
            count => Seeds::Drawn(count as u32),
        }
    }

    /// Mean and interval of a function of each pair.
    pub fn spread(&self, of: impl Fn(&Pair) -> f64) -> Spread {
        let values: Vec<f64> = self.pairs.iter().map(of).collect();
        let known = estimate(&values).expect("a sample has a seed");
        if self.is_deterministic() {
            return Spread::point(values[0]);
        }
        let half = known.half_width.unwrap_or(0.0);
        Spread { mean: known.mean, least: known.mean - half, most: known.mean + half }
    }

    /// The ends of `spread` if the seeds differ.
    pub fn interval(&self, spread: Spread) -> Option<[f64; 2]> {
        (!self.is_deterministic()).then_some(spread.ends())
    }

    /// Relative changes of the subject, seed by seed.
    pub fn changes(&self) -> Result<Vec<f64>, String> {
        let change = |p: &Pair| fraction(p.subject, p.reference).ok_or("a gain over nothing");
        self.pairs.iter().map(change).collect::<Result<_, _>>().map_err(str::to_owned)
    }
}

/// Measures a statement in one of its scenarios.
///
/// # Errors
/// A message if the statement is incomplete, or if a run failed.
pub fn measure(
    expected: &Expected,
    entry: &Entry,
    file: &str,
    runs: &Runs,
) -> Result<Sample, String> {
    let subject = entry.subject.as_deref().ok_or("a claim without its subject")?;
    let against = entry.against.as_deref().ok_or("a claim without its reference")?;
    let what = (file, entry.quantity.as_str());
    let pair = |seed| {
        let key = key(subject, expected, file, seed);
        let reference = match against {
            "model" => quantity::of_model(&key.scenario()?, &entry.quantity)?,
            "capacity" if is_share(&entry.quantity) => 1.0,
            "capacity" => quantity::capacity_bps(&key.scenario()?),
            "bound" => {
                let bound = runs.get(&key)?.result.flow_control_bound_bps;
                bound.ok_or("shared links have no flow-control bound")?
            }
            scheduler => value(scheduler, expected, what, seed, runs)?,
        };
        Ok(Pair { subject: value(subject, expected, what, seed, runs)?, reference })
    };
    let pairs = seeds_of(expected, entry).map(pair).collect::<Result<Vec<_>, String>>()?;
    Ok(Sample::new(pairs))
}

fn is_share(quantity: &str) -> bool {
    quantity.ends_with("utilisation") || quantity == "delivered_share"
}

#[cfg(test)]
mod tests {
    use super::super::data::FOLDERS;
    use super::super::expected::{Source, expected};
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn no_two_statements_share_a_seed() {
        let mut owners: BTreeMap<u64, String> = BTreeMap::new();
        for paper in FOLDERS.iter().filter_map(|f| expected(f).unwrap()) {
            for entry in paper.items.iter().filter(|e| e.by.contains(&Source::Simulation)) {
                for seed in seeds_of(&paper, entry) {
                    let name = format!("{}/{}", paper.paper, entry.id);
                    assert!(seed < 1 << 53);
                    if let Some(other) = owners.insert(seed, name.clone()) {
                        panic!("{name} and {other} share {seed}");
                    }
                }
            }
        }
        assert!(owners.len() > 300);
    }

    #[test]
    fn seeds_that_agree_leave_no_interval_and_others_do() {
        let pair = |subject, reference| Pair { subject, reference };
        let same = Sample::new(vec![pair(0.1 + 0.2, 2.0); 10]);
        assert_eq!(same.seeds(), Seeds::Deterministic);
        let spread = same.spread(|p| p.subject);
        assert_eq!((same.interval(spread), spread), (None, Spread::point(0.1 + 0.2)));
        let drawn = Sample::new(vec![pair(1.0, 2.0), pair(3.0, 2.0)]);
        assert_eq!(drawn.seeds(), Seeds::Drawn(2));
        // Two values: Student's t with one degree of freedom, 12.7062.
        let [least, most] = drawn.interval(drawn.spread(|p| p.subject)).unwrap();
        assert!((most - 2.0 - 12.7062).abs() < 1e-3 && (least - 2.0 + 12.7062).abs() < 1e-3);
        assert_eq!(drawn.changes(), Ok(vec![-0.5, 0.5]));
        assert!(Sample::new(vec![pair(1.0, 0.0)]).changes().is_err());
    }

    #[test]
    fn a_statement_takes_subject_and_reference_for_each_seed_and_scenario() {
        let text = "paper = 'kuhn2014'\ntitle = 't'\nseeds = 3\n[[item]]\n\
                    id = 'x'\ngroup = 'g'\ncase = 'c'\nquantity = 'goodput_bps'\nunit = 'bit/s'\n\
                    kind = 'claim'\nby = ['simulation']\nsource = 's'\nsubject = 'daps'\n";
        let count = |rest: &str| {
            let expected: Expected = toml::from_str(&format!("{text}{rest}")).unwrap();
            let keys = keys(&expected, &expected.items[0]);
            keys.into_iter().collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(count("against = 'round-robin'\nscenario = 'a'"), 2 * 3);
        assert_eq!(count("against = 'bound'\nscenario = 'a'\nseeds = 1"), 1);
        assert_eq!(count("against = 'min-rtt'\nscenarios = ['a', 'b']"), 2 * 3 * 2);
    }
}
