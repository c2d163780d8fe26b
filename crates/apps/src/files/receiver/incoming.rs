//! Handles arriving files, in the order of states that the ledger allows.

use std::io;
use std::sync::{Arc, PoisonError};

use ropewalk_base::PeerText;

use super::current::{OpenFile, is_full};
use super::finish::Finishers;
use super::inbox::describe;
use super::ledger::State;
use super::survey::{Beginnings, Survey};
use super::writer::Tools;
use crate::files::broken::Broken;
use crate::files::names::{Name, shown_path};
use crate::files::watch::News;
use crate::files::wire::{Entry, Frame, Hash, Kind};

/// The failure of a file whose hash differs.
const MISMATCH: &str = "its hash differs from the sender's";

/// State of the transfer after the list.
pub struct Files {
    tools: Tools,
    entries: Arc<[Entry]>,
    beginnings: Arc<Beginnings>,
    finishers: Finishers,
    survey: std::thread::JoinHandle<()>,
    current: Current,
    buffer: Vec<u8>,
}

enum Current {
    None,
    Open(Box<OpenFile>),
    /// The file has failed here; so many bytes of it that are in transit are dropped.
    Dropped(u32, u64),
}

impl Files {
    /// Starts after the list is complete.
    ///
    /// # Errors
    /// [`Broken::Transfer`]: the system cannot create threads.
    pub fn start(tools: Tools, entries: Vec<Entry>) -> Result<Self, Broken> {
        let files = entries.iter().filter(|entry| entry.kind != Kind::Folder).count();
        tools.watch.set_total(files as u64, entries.iter().map(Entry::size).sum());
        tools.watch.set_placed(0);
        tools.watch.set_files_done(0);
        tools.ledger.list(entries.len());
        let entries: Arc<[Entry]> = entries.into();
        let beginnings: Arc<Beginnings> = Arc::default();
        let no_thread = |error: io::Error| {
            Broken::Transfer(format!("receiver could not start a thread: {error}"))
        };
        let finishers = Finishers::start(tools.clone(), entries.clone()).map_err(no_thread)?;
        let survey = Survey {
            inbox: tools.inbox.clone(),
            entries: entries.clone(),
            beginnings: beginnings.clone(),
            ledger: tools.ledger.clone(),
            progress: tools.progress.clone(),
        };
        let out = tools.out.clone();
        let survey = std::thread::Builder::new()
            .name("survey".to_owned())
            .spawn(move || survey.run(&out))
            .map_err(no_thread)?;
        let (current, buffer) = (Current::None, Vec::new());
        Ok(Self { tools, entries, beginnings, finishers, survey, current, buffer })
    }

    fn name(&self, place: u32) -> &Name {
        &self.entries[place as usize].name
    }

    /// Changes the state of a file, between two files.
    fn turn(&self, place: u32, from: &[State], to: State) -> Result<State, Broken> {
        if !matches!(self.current, Current::None) {
            return Err(Broken::Violation("a file within another"));
        }
        let before = self.tools.ledger.state(place).ok_or(NO_ENTRY)?;
        if self.tools.ledger.advance(place, from, to) { Ok(before) } else { Err(OUT_OF_TURN) }
    }

    /// Starts a file at an offset.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn begin(&mut self, place: u32, offset: u64) -> Result<(), Broken> {
        self.turn(place, &[State::Fresh, State::Partial], State::Incoming)?;
        let size = self.entries[place as usize].size();
        let known = {
            let mut beginnings = self.beginnings.lock().unwrap_or_else(PoisonError::into_inner);
            beginnings.remove(&place)
        };
        let hasher = match known {
            _ if offset == 0 => blake3::Hasher::new(),
            Some(known) if known.len == offset => *known.hasher,
            _ => return Err(Broken::Violation("a file from an offset that was not offered")),
        };
        if offset > 0 {
            self.tools.ledger.add_placed(offset);
            let name = PeerText::new(self.name(place).to_string());
            self.tools.watch.tell(News::Resumed(name, offset));
        }
        match self.tools.inbox.begin(&self.entries[place as usize], offset) {
            Ok(part) => {
                let buffer = std::mem::take(&mut self.buffer);
                let file = OpenFile::new(place, part, hasher, size - offset, buffer);
                self.current = Current::Open(Box::new(file));
                Ok(())
            }
            Err(error) => self.fail(place, size - offset, &error),
        }
    }

    /// Handles bytes of the current file.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn data(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let len = bytes.len() as u64;
        let left = match &self.current {
            Current::Open(file) => file.left(),
            Current::Dropped(_, left) => *left,
            Current::None => 0,
        };
        if len > left {
            return Err(Broken::Violation("more data than the file has"));
        }
        self.tools.ledger.add_placed(len);
        self.tools.watch.add_moved(len);
        match &mut self.current {
            Current::Open(file) => {
                self.tools.progress.add(len);
                let (place, taken) = (file.place, file.take(bytes));
                taken.or_else(|error| self.fail(place, left - len, &error))
            }
            Current::Dropped(_, left) => {
                *left -= len;
                Ok(())
            }
            Current::None => Ok(()),
        }
    }

    /// Ends the current file, which has this hash at the sender.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn end(&mut self, hash: &Hash) -> Result<(), Broken> {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::Open(file) if file.left() == 0 => {
                let place = file.place;
                match file.complete(hash) {
                    Ok((Some(part), buffer)) => {
                        self.buffer = buffer;
                        self.turn(place, &[State::Incoming], State::Complete)?;
                        self.finishers.finish(place, part);
                    }
                    Ok((None, buffer)) => {
                        self.buffer = buffer;
                        self.tools.inbox.forget(self.name(place));
                        self.tell_failure(place, MISMATCH.to_owned());
                    }
                    Err(error) => {
                        self.fail(place, 0, &error)?;
                        self.current = Current::None;
                    }
                }
                Ok(())
            }
            Current::Dropped(_, 0) => Ok(()),
            _ => Err(Broken::Violation("the end of a file before its end")),
        }
    }

    /// Handles a file that cannot be written. Other files may continue, unless the disk is full.
    fn fail(&mut self, place: u32, left: u64, error: &io::Error) -> Result<(), Broken> {
        let store = self.tools.inbox.store();
        if store.is_deleted() {
            let directory = shown_path(store.path());
            return Err(Broken::Own(format!("receiver's directory `{directory}` was deleted")));
        }
        if is_full(error) {
            let name = self.name(place);
            return Err(Broken::Transfer(format!("receiver could not write `{name}`: {error}")));
        }
        self.tell_failure(place, describe(error));
        self.current = Current::Dropped(place, left);
        Ok(())
    }

    fn tell_failure(&self, place: u32, why: String) {
        let why = PeerText::new(why);
        if self.tools.ledger.fail(place, self.name(place), &why) {
            self.tools.tell(Frame::Failed(place, why));
        }
    }

    /// Compares the existing file with the sender's hash.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn check(&self, place: u32, hash: Hash) -> Result<(), Broken> {
        self.turn(place, &[State::Exists], State::Comparing)?;
        self.finishers.compare(place, hash);
        Ok(())
    }

    /// Handles a file that the sender does not send, or not completely.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn skip(&mut self, place: u32, why: &PeerText) -> Result<(), Broken> {
        let entry = self.entries.get(place as usize).ok_or(NO_ENTRY)?;
        let why = PeerText::new(format!("sender: {}", why.unescaped()));
        let left = match std::mem::replace(&mut self.current, Current::None) {
            Current::None => {
                let may = [State::Listed, State::Fresh, State::Partial, State::Exists];
                if !self.tools.ledger.state(place).is_some_and(|state| may.contains(&state)) {
                    return Err(OUT_OF_TURN);
                }
                entry.size()
            }
            // The bytes that have arrived are kept, and the next transfer may continue after them.
            Current::Open(mut file) if file.place == place => {
                let _ = file.flush();
                let left = file.left();
                self.buffer = file.into_buffer();
                left
            }
            Current::Dropped(own, left) if own == place => left,
            _ => return Err(OUT_OF_TURN),
        };
        self.tools.ledger.add_placed(left);
        self.tools.ledger.not_sent(place, &entry.name, &why);
        Ok(())
    }

    /// Handles an association that ends during the transfer. Received bytes of the current file are kept.
    pub fn interrupted(mut self) {
        if let Current::Open(file) = &mut self.current {
            // Bytes that do not fit are missing at the end; the next transfer detects that.
            let _ = file.flush();
        }
        // Complete files get their names.
        let written = self.finishers.wait();
        let _ = self.tools.inbox.sync_names(&self.entries, &written);
    }

    /// Handles the end of the transfer.
    ///
    /// # Errors
    /// [`Broken::Violation`].
    pub fn over(self) -> Result<(), Broken> {
        if !matches!(self.current, Current::None) {
            return Err(Broken::Violation("the end within a file"));
        }
        let Tools { inbox, ledger, .. } = &self.tools;
        // They may wait for a sender that takes no frames; the sending task gives up on it in time.
        let _ = self.survey.join();
        let written = self.finishers.wait();
        for (place, why) in inbox.settle(&self.entries, &written) {
            let why = PeerText::new(why);
            if ledger.fail(place, &self.entries[place as usize].name, &why) {
                self.tools.tell(Frame::Failed(place, why));
            }
        }
        ledger.close(&self.entries);
        let counts = ledger.counts();
        let done = counts.received + counts.same;
        self.tools.tell(Frame::Finished(done, counts.failed + counts.not_sent));
        Ok(())
    }
}

const NO_ENTRY: Broken = Broken::Violation("an entry that is not on its list");
const OUT_OF_TURN: Broken = Broken::Violation("a file out of order");
