//! The binary interface of Linux's SCTP sockets (`linux/sctp.h`): numbers, and structures as bytes. Programs built
//! for the kernel use it, as does `libsctp.so.1`, whose functions call `getsockopt` and `setsockopt`.

pub mod bytes;
pub mod control;
pub mod notification;
pub mod number;

pub use self::bytes::{Fields, Image};
