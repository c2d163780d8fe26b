//! Window management, between congestion control and scheduler: limits the used part of each congestion
//! window, because all paths share one receive buffer.

mod adaptive;
mod dynamic;
mod fixed;
mod growth_headroom;
mod losses;
mod manager;
mod max_rate;
mod penalty;
mod splitting;

pub use adaptive::{Adaptive, Advice, MeasuredPath};
pub use dynamic::Dynamic;
pub use fixed::Static;
pub use manager::{Budget, LimitAdvisor, ManageWindows, ManagedPath, WindowManager};
pub use penalty::Penalty;
pub use splitting::{Splitting, SplittingOutstanding};
