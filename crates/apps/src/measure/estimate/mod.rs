//! Estimates of a link's properties from probes: pure functions of when each probe was sent and arrived.
//!
//! The clocks of both ends differ by an unknown offset. One-way delays are therefore compared with each other only,
//! or added to those of the other direction, where the offset cancels.

pub mod capacity;
pub mod delay;
pub mod loss;
pub mod queue;
pub mod shared;
mod statistics;

pub use capacity::Capacity;
pub use delay::{Delays, JitterFit};
pub use loss::{LossFit, LossModel};
pub use queue::Queue;
pub use shared::Sharing;
pub use statistics::quantile;

/// One probe. Probes are in sending order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// When it was sent, seconds of the sender's clock.
    pub sent_s: f64,
    /// When it arrived, seconds of the receiver's clock. `None` if it was lost.
    pub arrived_s: Option<f64>,
    /// Size of its IP packet, bytes.
    pub bytes: u32,
}

impl Probe {
    /// One-way delay plus the offset between the clocks, seconds. `None` if the probe was lost.
    pub fn delay_s(&self) -> Option<f64> {
        Some(self.arrived_s? - self.sent_s)
    }
}
