//! Two saturated stations that contend for the channel, as a Markov chain: a calculation of the backoff
//! that is independent of the simulator.

use std::collections::BTreeMap;

/// Number of distinguished stages of the backoff. A fifth successive collision is rarer than one in
/// 10^4.
const STAGES: usize = 4;

/// The waiting station (0 for the first, 1 for the second), its remaining slots, and its stage.
type States = BTreeMap<(usize, u64, usize), f64>;

/// Outcome of a draw of both backoffs.
enum Outcome {
    /// This station sends first. The other has this many slots left.
    First(usize, u64),
    Collision,
}

/// The outcome of draws of `a` and `b` slots if the second station's slots start to count `head_start` later.
/// That wait ends with the first transmission.
fn outcome(a: u64, b: u64, head_start: u64) -> Outcome {
    let late = b + head_start;
    match a.cmp(&late) {
        std::cmp::Ordering::Less if a < head_start => Outcome::First(0, b),
        std::cmp::Ordering::Less => Outcome::First(0, late - a),
        std::cmp::Ordering::Greater => Outcome::First(1, a - late),
        std::cmp::Ordering::Equal => Outcome::Collision,
    }
}

/// Both draw in their stages after a collision, repeatedly until one is first. Adds to the states and to
/// the frames of each station.
fn resolve(
    chance: f64,
    stages: [usize; 2],
    (window, head_start): (u64, u64),
    next: &mut States,
    frames: &mut [f64; 2],
) {
    if chance < 1e-9 {
        return;
    }
    let [first, second] = stages.map(|stage| window << stage);
    let each = chance / (first * second) as f64;
    let mut again = 0.0;
    for (a, b) in (0..first).flat_map(|a| (0..second).map(move |b| (a, b))) {
        match outcome(a, b, head_start) {
            Outcome::First(winner, left) => {
                frames[winner] += each;
                *next.entry((1 - winner, left, stages[1 - winner])).or_default() += each;
            }
            Outcome::Collision => again += each,
        }
    }
    let stages = stages.map(|stage| (stage + 1).min(STAGES - 1));
    resolve(again, stages, (window, head_start), next, frames);
}

/// Frames of the first station per frame of the second, whose contention window begins with `window` slots. After
/// a collision the first has a head start of `head_start` slots.
pub fn frames_ratio(window: u64, head_start: u64) -> f64 {
    let mut states = States::from([((0, 1, 0), 0.5), ((1, 1, 0), 0.5)]);
    let mut frames = [0.0; 2];
    for _ in 0..40 {
        let mut next = States::new();
        let mut collisions = BTreeMap::<[usize; 2], f64>::new();
        frames = [0.0; 2];
        for ((waits, left, stage), chance) in &states {
            let each = chance / window as f64;
            let sender = 1 - waits;
            for drawn in 0..window {
                let (state, winner) = match drawn.cmp(left) {
                    std::cmp::Ordering::Less => ((*waits, left - drawn, *stage), sender),
                    std::cmp::Ordering::Greater => ((sender, drawn - left, 0), *waits),
                    std::cmp::Ordering::Equal => {
                        let mut stages = [1, 1];
                        stages[*waits] = (stage + 1).min(STAGES - 1);
                        *collisions.entry(stages).or_default() += each;
                        continue;
                    }
                };
                frames[winner] += each;
                *next.entry(state).or_default() += each;
            }
        }
        for (stages, chance) in collisions {
            resolve(chance, stages, (window, head_start), &mut next, &mut frames);
        }
        states = next;
    }
    frames[0] / frames[1]
}
