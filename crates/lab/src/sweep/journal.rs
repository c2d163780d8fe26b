//! The journal of a sweep: the runs that the result file does not contain yet, one per line.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::SweepError;
use super::identity::Identity;
use super::row::RunRow;

const SCHEMA: &str = "ropewalk.sweep-journal/2";

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    schema: String,
    /// Identity of the sweep.
    pub identity: Identity,
    /// The shard, if the sweep has shards.
    pub shard: Option<String>,
    /// Number of figures of each run. The identity determines it.
    #[serde(skip)]
    figures: usize,
}

impl Header {
    pub(super) fn new(identity: Identity, shard: Option<String>, figures: usize) -> Self {
        Self { schema: SCHEMA.to_owned(), identity, shard, figures }
    }
}

/// Path of the journal of a result file.
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
    /// Length of all complete lines.
    good_bytes: u64,
}

impl Journal {
    /// Opens or creates the journal at `path` and reads its runs. With `fresh`, discards existing contents.
    ///
    /// # Errors
    /// If it belongs to another sweep, if another process writes it, or if it cannot be read or written.
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
                let message = format!("{}: another sweep is writing it", path.display());
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

    /// Reads the journal at `path` without changing it.
    ///
    /// # Errors
    /// As for [`Journal::open`].
    pub(super) fn peek(path: &Path, header: &Header) -> Result<Vec<RunRow>, SweepError> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(read(path, &bytes, header)?.rows),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(SweepError::file(path, error)),
        }
    }

    /// Appends a finished run. It survives a kill of the process after this returns.
    pub(super) fn add(&mut self, row: &RunRow) -> Result<(), SweepError> {
        let written = self.line(row);
        written.map_err(|error| SweepError::file(&self.path, error))
    }

    /// Removes the journal at `path`, after the result has been written.
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
            // Remove an incomplete line, for example after a full disk; report the first error.
            Err(_) => drop(self.cut()),
        }
        written
    }

    /// Removes the text after the last complete line.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.good_bytes)?;
        self.file.seek(SeekFrom::Start(self.good_bytes)).map(|_| ())
    }
}

/// The contents of a journal.
struct Contents {
    rows: Vec<RunRow>,
    good_bytes: u64,
}

fn read(path: &Path, bytes: &[u8], header: &Header) -> Result<Contents, SweepError> {
    // The text after the last line end is empty, or an incomplete line.
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
        if row.figures.len() != header.figures {
            return Err(damaged(path, number + 1, "it lacks the figures of this version"));
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
