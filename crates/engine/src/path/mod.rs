//! One path: its state, round trip, forward delay and delivery rate. Also the detection of shared
//! bottlenecks.

mod bottleneck;
mod config;
mod drain_rate;
mod estimates;
mod forward;
mod loss;
mod min_delay;
mod mtu;
mod pacer;
mod rate;
mod rtt;
mod state;

pub use bottleneck::{SharedBottlenecks, Sharing};
pub use config::{PathConfig, PathUse};
pub use drain_rate::DrainRate;
pub use estimates::{DelaySource, Estimates, clock_offset};
pub use forward::ForwardDelay;
pub use loss::LossEstimate;
pub use min_delay::{MinDelayFilter, explained_queueing};
pub use mtu::{MtuRange, MtuSearch};
pub use pacer::{Pace, Pacer, Pacing, Shape};
pub use rate::{DeliveryRate, RateSnapshot};
pub use rtt::{RtoFormula, RtoLimits, RtoRule, RttEstimator};
pub use state::{FailureLimits, PathState, PathStatus};
