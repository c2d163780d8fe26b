//! Shared code of the commands that communicate with a peer: addresses, keys, and properties of
//! associations.

mod access;
pub mod addresses;
mod confine;
mod extensions;
mod identity;
mod interrupt;
mod limits;
mod log;
mod observe;
mod options;
mod peers;
mod reload;
mod shards;
mod silence;
mod stream;

pub use access::{Access, AccessArgs};
pub use addresses::{listed, listen, listening, locals, numeric, reachable, remotes as resolved};
pub use confine::{ConfineArgs, Files};
pub use extensions::ExtensionArgs;
pub use identity::{identity, private_directory};
pub use interrupt::{Interrupt, Threads, run_until_interrupted};
pub use limits::LimitArgs;
pub use log::{Log, LogArgs, LogControl, LogLevel};
pub use observe::{Notes, ObserveArgs, Outputs, Watched, running, start, watch};
pub use options::{ListenArgs, Listening, ReachArgs, TransportArgs, given, refused, remotes};
pub use peers::{PeerArg, peers_file};
pub use reload::{Announcer, Reload};
pub use ropewalk_apps::access::default_key;
pub use shards::ShardArgs;
pub use silence::{help_for_connect, help_for_silence, wrong_date};
pub use stream::Flow;
