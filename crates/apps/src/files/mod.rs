//! Files and folders over an association: verified with BLAKE3, resumed after a crash of either side.
//!
//! Frames ([`wire`]) form a stream of bytes, which is sent in numbered, unordered messages; message boundaries have
//! no meaning. The sender lists its entries. For each entry, in the same order and without waiting, the receiver
//! answers what it already has, and the sender sends what is missing. There is no round trip per file. Disk access
//! and hashing run in separate threads, so that the task of the association never waits for them.
//!
//! The receiver keeps unfinished files in a hidden folder of its directory. Nothing else has to survive a crash: both
//! ends hash the part that exists and continue after it if the hashes agree.

mod association_link;
mod error;
mod intervals;
mod link;
mod manifest;
mod names;
mod peer;
mod receiver;
mod reordering;
mod sender;
mod stream;
#[cfg(test)]
mod test_support;
mod watch;
pub mod wire;

#[cfg(test)]
mod tests;

pub use self::association_link::{FileConnector, FileLink, FileListener};
pub use self::error::TransferError;
pub use self::intervals::{Interval, Recorder, Stretch};
pub use self::link::{AssociationEnded, Figures, Link, PathFigures, Role};
pub use self::manifest::{Manifest, ManifestError};
pub use self::names::{BadName, Name, shown, shown_path};
pub use self::peer::Peer;
pub use self::receiver::{
    Accept, Admission, Admit, Inbox, Rules, Store, StoreError, Summary, receive,
};
pub use self::sender::{Dial, DialError, Job, SendError, send};
pub use self::watch::{Progress, TransferEvent, TransferStatus};
