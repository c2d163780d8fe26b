//! What can be seen of a transfer while it runs, from any thread.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::link::{Figures, PathFigures};

/// Something that a person may want to know at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// The association is up.
    Connected,
    /// It is not, for this reason; it is tried again.
    Lost(String),
    /// A file goes on behind the bytes that are there already.
    Resumed(String, u64),
    /// A file is not sent or not taken, for this reason.
    Failed(String, String),
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
    /// The association of now, and how many there were before it.
    link: Mutex<(u64, Option<Arc<dyn Figures>>)>,
    listener: Box<dyn Fn(News) + Send + Sync>,
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
            link: Mutex::new((0, None)),
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

    /// The paths of the association of now, and how many associations there were before it.
    pub fn paths(&self) -> (u64, Vec<PathFigures>) {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        (link.0, link.1.as_ref().map(|figures| figures.paths()).unwrap_or_default())
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

    pub(super) fn add_files_done(&self, files: u64) {
        self.files_done.fetch_add(files, Ordering::Relaxed);
    }

    pub(super) fn add_placed(&self, bytes: u64) {
        self.placed.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn attach(&self, figures: Arc<dyn Figures>) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        *link = (link.0 + 1, Some(figures));
    }

    pub(super) fn detach(&self) {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).1 = None;
    }
}
