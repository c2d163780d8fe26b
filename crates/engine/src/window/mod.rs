//! Between congestion control and scheduler: what of each window may really be used, given that all
//! paths share one receive buffer.
//!
//! The *guard* ([`Guard`]) is about who may use the shared buffer at this moment; a *manager*
//! ([`WindowManager`]) about how far congestion windows may grow. Either works without the other.

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

pub use adaptive::{Adaptive, Advice, MeasuredPath};
pub use guard::{Guard, SharedWindow, explained_queueing};
pub use manager::{Budget, LimitAdvisor, ManagedPath, WindowManager};
pub use penalty::Penalty;
