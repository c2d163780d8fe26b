//! Between congestion control and scheduler: what of each window may really be used, given that all
//! paths share one receive buffer.
//!
//! The *guard* ([`Guard`]) is about who may use the shared buffer at this moment; a *manager*
//! ([`WindowManager`]) about how far congestion windows may grow. Either works without the other.

mod adaptive;
mod ceiling;
mod dynamic;
mod fixed;
mod guard;
mod losses;
mod manager;
#[cfg(test)]
mod model;
mod penalty;
#[cfg(test)]
mod promises;
mod room;
mod share;
mod trial;

pub use adaptive::{Adaptive, Advice, MeasuredPath};
pub use guard::{Guard, SharedWindow, explained_queueing};
pub use manager::{Budget, LimitAdvisor, ManagedPath, WindowManager};
pub use penalty::Penalty;
