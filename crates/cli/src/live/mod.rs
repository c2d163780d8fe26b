//! What the commands share that talk to a peer: addresses, keys, and how associations behave.

mod addresses;
mod identity;
mod options;

pub use addresses::{listed, listen, locals, reachable, remotes};
pub use identity::identity;
pub use options::{ListenArgs, ReachArgs, TransportArgs, refused};
