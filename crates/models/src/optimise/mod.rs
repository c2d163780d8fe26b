//! Which window limit each path should have: static congestion window management (Wallace and
//! Shami 2014, Section 5.2).
//!
//! Maximise the sum of the paths' throughputs, eta_i(c_i), with limits c_i of whole packets, the sum of
//! which must not exceed the receive buffer of r packets (Eq 56 to 60). Throughputs come as
//! tables, one entry for each limit ([`PathTable`]); where they come from is no matter here.
//!
//! The sum is separable, so that no integer program is needed: [`allocate`] adds one path after the
//! other by [dynamic programming](dynamic), which is exact for any table, or takes the
//! steepest step again and again ([greedy]) where all tables are concave, for which that is exact too.

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

use core::fmt;

use crate::number::OutOfRange;

/// Whether every path has to take part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Members {
    /// Each path has a limit of 1 packet or more (Eq 58).
    #[default]
    All,
    /// A limit may be 0: paths that do not pay off at this buffer are left out.
    Paying,
}

impl Members {
    /// The least limit of a path, packets.
    pub const fn least(self) -> u32 {
        match self {
            Self::All => 1,
            Self::Paying => 0,
        }
    }
}

/// How an allocation was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Steepest step first: all tables were concave.
    Greedy,
    /// Dynamic programming.
    Dynamic,
}

/// Limits for the paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// The limit of each path's window, packets; 0 leaves the path out.
    pub limits_packets: Vec<u32>,
    /// What the models promise for all paths together, packets/s.
    pub throughput_pps: f64,
    /// How it was found.
    pub method: Method,
}

impl Allocation {
    /// The allocation of these limits.
    pub(crate) fn of(tables: &[PathTable], limits_packets: Vec<u32>, method: Method) -> Self {
        let throughput_pps = total_pps(tables, &limits_packets);
        Self { limits_packets, throughput_pps, method }
    }
}

/// What the tables promise for these limits, packets/s.
pub(crate) fn total_pps(tables: &[PathTable], limits: &[u32]) -> f64 {
    tables.iter().zip(limits).map(|(table, limit)| table.throughput_pps(*limit)).sum()
}

/// Why there is no allocation.
#[derive(Debug, Clone, PartialEq)]
pub enum OptimiseError {
    /// A number makes no sense.
    Number(OutOfRange),
    /// There is no path.
    NoPaths,
    /// The buffer has no room for a step of each path.
    BufferTooSmall {
        /// Packets that fit into the buffer.
        packets: u32,
        /// Packets that the paths need at least.
        needed: u64,
    },
    /// No buffer reaches the throughput that is asked for.
    OutOfReach {
        /// What is asked for, packets/s.
        target_pps: f64,
        /// The most that there is, packets/s.
        most_pps: f64,
    },
}

impl fmt::Display for OptimiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(error) => error.fmt(f),
            Self::NoPaths => write!(f, "0 path(s) given, there must be at least 1"),
            Self::BufferTooSmall { packets, needed } => write!(
                f,
                "a receive buffer of {packets} packet(s) is too small: all paths together need \
                 {needed}; enlarge it, or let paths be left out"
            ),
            // No unit: tables may be in another one than packets/s, as long as all are.
            Self::OutOfReach { target_pps, most_pps } => write!(
                f,
                "a throughput of {target_pps} is out of reach: with the largest windows that are of \
                 use the paths deliver {most_pps}"
            ),
        }
    }
}

impl core::error::Error for OptimiseError {}

impl From<OutOfRange> for OptimiseError {
    fn from(error: OutOfRange) -> Self {
        Self::Number(error)
    }
}

/// The best limits for a receive buffer of `packets` packets: exact, by the cheapest method that is.
///
/// # Errors
/// At least one path, and room for the least limit of each.
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

/// An error unless `step` packets for each path fit into the buffer.
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
