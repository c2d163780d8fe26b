//! The journal of a sweep: runs that the result does not have yet, one line each.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::SweepError;
use super::identity::Identity;
use super::row::{FIGURES, RunRow};

const SCHEMA: &str = "ropewalk.sweep-journal/2";

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    schema: String,
    /// Which sweep.
    pub identity: Identity,
    /// Which part of it.
    pub shard: Option<String>,
}

impl Header {
    pub(super) fn new(identity: Identity, shard: Option<String>) -> Self {
        Self { schema: SCHEMA.to_owned(), identity, shard }
    }
}

/// Where the journal of a result is kept.
pub fn journal_of(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".journal");
    PathBuf::from(name)
}

/// An open journal, locked against other processes until it is dropped.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Length of its whole lines.
    good_bytes: u64,
}

impl Journal {
    /// Opens the journal at `path`, or begins one, and reads its runs. With `fresh` what
    /// is there is thrown away.
    ///
    /// # Errors
    /// It belongs to another sweep, another process writes it, or it cannot be read or written.
    pub(super) fn open(
        path: &Path,
        header: &Header,
        fresh: bool,
    ) -> Result<(Self, Vec<RunRow>), SweepError> {
        let failed = |error: io::Error| SweepError::file(path, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("{}: a sweep is writing it just now", path.display());
                return Err(SweepError::input(message, "wait for it, or give another --out"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut bytes = Vec::new();
        if !fresh {
            file.read_to_end(&mut bytes).map_err(failed)?;
        }
        let read = read(path, &bytes, header)?;
        let mut journal = Self { path: path.to_owned(), file, good_bytes: read.good_bytes };
        journal.cut().map_err(failed)?;
        if read.good_bytes == 0 {
            journal.line(header).map_err(failed)?;
        }
        Ok((journal, read.rows))
    }

    /// What the journal at `path` has, without touching it.
    ///
    /// # Errors
    /// As in [`Journal::open`].
    pub(super) fn peek(path: &Path, header: &Header) -> Result<Vec<RunRow>, SweepError> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(read(path, &bytes, header)?.rows),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(SweepError::file(path, error)),
        }
    }

    /// Writes down a run that is over. When this returns, a kill no longer loses it.
    pub(super) fn add(&mut self, row: &RunRow) -> Result<(), SweepError> {
        let written = self.line(row);
        written.map_err(|error| SweepError::file(&self.path, error))
    }

    /// Removes the journal at `path`, when the result is in its place.
    pub(super) fn remove(path: &Path) -> Result<(), SweepError> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SweepError::file(path, error))
            }
            _ => Ok(()),
        }
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        let written = self.file.write_all(&line);
        match written {
            Ok(()) => self.good_bytes += line.len() as u64,
            // Half a line, as on a full disk; the first error is the one that matters.
            Err(_) => drop(self.cut()),
        }
        written
    }

    /// Takes away what is behind the last whole line.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.good_bytes)?;
        self.file.seek(SeekFrom::Start(self.good_bytes)).map(|_| ())
    }
}

/// What a journal has.
struct Contents {
    rows: Vec<RunRow>,
    good_bytes: u64,
}

fn read(path: &Path, bytes: &[u8], header: &Header) -> Result<Contents, SweepError> {
    // The piece behind the last line end is empty, or a line that was cut short.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n').enumerate();
    let mut rows = Vec::new();
    if let Some((_, first)) = lines.next() {
        let found: Header =
            serde_json::from_slice(first).map_err(|error| damaged(path, 1, &error.to_string()))?;
        check(path, &found, header)?;
    }
    for (number, line) in lines {
        let row: RunRow = serde_json::from_slice(line)
            .map_err(|error| damaged(path, number + 1, &error.to_string()))?;
        if row.figures.len() != FIGURES.len() {
            return Err(damaged(path, number + 1, "it has not the figures of this version"));
        }
        rows.push(row);
    }
    Ok(Contents { rows, good_bytes: whole as u64 })
}

fn check(path: &Path, found: &Header, header: &Header) -> Result<(), SweepError> {
    if found.schema != SCHEMA {
        let message = format!("{} is a `{}`, not a `{SCHEMA}`", path.display(), found.schema);
        let help = "finish it with the version that began it, or start again with --fresh";
        return Err(SweepError::input(message, help));
    }
    let difference = if found.identity != header.identity {
        header.identity.difference(&found.identity)
    } else if found.shard != header.shard {
        let name = |shard: &Option<String>| shard.clone().unwrap_or_else(|| "all points".into());
        format!("it is of {}, this is {}", name(&found.shard), name(&header.shard))
    } else {
        return Ok(());
    };
    let message = format!("{} belongs to another sweep: {difference}", path.display());
    Err(SweepError::input(message, "give another --out, or --fresh to throw that work away"))
}

fn damaged(path: &Path, line: usize, reason: &str) -> SweepError {
    let message = format!("{}, line {line}, is damaged: {reason}", path.display());
    SweepError::input(message, "remove that line to lose only its run, or begin with --fresh")
}
