//! What can be seen of a transfer while it runs, from any thread.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ropewalk_base::PeerText;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::link::{Figures, PathFigures};
use super::peer::Peer;

/// Something that a person may want to know at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// An association with this peer is up.
    Connected(Peer),
    /// It has ended before the transfer did, for this reason.
    Lost(PeerText),
    /// A file goes on behind the bytes that are there already.
    Resumed(PeerText, u64),
    /// A file is not sent or not taken, for this reason.
    Failed(PeerText, PeerText),
}

/// How far it is, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Files to be transferred.
    pub files: u64,
    /// Of these: whole, on disk, under their names.
    pub files_done: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Of these: in their place at the receiver, those included that were there before.
    pub placed: u64,
    /// Bytes of files that went through the association.
    pub moved: u64,
}

/// What can be seen of a transfer.
pub struct Watch {
    files: AtomicU64,
    files_done: AtomicU64,
    bytes: AtomicU64,
    placed: AtomicU64,
    moved: AtomicU64,
    link: Mutex<Current>,
    stopped: AtomicBool,
    stopping: Notify,
    listener: Box<dyn Fn(News) + Send + Sync>,
}

/// The association of now, if there is one.
#[derive(Default)]
struct Current {
    /// Its number, counted from 1.
    number: u64,
    figures: Option<Arc<dyn Figures>>,
    /// What its paths had come to when it ended.
    last: Vec<PathFigures>,
    /// When the first one came up.
    began: Option<Instant>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl Watch {
    /// Nothing has happened. The listener is called from any thread, and must not wait.
    pub fn new(listener: impl Fn(News) + Send + Sync + 'static) -> Self {
        Self {
            files: AtomicU64::new(0),
            files_done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            placed: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            link: Mutex::default(),
            stopped: AtomicBool::new(false),
            stopping: Notify::new(),
            listener: Box::new(listener),
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Progress {
            files: read(&self.files),
            files_done: read(&self.files_done),
            bytes: read(&self.bytes),
            placed: read(&self.placed),
            moved: read(&self.moved),
        }
    }

    /// The paths of the association of now, or of the last one, and its number, counted from 1.
    pub fn paths(&self) -> (u64, Vec<PathFigures>) {
        let link = self.link();
        let paths = link.figures.as_ref().map(|figures| figures.paths());
        (link.number, paths.unwrap_or_else(|| link.last.clone()))
    }

    /// For how long there has been an association, the pauses between several included. None: there was none yet.
    pub fn elapsed(&self) -> Option<Duration> {
        self.link().began.map(|began| began.elapsed())
    }

    /// Ends the receiver in order: files that are complete get their names, then [`receive`](super::receive) returns.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.stopping.notify_waiters();
        self.hang_up();
    }

    /// Waits until it is to be stopped.
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

    /// Ends the association of now at once, as when the user has had enough.
    pub fn hang_up(&self) {
        if let Some(figures) = &self.link().figures {
            figures.hang_up();
        }
    }

    fn link(&self) -> MutexGuard<'_, Current> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, news: News) {
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

    pub(super) fn add_placed(&self, bytes: u64) {
        self.placed.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn attach(&self, figures: Arc<dyn Figures>) {
        let mut link = self.link();
        link.number += 1;
        link.figures = Some(figures);
        link.last.clear();
        link.began.get_or_insert_with(Instant::now);
    }

    pub(super) fn detach(&self) {
        let mut link = self.link();
        if let Some(figures) = link.figures.take() {
            link.last = figures.paths();
        }
    }
}
