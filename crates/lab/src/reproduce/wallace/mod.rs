//! Wallace and Shami 2014: throughput models against packets, static against dynamic window
//! management, and the heuristic. Its figures are sweeps, so that its claims are about many points.

pub mod gain;
pub mod heuristic;
mod judge;
pub mod sweep;

pub use judge::{judge, peer_points};

use super::plan::RunKey;

/// The folder.
pub const PAPER: &str = "wallace2014";

/// Every point is run with so many seeds, from 1 on.
const SEEDS: u64 = 5;

/// The simulations of an item.
pub fn keys(item: &str) -> Vec<RunKey> {
    if let Some(sweep) = sweep::sweep(if item == "ns2" { "figure-5" } else { item }) {
        return sweep.points().flat_map(|(_, point)| point.keys()).collect();
    }
    let curves = gain::curves(item).into_iter();
    // Limits that cannot be computed are found again, and told, when the rows are judged.
    let of = |curve: gain::Curve| {
        gain::LOSSES.into_iter().flat_map(move |loss| curve.keys(loss).into_iter().flatten())
    };
    curves.flat_map(of).flat_map(|pair| [pair.fixed, pair.dynamic]).collect()
}
