//! Exhaustive simulation, as a reference for the search.

use serde::Serialize;

use super::candidate::{Candidate, congestions, schedulers, subsets};
use super::search::{buffer, needed_buffer};
use super::trials::{Span, Trials};
use super::{Advice, AdviseOptions};

/// Receive buffers, as multiples of the buffer with which no path is blocked while queues are empty.
const BUFFERS: [f64; 3] = [4.0, 1.0, 0.5];
/// Number of choices that run again.
const FINALISTS: usize = 10;
/// Seed of the first round, and of the second one, counted from the scenario's. The search uses others.
const SEEDS: [u64; 2] = [2000, 3000];
/// Seeds of the second round.
const COUNT: u64 = 5;

/// The best choice of exhaustive simulation, for comparison with the advice.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Exhaustive {
    /// Choices simulated.
    pub choices: usize,
    /// Figure of the goal of the advice divided by that of the best choice: geometric mean over fresh seeds.
    pub ratio: f64,
    /// The best choice.
    pub best: String,
    /// The finalists with their figures, divided by that of the advice.
    pub finalists: Vec<(String, f64)>,
}

/// Simulates every choice, then the best ones and the advice with fresh seeds.
pub fn exhaustive(
    scenario: &ropewalk_scenario::Scenario,
    options: &AdviseOptions,
    advice: &Advice,
) -> Exhaustive {
    let mut trials = Trials::new(scenario, options, &|_| ());
    let needed = needed_buffer(scenario);
    let mut sets = subsets(scenario.paths.len());
    sets.push((0..scenario.paths.len()).collect());
    let mut all: Vec<Candidate> = Vec::new();
    for set in &sets {
        for scheduler in schedulers(options.goal) {
            for congestion in congestions() {
                let with =
                    |part| Candidate::new(set.clone(), scheduler, congestion, buffer(needed, part));
                all.extend(BUFFERS.map(with));
            }
        }
    }
    all.sort_by_key(Candidate::key);
    all.dedup();
    trials.run(&all, SEEDS[0]..SEEDS[0] + 1, Span::Short);
    trials.rank(&mut all, SEEDS[0]..SEEDS[0] + 1, Span::Short);
    let choices = all.len();
    let mut finalists: Vec<Candidate> = Vec::new();
    for one in all {
        if finalists.len() < FINALISTS && finalists.iter().all(|known| !known.resembles(&one)) {
            finalists.push(one);
        }
    }
    let again = SEEDS[1]..SEEDS[1] + COUNT;
    let advised = &advice.chosen;
    trials.run(
        &[&finalists[..], std::slice::from_ref(advised)].concat(),
        again.clone(),
        Span::Full,
    );
    trials.rank(&mut finalists, again.clone(), Span::Full);
    let own = trials.rating(advised, again.clone(), Span::Full).score();
    let ratio =
        |one: &Candidate| (trials.rating(one, again.clone(), Span::Full).score() - own).exp();
    Exhaustive {
        choices,
        ratio: finalists.first().map_or(1.0, |best| 1.0 / ratio(best)).min(1.0),
        best: finalists.first().map_or_else(String::new, Candidate::key),
        finalists: finalists.iter().map(|one| (one.key(), ratio(one))).collect(),
    }
}
