//! Window limits for each path: static congestion window management (Wallace and Shami 2014, Section 5.2).
//!
//! Maximises the sum of the paths' throughputs, eta_i(c_i). The limits c_i are whole packets, and their sum
//! must not exceed the receive buffer of r packets (Eq 56 to 60). Throughputs are given as tables from any
//! source, with one entry for each limit ([`PathTable`]).
//!
//! The sum is separable, so no integer program is needed. [`allocate`] uses [dynamic programming](dynamic), one
//! path after the other, which is exact for any table. If all tables are concave it uses [greedy] allocation,
//! which is then exact too.

pub mod brute_force;
pub mod buffer;
pub mod dynamic;
pub mod greedy;
pub mod heuristic;
mod table;

pub use brute_force::{BruteForce, brute_force};
pub use buffer::{LeastBuffer, least_buffer};
pub use heuristic::heuristic;
pub use table::PathTable;

use crate::number::OutOfRange;

/// Whether every path has to take part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Members {
    /// Each path has a limit of 1 packet or more (Eq 58).
    #[default]
    All,
    /// A limit may be 0: paths that do not pay off with this buffer are left out.
    Paying,
}

impl Members {
    /// The minimum limit of a path, packets.
    pub const fn least(self) -> u32 {
        match self {
            Self::All => 1,
            Self::Paying => 0,
        }
    }
}

/// Method that found an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Greedy allocation: all tables were concave.
    Greedy,
    /// Dynamic programming.
    Dynamic,
}

/// Limits for the paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// The limit of each path's window, packets; 0 leaves the path out.
    pub limits_packets: Vec<u32>,
    /// Predicted throughput of all paths together, packets/s.
    pub throughput_pps: f64,
    /// Method that found it.
    pub method: Method,
}

impl Allocation {
    /// The allocation of these limits.
    pub(crate) fn of(tables: &[PathTable], limits_packets: Vec<u32>, method: Method) -> Self {
        let throughput_pps = total_pps(tables, &limits_packets);
        Self { limits_packets, throughput_pps, method }
    }
}

/// Predicted throughput for these limits, packets/s.
pub(crate) fn total_pps(tables: &[PathTable], limits: &[u32]) -> f64 {
    tables.iter().zip(limits).map(|(table, limit)| table.throughput_pps(*limit)).sum()
}

/// Why there is no allocation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OptimiseError {
    /// A number is out of range.
    #[error(transparent)]
    Number(#[from] OutOfRange),
    /// There is no path.
    #[error("0 path(s) given, there must be at least 1")]
    NoPaths,
    /// The buffer is too small for one step of each path.
    #[error(
        "a receive buffer of {packets} packet(s) is too small: all paths together need {needed}; \
         enlarge it, or let paths be left out"
    )]
    BufferTooSmall {
        /// Packets that fit into the buffer.
        packets: u32,
        /// Packets that the paths require.
        needed: u64,
    },
    /// No buffer reaches the required throughput.
    #[error(
        "a throughput of {target_pps} is out of reach: with the largest windows that are of use the \
         paths deliver {most_pps}"
    )]
    OutOfReach {
        /// Required throughput, packets/s.
        target_pps: f64,
        /// Highest possible throughput, packets/s.
        most_pps: f64,
    },
}

/// The best limits for a receive buffer of `packets` packets, by the cheapest exact method.
///
/// # Errors
/// If there is no path, or if the buffer is smaller than the sum of the minimum limits.
pub fn allocate(
    tables: &[PathTable],
    packets: u32,
    members: Members,
) -> Result<Allocation, OptimiseError> {
    check(tables, packets, members.least())?;
    if tables.iter().all(|table| table.is_concave(members)) {
        return Ok(greedy::limits(tables, packets, members));
    }
    Ok(dynamic::limits(tables, packets, members))
}

/// Checks that `step` packets for each path fit into the buffer.
fn check(tables: &[PathTable], packets: u32, step: u32) -> Result<(), OptimiseError> {
    if tables.is_empty() {
        return Err(OptimiseError::NoPaths);
    }
    let needed = tables.len() as u64 * u64::from(step);
    if needed > u64::from(packets) {
        return Err(OptimiseError::BufferTooSmall { packets, needed });
    }
    Ok(())
}
