//! Measures throughput, and latency under load, between two ends.
//!
//! The receiver measures, because only it knows what arrived. The client sends its plan on one stream. Bulk data uses
//! another stream, and small probes that are echoed immediately use a third. Bulk data is unordered unless the client
//! requests order, because the parts of a file may arrive in any order.

use std::time::Duration;

mod client;
pub mod estimate;
pub mod gzip;
pub mod links;
mod meter;
mod protocol;
pub mod recording;
mod server;

pub use client::{DeliveryDelay, MeasureError, Measurement, run};
pub use protocol::{Direction, Figures, MeasurementPlan};
pub use server::serve;

/// Stream of bulk data. Unordered messages on stream 0 have the shortest header between sealed ends.
const BULK: u16 = 0;
/// Stream of the plan and the results.
pub const CONTROL: u16 = 1;
/// Stream of latency probes.
const ECHO: u16 = 2;

/// Time beyond the planned duration that either end waits for the other.
const RESULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Messages queued at a time: enough to keep the driver busy, few enough to stop soon.
const BLOCK: usize = 64;
