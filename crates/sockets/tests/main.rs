//! Tests with real programs, in one test program: each test program links all of the crate.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    reason = "these tests wait for other processes, which need real time"
)]

mod calls;
mod devices;
mod endings;
mod following;
mod freediameter;
mod header;
mod iperf3;
mod peers;
mod routes;
mod signalling;
mod support;
mod tools;
