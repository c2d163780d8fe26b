//! The thread that writes: what the sender says in, files out.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, UnboundedSender};

use super::current::{OpenFile, concerns_all};
use super::finish::Finishers;
use super::list::List;
use super::store::Store;
use super::survey::{Beginnings, survey};
use super::tally::Tally;
use crate::files::broken::Broken;
use crate::files::names::{shown, shown_path};
use crate::files::watch::{News, Watch};
use crate::files::wire::{Decoder, Entry, Frame, Hash, Kind, Piece};

/// What arrived with the bytes.
const MISMATCH: &str = "arrived with another hash than it was sent with";

/// Messages, and the right to keep so many bytes.
pub struct Batch {
    /// In order.
    pub messages: Vec<Bytes>,
    /// Given back when they are written.
    pub permit: OwnedSemaphorePermit,
}

/// What every part of it needs.
#[derive(Clone)]
pub struct Tools {
    /// Where files go.
    pub store: Arc<Store>,
    /// Who looks.
    pub watch: Arc<Watch>,
    /// Who counts.
    pub tally: Arc<Tally>,
    /// What the sender is told.
    pub out: UnboundedSender<Frame>,
}

/// Writes what one association brings.
pub struct Writer {
    tools: Tools,
    decoder: Decoder,
    phase: Phase,
}

enum Phase {
    Listing(List),
    Files(Files),
    Over,
}

/// Files come.
struct Files {
    tools: Tools,
    entries: Arc<[Entry]>,
    beginnings: Arc<Beginnings>,
    finishers: Finishers,
    survey: std::thread::JoinHandle<()>,
    /// The first place that has not been spoken of: each file comes once at most.
    next: u32,
    current: Current,
    buffer: Vec<u8>,
}

enum Current {
    None,
    Open(Box<OpenFile>),
    /// It has failed here; what is on its way is dropped.
    Dropped(u32, u64),
}

impl Writer {
    /// Nothing has come.
    pub fn new(tools: Tools) -> Self {
        Self { tools, decoder: Decoder::default(), phase: Phase::Listing(List::default()) }
    }

    /// Writes until all is done.
    ///
    /// # Errors
    /// [`Broken`]; what had come of the file is in its unfinished part.
    pub fn run(mut self, mut batches: Receiver<Batch>) -> Result<(), Broken> {
        let result = self.take_all(&mut batches);
        if result.is_err()
            && let Phase::Files(Files { current: Current::Open(file), .. }) = &mut self.phase
        {
            // What does not fit is missing at the end, where it is found out next time.
            let _ = file.flush();
        }
        result
    }

    fn take_all(&mut self, batches: &mut Receiver<Batch>) -> Result<(), Broken> {
        while let Some(Batch { messages, permit }) = batches.blocking_recv() {
            for mut message in messages {
                while let Some(piece) = self.decoder.next(&mut message)? {
                    if self.take(piece)? {
                        return Ok(());
                    }
                }
            }
            drop(permit);
        }
        Err(Broken::Gone("the sender has gone".to_owned()))
    }

    /// Whether that was the last thing.
    fn take(&mut self, piece: Piece) -> Result<bool, Broken> {
        match (piece, &mut self.phase) {
            (Piece::Greeted | Piece::Frame(Frame::Alive(_)), _) => Ok(false),
            (Piece::Frame(Frame::Trouble(why)), _) => Err(Broken::Peer(why)),
            (Piece::Frame(Frame::Entries(entries)), Phase::Listing(list)) => {
                list.add(entries).map(|()| false)
            }
            (Piece::Frame(Frame::Listed(count, bytes)), Phase::Listing(list)) => {
                let entries = std::mem::take(list).complete(count, bytes)?;
                self.phase = Phase::Files(Files::start(self.tools.clone(), entries)?);
                Ok(false)
            }
            (Piece::Data(bytes), Phase::Files(files)) => files.data(&bytes).map(|()| false),
            (Piece::Frame(Frame::Begin(place, offset)), Phase::Files(files)) => {
                files.begin(place, offset).map(|()| false)
            }
            (Piece::Frame(Frame::End(hash)), Phase::Files(files)) => {
                files.end(&hash).map(|()| false)
            }
            (Piece::Frame(Frame::Same(place)), Phase::Files(files)) => {
                files.same(place).map(|()| false)
            }
            (Piece::Frame(Frame::Skip(place, why)), Phase::Files(files)) => {
                files.skip(place, &why).map(|()| false)
            }
            (Piece::Frame(Frame::Over), phase @ Phase::Files(_)) => {
                match std::mem::replace(phase, Phase::Over) {
                    Phase::Files(files) => files.over().map(|()| true),
                    _ => Ok(true),
                }
            }
            _ => Err(Broken::Violation("something out of its turn")),
        }
    }
}

impl Files {
    fn start(tools: Tools, entries: Vec<Entry>) -> Result<Self, Broken> {
        let files = entries.iter().filter(|entry| entry.kind != Kind::Folder).count();
        tools.watch.set_total(files as u64, entries.iter().map(Entry::size).sum());
        tools.watch.set_placed(0);
        tools.watch.set_files_done(0);
        let entries: Arc<[Entry]> = entries.into();
        let beginnings: Arc<Beginnings> = Arc::default();
        let no_thread = |error: io::Error| Broken::Own(format!("no thread: {error}"));
        let Tools { store, tally, out, .. } = tools.clone();
        let finishers =
            Finishers::start(store.clone(), entries.clone(), tally.clone(), out.clone())
                .map_err(no_thread)?;
        let (list, parts) = (entries.clone(), beginnings.clone());
        let survey = std::thread::Builder::new()
            .name("survey".to_owned())
            .spawn(move || survey(&store, &list, &parts, &tally, &out))
            .map_err(no_thread)?;
        let (current, buffer) = (Current::None, Vec::new());
        Ok(Self { tools, entries, beginnings, finishers, survey, next: 0, current, buffer })
    }

    /// A file that has not been spoken of.
    fn turn(&mut self, place: u32) -> Result<&Entry, Broken> {
        let entry = self.entries.get(place as usize).filter(|entry| entry.kind != Kind::Folder);
        let entry = entry.ok_or(Broken::Violation("no such file on the list"))?;
        if place < self.next || !matches!(self.current, Current::None) {
            return Err(Broken::Violation("a file out of its turn"));
        }
        self.next = place + 1;
        Ok(entry)
    }

    fn begin(&mut self, place: u32, offset: u64) -> Result<(), Broken> {
        let size = self.turn(place)?.size();
        let known = {
            let mut beginnings = self.beginnings.lock().unwrap_or_else(PoisonError::into_inner);
            beginnings.remove(&place)
        };
        let hasher = match known {
            _ if offset == 0 => blake3::Hasher::new(),
            Some(known) if known.len == offset => *known.hasher,
            _ => return Err(Broken::Violation("a file from an offset that nobody offered")),
        };
        let name = &self.entries[place as usize].name;
        if offset > 0 {
            self.tools.tally.placed(offset);
            self.tools.watch.tell(News::Resumed(name.to_string(), offset));
        }
        match self.tools.store.begin(name, offset) {
            Ok(file) => {
                let buffer = std::mem::take(&mut self.buffer);
                let file = OpenFile::new(place, file, hasher, size - offset, buffer);
                self.current = Current::Open(Box::new(file));
                Ok(())
            }
            Err(error) => self.fail(place, size - offset, error),
        }
    }

    fn data(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let len = bytes.len() as u64;
        let left = match &self.current {
            Current::Open(file) => file.left(),
            Current::Dropped(_, left) => *left,
            Current::None => 0,
        };
        if len > left {
            return Err(Broken::Violation("more data than the file has"));
        }
        self.tools.tally.placed(len);
        self.tools.watch.add_moved(len);
        match &mut self.current {
            Current::Open(file) => match file.take(bytes) {
                Ok(()) => Ok(()),
                Err(error) => {
                    let place = file.place;
                    self.fail(place, left - len, error)
                }
            },
            Current::Dropped(_, left) => {
                *left -= len;
                Ok(())
            }
            Current::None => Ok(()),
        }
    }

    fn end(&mut self, hash: &Hash) -> Result<(), Broken> {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::Open(file) if file.left() == 0 => {
                let place = file.place;
                match file.complete(hash) {
                    Ok((Some(file), buffer)) => {
                        self.buffer = buffer;
                        self.finishers.take(place, file);
                    }
                    Ok((None, buffer)) => {
                        self.buffer = buffer;
                        self.tools.store.forget(&self.entries[place as usize].name);
                        self.tell_failure(place, MISMATCH);
                    }
                    Err(error) => {
                        self.fail(place, 0, error)?;
                        self.current = Current::None;
                    }
                }
                Ok(())
            }
            Current::Dropped(_, 0) => Ok(()),
            _ => Err(Broken::Violation("the end of a file before its end")),
        }
    }

    /// The file cannot be written: others may be, unless the cause concerns all.
    fn fail(&mut self, place: u32, left: u64, error: io::Error) -> Result<(), Broken> {
        if concerns_all(&error) {
            let directory = shown_path(self.tools.store.path());
            return Err(Broken::Own(format!("cannot write to `{directory}`: {error}")));
        }
        self.tell_failure(place, &error.to_string());
        self.current = Current::Dropped(place, left);
        Ok(())
    }

    fn tell_failure(&self, place: u32, why: &str) {
        self.tools.tally.broken(&self.entries[place as usize].name, why);
        let _ = self.tools.out.send(Frame::Failed(place, why.to_owned()));
    }

    fn same(&mut self, place: u32) -> Result<(), Broken> {
        let entry = self.turn(place)?.clone();
        self.tools.tally.same(&entry);
        let _ = self.tools.out.send(Frame::Done(place));
        Ok(())
    }

    fn skip(&mut self, place: u32, why: &str) -> Result<(), Broken> {
        let why = shown(why.as_bytes());
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None => {
                let entry = self.turn(place)?.clone();
                self.tools.tally.failed(&entry, &why);
            }
            // What has come is kept: if it is the same next time, it goes on there.
            Current::Open(mut file) if file.place == place => {
                self.tools.tally.placed(file.left());
                self.tools.tally.broken(&self.entries[place as usize].name, &why);
                let _ = file.flush();
                self.buffer = file.into_buffer();
            }
            Current::Dropped(own, left) if own == place => self.tools.tally.placed(left),
            _ => return Err(Broken::Violation("a file out of its turn")),
        }
        Ok(())
    }

    fn over(self) -> Result<(), Broken> {
        if !matches!(self.current, Current::None) {
            return Err(Broken::Violation("the end within a file"));
        }
        let _ = self.survey.join();
        let written: BTreeSet<u32> = self.finishers.wait();
        let Tools { store, tally, out, .. } = self.tools;
        store.settle(&self.entries, &written).map_err(Broken::Own)?;
        let (done, failed) = tally.counts();
        let _ = out.send(Frame::Finished(done, failed));
        Ok(())
    }
}
