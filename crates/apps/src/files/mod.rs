//! Files and folders over an association: verified with BLAKE3, resumed after a crash of either side.
//!
//! Frames ([`wire`]) form a stream of bytes, which is sent in numbered, unordered messages; message boundaries have
//! no meaning. The sender lists its entries. For each entry, in the same order and without waiting, the receiver
//! answers what it already has, and the sender sends what is missing. There is no round trip per file. Disk access
//! and hashing run in separate threads, so that the task of the association never waits for them.
//!
//! The receiver keeps unfinished files in a hidden folder of its directory. Nothing else has to survive a crash: both
//! ends hash the part that exists and continue after it if the hashes agree.

mod broken;
mod intervals;
#[cfg(test)]
mod kit;
mod link;
mod manifest;
mod names;
mod order;
mod over;
mod peer;
mod receiver;
mod sender;
mod stream;
mod watch;
pub mod wire;

#[cfg(test)]
mod tests;

pub use self::broken::Broken;
pub use self::intervals::{Interval, Recorder, Stretch};
pub use self::link::{Figures, Gone, Link, PathFigures};
pub use self::manifest::{Manifest, ManifestError};
pub use self::names::{BadName, Name, shown, shown_path};
pub use self::over::{FileLink, Gate, Reach};
pub use self::peer::Peer;
pub use self::receiver::{
    Accept, Admission, Admit, Inbox, Rules, Store, StoreError, Summary, receive,
};
pub use self::sender::{Dial, DialError, Job, SendError, send};
pub use self::watch::{News, Progress, Watch};
