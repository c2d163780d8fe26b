//! Reproduces Wallace and Shami 2014: throughput models compared with simulations, static with dynamic window
//! management, and the heuristic. Its figures are sweeps, so its claims cover many points.

pub mod gain;
pub mod heuristic;
mod judge;
mod printed;
pub mod sweep;

pub use judge::{judge, peer_points};

use super::plan::RunKey;

/// The folder.
pub const PAPER: &str = "wallace2014";

/// Items with random runs. Each has a thousand separate seeds, from 1000 times its position on.
const RANDOM: [&str; 10] = [
    "figure-5",
    "figure-6",
    "figure-6-20ms",
    "figure-7",
    "figure-8",
    "ns2",
    "figure-9",
    "figure-10",
    "figure-11",
    "figure-12",
];

/// The first `count` seeds of an item.
fn seeds(item: &str, count: u64) -> impl Iterator<Item = u64> + use<> {
    let place = RANDOM.iter().position(|known| *known == item).unwrap_or(RANDOM.len());
    let base = 1000 * (place as u64 + 1);
    (1..=count).map(move |n| base + n)
}

/// The simulations of an item.
pub fn keys(item: &str) -> Vec<RunKey> {
    if let Some(sweep) = sweep::sweep(item) {
        return sweep.points().flat_map(|(_, point)| point.keys()).collect();
    }
    let curves = gain::curves(item).into_iter();
    // Errors in computing limits are reported when the rows are judged.
    let of = |curve: gain::Curve| {
        gain::LOSSES.into_iter().flat_map(move |loss| curve.keys(loss).into_iter().flatten())
    };
    curves.flat_map(of).flat_map(|pair| [pair.fixed, pair.dynamic]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_items_share_a_seed_and_each_has_ten_or_more() {
        let mut all = BTreeSet::new();
        for item in RANDOM {
            let sets = keys(item).into_iter().flat_map(|key| key.sets);
            let own: BTreeSet<String> =
                sets.filter(|set| set.starts_with("transfer.seed=")).collect();
            assert!(own.len() >= 10, "{item}: {own:?}");
            for seed in own {
                assert!(all.insert(seed.clone()), "{item} shares {seed}");
            }
        }
    }
}
