//! Inputs of a hostile or broken peer, as bytes: no panic, no hang, bounded memory, a stated answer.
//!
//! The numbers above the tests are those of the list in `docs/data/conformance.csv`. Everything goes through
//! `wire::decode` first, as on a real path, and every answer through the codec and back.

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
