//! Measures each link between two ends, in both directions, by probes next to an association.
//!
//! The client decides what is sent. Each train is a separate request with its number of probes, size and pace, so
//! that a server sends nothing after its client has gone. Both ends limit the bytes of a measurement, and the
//! memory for the other end's probes.

mod client;
mod document;
mod message;
mod pacer;
mod procedure;
mod result;
mod scenario;
mod server;

pub use client::{Client, TrainPlan};
pub use document::Document;
pub use message::{Message, Train};
pub use procedure::{LinkPlan, Step, measure};
pub use result::{DirectionEstimate, LinkEstimate, LinkMeasurement, SharingTest};
pub use scenario::{ScenarioFiles, names, scenario};
pub use server::serve;
