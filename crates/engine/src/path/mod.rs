//! One path: its state, round trip, forward delay, delivery rate.

mod config;
mod estimates;
mod floor;
mod forward;
mod loss;
mod mtu;
mod pacer;
mod rate;
mod rtt;
mod state;

pub use config::PathConfig;
pub use estimates::{DelaySource, Estimates, clock_offset};
pub use floor::Floor;
pub use forward::ForwardDelay;
pub use loss::LossEstimate;
pub use mtu::{MtuRange, MtuSearch};
pub use pacer::{Pacer, Pacing, Shape};
pub use rate::{DeliveryRate, RateSnapshot};
pub use rtt::{RtoFormula, RtoLimits, RtoRule, RttEstimator};
pub use state::{FailureLimits, PathState, PathStatus};
