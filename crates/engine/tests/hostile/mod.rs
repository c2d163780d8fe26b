//! Inputs of a hostile or broken peer, as bytes: no panic, no hang, bounded memory, a specified answer.
//!
//! The numbers above the tests are those of the list in `docs/data/conformance.csv`. All input passes
//! through `wire::decode` first, as on a real path, and every answer is encoded and decoded.

mod abort;
mod address_reconfiguration;
mod cookie;
mod data;
mod datagram;
mod extensions;
mod floods;
mod heartbeat;
mod init;
mod interleaving;
mod kit;
mod multipath;
mod nr_sack;
mod partial_reliability;
mod reconfiguration;
mod sack;
