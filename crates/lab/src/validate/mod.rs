//! Comparison of simulated transports with those of the Linux kernel: quantities and verdicts.

mod cell;
mod kernel;
mod observed;
mod recorded;

pub use cell::{
    Both, Cell, ComparedPath, Judged, LIMITS, Limits, Ranges, Summary, Verdict, summary,
};
pub use kernel::{Flow, KernelTransport, kernel_congestion};
pub use observed::{Observed, PathObserved, Trace, TracePath, TraceWindow, median, simulate};
pub use recorded::{Changes, Recorded, RecordedCell, SCHEMA};
