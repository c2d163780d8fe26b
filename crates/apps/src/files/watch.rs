//! Observation of a running transfer from any thread.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ropewalk_base::PeerText;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::link::{Figures, PathFigures};
use super::names::Name;
use super::peer::Peer;
use super::wire::{Entry, Kind};

/// An event that is reported to the user immediately.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransferEvent {
    /// An association with this peer is established.
    Connected(Peer),
    /// The association has ended before the transfer did, for this reason.
    Lost(PeerText),
    /// The transfer of a file of this size, bytes, has started.
    Started(PeerText, u64),
    /// A file of this size, bytes, is complete at the receiver.
    Finished(PeerText, u64),
    /// A file is resumed after the bytes that already exist.
    Resumed(PeerText, u64),
    /// A file is not sent or not accepted, for this reason.
    Failed(PeerText, PeerText),
}

/// Progress of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Number of files to transfer.
    pub files: u64,
    /// Number of files that are complete, on disk and have their names.
    pub files_done: u64,
    /// Total size of all files, bytes.
    pub bytes: u64,
    /// Total size of the entries that have failed, bytes.
    pub failed: u64,
    /// Bytes that are in their place at the receiver, including those that existed before. Failed entries have none.
    pub placed: u64,
    /// The part of `placed` that this transfer has delivered, over all of its associations.
    pub brought: u64,
    /// Bytes of files that were sent over associations, including those that were lost with an association.
    pub moved: u64,
}

impl Progress {
    /// Bytes that were in their place before the transfer.
    pub const fn existing(&self) -> u64 {
        self.placed.saturating_sub(self.brought)
    }
}

/// Files of a list that were received before an association ended. The sender lists the others again.
#[derive(Debug, Default)]
struct Unlisted {
    peer: Peer,
    /// Whether the next list continues the last one.
    continues: bool,
    /// Their sizes, bytes.
    done: BTreeMap<Name, u64>,
}

/// The observable state of a transfer.
pub struct TransferStatus {
    files: AtomicU64,
    files_done: AtomicU64,
    bytes: AtomicU64,
    failed: AtomicU64,
    placed: AtomicU64,
    brought: AtomicU64,
    moved: AtomicU64,
    unlisted: Mutex<Unlisted>,
    link: Mutex<Current>,
    stopped: AtomicBool,
    stopping: Notify,
    listener: Box<dyn Fn(TransferEvent) + Send + Sync>,
}

/// The current association, if there is one.
#[derive(Default)]
struct Current {
    /// Number of the association, counted from 1.
    number: u64,
    figures: Option<Arc<dyn Figures>>,
    /// Statistics of its paths when it ended.
    last: Vec<PathFigures>,
    /// When the first association was established.
    began: Option<Instant>,
    /// When the current transfer began, at a receiver.
    transfer_began: Option<Instant>,
}

impl fmt::Debug for TransferStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl TransferStatus {
    /// Creates the state of a transfer that has not started. The listener is called from any thread and must not
    /// wait.
    pub fn new(listener: impl Fn(TransferEvent) + Send + Sync + 'static) -> Self {
        Self {
            files: AtomicU64::new(0),
            files_done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            placed: AtomicU64::new(0),
            brought: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            unlisted: Mutex::default(),
            link: Mutex::default(),
            stopped: AtomicBool::new(false),
            stopping: Notify::new(),
            listener: Box::new(listener),
        }
    }

    /// The progress so far.
    pub fn progress(&self) -> Progress {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Progress {
            files: read(&self.files),
            files_done: read(&self.files_done),
            bytes: read(&self.bytes),
            failed: read(&self.failed),
            placed: read(&self.placed),
            brought: read(&self.brought),
            moved: read(&self.moved),
        }
    }

    /// Number (from 1) and paths of the current association, or of the last one.
    pub fn paths(&self) -> (u64, Vec<PathFigures>) {
        let link = self.link.lock();
        let paths = link.figures.as_ref().map(|figures| figures.paths());
        (link.number, paths.unwrap_or_else(|| link.last.clone()))
    }

    /// Time since the first association was established, including pauses between associations. `None` if there was
    /// none yet.
    pub fn elapsed(&self) -> Option<Duration> {
        self.link.lock().began.map(|began| began.elapsed())
    }

    /// Time since the current transfer began. A receiver may have waited for its sender, or served others before.
    pub fn transfer_time(&self) -> Option<Duration> {
        let link = self.link.lock();
        link.transfer_began.or(link.began).map(|began| began.elapsed())
    }

    /// Stops the receiver in an orderly way: complete files get their names, then [`receive`](super::receive)
    /// returns.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.stopping.notify_waiters();
        self.abort();
    }

    /// Waits until [`TransferStatus::stop`] is called.
    pub(super) async fn stopped(&self) {
        loop {
            let stopping = self.stopping.notified();
            tokio::pin!(stopping);
            stopping.as_mut().enable();
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            stopping.await;
        }
    }

    /// Ends the current association immediately, when the user cancels.
    pub fn abort(&self) {
        if let Some(figures) = &self.link.lock().figures {
            figures.abort();
        }
    }

    pub(super) fn tell(&self, news: TransferEvent) {
        (self.listener)(news);
    }

    pub(super) fn set_total(&self, files: u64, bytes: u64) {
        self.files.store(files, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_placed(&self, bytes: u64) {
        self.placed.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_files_done(&self, files: u64) {
        self.files_done.store(files, Ordering::Relaxed);
    }

    pub(super) fn set_failed(&self, bytes: u64) {
        self.failed.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_brought(&self, bytes: u64) {
        self.brought.store(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that are in their place, and the part of them that has arrived now.
    pub(super) fn add_placed(&self, bytes: u64, brought: u64) {
        self.placed.fetch_add(bytes, Ordering::Relaxed);
        self.brought.fetch_add(brought, Ordering::Relaxed);
    }

    /// Handles an entry of this size that has failed: subtracts its bytes from those placed and brought.
    pub(super) fn lose(&self, placed: u64, brought: u64, size: u64) {
        let less = |counter: &AtomicU64, by: u64| {
            let reduced = counter.load(Ordering::Relaxed).saturating_sub(by);
            counter.store(reduced, Ordering::Relaxed);
        };
        less(&self.placed, placed);
        less(&self.brought, brought);
        self.failed.fetch_add(size, Ordering::Relaxed);
    }

    /// Starts a transfer with the list of a sender. If the last association of this sender ended early, the totals
    /// include what it transferred.
    pub(super) fn begin_list(&self, peer: &Peer, entries: &[Entry]) {
        let mut unlisted = self.unlisted.lock();
        if !unlisted.continues || unlisted.peer.tag() != peer.tag() {
            *unlisted = Unlisted { peer: peer.clone(), ..Unlisted::default() };
            self.set_brought(0);
            self.link.lock().transfer_began = Some(Instant::now());
        }
        for entry in entries {
            unlisted.done.remove(&entry.name);
        }
        let files = entries.iter().filter(|entry| entry.kind != Kind::Folder).count() as u64;
        let (more, bytes) = (unlisted.done.len() as u64, unlisted.done.values().sum::<u64>());
        self.set_total(files + more, entries.iter().map(Entry::size).sum::<u64>() + bytes);
        self.set_placed(bytes);
        self.set_failed(0);
        self.set_files_done(more);
    }

    /// Sets how many files of the current list are complete.
    pub(super) fn set_list_done(&self, files: u64) {
        self.set_files_done(self.unlisted.lock().done.len() as u64 + files);
    }

    /// Keeps the complete files when the association ends before the transfer.
    pub(super) fn keep_done(&self, entries: &[&Entry]) {
        let mut unlisted = self.unlisted.lock();
        unlisted.continues = true;
        unlisted.done.extend(entries.iter().map(|entry| (entry.name.clone(), entry.size())));
    }

    /// Ends the transfer.
    pub(super) fn end_list(&self) {
        self.unlisted.lock().continues = false;
    }

    pub(super) fn add_moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn attach(&self, figures: Arc<dyn Figures>) {
        let mut link = self.link.lock();
        link.number += 1;
        link.figures = Some(figures);
        link.last.clear();
        link.began.get_or_insert_with(Instant::now);
    }

    pub(super) fn detach(&self) {
        let mut link = self.link.lock();
        if let Some(figures) = link.figures.take() {
            link.last = figures.paths();
        }
    }
}
