//! The thread that examines the existing entries, and answers the sender's list.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use ropewalk_base::PeerText;
use tokio::sync::mpsc::Sender;

use super::entry_states::{EntryState, EntryStates};
use super::inbox::{ExistingEntry, Inbox};
use super::sender_progress::SenderProgress;
use crate::files::wire::{Entry, Frame};

/// Maximum number of entries that one answer covers.
const RUN: u32 = 256;
/// Maximum number of unfinished files that are continued. A crash leaves one or a few of them, and a
/// hasher needs 2 kB.
const PARTS: usize = 64;

/// The existing beginning of a file.
#[derive(Debug)]
pub struct Beginning {
    /// Its length, bytes.
    pub len: u64,
    /// The hasher, which has processed it.
    pub hasher: Box<blake3::Hasher>,
}

/// Beginnings by the index of their entry.
pub type Beginnings = Mutex<BTreeMap<u32, Beginning>>;

/// Inputs and outputs of the thread.
#[derive(Debug)]
pub struct Inventory {
    /// The directory to examine.
    pub inbox: Arc<Inbox>,
    /// The sender's list.
    pub entries: Arc<[Entry]>,
    /// Receives the beginnings.
    pub beginnings: Arc<Beginnings>,
    /// Records the answers.
    pub entry_states: Arc<EntryStates>,
    /// Records that this thread works for the sender.
    pub sender_progress: Arc<SenderProgress>,
}

impl Inventory {
    /// Answers all entries in order. Waits while the sender accepts no answers. Returns early if the sender has
    /// gone.
    pub fn run(self, out: &Sender<Frame>) {
        let mut runs = AnswerRuns { out, fresh: 0, made: 0 };
        for (place, entry) in (0..).zip(self.entries.iter()) {
            let task = self.sender_progress.begin_local_task();
            let answer = self.answer(place, entry);
            drop(task);
            let sent = match answer {
                Answer::Fresh => runs.fresh(),
                Answer::Made => runs.made(),
                Answer::Other(frame) => runs.send(frame),
            };
            if !sent {
                return;
            }
        }
        runs.flush();
    }

    fn answer(&self, place: u32, entry: &Entry) -> Answer {
        let advance = |state| self.entry_states.advance(place, &[EntryState::Listed], state);
        match self.inbox.inspect(entry) {
            ExistingEntry::Nothing => {
                advance(EntryState::Fresh);
                Answer::Fresh
            }
            ExistingEntry::Ready => {
                advance(EntryState::Made);
                Answer::Made
            }
            ExistingEntry::Part(len, hasher) => {
                let hash = hasher.finalize().into();
                let mut beginnings = self.beginnings.lock();
                if beginnings.len() >= PARTS {
                    advance(EntryState::Fresh);
                    return Answer::Fresh;
                }
                beginnings.insert(place, Beginning { len, hasher });
                advance(EntryState::Partial);
                Answer::Other(Frame::Partial(len, hash))
            }
            ExistingEntry::Exists => {
                advance(EntryState::Exists);
                Answer::Other(Frame::Exists)
            }
            ExistingEntry::Obstacle(why) => {
                let why = PeerText::new(why);
                self.entry_states.fail(place, entry, &why);
                Answer::Other(Frame::Refused(why))
            }
        }
    }
}

enum Answer {
    Fresh,
    Made,
    Other(Frame),
}

/// Joins equal answers.
struct AnswerRuns<'a> {
    out: &'a Sender<Frame>,
    fresh: u32,
    made: u32,
}

impl AnswerRuns<'_> {
    fn fresh(&mut self) -> bool {
        let sent = (self.made == 0 && self.fresh < RUN) || self.flush();
        self.fresh += 1;
        sent && !self.out.is_closed()
    }

    fn made(&mut self) -> bool {
        let sent = (self.fresh == 0 && self.made < RUN) || self.flush();
        self.made += 1;
        sent && !self.out.is_closed()
    }

    fn send(&mut self, frame: Frame) -> bool {
        self.flush() && self.out.blocking_send(frame).is_ok()
    }

    /// Returns false if the sender has gone.
    fn flush(&mut self) -> bool {
        let (fresh, made) = (std::mem::take(&mut self.fresh), std::mem::take(&mut self.made));
        (fresh == 0 || self.out.blocking_send(Frame::Fresh(fresh)).is_ok())
            && (made == 0 || self.out.blocking_send(Frame::Made(made)).is_ok())
    }
}
