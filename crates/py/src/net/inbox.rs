//! What has arrived and nobody has taken yet.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as FetchLock;

/// Between the sockets and Python: it is filled only by those who wait, and only when it is empty, so
/// that it holds no more than came at once.
pub(super) struct Inbox<T, E> {
    content: Mutex<Content<T, E>>,
    fetch_lock: FetchLock<()>,
}

struct Content<T, E> {
    items: VecDeque<T>,
    end: Option<E>,
}

/// What a source has.
pub(super) enum Fetched<T, E> {
    /// At least one.
    Items(Vec<T>),
    /// There will be no more, for this reason.
    End(E),
}

impl<T, E: Copy> Inbox<T, E> {
    pub fn new() -> Self {
        let content = Content { items: VecDeque::new(), end: None };
        Self { content: Mutex::new(content), fetch_lock: FetchLock::new(()) }
    }

    fn content(&self) -> MutexGuard<'_, Content<T, E>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first.
    pub fn take(&self) -> Option<T> {
        self.content().items.pop_front()
    }

    /// All there is.
    pub fn take_all(&self) -> VecDeque<T> {
        std::mem::take(&mut self.content().items)
    }

    /// Why there will be no more, if that is known.
    pub fn end(&self) -> Option<E> {
        self.content().end
    }

    /// Whether there is something to take, or never will be.
    fn known(&self) -> Option<bool> {
        let content = self.content();
        match (content.items.is_empty(), content.end) {
            (false, _) => Some(true),
            (true, Some(_)) => Some(false),
            (true, None) => None,
        }
    }

    /// Waits until there is something to take (true), or never will be (false). Whoever gives up
    /// loses nothing: what `fill` has found is put here at once.
    pub async fn arrival(&self, fill: impl Future<Output = Fetched<T, E>>) -> bool {
        if let Some(known) = self.known() {
            return known;
        }
        let _turn = self.fetch_lock.lock().await;
        if let Some(known) = self.known() {
            return known;
        }
        let fetched = fill.await;
        let mut content = self.content();
        match fetched {
            Fetched::Items(items) => content.items.extend(items),
            Fetched::End(end) => content.end = Some(end),
        }
        !content.items.is_empty()
    }
}
