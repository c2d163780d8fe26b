//! Handles arriving files, in the order of states that [`EntryStates`](super::entry_states::EntryStates) allows.

use std::io;
use std::sync::Arc;

use ropewalk_base::PeerText;

use super::current::{OpenFile, is_full};
use super::entry_states::EntryState;
use super::finish::Finishers;
use super::inbox::describe;
use super::inventory::{Beginnings, Inventory};
use super::writer::WriterContext;
use crate::files::error::TransferError;
use crate::files::names::{Name, shown_path};
use crate::files::watch::TransferEvent;
use crate::files::wire::{Entry, Frame, Hash};

/// The failure of a file whose hash differs.
const MISMATCH: &str = "its hash differs from the sender's";

/// State of the transfer after the list.
pub struct Files {
    context: WriterContext,
    entries: Arc<[Entry]>,
    beginnings: Arc<Beginnings>,
    finishers: Finishers,
    inventory: std::thread::JoinHandle<()>,
    current: Current,
    buffer: Vec<u8>,
}

enum Current {
    None,
    Open(Box<OpenFile>),
    /// The file has failed here; this number of its bytes are still in transit and are dropped.
    Dropped(u32, u64),
}

impl Files {
    /// Starts after the list is complete.
    ///
    /// # Errors
    /// [`TransferError::Transfer`]: the system cannot create threads.
    pub fn start(context: WriterContext, entries: Vec<Entry>) -> Result<Self, TransferError> {
        context.watch.begin_list(context.inbox.peer(), &entries);
        context.entry_states.list(entries.len());
        let entries: Arc<[Entry]> = entries.into();
        let beginnings: Arc<Beginnings> = Arc::default();
        let no_thread = |error: io::Error| {
            TransferError::Transfer(format!("receiver could not start a thread: {error}"))
        };
        let finishers = Finishers::start(context.clone(), entries.clone()).map_err(no_thread)?;
        let inventory = Inventory {
            inbox: context.inbox.clone(),
            entries: entries.clone(),
            beginnings: beginnings.clone(),
            entry_states: context.entry_states.clone(),
            sender_progress: context.sender_progress.clone(),
        };
        let out = context.out.clone();
        let inventory = std::thread::Builder::new()
            .name("inventory".to_owned())
            .spawn(move || inventory.run(&out))
            .map_err(no_thread)?;
        let (current, buffer) = (Current::None, Vec::new());
        Ok(Self { context, entries, beginnings, finishers, inventory, current, buffer })
    }

    fn name(&self, place: u32) -> &Name {
        &self.entries[place as usize].name
    }

    /// Changes the state of a file, between two files.
    fn change_state(
        &self,
        place: u32,
        from: &[EntryState],
        to: EntryState,
    ) -> Result<EntryState, TransferError> {
        if !matches!(self.current, Current::None) {
            return Err(TransferError::Violation("a file within another"));
        }
        let before = self.context.entry_states.state(place).ok_or(NO_ENTRY)?;
        if self.context.entry_states.advance(place, from, to) {
            Ok(before)
        } else {
            Err(OUT_OF_TURN)
        }
    }

    /// Starts a file at an offset.
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn begin(&mut self, place: u32, offset: u64) -> Result<(), TransferError> {
        self.change_state(place, &[EntryState::Fresh, EntryState::Partial], EntryState::Incoming)?;
        let size = self.entries[place as usize].size();
        let known = {
            let mut beginnings = self.beginnings.lock();
            beginnings.remove(&place)
        };
        let hasher = match known {
            _ if offset == 0 => blake3::Hasher::new(),
            Some(known) if known.len == offset => *known.hasher,
            _ => {
                return Err(TransferError::Violation("a file from an offset that was not offered"));
            }
        };
        let name = PeerText::new(self.name(place).to_string());
        self.context.watch.tell(TransferEvent::Started(name.clone(), size));
        if offset > 0 {
            self.context.entry_states.add_existing(place, offset);
            self.context.watch.tell(TransferEvent::Resumed(name, offset));
        }
        match self.context.inbox.begin(&self.entries[place as usize], offset) {
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
    /// [`TransferError`].
    pub fn data(&mut self, bytes: &[u8]) -> Result<(), TransferError> {
        let len = bytes.len() as u64;
        let left = match &self.current {
            Current::Open(file) => file.left(),
            Current::Dropped(_, left) => *left,
            Current::None => 0,
        };
        if len > left {
            return Err(TransferError::Violation("more data than the file has"));
        }
        self.context.watch.add_moved(len);
        match &mut self.current {
            Current::Open(file) => {
                self.context.entry_states.add_brought(file.place, len);
                self.context.sender_progress.add(len);
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
    /// [`TransferError`].
    pub fn end(&mut self, hash: &Hash) -> Result<(), TransferError> {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::Open(file) if file.left() == 0 => {
                let place = file.place;
                match file.complete(hash) {
                    Ok((Some(part), buffer)) => {
                        self.buffer = buffer;
                        self.change_state(place, &[EntryState::Incoming], EntryState::Complete)?;
                        self.finishers.finish(place, part);
                    }
                    Ok((None, buffer)) => {
                        self.buffer = buffer;
                        self.report_failure(place, MISMATCH.to_owned());
                    }
                    Err(error) => {
                        self.fail(place, 0, &error)?;
                        self.current = Current::None;
                    }
                }
                Ok(())
            }
            Current::Dropped(_, 0) => Ok(()),
            _ => Err(TransferError::Violation("the end of a file before its end")),
        }
    }

    /// Handles a file that cannot be written. Other files may continue, unless the disk is full.
    fn fail(&mut self, place: u32, left: u64, error: &io::Error) -> Result<(), TransferError> {
        let store = self.context.inbox.store();
        if store.is_deleted() {
            let directory = shown_path(store.path());
            return Err(TransferError::Local(format!(
                "receiver's directory `{directory}` was deleted"
            )));
        }
        if is_full(error) {
            let name = self.name(place);
            return Err(TransferError::Transfer(format!(
                "receiver could not write `{name}`: {error}"
            )));
        }
        self.report_failure(place, describe(error));
        self.current = Current::Dropped(place, left);
        Ok(())
    }

    fn report_failure(&self, place: u32, why: String) {
        let why = PeerText::new(why);
        if self.context.entry_states.fail(place, &self.entries[place as usize], &why) {
            self.context.tell(Frame::Failed(place, why));
        }
    }

    /// Compares the existing file with the sender's hash.
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn check(&self, place: u32, hash: Hash) -> Result<(), TransferError> {
        self.change_state(place, &[EntryState::Exists], EntryState::Comparing)?;
        self.finishers.compare(place, hash);
        Ok(())
    }

    /// Handles a file that the sender does not send, or not completely.
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn skip(&mut self, place: u32, why: &PeerText) -> Result<(), TransferError> {
        let entry = self.entries.get(place as usize).ok_or(NO_ENTRY)?;
        let why = PeerText::new(format!("sender: {}", why.unescaped()));
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None => {
                let may = [
                    EntryState::Listed,
                    EntryState::Fresh,
                    EntryState::Partial,
                    EntryState::Exists,
                ];
                if !self.context.entry_states.state(place).is_some_and(|state| may.contains(&state))
                {
                    return Err(OUT_OF_TURN);
                }
            }
            // The bytes that have arrived are kept, and the next transfer may continue after them.
            Current::Open(mut file) if file.place == place => {
                let _ = file.flush();
                self.buffer = file.into_buffer();
            }
            Current::Dropped(own, _) if own == place => {}
            _ => return Err(OUT_OF_TURN),
        }
        self.context.entry_states.not_sent(place, entry, &why);
        Ok(())
    }

    /// Handles an association that ends during the transfer. Received bytes of the current file are kept.
    pub fn interrupted(mut self) {
        if let Current::Open(file) = &mut self.current {
            // Bytes that do not fit on the disk are missing at the end; the next transfer detects that.
            let _ = file.flush();
        }
        // Complete files get their names.
        let written = self.finishers.wait();
        let _ = self.context.inbox.sync_names(&self.entries, &written);
        self.context.watch.keep_done(&self.context.entry_states.done(&self.entries));
    }

    /// Handles the end of the transfer.
    ///
    /// # Errors
    /// [`TransferError::Violation`].
    pub fn finish_transfer(self) -> Result<(), TransferError> {
        if !matches!(self.current, Current::None) {
            return Err(TransferError::Violation("the end within a file"));
        }
        let WriterContext { inbox, entry_states, .. } = &self.context;
        // The thread may wait for a sender that accepts no frames; the sending task gives up in time.
        let _ = self.inventory.join();
        let written = self.finishers.wait();
        for (place, why) in inbox.settle(&self.entries, &written) {
            let why = PeerText::new(why);
            if entry_states.fail(place, &self.entries[place as usize], &why) {
                self.context.tell(Frame::Failed(place, why));
            }
        }
        entry_states.close(&self.entries);
        self.context.watch.end_list();
        let counts = entry_states.counts();
        let done = counts.received + counts.same;
        self.context.tell(Frame::Finished(done, counts.failed + counts.not_sent));
        Ok(())
    }
}

const NO_ENTRY: TransferError = TransferError::Violation("an entry that is not on its list");
const OUT_OF_TURN: TransferError = TransferError::Violation("a file out of order");
