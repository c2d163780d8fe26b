//! The files to send and their state, over all associations.
//!
//! ```text
//!   Pending --all sent----> Sent ------Done-----> Done
//!      |  \--Check sent--> Checked --Done---/       |
//!      |                      |--Differs--> Pending |
//!      +------------------Failed <------------------+
//! ```
//!
//! A report of the receiver is accepted only if it can be true: a file that was never sent or compared
//! cannot be done.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;
use ropewalk_base::PeerText;

use crate::files::manifest::Manifest;
use crate::files::names::shown_path;
use crate::files::wire::{Entry, Kind};

const PENDING: u8 = 0;
const SENT: u8 = 1;
const CHECKED: u8 = 2;
const DONE: u8 = 3;
const FAILED: u8 = 4;

const UNKNOWN: u64 = u64::MAX;

/// Maximum number of failures that are stored with their names; all are counted.
const NAMED_FAILURES: usize = 10_000;

/// The files to send, with their state.
#[derive(Debug)]
pub struct Job {
    /// The list of entries.
    pub manifest: Manifest,
    states: Vec<AtomicU8>,
    /// Bytes of each file that were at the receiver before this job; [`UNKNOWN`] before its answer.
    existing: Vec<AtomicU64>,
    failures: Mutex<Failures>,
    hashed: Mutex<Option<Hashed>>,
}

#[derive(Debug, Default)]
struct Failures {
    count: u64,
    named: Vec<(PeerText, PeerText)>,
}

/// The last long beginning that was hashed. A sender that lost its place while hashing can continue without hashing
/// again.
#[derive(Debug)]
struct Hashed {
    index: u32,
    len: u64,
    hasher: blake3::Hasher,
}

impl Job {
    /// Creates a job without progress.
    pub fn new(manifest: Manifest) -> Self {
        let states = manifest.entries.iter().map(|_| AtomicU8::new(PENDING)).collect();
        let existing = manifest.entries.iter().map(|_| AtomicU64::new(UNKNOWN)).collect();
        let unreadable = manifest.unreadable.iter();
        let named: Vec<_> = unreadable
            .map(|(path, why)| (PeerText::new(shown_path(path)), PeerText::new(why.clone())))
            .collect();
        let failures = Mutex::new(Failures { count: named.len() as u64, named });
        Self { manifest, states, existing, failures, hashed: Mutex::default() }
    }

    /// The entries for a new association: files without a final state, and all folders. Files that were sent over the
    /// last association without an answer are pending again.
    pub fn rest(&self) -> Vec<u32> {
        for state in &self.states {
            for sent in [SENT, CHECKED] {
                let _ = state.compare_exchange(sent, PENDING, Ordering::SeqCst, Ordering::SeqCst);
            }
        }
        let concerns = |(index, entry): &(usize, &Entry)| {
            entry.kind == Kind::Folder || self.state(*index) == PENDING
        };
        let entries = self.manifest.entries.iter().enumerate();
        entries.filter(concerns).map(|(index, _)| index as u32).collect()
    }

    fn state(&self, index: usize) -> u8 {
        self.states[index].load(Ordering::SeqCst)
    }

    /// Records that the entire file was sent.
    pub fn sent(&self, index: u32) {
        self.change(index, &[PENDING], SENT);
    }

    /// Records that the hash of the file was sent.
    pub fn checked(&self, index: u32) {
        self.change(index, &[PENDING], CHECKED);
    }

    /// Records that the existing file differs, so this file must be sent. Returns false if it was not
    /// being compared.
    pub fn differs(&self, index: u32) -> bool {
        self.change(index, &[CHECKED], PENDING)
    }

    /// Records that the entry is complete at the receiver. Returns false if that is impossible.
    pub fn done(&self, index: u32) -> bool {
        self.change(index, &[SENT, CHECKED], DONE)
    }

    /// Whether its hash was sent and not answered yet.
    pub fn is_checked(&self, index: u32) -> bool {
        self.state(index as usize) == CHECKED
    }

    /// Whether the entry has failed.
    pub fn has_failed(&self, index: u32) -> bool {
        self.state(index as usize) == FAILED
    }

    /// Marks the entry as failed. Returns whether that is new.
    pub fn fail(&self, index: u32, why: &PeerText) -> bool {
        if !self.change(index, &[PENDING, SENT, CHECKED, DONE], FAILED) {
            return false;
        }
        let mut failures = self.failures.lock();
        failures.count += 1;
        if failures.named.len() < NAMED_FAILURES {
            let name = PeerText::new(self.manifest.entries[index as usize].name.to_string());
            failures.named.push((name, why.clone()));
        }
        true
    }

    fn change(&self, index: u32, from: &[u8], to: u8) -> bool {
        let state = &self.states[index as usize];
        from.iter().any(|from| {
            state.compare_exchange(*from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        })
    }

    /// Number of files that are complete at the receiver.
    pub fn files_done(&self) -> u64 {
        self.count(&[DONE], |_, _| 1)
    }

    /// Bytes of the files that are complete at the receiver.
    pub fn bytes_done(&self) -> u64 {
        self.count(&[DONE], |_, entry| entry.size())
    }

    /// Records that the receiver has this many bytes of a file. Later answers count only if they are lower, because
    /// they include data that this job has sent.
    pub fn found(&self, index: u32, bytes: u64) {
        self.existing[index as usize].fetch_min(bytes, Ordering::SeqCst);
    }

    /// Bytes that were at the receiver before this job.
    pub fn bytes_existing(&self) -> u64 {
        let known = |index: usize| match self.existing[index].load(Ordering::SeqCst) {
            UNKNOWN => 0,
            bytes => bytes,
        };
        self.count(&[PENDING, SENT, CHECKED, DONE], |index, _| known(index))
    }

    /// Number of files without a final state.
    pub fn files_pending(&self) -> u64 {
        self.count(&[PENDING, SENT, CHECKED], |_, _| 1)
    }

    fn count(&self, states: &[u8], worth: impl Fn(usize, &Entry) -> u64) -> u64 {
        let entries = self.manifest.entries.iter().enumerate();
        let of = |(index, entry): &(usize, &Entry)| {
            entry.kind != Kind::Folder && states.contains(&self.state(*index))
        };
        entries.filter(of).map(|(index, entry)| worth(index, entry)).sum()
    }

    /// Number of failed entries.
    pub fn failed(&self) -> u64 {
        self.failures.lock().count
    }

    /// Failed entries and the reasons: the first ten thousand.
    pub fn failures(&self) -> Vec<(PeerText, PeerText)> {
        self.failures.lock().named.clone()
    }

    /// Stores a hasher that has processed the first `len` bytes of a file.
    pub fn remember(&self, index: u32, len: u64, hasher: &blake3::Hasher) {
        let hasher = hasher.clone();
        *self.hashed.lock() = Some(Hashed { index, len, hasher });
    }

    /// The stored hasher, if it has processed the first `len` bytes of this file.
    pub fn recall(&self, index: u32, len: u64) -> Option<blake3::Hasher> {
        let hashed = self.hashed.lock();
        let fits = |hashed: &&Hashed| hashed.index == index && hashed.len == len;
        hashed.as_ref().filter(fits).map(|hashed| hashed.hasher.clone())
    }
}
