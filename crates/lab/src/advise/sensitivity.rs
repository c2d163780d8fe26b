//! Performance of the advice if the links differ from the scenario.

use ropewalk_base::statistics::mean;
use ropewalk_scenario::Scenario;
use serde::Serialize;

use super::Candidate;
use super::search::Found;
use super::trials::{Span, Trials};
use crate::other_links;

/// By how much a rate or an RTT differs, up and down.
const ERROR: f64 = 0.2;
/// Choices that are compared in each case.
const CHOICES: usize = 3;
/// Seeds of each case.
const SEEDS: u64 = 2;

/// A quantity of a link that may differ from the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// The rate, in both directions.
    Rate,
    /// The propagation delay, in both directions.
    Rtt,
}

/// One link with another rate or RTT, in short simulations.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Case {
    /// Name of the link.
    pub path: String,
    /// The quantity that differs.
    pub quantity: Quantity,
    /// Factor on the quantity: 0.8 or 1.2.
    pub factor: f64,
    /// Goodput of the advice divided by that without the difference.
    pub goodput_ratio: f64,
    /// What the advice lacks of the best rival in the figure of the goal: 0.03 means that it has 97 % of the
    /// rival's figure. Zero if the advice is still the best. For calls through a tunnel, the figure is the goodput of the other
    /// flows, or the mean opinion score above 1 if the rival's calls sound audibly better.
    pub loss: f64,
    /// The best rival: its links, scheduler and congestion control. Null if the advice is still the best.
    pub better: Option<String>,
}

/// The cases for all links that the advice uses, and the number of simulations.
pub fn cases(trials: &Trials<'_>, found: &Found) -> (Vec<Case>, usize) {
    let scenario = trials.scenario();
    let mut choices = vec![found.best.clone()];
    for one in &found.finalists {
        if choices.len() < CHOICES && choices.iter().all(|known| !known.resembles(one)) {
            choices.push(one.with_buffer(found.best.receive_buffer));
        }
    }
    let mut base = trials.for_scenario(scenario.clone());
    base.run(&choices[..1], 0..SEEDS, Span::Short);
    let reference = goodput(&base, &choices[0]);
    let mut simulations = base.count();
    let mut cases = Vec::new();
    for path in &found.best.paths {
        for quantity in [Quantity::Rate, Quantity::Rtt] {
            for factor in [1.0 - ERROR, 1.0 + ERROR] {
                let Some(changed) = changed(scenario, *path, quantity, factor) else { continue };
                let mut trials = trials.for_scenario(changed);
                trials.run(&choices, 0..SEEDS, Span::Short);
                simulations += trials.count();
                let rating = |one: &Candidate| trials.rating(one, 0..SEEDS, Span::Short);
                let own = rating(&choices[0]);
                let mut ranked = choices.clone();
                trials.rank(&mut ranked, 0..SEEDS, Span::Short);
                let better = ranked.first().filter(|one| rating(one).beats(own, 0.0));
                cases.push(Case {
                    path: scenario.paths[*path].name.clone(),
                    quantity,
                    factor,
                    goodput_ratio: goodput(&trials, &choices[0]) / reference,
                    loss: better.map_or(0.0, |one| own.lacks(rating(one))),
                    better: better.map(|one| label(scenario, one)),
                });
            }
        }
    }
    (cases, simulations)
}

/// A label for a choice.
fn label(scenario: &Scenario, choice: &Candidate) -> String {
    let names = choice.paths.iter().map(|path| scenario.paths[*path].name.as_str());
    let names = names.collect::<Vec<_>>().join(" + ");
    match choice.paths[..] {
        [_] => format!("{names}, {}", choice.congestion),
        _ => format!("{names}, {}, {}", choice.scheduler, choice.congestion),
    }
}

fn goodput(trials: &Trials<'_>, of: &Candidate) -> f64 {
    let all = trials.outcomes(of, 0..SEEDS, Span::Short);
    mean(all.iter().map(|outcome| outcome.goodput_bps))
}

/// The scenario with a changed link. `None` if its rate comes from a trace.
fn changed(scenario: &Scenario, path: usize, quantity: Quantity, factor: f64) -> Option<Scenario> {
    let mut changed = scenario.clone();
    let path = &mut changed.paths[path];
    match quantity {
        Quantity::Rate => other_links::scale_rate(path, factor)?,
        Quantity::Rtt => other_links::scale_round_trip(path, factor),
    }
    Some(changed)
}
