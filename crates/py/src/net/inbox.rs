//! Data that has arrived and has not yet been taken.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as FetchLock;

/// A queue between the sockets and Python. Only waiting callers fill it, and only when it is empty, so it holds
/// at most one batch of arrivals.
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
    /// At least one item.
    Items(Vec<T>),
    /// Nothing will follow, for this reason.
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

    /// Takes the first item.
    pub fn take(&self) -> Option<T> {
        self.content().items.pop_front()
    }

    /// Takes all items.
    pub fn take_all(&self) -> VecDeque<T> {
        std::mem::take(&mut self.content().items)
    }

    /// Why nothing will follow, if that is known.
    pub fn end(&self) -> Option<E> {
        self.content().end
    }

    /// Whether a wait would return: an item is available, or none will follow.
    fn known(&self) -> Option<bool> {
        let content = self.content();
        match (content.items.is_empty(), content.end) {
            (false, _) => Some(true),
            (true, Some(_)) => Some(false),
            (true, None) => None,
        }
    }

    /// Waits until an item is available (true) or none will follow (false). A cancelled wait loses nothing: the
    /// results of `fill` are stored here immediately.
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
