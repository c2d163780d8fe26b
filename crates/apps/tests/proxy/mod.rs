//! The proxy, with real TCP connections on both sides: over a pair of queues, and over sealed
//! associations.

mod breaks;
mod hostile;
#[cfg(target_os = "linux")]
mod kernel_buffers;
mod live;
mod programs;
mod quotas;
mod testbed;
