//! What is to be sent, and what has become of it so far, over all associations.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::files::manifest::Manifest;
use crate::files::wire::{Entry, Kind};

const PENDING: u8 = 0;
const DONE: u8 = 1;
const FAILED: u8 = 2;

/// What is to be sent.
#[derive(Debug)]
pub struct Job {
    /// What there is.
    pub manifest: Manifest,
    fates: Vec<AtomicU8>,
    failures: Mutex<Vec<(String, String)>>,
}

impl Job {
    /// Nothing has been sent.
    pub fn new(manifest: Manifest) -> Self {
        let fates = manifest.entries.iter().map(|_| AtomicU8::new(PENDING)).collect();
        let unreadable = manifest.unreadable.iter();
        let failures =
            unreadable.map(|(path, why)| (crate::files::names::shown_path(path), why.clone()));
        let failures = Mutex::new(failures.collect());
        Self { manifest, fates, failures }
    }

    /// The entries that still concern the receiver: files that have no fate yet, and all folders.
    pub fn rest(&self) -> Vec<u32> {
        let concerns = |(index, entry): &(usize, &Entry)| {
            entry.kind == Kind::Folder || self.fate(*index) == PENDING
        };
        let entries = self.manifest.entries.iter().enumerate();
        entries.filter(concerns).map(|(index, _)| index as u32).collect()
    }

    fn fate(&self, index: usize) -> u8 {
        self.fates[index].load(Ordering::Relaxed)
    }

    /// The entry is whole at the receiver. Whether that is new.
    pub fn done(&self, index: u32) -> bool {
        self.settle(index, DONE)
    }

    /// The entry will not be whole at the receiver. Whether that is new.
    pub fn fail(&self, index: u32, why: &str) -> bool {
        let is_new = self.settle(index, FAILED);
        if is_new {
            let name = self.manifest.entries[index as usize].name.to_string();
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            failures.push((name, why.to_owned()));
        }
        is_new
    }

    fn settle(&self, index: u32, fate: u8) -> bool {
        let old = &self.fates[index as usize];
        old.compare_exchange(PENDING, fate, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Files that are whole at the receiver.
    pub fn files_done(&self) -> u64 {
        self.count(DONE, |_| 1)
    }

    /// Bytes of the files that have a fate.
    pub fn bytes_settled(&self) -> u64 {
        self.count(DONE, Entry::size) + self.count(FAILED, Entry::size)
    }

    /// Files without a fate.
    pub fn files_pending(&self) -> u64 {
        self.count(PENDING, |_| 1)
    }

    fn count(&self, fate: u8, worth: impl Fn(&Entry) -> u64) -> u64 {
        let entries = self.manifest.entries.iter().enumerate();
        let of = |(index, entry): &(usize, &Entry)| {
            entry.kind != Kind::Folder && self.fate(*index) == fate
        };
        entries.filter(of).map(|(_, entry)| worth(entry)).sum()
    }

    /// What was not sent, and why.
    pub fn failures(&self) -> Vec<(String, String)> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
