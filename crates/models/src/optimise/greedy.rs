//! Exact allocation for concave tables: always the step with the largest gain.
//!
//! If no step of a table gains more than the one before it, the best r steps can be taken in the order of their
//! gains (Fox 1966).

use super::{Allocation, Members, Method, PathTable};

/// The best allocation if all tables are concave; the caller has checked that one exists.
pub fn limits(tables: &[PathTable], packets: u32, members: Members) -> Allocation {
    let mut limits = vec![members.least(); tables.len()];
    let taken = members.least() * tables.len() as u32;
    for _ in taken..packets {
        let steps = tables.iter().zip(&limits).enumerate();
        let gains = steps.filter_map(|(path, (table, &limit))| {
            let next = (limit < table.limit_packets()).then(|| table.throughput_pps(limit + 1))?;
            Some((path, next - table.throughput_pps(limit)))
        });
        // Among equal gains the first, so that only the order of the paths decides.
        let best = gains.reduce(|best, next| if next.1 > best.1 { next } else { best });
        match best {
            Some((path, gain)) if gain > 0.0 => limits[path] += 1,
            _ => break,
        }
    }
    Allocation::of(tables, limits, Method::Greedy)
}
