//! What has become of the entries of one association, counted by several threads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::files::names::Name;
use crate::files::watch::{News, Watch};
use crate::files::wire::Entry;

/// Most failures that are remembered by name.
const NAMED: usize = 10_000;

/// The counts.
#[derive(Debug)]
pub struct Tally {
    watch: Arc<Watch>,
    done: AtomicU32,
    failed: AtomicU32,
    placed: AtomicU64,
    failures: Mutex<Vec<(String, String)>>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(watch: Arc<Watch>) -> Self {
        Self {
            watch,
            done: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            placed: AtomicU64::new(0),
            failures: Mutex::default(),
        }
    }

    /// A file is whole, on disk and has its name. Its bytes were counted as they came.
    pub fn done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.watch.add_files_done(1);
    }

    /// A file was there before.
    pub fn same(&self, entry: &Entry) {
        self.placed(entry.size());
        self.done();
    }

    /// An entry is not taken at all.
    pub fn failed(&self, entry: &Entry, why: &str) {
        self.placed(entry.size());
        self.broken(&entry.name, why);
    }

    /// An entry was begun, but did not come to its end.
    pub fn broken(&self, name: &Name, why: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.watch.tell(News::Failed(name.to_string(), why.to_owned()));
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < NAMED {
            failures.push((name.to_string(), why.to_owned()));
        }
    }

    /// So many bytes more are in their place, or will never be.
    pub fn placed(&self, bytes: u64) {
        self.placed.fetch_add(bytes, Ordering::Relaxed);
        self.watch.add_placed(bytes);
    }

    /// Bytes in their place.
    pub fn bytes(&self) -> u64 {
        self.placed.load(Ordering::Relaxed)
    }

    /// Files that are whole, and entries that are not.
    pub fn counts(&self) -> (u32, u32) {
        (self.done.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    /// What failed, and why.
    pub fn failures(&self) -> Vec<(String, String)> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
