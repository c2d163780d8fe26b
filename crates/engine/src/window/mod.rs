//! Window management, between congestion control and scheduler: limits how much of each congestion window is
//! used, because all paths share one receive buffer.
//!
//! The *guard* ([`Guard`]) decides which path may use the shared buffer at this moment. A *manager*
//! ([`WindowManager`]) decides how far congestion windows may grow. Either works without the other.

mod adaptive;
mod dynamic;
mod fixed;
mod growth_headroom;
mod guard;
mod losses;
mod manager;
mod max_rate;
#[cfg(test)]
mod model;
mod penalty;
#[cfg(test)]
mod promises;
mod share;
mod single_path_probe;
mod splitting;

pub use adaptive::{Adaptive, Advice, MeasuredPath};
pub use dynamic::Dynamic;
pub use fixed::Static;
pub use guard::{Guard, SharedWindow, explained_queueing};
pub use manager::{Budget, LimitAdvisor, ManageWindows, ManagedPath, WindowManager};
pub use penalty::Penalty;
pub use splitting::{Splitting, SplittingOutstanding};
