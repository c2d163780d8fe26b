//! The engine on real sockets: clock, sockets, sealing, and the emulator of links.
//!
//! The only room that reads a clock or opens a socket. What it hands to the engine is what the
//! simulator hands to it: the time, a path and typed packets.

pub mod capture;
pub mod clock;
#[cfg(target_os = "linux")]
pub mod emulate;
pub mod endpoint;
pub mod interfaces;
pub mod seal;
