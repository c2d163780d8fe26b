//! The engine on real sockets: clock, sockets, sealing, and the link emulator.
//!
//! Only this crate reads a clock or opens a socket. It gives the engine the same inputs as the simulator: the
//! time, a path and typed packets.

pub mod capture;
pub mod clock;
#[cfg(target_os = "linux")]
pub mod emulate;
pub mod endpoint;
pub mod interfaces;
#[cfg(target_os = "linux")]
pub mod kernel;
pub mod seal;
#[cfg(target_os = "linux")]
pub mod system;
