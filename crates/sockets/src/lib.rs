//! The sockets API of SCTP (RFC 6458) over Ropewalk: `libropewalk.so`.
//!
//! A program that speaks SCTP through the kernel's sockets runs over Ropewalk unchanged if this library is
//! preloaded (`ropewalk preload -- PROGRAM`) or linked before the C library. The library defines the calls of the C
//! library that concern sockets. Calls for other descriptors are passed to the C library unchanged.
//!
//! ```text
//!   program --- read, send, poll ... ---+
//!                                       |
//!   interpose   C functions, raw pointers, errno
//!   options     socket options: bytes of the kernel's structures
//!   socket      sockets of RFC 6458: associations, accept queues, notifications
//!   process     descriptor table, the thread that drives the associations, endpoints
//!   ropewalk_runtime::endpoint           associations over UDP (RFC 6951)
//! ```
//!
//! Unsafe code is confined to `interpose`, `inherited`, `pair`, `real`, `critical` and `errno`, and to the handlers
//! of forks and exits in `process`.

#![cfg(target_os = "linux")]
// Under Miri no function has the name that C programs call, and most of them are unused.
#![cfg_attr(miri, allow(dead_code))]

mod abi;
mod address;
mod critical;
mod errno;
mod inherited;
mod interpose;
mod options;
mod pair;
mod process;
mod real;
mod settings;
mod socket;
