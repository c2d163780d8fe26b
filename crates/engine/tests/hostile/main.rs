//! Inputs of a hostile or broken peer, as bytes: no panic, no hang, bounded memory, a stated answer.
//!
//! The numbers above the tests are those of the list in `docs/conformance.md`. Everything goes through
//! `wire::decode` first, as on a real path, and every answer through the codec and back.

mod abort;
mod cookie;
mod data;
mod datagram;
#[path = "../pair/driver.rs"]
#[expect(dead_code, reason = "the pair tests use more of it")]
mod driver;
mod extensions;
mod floods;
mod heartbeat;
mod init;
mod kit;
#[path = "../random/ledger.rs"]
mod ledger;
mod multipath;
#[path = "../random/rules.rs"]
mod rules;
mod sack;
