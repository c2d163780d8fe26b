//! The thread that examines what exists already, and answers the sender's list.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ropewalk_base::PeerText;
use tokio::sync::mpsc::Sender;

use super::inbox::{Found, Inbox};
use super::ledger::{Ledger, State};
use super::progress::Progress;
use crate::files::wire::{Entry, Frame};

/// Most entries that one answer covers.
const RUN: u32 = 256;
/// Most unfinished files that are continued. A crash leaves one or a few of them, and a hasher needs 2 kB.
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
pub struct Survey {
    /// The directory to examine.
    pub inbox: Arc<Inbox>,
    /// The sender's list.
    pub entries: Arc<[Entry]>,
    /// Receives the beginnings.
    pub beginnings: Arc<Beginnings>,
    /// Records the answers.
    pub ledger: Arc<Ledger>,
    /// Records that this thread works for the sender.
    pub progress: Arc<Progress>,
}

impl Survey {
    /// Answers all entries in order. Waits while the sender takes no answers. Returns early if the sender has gone.
    pub fn run(self, out: &Sender<Frame>) {
        let mut runs = Runs { out, fresh: 0, made: 0 };
        for (place, entry) in (0..).zip(self.entries.iter()) {
            let owed = self.progress.owe();
            let answer = self.answer(place, entry);
            drop(owed);
            let told = match answer {
                Answer::Fresh => runs.fresh(),
                Answer::Made => runs.made(),
                Answer::Other(frame) => runs.tell(frame),
            };
            if !told {
                return;
            }
        }
        runs.flush();
    }

    fn answer(&self, place: u32, entry: &Entry) -> Answer {
        let offer = |state| self.ledger.advance(place, &[State::Listed], state);
        match self.inbox.look(entry) {
            Found::Nothing => {
                offer(State::Fresh);
                Answer::Fresh
            }
            Found::Ready => {
                offer(State::Made);
                Answer::Made
            }
            Found::Part(len, hasher) => {
                let hash = hasher.finalize().into();
                let mut beginnings = self.beginnings.lock().unwrap_or_else(PoisonError::into_inner);
                if beginnings.len() >= PARTS {
                    offer(State::Fresh);
                    return Answer::Fresh;
                }
                beginnings.insert(place, Beginning { len, hasher });
                offer(State::Partial);
                Answer::Other(Frame::Partial(len, hash))
            }
            Found::Exists => {
                offer(State::Exists);
                Answer::Other(Frame::Exists)
            }
            Found::Obstacle(why) => {
                let why = PeerText::new(why);
                self.ledger.fail(place, &entry.name, &why);
                self.ledger.add_placed(entry.size());
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
struct Runs<'a> {
    out: &'a Sender<Frame>,
    fresh: u32,
    made: u32,
}

impl Runs<'_> {
    fn fresh(&mut self) -> bool {
        let told = (self.made == 0 && self.fresh < RUN) || self.flush();
        self.fresh += 1;
        told && !self.out.is_closed()
    }

    fn made(&mut self) -> bool {
        let told = (self.fresh == 0 && self.made < RUN) || self.flush();
        self.made += 1;
        told && !self.out.is_closed()
    }

    fn tell(&mut self, frame: Frame) -> bool {
        self.flush() && self.out.blocking_send(frame).is_ok()
    }

    /// Returns false if the sender has gone.
    fn flush(&mut self) -> bool {
        let (fresh, made) = (std::mem::take(&mut self.fresh), std::mem::take(&mut self.made));
        (fresh == 0 || self.out.blocking_send(Frame::Fresh(fresh)).is_ok())
            && (made == 0 || self.out.blocking_send(Frame::Made(made)).is_ok())
    }
}
