//! What the commands share that talk to a peer: addresses, keys, and how associations behave.

mod access;
mod addresses;
mod identity;
mod options;

pub use access::AccessArgs;
pub use addresses::{listed, listen, locals, reachable, remotes};
pub use identity::identity;
pub use options::{ListenArgs, Listening, ReachArgs, TransportArgs, refused};
