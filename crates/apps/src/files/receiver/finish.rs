//! Threads that bring complete files to disk. Waiting for the disk is most of what a small file costs, and
//! file systems take many such waits at once.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use tokio::sync::mpsc::UnboundedSender;

use super::store::Store;
use super::tally::Tally;
use crate::files::wire::{Entry, Frame};

/// How many.
const THREADS: usize = 8;
/// Complete files that wait for one.
const QUEUE: usize = 64;

/// A complete file.
struct Complete {
    place: u32,
    file: File,
}

/// What the threads share.
struct Shared {
    store: Arc<Store>,
    entries: Arc<[Entry]>,
    queue: Mutex<Receiver<Complete>>,
    tally: Arc<Tally>,
    out: UnboundedSender<Frame>,
    written: Mutex<BTreeSet<u32>>,
}

/// The threads.
pub struct Finishers {
    queue: SyncSender<Complete>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Finishers {
    /// Starts them.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(
        store: Arc<Store>,
        entries: Arc<[Entry]>,
        tally: Arc<Tally>,
        out: UnboundedSender<Frame>,
    ) -> std::io::Result<Self> {
        let (queue, waiting) = sync_channel(QUEUE);
        let (queue_out, written) = (Mutex::new(waiting), Mutex::default());
        let shared = Arc::new(Shared { store, entries, queue: queue_out, tally, out, written });
        let thread = |_| {
            let shared = shared.clone();
            Builder::new().name("finish".to_owned()).spawn(move || shared.work())
        };
        let threads = (0..THREADS).map(thread).collect::<Result<_, _>>()?;
        Ok(Self { queue, threads, shared })
    }

    /// Has a file finished; waits while many do so.
    pub fn take(&self, place: u32, file: File) {
        // The threads live as long as the queue does.
        let _ = self.queue.send(Complete { place, file });
    }

    /// Waits for all of them. Which entries have got their names.
    pub fn wait(self) -> BTreeSet<u32> {
        drop(self.queue);
        for thread in self.threads {
            let _ = thread.join();
        }
        std::mem::take(&mut self.shared.written.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let next = self.queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Complete { place, file }) = next else { return };
            let entry = &self.entries[place as usize];
            let frame = match self.store.finish(entry, file) {
                Ok(()) => {
                    self.tally.done();
                    self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
                    Frame::Done(place)
                }
                Err(error) => {
                    let why = match error.kind() {
                        ErrorKind::AlreadyExists => "has come into being meanwhile".to_owned(),
                        _ => error.to_string(),
                    };
                    self.tally.broken(&entry.name, &why);
                    Frame::Failed(place, why)
                }
            };
            // If nobody hears it, it is found out next time.
            let _ = self.out.send(frame);
        }
    }
}
