//! Figures 13 and 14: limits that are multiples of k packets (Section 6.3). The paper prints no loss for them;
//! both paths use the 1e-3 of the other figures.

use ropewalk_models::optimise::{PathTable, brute_force, heuristic};
use ropewalk_models::{LossModel, LossyPath, window_packets};

use crate::cost::Stopwatch;

const PACKET_BYTES: f64 = 1500.0;
const BUFFER_KIB: f64 = 128.0;
const RTO_MAX_S: f64 = 60.0;
const LOSS: f64 = 1e-3;

/// Rates of the first path, Mbit/s.
pub const RATES_MBPS: [f64; 10] = [5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0];
/// Steps of the limits, packets.
pub const STEPS: [u32; 4] = [1, 2, 5, 10];

/// Result of a step size at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchResult {
    /// Predicted throughput with the limits found, bit/s on the wire.
    pub throughput_bps: f64,
    /// Combinations of limits in an exhaustive search.
    pub combinations: u64,
}

/// The best limits in steps of `step` packets at this rate of the first path.
///
/// # Errors
/// A message if the optimiser rejects the parameters.
pub fn search_results(rate_mbps: f64, step: u32) -> Result<SearchResult, String> {
    let (tables, packets) = problem(rate_mbps)?;
    let best = heuristic(&tables, packets, step).map_err(|e| e.to_string())?;
    let searched = search(&tables, packets, step);
    Ok(SearchResult {
        throughput_bps: best.throughput_pps * PACKET_BYTES * 8.0,
        combinations: searched,
    })
}

/// CPU time of the exhaustive search on this machine, ms. It differs in each run.
///
/// # Errors
/// A message if the models reject the parameters.
pub fn measured_ms(rate_mbps: f64, step: u32) -> Result<f64, String> {
    let (tables, packets) = problem(rate_mbps)?;
    let watch = Stopwatch::start();
    let combinations = search(&tables, packets, step);
    let seconds = watch.seconds();
    if combinations == 0 {
        return Err(format!("no limits in steps of {step}"));
    }
    Ok(seconds * 1e3)
}

fn search(tables: &[PathTable], packets: u32, step: u32) -> u64 {
    let limits: Vec<u32> = tables.iter().map(PathTable::limit_packets).collect();
    let eta = |path: usize, limit| tables[path].throughput_pps(limit);
    brute_force(&limits, packets, step, eta).combinations
}

fn problem(rate_mbps: f64) -> Result<([PathTable; 2], u32), String> {
    let words = |error: ropewalk_models::OutOfRange| error.to_string();
    let packets = window_packets(BUFFER_KIB * 1024.0, PACKET_BYTES).map_err(words)?;
    let table = |rate_mbps: f64, delay_s| {
        let path = LossyPath::from_bits(rate_mbps * 1e6, delay_s, LOSS, RTO_MAX_S, PACKET_BYTES)?;
        PathTable::markov(&path, packets, LossModel::Independent)
    };
    let (first, second) = (table(rate_mbps, 0.025), table(10.0, 0.05));
    Ok(([first.map_err(words)?, second.map_err(words)?], packets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_combinations_are_the_product_of_the_numbers_of_limits() {
        // ceil(5e6 / 12000 x 0.025 + 1) = 12 and ceil(10e6 / 12000 x 0.05 + 1) = 43.
        for (step, expected) in [(1, 12 * 43), (2, 6 * 21), (5, 2 * 8), (10, 4)] {
            assert_eq!(search_results(5.0, step).unwrap().combinations, expected);
        }
    }

    #[test]
    fn a_step_that_divides_another_promises_no_less() {
        for rate in RATES_MBPS {
            let bps = |step| search_results(rate, step).unwrap().throughput_bps;
            assert!(bps(1) >= bps(2) && bps(2) >= bps(10) && bps(5) >= bps(10), "{rate}");
        }
    }
}
