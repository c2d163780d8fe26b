//! What has become of each listed entry. Several threads change it.
//!
//! ```text
//!              +-> Made                                  (folders)
//!   Listed ----+-> Fresh / Partial / Exists --Begin--> Incoming --End--> Complete --> Received
//!              |                       \                                    |
//!              |                        Check --> Comparing --> Same        |
//!              |                            ^         \--> Fresh (Differs)  |
//!              +-----------------------------------> Failed <---------------+
//!   and whatever is not final when the sender says Over: NotSent
//! ```
//!
//! A change is made only from a state that allows it, so that no order of messages makes a file count twice, or
//! count without having been written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_base::PeerText;

use crate::files::names::Name;
use crate::files::watch::{News, Watch};
use crate::files::wire::Entry;

/// Most failures that are remembered by name; all are counted.
const NAMED_FAILURES: usize = 10_000;
const NOT_MENTIONED: &str = "the sender ended without sending it";

/// Where an entry stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The sender has listed it.
    Listed,
    /// Offered: nothing is here.
    Fresh,
    /// Offered: a beginning is here.
    Partial,
    /// Offered: a file is here that may be the same.
    Exists,
    /// The sender has told its hash, and what exists is being read.
    Comparing,
    /// Its bytes arrive.
    Incoming,
    /// All bytes have arrived, with the right hash.
    Complete,
    /// Final: it is on disk under its name.
    Received,
    /// Final: what existed is the same file.
    Same,
    /// Final: a folder that is there.
    Made,
    /// Final: this end could not or would not take it.
    Failed,
    /// Final: the sender did not send it, or not to its end.
    NotSent,
}

impl State {
    const fn is_final(self) -> bool {
        matches!(self, Self::Received | Self::Same | Self::Made | Self::Failed | Self::NotSent)
    }
}

/// How many entries ended in which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Files that arrived.
    pub received: u32,
    /// Files that were there before.
    pub same: u32,
    /// Entries that could not be taken.
    pub failed: u32,
    /// Entries that did not come.
    pub not_sent: u32,
}

/// The states of all entries.
#[derive(Debug)]
pub struct Ledger {
    watch: Arc<Watch>,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    states: Vec<State>,
    counts: Counts,
    /// Bytes in their place, or of entries that will never be.
    placed: u64,
    /// Bytes of existing files that were read.
    read: u64,
    failures: Vec<(PeerText, PeerText)>,
}

impl Ledger {
    /// Nothing is listed.
    pub fn new(watch: Arc<Watch>) -> Self {
        Self { watch, inside: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list is complete and has so many entries.
    pub fn list(&self, entries: usize) {
        self.lock().states = vec![State::Listed; entries];
    }

    /// Where an entry stands; none if there is no such entry.
    pub fn state(&self, place: u32) -> Option<State> {
        self.lock().states.get(place as usize).copied()
    }

    /// Moves an entry on, if it is in one of these states.
    pub fn advance(&self, place: u32, from: &[State], to: State) -> bool {
        let mut inside = self.lock();
        let Some(state) = inside.states.get_mut(place as usize) else { return false };
        if !from.contains(state) {
            return false;
        }
        assert!(!state.is_final(), "a final state is left only by failing");
        *state = to;
        match to {
            State::Received => inside.counts.received += 1,
            State::Same => inside.counts.same += 1,
            _ => return true,
        }
        self.watch.set_files_done(u64::from(inside.counts.received + inside.counts.same));
        true
    }

    /// This end cannot take the entry, or cannot vouch for it any more. False: that was known.
    pub fn fail(&self, place: u32, name: &Name, why: &PeerText) -> bool {
        self.end(place, name, why, State::Failed)
    }

    /// The entry does not come, or not to its end. False: its fate was known.
    pub fn not_sent(&self, place: u32, name: &Name, why: &PeerText) -> bool {
        let is_final = self.state(place).is_none_or(State::is_final);
        !is_final && self.end(place, name, why, State::NotSent)
    }

    fn end(&self, place: u32, name: &Name, why: &PeerText, to: State) -> bool {
        let mut inside = self.lock();
        let Some(state) = inside.states.get_mut(place as usize) else { return false };
        match std::mem::replace(state, to) {
            before @ (State::Failed | State::NotSent) => {
                *state = before;
                return false;
            }
            State::Received => inside.counts.received -= 1,
            State::Same => inside.counts.same -= 1,
            _ => {}
        }
        match to {
            State::NotSent => inside.counts.not_sent += 1,
            _ => inside.counts.failed += 1,
        }
        let name = PeerText::new(name.to_string());
        // A sender can list a million entries that cannot be taken: they are counted, but do not fill the log.
        if inside.failures.len() < NAMED_FAILURES {
            inside.failures.push((name.clone(), why.clone()));
            drop(inside);
            self.watch.tell(News::Failed(name, why.clone()));
        }
        true
    }

    /// The sender says that nothing follows: what has no fate yet was not sent.
    pub fn close(&self, entries: &[Entry]) {
        for (place, entry) in entries.iter().enumerate() {
            self.not_sent(place as u32, &entry.name, &NOT_MENTIONED.into());
        }
    }

    /// So many bytes more are in their place, or will never be.
    pub fn add_placed(&self, bytes: u64) {
        let mut inside = self.lock();
        inside.placed = inside.placed.saturating_add(bytes);
        self.watch.add_placed(bytes);
    }

    /// So many bytes more of existing files were read.
    pub fn add_read(&self, bytes: u64) {
        let mut inside = self.lock();
        inside.read = inside.read.saturating_add(bytes);
    }

    /// Bytes in their place, and bytes of existing files that were read.
    pub fn bytes(&self) -> (u64, u64) {
        let inside = self.lock();
        (inside.placed, inside.read)
    }

    /// How many entries ended in which way.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// What failed, and why.
    pub fn take_failures(&self) -> Vec<(PeerText, PeerText)> {
        std::mem::take(&mut self.lock().failures)
    }
}
