//! What the commands share that talk to a peer: addresses, keys, and how associations behave.

mod addresses;
mod identity;
mod options;

pub use addresses::{listed, reachable};
pub use options::{ListenArgs, ReachArgs, TransportArgs};
