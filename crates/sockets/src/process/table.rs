//! Table of the descriptors that are sockets of this library.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::socket::Socket;

/// Descriptors below this number are looked up without a lock.
const QUICK: usize = 1 << 16;

/// One bit per descriptor: whether it is or may be in the table.
static OURS: [AtomicU64; QUICK / 64] = [const { AtomicU64::new(0) }; QUICK / 64];

/// Whether a descriptor may be a socket of this library. Safe in signal handlers.
pub fn is_ours(fd: i32) -> bool {
    let Ok(fd) = usize::try_from(fd) else { return false };
    match OURS.get(fd / 64) {
        Some(word) => word.load(Ordering::Relaxed) >> (fd % 64) & 1 == 1,
        None => true,
    }
}

fn mark(fd: i32, ours: bool) {
    let Ok(fd) = usize::try_from(fd) else { return };
    let Some(word) = OURS.get(fd / 64) else { return };
    let bit = 1 << (fd % 64);
    if ours {
        word.fetch_or(bit, Ordering::Relaxed);
    } else {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// Result of looking up a descriptor.
pub enum Found {
    /// A socket of this library.
    Socket(Arc<Socket>),
    /// A socket of another process or program, which cannot be used.
    Inherited,
    /// Any other descriptor.
    Other,
}

#[derive(Debug)]
enum Entry {
    Socket(Arc<Socket>),
    Inherited,
}

/// The descriptors of sockets.
#[derive(Debug, Default)]
pub struct Table {
    entries: BTreeMap<i32, Entry>,
}

impl Table {
    /// Looks up a descriptor.
    pub fn find(&self, fd: i32) -> Found {
        match self.entries.get(&fd) {
            Some(Entry::Socket(socket)) => Found::Socket(socket.clone()),
            Some(Entry::Inherited) => Found::Inherited,
            None => Found::Other,
        }
    }

    /// Adds a descriptor.
    pub fn insert(&mut self, fd: i32, socket: Arc<Socket>) {
        mark(fd, true);
        self.entries.insert(fd, Entry::Socket(socket));
    }

    /// Adds a descriptor of a socket that belongs to another process or program.
    pub fn insert_inherited(&mut self, fd: i32) {
        mark(fd, true);
        self.entries.insert(fd, Entry::Inherited);
    }

    /// Removes a descriptor. Returns the socket if this was its last one.
    pub fn remove(&mut self, fd: i32) -> Option<Arc<Socket>> {
        mark(fd, false);
        let Some(Entry::Socket(socket)) = self.entries.remove(&fd) else { return None };
        let same = |entry: &Entry| matches!(entry, Entry::Socket(s) if Arc::ptr_eq(s, &socket));
        (!self.entries.values().any(same)).then_some(socket)
    }

    /// The descriptors of a socket.
    pub fn descriptors_of(&self, socket: &Socket) -> Vec<i32> {
        let is_its =
            |entry: &Entry| matches!(entry, Entry::Socket(s) if std::ptr::eq(&**s, socket));
        self.entries.iter().filter_map(|(fd, entry)| is_its(entry).then_some(*fd)).collect()
    }

    /// Removes everything. Returns each socket once.
    pub fn take_all(&mut self) -> Vec<Arc<Socket>> {
        let fds: Vec<i32> = self.entries.keys().copied().collect();
        fds.into_iter().filter_map(|fd| self.remove(fd)).collect()
    }

    /// The descriptors of sockets of this process.
    pub fn own(&self) -> Vec<i32> {
        let is_own = |(fd, entry): (&i32, &Entry)| matches!(entry, Entry::Socket(_)).then_some(*fd);
        self.entries.iter().filter_map(is_own).collect()
    }

    /// The library's own descriptors of all sockets.
    pub fn library_descriptors(&self) -> Vec<i32> {
        let of_entry = |entry: &Entry| match entry {
            Entry::Socket(socket) => socket.pair.descriptors().to_vec(),
            Entry::Inherited => Vec::new(),
        };
        self.entries.values().flat_map(of_entry).collect()
    }

    /// The same table for a child process, in which all descriptors are inherited.
    pub fn inherited(&self) -> Self {
        let entries = self.entries.keys().map(|fd| (*fd, Entry::Inherited));
        Self { entries: entries.collect() }
    }
}
