//! What sender and receiver say to each other.
//!
//! Each end begins with a greeting of twelve bytes: a word and the version. Frames follow: one byte
//! says what it is, three bytes how long it is (little endian, as all numbers here), then its content.
//!
//! | frame | from | says |
//! | --- | --- | --- |
//! | `Entries`, `Listed` | sender | what there is, in ascending order of names, and that this was all |
//! | `Fresh`, `Made`, `Partial`, `Exists`, `Refused` | receiver | what it has of the next entries |
//! | `Begin`, data, `End` | sender | a file from an offset on, and the hash of the whole file |
//! | `Check` | sender | the hash of a file that exists at the receiver, which compares |
//! | `Skip` | sender | a file does not come, or not to its end |
//! | `Done`, `Failed` | receiver | a file is whole, on disk and has its name; or why not |
//! | `Differs` | receiver | what was checked differs, and may be replaced: send it |
//! | `Over`, `Finished` | both | nothing follows; all is done |
//! | `Alive`, `Trouble` | both | still there; the end, and why |
//!
//! The receiver never tells the hash, the size or the time of a complete file: the sender tells its own hash and
//! hears "same" or "different", under the rule in `docs/decisions/file-transfer.md`.

mod decode;
mod encode;

use std::fmt;

use bytes::Bytes;
use ropewalk_base::PeerText;

use super::names::{BadName, Name};

pub use self::decode::Decoder;
pub use self::encode::{encode, frame_header, greeting};

/// The version of all of this.
pub const VERSION: u32 = 3;
/// The word that each end begins with.
const WORD: [u8; 8] = *b"ropefile";
/// Bytes of the greeting.
pub const GREETING: usize = WORD.len() + 4;
/// Bytes in front of a frame.
pub const HEADER: usize = 4;
/// Most data in a frame, bytes.
pub const DATA_LIMIT: usize = 1 << 20;
/// Longest frame but those of data, bytes.
pub const FRAME_LIMIT: usize = 64 << 10;
/// Longest text in a frame, bytes.
pub const TEXT_LIMIT: usize = 1000;
/// Largest file, bytes: what a file system's signed offsets can say.
pub const SIZE_LIMIT: u64 = i64::MAX as u64;

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file of so many bytes.
    File(u64),
    /// A folder.
    Folder,
}

/// When a file was modified last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds besides, below 10⁹.
    pub nanoseconds: u32,
}

/// In an entry's mode: the sender asks for exactly these permissions. Without it, the receiver's umask decides.
pub const EXACT: u16 = 0o1000;

/// A file or folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where.
    pub name: Name,
    /// What.
    pub kind: Kind,
    /// Permissions, the lower nine bits of Unix, and [`EXACT`] if the sender asks for exactly these.
    pub mode: u16,
    /// Last modification.
    pub modified: Stamp,
}

impl Entry {
    /// Bytes of its content.
    pub const fn size(&self) -> u64 {
        match self.kind {
            Kind::File(size) => size,
            Kind::Folder => 0,
        }
    }

    /// The permissions that the sender asks for, if it asks.
    pub const fn exact_mode(&self) -> Option<u32> {
        if self.mode & EXACT == 0 { None } else { Some((self.mode & 0o777) as u32) }
    }

    /// Whether its owner may execute it.
    pub const fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }
}

/// Everything but data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// What there is.
    Entries(Vec<Entry>),
    /// That was all: so many entries, so many bytes.
    Listed(u32, u64),
    /// The data of this entry follow, from this offset on.
    Begin(u32, u64),
    /// The file's data are complete; the hash of the whole file.
    End(Hash),
    /// The hash of this entry's file, to be compared with what exists.
    Check(u32, Hash),
    /// The entry does not come, or not to its end.
    Skip(u32, PeerText),
    /// Nothing follows.
    Over,
    /// Nothing is there of the next so many entries.
    Fresh(u32),
    /// The next so many entries need nothing.
    Made(u32),
    /// The first so many bytes of the next entry are there, with this hash.
    Partial(u64, Hash),
    /// A file is there that may be the same as the next entry.
    Exists,
    /// The next entry cannot be taken.
    Refused(PeerText),
    /// The entry is whole, on disk, and has its name.
    Done(u32),
    /// The entry could not be finished.
    Failed(u32, PeerText),
    /// What exists differs from the file that was checked, and may be replaced.
    Differs(u32),
    /// Everything is done: so many entries whole, so many not.
    Finished(u32, u32),
    /// Still there; so many bytes are in their place, and so many bytes of existing files were read.
    Alive(u64, u64),
    /// The end, and why.
    Trouble(PeerText),
}

/// What comes out of the bytes of a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// The peer has greeted, with our version.
    Greeted,
    /// A frame.
    Frame(Frame),
    /// Some of the data of a file.
    Data(Bytes),
}

/// Why the bytes of a peer make no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// It speaks of something else.
    OtherProtocol,
    /// It speaks another version.
    Version(u32),
    /// No such kind of frame.
    UnknownFrame(u8),
    /// A frame longer than any may be.
    TooLong(u8, usize),
    /// A frame whose content does not fit its kind.
    Malformed(u8),
    /// A name that nobody may send.
    Name(BadName),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherProtocol => f.write_str(
                "the other side does not transfer files: is it `ropewalk send` or `recv`?",
            ),
            Self::Version(theirs) => {
                let older = if *theirs < VERSION { "there" } else { "here" };
                write!(
                    f,
                    "the other side speaks version {theirs} of the file transfer, this side version \
                     {VERSION}: install a newer ropewalk {older}"
                )
            }
            Self::UnknownFrame(kind) => write!(f, "the other side sent an unknown frame ({kind})"),
            Self::TooLong(kind, len) => {
                write!(f, "the other side sent a frame of {len} bytes (kind {kind}): too long")
            }
            Self::Malformed(kind) => write!(f, "the other side sent a malformed frame ({kind})"),
            Self::Name(why) => write!(f, "the other side sent a name that is refused: {why}"),
        }
    }
}

impl std::error::Error for WireError {}

/// The numbers of the frames.
mod kind {
    pub const ENTRIES: u8 = 1;
    pub const LISTED: u8 = 2;
    pub const BEGIN: u8 = 3;
    pub const DATA: u8 = 4;
    pub const END: u8 = 5;
    pub const CHECK: u8 = 6;
    pub const SKIP: u8 = 7;
    pub const OVER: u8 = 8;
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
    pub const TROUBLE: u8 = 33;
}

/// Entries are files or folders.
const FILE: u8 = 0;
const FOLDER: u8 = 1;

#[cfg(test)]
mod tests;
