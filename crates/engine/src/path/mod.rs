//! One path: its state, round trip, forward delay, delivery rate.

mod forward;
mod rate;
mod rtt;
mod state;

pub use forward::ForwardDelay;
pub use rate::{DeliveryRate, RateSnapshot};
pub use rtt::{RtoLimits, RttEstimator};
pub use state::{FailureLimits, PathState, PathStatus};
