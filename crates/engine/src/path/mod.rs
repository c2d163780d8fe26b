//! One path: its state, round trip, forward delay, delivery rate.

mod floor;
mod forward;
mod rate;
mod rtt;
mod state;

pub use floor::Floor;
pub use forward::ForwardDelay;
pub use rate::{DeliveryRate, RateSnapshot};
pub use rtt::{RtoLimits, RttEstimator};
pub use state::{FailureLimits, PathState, PathStatus};
