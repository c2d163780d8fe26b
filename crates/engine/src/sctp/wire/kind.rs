//! Chunk types (RFC 9260, 3.2; the IANA registry; those of this project).

pub const DATA: u8 = 0;
pub const INIT: u8 = 1;
pub const INIT_ACK: u8 = 2;
pub const SACK: u8 = 3;
pub const HEARTBEAT: u8 = 4;
pub const HEARTBEAT_ACK: u8 = 5;
pub const ABORT: u8 = 6;
pub const SHUTDOWN: u8 = 7;
pub const SHUTDOWN_ACK: u8 = 8;
pub const ERROR: u8 = 9;
pub const COOKIE_ECHO: u8 = 10;
pub const COOKIE_ACK: u8 = 11;
pub const ECNE: u8 = 12;
pub const CWR: u8 = 13;
pub const SHUTDOWN_COMPLETE: u8 = 14;
pub const AUTH: u8 = 0x0f;
pub const NR_SACK: u8 = 0x10;
pub const I_DATA: u8 = 0x40;
pub const ASCONF_ACK: u8 = 0x80;
pub const PACKET_DROP: u8 = 0x81;
pub const RE_CONFIG: u8 = 0x82;
pub const PAD: u8 = 0x84;
pub const FORWARD_TSN: u8 = 0xc0;
pub const ASCONF: u8 = 0xc1;
pub const I_FORWARD_TSN: u8 = 0xc2;
/// The sender's timestamp. Defined by this project, like the next four. RFC 9260, 3.2: receivers skip
/// unknown types with the highest bits 10 without a report.
pub const DELAY_STAMP: u8 = 0xb0;
/// Both timestamps.
pub const DELAY_ECHO: u8 = 0xb1;
/// A part of a DATA chunk.
pub const DATA_FRAGMENT: u8 = 0xb2;
/// Announces concurrent multipath transfer in the list of extensions; never sent as a chunk.
pub const CMT: u8 = 0xb3;
/// Number of bytes that arrived marked.
pub const MARK_COUNT: u8 = 0xb4;

/// A SACK that the sender of the data requested: it lists the gap ack blocks that changed recently.
pub const REQUESTED_SACK: u8 = 0xb5;

/// The T bit of ABORT and SHUTDOWN COMPLETE.
pub const REFLECTED: u8 = 1;

/// Whether a receiver that does not know the type continues with the next chunk (RFC 9260, 3.2). The same
/// bit of a parameter's type has the same meaning for parameters (3.2.1).
pub const fn goes_on(kind: u8) -> bool {
    kind & 0x80 != 0
}

/// Whether a receiver that does not know the type reports it.
pub const fn is_reported(kind: u8) -> bool {
    kind & 0x40 != 0
}
