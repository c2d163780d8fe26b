//! The thread that looks what is there already, and answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

use super::store::{Found, Store};
use super::tally::Tally;
use crate::files::wire::{Entry, Frame};

/// Entries for which one answer is enough, at most.
const RUN: u32 = 256;
/// Most unfinished files that go on behind what is there. A crash leaves one or a few; a hasher takes 2 kB.
const PARTS: usize = 64;

/// A beginning that is there, which the hasher has seen.
#[derive(Debug)]
pub struct Beginning {
    /// Bytes of it.
    pub len: u64,
    /// What it has made of them.
    pub hasher: Box<blake3::Hasher>,
}

/// Beginnings by the place of their entry.
pub type Beginnings = Mutex<BTreeMap<u32, Beginning>>;

/// Answers for all entries in order. Ends early if nobody takes the answers.
pub fn survey(
    store: &Store,
    entries: &[Entry],
    beginnings: &Beginnings,
    tally: &Tally,
    out: &UnboundedSender<Frame>,
) {
    let mut runs = Runs { out, fresh: 0, made: 0 };
    for (place, entry) in entries.iter().enumerate() {
        let told = match store.look(entry) {
            Found::Nothing => runs.fresh(),
            Found::Ready => runs.made(),
            Found::Part(len, hasher) => {
                let hash = hasher.finalize().into();
                let mut beginnings = beginnings.lock().unwrap_or_else(PoisonError::into_inner);
                if beginnings.len() < PARTS {
                    beginnings.insert(place as u32, Beginning { len, hasher });
                    runs.tell(Frame::Partial(len, hash))
                } else {
                    runs.fresh()
                }
            }
            Found::Same(hash) => runs.tell(Frame::Exists(hash, store.overwrites())),
            Found::Obstacle(why) => {
                tally.failed(entry, &why);
                runs.tell(Frame::Refused(why))
            }
        };
        if !told {
            return;
        }
    }
    runs.flush();
}

/// Joins like answers.
struct Runs<'a> {
    out: &'a UnboundedSender<Frame>,
    fresh: u32,
    made: u32,
}

impl Runs<'_> {
    fn fresh(&mut self) -> bool {
        if self.made > 0 || self.fresh == RUN {
            self.flush();
        }
        self.fresh += 1;
        !self.out.is_closed()
    }

    fn made(&mut self) -> bool {
        if self.fresh > 0 || self.made == RUN {
            self.flush();
        }
        self.made += 1;
        !self.out.is_closed()
    }

    fn tell(&mut self, frame: Frame) -> bool {
        self.flush();
        self.out.send(frame).is_ok()
    }

    fn flush(&mut self) {
        // Whether somebody takes it is seen at the next answer.
        if self.fresh > 0 {
            let _ = self.out.send(Frame::Fresh(std::mem::take(&mut self.fresh)));
        }
        if self.made > 0 {
            let _ = self.out.send(Frame::Made(std::mem::take(&mut self.made)));
        }
    }
}
