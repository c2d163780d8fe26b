//! The search: successive halving over candidates, seeds and lengths of simulation.
//!
//! ```text
//!   round   candidates                                          runs of each
//!   1       all schedulers x congestion controls, two buffers   2 short
//!   2       the best 60                                         3 short
//!   3       the best 16 on other sets of links, links alone     3 short
//!   4       the best 16 of all, and the scenario's own choice   3 full
//!   5       the best 8, and the scenario's own choice           8 full
//!   6       calls through a tunnel: its settings, one by one    4 full
//!   7       the best 3 with other receive buffers               4 full
//! ```
//!
//! Short simulations favour congestion controls that reach a high rate soon over those that reach a higher one later.
//! Rounds 2 to 4 therefore also take the best two or three with each congestion control. Of candidates with the same
//! figures, each round has one.
//!
//! All candidates of a round run with the same seeds, so that effects of the seed cancel in the differences
//! (common random numbers). A candidate that is eliminated does not return.

use std::ops::Range;

use ropewalk_scenario::Scenario;

use super::Candidate;
use super::candidate::{congestions, schedulers, subsets};
use super::rating::rates_calls;
use super::trials::{Outcome, Span, Trials};
use super::tunnel::variants;
use crate::predict::predict;

/// Seeds of the first round.
const FIRST_SEEDS: u64 = 2;
/// Candidates that enter the second round.
const SECOND_ROUND: usize = 60;
/// Candidates that are tried on other sets of links.
const THIRD_ROUND: usize = 16;
/// Candidates that enter the full simulations.
const FOURTH_ROUND: usize = 16;
/// Minimum number of candidates per congestion control that enter the second, the third and the fourth
/// round.
const EACH: [usize; 3] = [3, 1, 2];
/// Candidates that are compared with more seeds.
const FINALISTS: usize = 8;
/// Maximum number of successive changes of a tunnel's settings.
const TUNNEL_CHANGES: usize = 4;
/// Finalists that are tried with all receive buffers.
const SEVENTH_ROUND: usize = 3;
/// Seeds of short simulations.
const SHORT_SEEDS: u64 = 3;
/// Seeds of full simulations, in the fourth, the fifth, and the later rounds.
const FULL_SEEDS: [u64; 3] = [3, 8, 4];
/// Difference of the logarithm of the figure of the goal within which choices count as equal: the one with fewer
/// links, fewer changes, or a smaller buffer is then preferred.
const EQUAL: f64 = 0.005;
/// Buffers that are tried, as multiples of the buffer with which no path is blocked while queues are empty.
const BUFFERS: [f64; 6] = [4.0, 2.0, 1.0, 0.5, 0.25, 0.125];

/// Result of the search.
pub struct Found {
    /// The choice.
    pub best: Candidate,
    /// All finalists, the best first.
    pub finalists: Vec<Candidate>,
    /// The receive buffers that were tried with the choice, descending.
    pub buffers: Vec<Candidate>,
}

/// Searches the best choice.
pub fn search(trials: &mut Trials<'_>, goal: super::Goal) -> Found {
    let scenario = trials.scenario().clone();
    let needed = needed_buffer(&scenario);
    let ample = buffer(needed, BUFFERS[0]);
    let pairs = bundles(trials, &scenario, goal, needed);
    trials.stage(0.45);
    let pool = link_sets(trials, &scenario, pairs, ample);
    trials.stage(0.6);
    let mut finalists = shortlist(trials, &pool, FOURTH_ROUND, EACH[2], 0..SHORT_SEEDS);
    let own = Candidate::of(&scenario, ample);
    if !finalists.contains(&own) {
        finalists.push(own.clone());
    }
    let [few, many, _] = FULL_SEEDS;
    trials.run(&finalists, 0..few, Span::Full);
    trials.rank(&mut finalists, 0..few, Span::Full);
    let own = finalists.iter().position(|one| *one == own);
    let own = own.filter(|place| *place >= FINALISTS).map(|place| finalists[place].clone());
    finalists.truncate(FINALISTS);
    finalists.extend(own);
    trials.stage(0.78);
    trials.run(&finalists, 0..many, Span::Full);
    trials.rank(&mut finalists, 0..many, Span::Full);
    put_first(&mut finalists, trials, &scenario);
    if rates_calls(goal, &scenario) {
        trials.stage(0.82);
        tunnel_settings(trials, &mut finalists);
    }
    trials.stage(0.85);
    let (best, buffers) = choose_buffer(trials, &finalists, needed);
    Found { best, finalists, buffers }
}

/// Rounds 1 and 2: schedulers and congestion controls on all links, the best first.
fn bundles(
    trials: &mut Trials<'_>,
    scenario: &Scenario,
    goal: super::Goal,
    needed: u64,
) -> Vec<Candidate> {
    let ample = buffer(needed, BUFFERS[0]);
    let all: Vec<usize> = (0..scenario.paths.len()).collect();
    let mut pairs: Vec<Candidate> = Vec::new();
    for scheduler in schedulers(goal) {
        for congestion in congestions() {
            // A larger buffer is not always better: it permits longer queues.
            let pair = Candidate::new(all.clone(), scheduler, congestion, needed);
            for bytes in [ample, buffer(needed, 1.0)] {
                let pair = pair.with_buffer(bytes);
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
    }
    trials.stage(0.25);
    trials.run(&pairs, 0..FIRST_SEEDS, Span::Short);
    trials.rank(&mut pairs, 0..FIRST_SEEDS, Span::Short);
    let mut pairs = shortlist(trials, &pairs, SECOND_ROUND, EACH[0], 0..FIRST_SEEDS);
    trials.stage(0.35);
    trials.run(&pairs, 0..SHORT_SEEDS, Span::Short);
    trials.rank(&mut pairs, 0..SHORT_SEEDS, Span::Short);
    pairs
}

/// Round 3: the best choices without some of the links, and each link alone. With many links, the search removes
/// one link at a time as long as that helps.
fn link_sets(
    trials: &mut Trials<'_>,
    scenario: &Scenario,
    pairs: Vec<Candidate>,
    ample: u64,
) -> Vec<Candidate> {
    let mut pool: Vec<Candidate> = Vec::new();
    let best = shortlist(trials, &pairs, THIRD_ROUND, EACH[1], 0..SHORT_SEEDS);
    for set in subsets(scenario.paths.len()) {
        if let [_] = set[..] {
            let own = Candidate::of(scenario, ample);
            let with = |congestion| Candidate { congestion, ..own.clone() }.on(set.clone());
            pool.extend(congestions().into_iter().map(with));
        } else {
            pool.extend(best.iter().map(|pair| pair.on(set.clone())));
        }
    }
    pool.extend(pairs);
    trials.run(&pool, 0..SHORT_SEEDS, Span::Short);
    trials.rank(&mut pool, 0..SHORT_SEEDS, Span::Short);
    while let Some(best) = pool.first().filter(|best| best.paths.len() > 2).cloned() {
        let without = |left: &usize| {
            best.on(best.paths.iter().copied().filter(|path| path != left).collect())
        };
        let mut fewer: Vec<Candidate> = best.paths.iter().map(without).collect();
        trials.run(&fewer, 0..SHORT_SEEDS, Span::Short);
        fewer.retain(|candidate| !pool.contains(candidate));
        pool.extend(fewer);
        trials.rank(&mut pool, 0..SHORT_SEEDS, Span::Short);
        if pool[0] == best {
            break;
        }
    }
    pool
}

/// The first `best` of the ranked candidates, and at least the first `each` with each congestion control. Of
/// candidates with the same figures, the one with the fewest changes is taken.
fn shortlist(
    trials: &Trials<'_>,
    ranked: &[Candidate],
    best: usize,
    each: usize,
    seeds: Range<u64>,
) -> Vec<Candidate> {
    let effort = |candidate: &Candidate| candidate.effort(trials.scenario());
    let mut taken: Vec<(Candidate, Vec<Outcome>)> = Vec::new();
    for one in ranked {
        let figures = trials.outcomes(one, seeds.clone(), Span::Short);
        if let Some((same, _)) = taken.iter_mut().find(|(_, known)| *known == figures) {
            if effort(one) < effort(same) {
                *same = one.clone();
            }
            continue;
        }
        let alike = taken.iter().filter(|(other, _)| other.congestion == one.congestion).count();
        if taken.len() < best || alike < each {
            taken.push((one.clone(), figures));
        }
    }
    taken.into_iter().map(|(candidate, _)| candidate).collect()
}

/// Moves the finalist with the fewest links and the fewest changes to the front, among those with nearly the best score.
fn put_first(finalists: &mut Vec<Candidate>, trials: &Trials<'_>, scenario: &Scenario) {
    let rating = |candidate| trials.rating(candidate, 0..FULL_SEEDS[1], Span::Full);
    let Some(best) = finalists.first().map(rating) else { return };
    let near = finalists.iter().enumerate().filter(|(_, one)| !best.beats(rating(one), EQUAL));
    let fewest = near.min_by_key(|(_, one)| one.effort(scenario)).map_or(0, |(place, _)| place);
    let chosen = finalists.remove(fewest);
    finalists.insert(0, chosen);
}

/// Round 6: the settings of the tunnel that improve the first finalist, one change at a time.
fn tunnel_settings(trials: &mut Trials<'_>, finalists: &mut Vec<Candidate>) {
    let seeds = 0..FULL_SEEDS[2];
    let Some(first) = finalists.first() else { return };
    let mut best = first.clone();
    for _ in 0..TUNNEL_CHANGES {
        let mut others = variants(trials.scenario(), &best);
        trials.run(&others, seeds.clone(), Span::Full);
        trials.rank(&mut others, seeds.clone(), Span::Full);
        let rating = |one: &Candidate| trials.rating(one, seeds.clone(), Span::Full);
        match others.into_iter().next().filter(|other| rating(other).beats(rating(&best), EQUAL)) {
            Some(better) => best = better,
            None => break,
        }
    }
    if best != finalists[0] {
        finalists.insert(0, best);
    }
}

/// Round 7: the smallest receive buffer with nearly the best score, for the best choices.
fn choose_buffer(
    trials: &mut Trials<'_>,
    finalists: &[Candidate],
    needed: u64,
) -> (Candidate, Vec<Candidate>) {
    let mut sizes = BUFFERS.map(|part| buffer(needed, part)).to_vec();
    sizes.push(trials.scenario().transfer.receive_buffer);
    sizes.sort_unstable_by_key(|bytes| core::cmp::Reverse(*bytes));
    sizes.dedup();
    let with_sizes = |one: &Candidate| -> Vec<Candidate> {
        sizes.iter().map(|bytes| one.with_buffer(*bytes)).collect()
    };
    let mut distinct: Vec<&Candidate> = Vec::new();
    for one in finalists {
        if distinct.len() < SEVENTH_ROUND && distinct.iter().all(|known| !known.resembles(one)) {
            distinct.push(one);
        }
    }
    let rows: Vec<Vec<Candidate>> = distinct.into_iter().map(with_sizes).collect();
    trials.run(&rows.concat(), 0..FULL_SEEDS[2], Span::Full);
    let rating = |candidate: &Candidate| trials.rating(candidate, 0..FULL_SEEDS[2], Span::Full);
    let top = |row: &[Candidate]| {
        let mut ranked = row.to_vec();
        trials.rank(&mut ranked, 0..FULL_SEEDS[2], Span::Full);
        rating(&ranked[0])
    };
    // Any choice other than the first must be better by more than a tie.
    let row = rows
        .into_iter()
        .reduce(|best, row| if top(&row).beats(top(&best), EQUAL) { row } else { best });
    let row = row.expect("there are finalists");
    let best = top(&row);
    let near = row.iter().filter(|one| !best.beats(rating(one), EQUAL));
    let smallest = near.min_by_key(|one| one.receive_buffer).expect("the best one is near").clone();
    (smallest, row)
}

/// The buffer with which no path is blocked while queues are empty, bytes.
pub fn needed_buffer(scenario: &Scenario) -> u64 {
    let known = predict(scenario).receive_buffer_min_bytes;
    let computed = || {
        let rates: f64 =
            scenario.paths.iter().map(|path| path.up.capacity.mean_rate().as_bps() as f64).sum();
        let round_trip = scenario.paths.iter().map(|path| path.up.delay + path.down.delay).max();
        rates / 8.0 * round_trip.map_or(0.0, |longest| longest.as_secs_f64())
    };
    (known.unwrap_or_else(computed) as u64).max(32 * u64::from(scenario.transfer.packet))
}

/// A fraction of the needed buffer with two digits, within the limits of a scenario.
pub fn buffer(needed: u64, part: f64) -> u64 {
    let bytes = needed as f64 * part;
    let unit = 10_f64.powf((bytes.log10().floor() - 1.0).max(0.0));
    (((bytes / unit).ceil() * unit) as u64).min(u64::from(u32::MAX))
}
