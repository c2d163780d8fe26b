//! The protocol between sender and receiver.
//!
//! Each end starts with a greeting of twelve bytes: a fixed word and the version. Frames follow. A frame has one byte
//! for its kind, three bytes for its length (little endian, as all numbers here), and its content.
//!
//! | frame | from | meaning |
//! | --- | --- | --- |
//! | `Entries`, `Listed` | sender | the entries, in ascending order of names; the end of the list |
//! | `Fresh`, `Made`, `Partial`, `Exists`, `Refused` | receiver | what exists of the next entries |
//! | `Begin`, data, `End` | sender | a file from an offset on, and the hash of the entire file |
//! | `Check` | sender | the hash of a file that exists at the receiver, for comparison |
//! | `Skip` | sender | a file is not sent, or not completely |
//! | `Done`, `Failed` | receiver | a file is complete, on disk and has its name; or why not |
//! | `Differs` | receiver | the compared file differs and may be replaced: send it |
//! | `EndOfTransfer`, `Finished` | both | no more entries follow; all are finished |
//! | `Alive`, `Error` | both | keep-alive; the transfer ends, with the reason |
//!
//! The receiver never discloses the hash, the size or the time of a complete file. The sender sends its own hash and
//! receives "same" or "different", under the rule in `docs/decisions/file-transfer.md`.

mod decode;
mod encode;

use bytes::Bytes;
use ropewalk_base::PeerText;

use super::names::{BadName, Name};

pub use self::decode::Decoder;
pub use self::encode::{encode, frame_header, greeting};

/// Version of the protocol.
pub const VERSION: u32 = 3;
/// The word that each end starts with.
const WORD: [u8; 8] = *b"ropefile";
/// Size of the greeting, bytes.
pub const GREETING: usize = WORD.len() + 4;
/// Size of a frame's header, bytes.
pub const HEADER: usize = 4;
/// Maximum amount of data in a frame, bytes.
pub const DATA_LIMIT: usize = 1 << 20;
/// Longest frame other than data, bytes.
pub const FRAME_LIMIT: usize = 64 << 10;
/// Longest text in a frame, bytes.
pub const TEXT_LIMIT: usize = 1000;
/// Largest file, bytes: the maximum of a file system's signed offsets.
pub const SIZE_LIMIT: u64 = i64::MAX as u64;

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// Kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file of this size, bytes.
    File(u64),
    /// A folder.
    Folder,
}

/// Time of a file's last modification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Additional nanoseconds, below 10⁹.
    pub nanoseconds: u32,
}

/// Bit in an entry's mode: the sender requests exactly these permissions. Without it, the receiver's umask decides.
pub const EXACT: u16 = 0o1000;

/// A file or folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// File or folder.
    pub kind: Kind,
    /// Permissions: the lower nine bits of Unix, and [`EXACT`] if the sender requests exactly these.
    pub mode: u16,
    /// Time of the last modification.
    pub modified: Stamp,
}

impl Entry {
    /// Size of its content, bytes.
    pub const fn size(&self) -> u64 {
        match self.kind {
            Kind::File(size) => size,
            Kind::Folder => 0,
        }
    }

    /// The permissions that the sender requests, if it does.
    pub const fn exact_mode(&self) -> Option<u32> {
        if self.mode & EXACT == 0 { None } else { Some((self.mode & 0o777) as u32) }
    }

    /// Whether its owner may execute it.
    pub const fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }
}

/// All frames except data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Entries of the list.
    Entries(Vec<Entry>),
    /// End of the list: number of entries, and their total size.
    Listed(u32, u64),
    /// The data of this entry follows, from this offset on.
    Begin(u32, u64),
    /// The file's data is complete; the hash of the entire file.
    End(Hash),
    /// The hash of this entry's file, for comparison with the existing one.
    Check(u32, Hash),
    /// The entry is not sent, or not completely.
    Skip(u32, PeerText),
    /// Nothing follows.
    EndOfTransfer,
    /// The receiver has none of the next entries, this many.
    Fresh(u32),
    /// The next entries, this many, need nothing.
    Made(u32),
    /// The first part of the next entry exists: its length and hash.
    Partial(u64, Hash),
    /// A file exists that may be identical to the next entry.
    Exists,
    /// The next entry cannot be accepted.
    Refused(PeerText),
    /// The entry is complete, on disk, and has its name.
    Done(u32),
    /// The entry could not be finished.
    Failed(u32, PeerText),
    /// The existing file differs from the checked one, and may be replaced.
    Differs(u32),
    /// All entries are finished: number of complete and of failed ones.
    Finished(u32, u32),
    /// Still alive; bytes that are in their place, and bytes of existing files that were read.
    Alive(u64, u64),
    /// The transfer ends, for this reason.
    Error(PeerText),
}

/// A decoded piece of a peer's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WireItem {
    /// The peer's greeting, with our version.
    Greeting,
    /// A frame.
    Frame(Frame),
    /// A part of a file's data.
    Data(Bytes),
}

/// Why the bytes of a peer are invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// The peer uses another protocol.
    #[error("the other side does not transfer files: is it `ropewalk send` or `recv`?")]
    OtherProtocol,
    /// The peer uses another version.
    #[error(
        "the other side speaks version {0} of the file transfer, this side version {VERSION}: \
         install a newer ropewalk {side}",
        side = if *.0 < VERSION { "there" } else { "here" }
    )]
    Version(u32),
    /// The kind of frame is unknown.
    #[error("the other side sent an unknown frame ({0})")]
    UnknownFrame(u8),
    /// A frame exceeds the limit; its kind and length.
    #[error("the other side sent a frame of {1} bytes (kind {0}): too long")]
    TooLong(u8, usize),
    /// The content of a frame does not fit its kind.
    #[error("the other side sent a malformed frame ({0})")]
    Malformed(u8),
    /// A name is not permitted.
    #[error("the other side sent a name that is refused: {0}")]
    Name(BadName),
}

/// The numbers of the frame kinds.
mod kind {
    pub const ENTRIES: u8 = 1;
    pub const LISTED: u8 = 2;
    pub const BEGIN: u8 = 3;
    pub const DATA: u8 = 4;
    pub const END: u8 = 5;
    pub const CHECK: u8 = 6;
    pub const SKIP: u8 = 7;
    pub const END_OF_TRANSFER: u8 = 8;
    pub const FRESH: u8 = 16;
    pub const MADE: u8 = 17;
    pub const PARTIAL: u8 = 18;
    pub const EXISTS: u8 = 19;
    pub const REFUSED: u8 = 20;
    pub const DONE: u8 = 21;
    pub const FAILED: u8 = 22;
    pub const FINISHED: u8 = 23;
    pub const DIFFERS: u8 = 24;
    pub const ALIVE: u8 = 32;
    pub const ERROR: u8 = 33;
}

/// Numbers of the entry kinds.
const FILE: u8 = 0;
const FOLDER: u8 = 1;

#[cfg(test)]
mod tests;
