//! Pairs of associations in virtual time, over paths that do what a script says.

mod addresses;
mod cmt;
mod cookies;
mod data;
mod driver;
mod ecn;
mod errors;
mod failover;
mod foreign;
mod handshake;
mod hostile;
#[path = "../random/ledger.rs"]
mod ledger;
mod listener;
mod live;
mod loss;
mod mitigation;
mod mtu;
mod primitives;
mod profiles;
mod rack;
mod reassembly;
mod recovery;
mod restart;
#[path = "../random/rules.rs"]
mod rules;
mod sack;
mod shutdown;
mod standard;
mod undelivered;
mod window;
mod windows;
