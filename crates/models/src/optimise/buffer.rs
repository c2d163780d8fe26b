//! The smallest receive buffer for a required throughput.

use super::dynamic::Layers;
use super::{Allocation, Members, Method, OptimiseError, PathTable};
use crate::number::positive;

/// A buffer with its best allocation.
#[derive(Debug, Clone, PartialEq)]
pub struct LeastBuffer {
    /// Size of the buffer, packets.
    pub packets: u32,
    /// The best limits within it.
    pub allocation: Allocation,
}

/// The smallest receive buffer with which the paths deliver at least `target_pps` packets/s in total, for
/// example 95 % of the sum of their rates.
///
/// # Errors
/// At least one path; a target above 0 that the largest useful windows reach.
pub fn least_buffer(
    tables: &[PathTable],
    target_pps: f64,
    members: Members,
) -> Result<LeastBuffer, OptimiseError> {
    // The name has no unit, because tables may use another one than packets/s.
    positive("target", target_pps)?;
    if tables.is_empty() {
        return Err(OptimiseError::NoPaths);
    }
    let most_pps = tables.iter().map(PathTable::most_pps).sum();
    if target_pps > most_pps {
        return Err(OptimiseError::OutOfReach { target_pps, most_pps });
    }
    let all: u64 = tables.iter().map(|table| u64::from(table.limit_packets())).sum();
    let all = u32::try_from(all).unwrap_or(u32::MAX);
    let layers = Layers::new(tables, all, members);
    // A larger buffer never delivers less, so bisection finds the smallest sufficient one.
    let (mut short, mut enough) = (0, all);
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        if layers.best_within(middle) >= target_pps { enough = middle } else { short = middle }
    }
    let allocation = Allocation::of(tables, layers.limits(enough), Method::Dynamic);
    Ok(LeastBuffer { packets: enough, allocation })
}
