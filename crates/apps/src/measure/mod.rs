//! Throughput, and latency under load, between two ends.
//!
//! The receiver measures: only it knows what arrived. The client says what it wants on one stream,
//! bulk travels on another, and small questions that are echoed at once on a third. Bulk has no order
//! unless the client asks for one: a file's pieces may arrive as they like.

use std::time::Duration;

mod client;
mod meter;
mod server;
mod words;

pub use client::{Failed, Measured, run};
pub use server::serve;
pub use words::{Direction, Figures, Plan};

/// Streams: what is wanted and what was found, bulk, and questions.
const CONTROL: u16 = 0;
const BULK: u16 = 1;
const ECHO: u16 = 2;

/// Beyond the time that was planned, neither end waits longer for the other.
const OVERTIME: Duration = Duration::from_secs(30);

/// Messages handed over at once: enough to keep the driver busy, few enough to stop soon.
const BLOCK: usize = 64;
