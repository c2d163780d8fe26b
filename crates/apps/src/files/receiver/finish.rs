//! Threads that sync complete files to disk and compare existing ones. Small files mostly wait for the disk, and file
//! systems handle many such waits concurrently.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;
use ropewalk_base::PeerText;

use super::entry_states::EntryState;
use super::inbox::describe;
use super::part::Part;
use super::sender_progress::{ENTRY_UNITS, LocalTask};
use super::writer::WriterContext;
use crate::files::watch::TransferEvent;
use crate::files::wire::{Entry, Frame, Hash};

/// Number of threads.
const THREADS: usize = 8;
/// Maximum number of tasks that wait for a thread.
const QUEUE: usize = 64;
const DIFFERS: &str = "a file with different contents exists";

/// A task for one entry.
#[derive(Debug)]
enum Work {
    /// Finish a file that has arrived completely.
    Finish(Part),
    /// Compare the existing file with this hash of the sender's file.
    Compare(Hash),
}

/// State shared by the threads.
struct Shared {
    context: WriterContext,
    entries: Arc<[Entry]>,
    queue: Mutex<Receiver<(u32, Work, LocalTask)>>,
    written: Mutex<BTreeSet<u32>>,
}

/// Pool of finishing threads.
pub struct Finishers {
    queue: SyncSender<(u32, Work, LocalTask)>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Finishers {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn start(context: WriterContext, entries: Arc<[Entry]>) -> std::io::Result<Self> {
        let (queue, waiting) = sync_channel(QUEUE);
        let (queue_out, written) = (Mutex::new(waiting), Mutex::default());
        let shared = Arc::new(Shared { context, entries, queue: queue_out, written });
        let thread = |_| {
            let shared = shared.clone();
            Builder::new().name("finish".to_owned()).spawn(move || shared.work())
        };
        let threads = (0..THREADS).map(thread).collect::<Result<_, _>>()?;
        Ok(Self { queue, threads, shared })
    }

    /// Queues a file to be finished. Waits while the queue is full.
    pub fn finish(&self, place: u32, part: Part) {
        self.add(place, Work::Finish(part));
    }

    /// Queues an existing file to be compared. Waits while the queue is full.
    pub fn compare(&self, place: u32, hash: Hash) {
        self.add(place, Work::Compare(hash));
    }

    fn add(&self, place: u32, work: Work) {
        // Cannot fail: the threads live as long as the queue.
        let _ =
            self.queue.send((place, work, self.shared.context.sender_progress.begin_local_task()));
    }

    /// Waits for all tasks. Returns the entries whose files now have their names.
    pub fn wait(self) -> BTreeSet<u32> {
        drop(self.queue);
        for thread in self.threads {
            let _ = thread.join();
        }
        std::mem::take(&mut self.shared.written.lock())
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let next = self.queue.lock().recv();
            let Ok((place, work, _task)) = next else { return };
            let frame = match work {
                Work::Finish(part) => self.finish(place, part),
                Work::Compare(hash) => self.compare(place, &hash),
            };
            self.context.tell(frame);
        }
    }

    fn finish(&self, place: u32, part: Part) -> Frame {
        match self.context.inbox.finish(&self.entries[place as usize], part) {
            Ok(()) => {
                self.written.lock().insert(place);
                self.context.entry_states.advance(
                    place,
                    &[EntryState::Complete],
                    EntryState::Received,
                );
                let entry = &self.entries[place as usize];
                let name = PeerText::new(entry.name.to_string());
                self.context.watch.tell(TransferEvent::Finished(name, entry.size()));
                self.context.sender_progress.add(ENTRY_UNITS);
                Frame::Done(place)
            }
            Err(error) => self.fail(place, describe(&error)),
        }
    }

    fn compare(&self, place: u32, hash: &Hash) -> Frame {
        let WriterContext { inbox, entry_states, sender_progress, .. } = &self.context;
        let entry = &self.entries[place as usize];
        match inbox.compare(entry, hash, |bytes| entry_states.add_read(bytes)) {
            Ok(true) => {
                entry_states.advance(place, &[EntryState::Comparing], EntryState::Same);
                entry_states.add_existing(place, entry.size());
                sender_progress.add(ENTRY_UNITS);
                Frame::Done(place)
            }
            Ok(false) if inbox.replaces() => match inbox.plan_replacement(entry) {
                Ok(()) => {
                    entry_states.advance(place, &[EntryState::Comparing], EntryState::Fresh);
                    Frame::Differs(place)
                }
                Err(over) => self.fail(place, describe(&over)),
            },
            Ok(false) => self.fail(place, DIFFERS.to_owned()),
            Err(error) => self.fail(place, format!("could not read the file that exists: {error}")),
        }
    }

    fn fail(&self, place: u32, why: String) -> Frame {
        let why = PeerText::new(why);
        self.context.entry_states.fail(place, &self.entries[place as usize], &why);
        Frame::Failed(place, why)
    }
}
