//! The paper's heuristic: limits that are multiples of k packets (Eq 61).

use super::{Allocation, Members, OptimiseError, PathTable, check, dynamic};
use crate::number::OutOfRange;

/// The best limits among the multiples of `multiple` packets, at least one multiple for each path.
///
/// Dynamic programming over the multiples finds the result of the paper's exhaustive search
/// ([`super::brute_force()`]) faster.
///
/// # Errors
/// `multiple` must be 1 or more and within the largest limit of each path (`k <= a`); one multiple
/// for each path must fit into the buffer.
pub fn heuristic(
    tables: &[PathTable],
    packets: u32,
    multiple: u32,
) -> Result<Allocation, OptimiseError> {
    check(tables, packets, multiple)?;
    let limits = tables.iter().map(PathTable::limit_packets);
    if !(1..=limits.min().unwrap_or(0)).contains(&multiple) {
        let valid = "1 or more, and no more than the largest limit of any path";
        let (name, value) = ("multiple_packets", f64::from(multiple));
        return Err(OutOfRange { name, value, valid }.into());
    }
    let coarse: Vec<_> = tables.iter().map(|table| table.coarse(multiple)).collect();
    let found = dynamic::limits(&coarse, packets / multiple, Members::All);
    let limits = found.limits_packets.iter().map(|limit| limit * multiple).collect();
    Ok(Allocation::of(tables, limits, found.method))
}
