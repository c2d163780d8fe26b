//! The state of each listed entry. Several threads change it.
//!
//! ```text
//!              +-> Made                                  (folders)
//!   Listed ----+-> Fresh / Partial / Exists --Begin--> Incoming --End--> Complete --> Received
//!              |                       \                                    |
//!              |                        Check --> Comparing --> Same        |
//!              |                            ^         \--> Fresh (Differs)  |
//!              +-----------------------------------> Failed <---------------+
//!   and every state that is not final when the sender sends EndOfTransfer: NotSent
//! ```
//!
//! A change is only made from a state that allows it. No order of messages can therefore make a file count
//! twice, or count without having been written.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use ropewalk_base::PeerText;

use crate::files::watch::{TransferEvent, TransferStatus};
use crate::files::wire::Entry;

/// Maximum number of failures that are stored with their names; all are counted.
const NAMED_FAILURES: usize = 10_000;
const NOT_MENTIONED: &str = "the sender ended without sending it";

/// State of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryState {
    /// The sender has listed it.
    Listed,
    /// Answered: nothing exists here.
    Fresh,
    /// Answered: the beginning exists here.
    Partial,
    /// Answered: a file exists here that may be identical.
    Exists,
    /// The sender has sent its hash, and the existing file is being read.
    Comparing,
    /// Its bytes are arriving.
    Incoming,
    /// All bytes have arrived and have the right hash.
    Complete,
    /// Final: the file is on disk under its name.
    Received,
    /// Final: the existing file is identical.
    Same,
    /// Final: the folder exists.
    Made,
    /// Final: this end could not or would not accept it.
    Failed,
    /// Final: the sender did not send it, or not completely.
    NotSent,
}

impl EntryState {
    const fn is_final(self) -> bool {
        matches!(self, Self::Received | Self::Same | Self::Made | Self::Failed | Self::NotSent)
    }
}

/// Number of entries by their final state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Files that arrived.
    pub received: u32,
    /// Files that existed before.
    pub same: u32,
    /// Entries that could not be accepted.
    pub failed: u32,
    /// Entries that were not sent.
    pub not_sent: u32,
}

/// The states of all entries.
#[derive(Debug)]
pub struct EntryStates {
    watch: Arc<TransferStatus>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    states: Vec<EntryState>,
    counts: Counts,
    /// Bytes in their place.
    placed: u64,
    /// The share of each file that does not have its name yet in these bytes.
    unfinished: BTreeMap<u32, Share>,
    /// Bytes of existing files that were read.
    read: u64,
    failures: Vec<(PeerText, PeerText)>,
}

/// Bytes of a file that are in their place.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    placed: u64,
    /// The part of them that arrived over this association.
    brought: u64,
}

impl EntryStates {
    /// Creates an empty list of states.
    pub fn new(watch: Arc<TransferStatus>) -> Self {
        Self { watch, inner: Mutex::default() }
    }

    /// Records a complete list with this number of entries.
    pub fn list(&self, entries: usize) {
        self.inner.lock().states = vec![EntryState::Listed; entries];
    }

    /// The state of an entry. `None` if it does not exist.
    pub fn state(&self, place: u32) -> Option<EntryState> {
        self.inner.lock().states.get(place as usize).copied()
    }

    /// Changes the state of an entry, if it is in one of the states `from`. Returns whether it was.
    pub fn advance(&self, place: u32, from: &[EntryState], to: EntryState) -> bool {
        let mut inner = self.inner.lock();
        let Some(state) = inner.states.get_mut(place as usize) else { return false };
        if !from.contains(state) {
            return false;
        }
        assert!(!state.is_final(), "a final state is left only by failing");
        *state = to;
        match to {
            EntryState::Received => {
                inner.unfinished.remove(&place);
                inner.counts.received += 1;
            }
            EntryState::Same => inner.counts.same += 1,
            _ => return true,
        }
        self.watch.set_list_done(u64::from(inner.counts.received + inner.counts.same));
        true
    }

    /// Marks the entry as failed at this end. Returns false if that was known.
    pub fn fail(&self, place: u32, entry: &Entry, why: &PeerText) -> bool {
        self.end(place, entry, why, EntryState::Failed)
    }

    /// Marks the entry as not sent, or not completely. Returns false if its state was final.
    pub fn not_sent(&self, place: u32, entry: &Entry, why: &PeerText) -> bool {
        let is_final = self.state(place).is_none_or(EntryState::is_final);
        !is_final && self.end(place, entry, why, EntryState::NotSent)
    }

    fn end(&self, place: u32, entry: &Entry, why: &PeerText, to: EntryState) -> bool {
        let mut inner = self.inner.lock();
        let Some(state) = inner.states.get_mut(place as usize) else { return false };
        let size = entry.size();
        let lost = match std::mem::replace(state, to) {
            before @ (EntryState::Failed | EntryState::NotSent) => {
                *state = before;
                return false;
            }
            EntryState::Received => {
                inner.counts.received -= 1;
                Share { placed: size, brought: size }
            }
            EntryState::Same => {
                inner.counts.same -= 1;
                Share { placed: size, brought: 0 }
            }
            _ => inner.unfinished.remove(&place).unwrap_or_default(),
        };
        inner.placed = inner.placed.saturating_sub(lost.placed);
        self.watch.lose(lost.placed, lost.brought, size);
        match to {
            EntryState::NotSent => inner.counts.not_sent += 1,
            _ => inner.counts.failed += 1,
        }
        let name = PeerText::new(entry.name.to_string());
        // A sender can list a million entries that fail: they are counted, but must not fill the log.
        if inner.failures.len() < NAMED_FAILURES {
            inner.failures.push((name.clone(), why.clone()));
            drop(inner);
            self.watch.tell(TransferEvent::Failed(name, why.clone()));
        }
        true
    }

    /// Handles the sender's end of the transfer: entries without a final state were not sent.
    pub fn close(&self, entries: &[Entry]) {
        for (place, entry) in entries.iter().enumerate() {
            self.not_sent(place as u32, entry, &NOT_MENTIONED.into());
        }
    }

    /// Counts bytes of a file that were in their place before.
    pub fn add_existing(&self, place: u32, bytes: u64) {
        self.add(place, Share { placed: bytes, brought: 0 });
    }

    /// Counts bytes of a file that have arrived.
    pub fn add_brought(&self, place: u32, bytes: u64) {
        self.add(place, Share { placed: bytes, brought: bytes });
    }

    fn add(&self, place: u32, more: Share) {
        let mut inner = self.inner.lock();
        inner.placed = inner.placed.saturating_add(more.placed);
        // The share of a file with a final state is its size.
        if inner.states.get(place as usize).is_some_and(|state| !state.is_final()) {
            let share = inner.unfinished.entry(place).or_default();
            share.placed += more.placed;
            share.brought += more.brought;
        }
        self.watch.add_placed(more.placed, more.brought);
    }

    /// Counts bytes of existing files that were read.
    pub fn add_read(&self, bytes: u64) {
        let mut inner = self.inner.lock();
        inner.read = inner.read.saturating_add(bytes);
    }

    /// Bytes in their place, and bytes of existing files that were read.
    pub fn bytes(&self) -> (u64, u64) {
        let inner = self.inner.lock();
        (inner.placed, inner.read)
    }

    /// Number of entries by their final state.
    pub fn counts(&self) -> Counts {
        self.inner.lock().counts
    }

    /// The files that exist here now.
    pub fn done<'a>(&self, entries: &'a [Entry]) -> Vec<&'a Entry> {
        let inner = self.inner.lock();
        let done = [EntryState::Received, EntryState::Same];
        let all = entries.iter().zip(&inner.states);
        all.filter(|(_, state)| done.contains(state)).map(|(entry, _)| entry).collect()
    }

    /// The failed entries and the reasons.
    pub fn take_failures(&self) -> Vec<(PeerText, PeerText)> {
        std::mem::take(&mut self.inner.lock().failures)
    }
}
