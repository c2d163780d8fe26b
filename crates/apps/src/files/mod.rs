//! Files and folders over an association: verified with BLAKE3, resumed after a crash of either side.
//!
//! Frames ([`wire`]) travel as a stream of bytes, in numbered messages of which none waits for another in the
//! association; where they begin and end means nothing. The sender lists what it has, the receiver answers per entry what it has of it
//! already, in the same order and without waiting, and the sender sends what is missing. There is no
//! round trip per file. Disks and hashing have threads of their own, so that the task which talks to the
//! association never waits for either.
//!
//! What the receiver holds of an unfinished file lies in a hidden folder of its directory. Nothing else
//! has to survive a crash: both ends hash that beginning again and go on behind it if they agree.

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
