//! Records of packets for other programs: pcapng captures for Wireshark, and qlog.
//!
//! The simulator and the runtime write the same formats from the same types. This crate takes packets and times,
//! and writes to any [`std::io::Write`]; it opens no files and reads no clock.

mod ip;
pub mod pcapng;
pub mod qlog;
pub mod tcp;

pub use ip::{Protocol, ip_header};

/// Direction of a packet, as seen by the end that records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received by this end.
    In,
    /// Sent by this end.
    Out,
}
