//! Tests of the tunnel's core.

mod properties;
mod queues;
