//! State of the library in its process: the descriptor table, the thread that drives the associations, and the
//! endpoints that they share.
//!
//! The thread exists in the parent only. If it has started before a fork, the child starts with a new state: the
//! sockets that it has inherited are replaced and refused ([`crate::inherited`]), and new sockets work. If the
//! thread has not started, no socket has listened or connected yet, and the child keeps all of them. Daemons that
//! first bind a port need this.

mod background;
mod ports;
mod reactor;
pub mod routes;
mod services;
mod table;

use std::cell::RefCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

pub use self::background::{note_use, tell_of_sockets_left_behind};
pub use self::ports::{Claim, Sharing};
pub use self::services::{Interface, Place, Service};
pub use self::table::{Found, is_ours};

use self::ports::Ports;
use self::reactor::Closing;
pub use self::reactor::{Ending, Phase};
use self::services::Services;
use self::table::Table;
use crate::critical::uncancelled;
use crate::errno::{Errno, Result};
use crate::inherited::{self, Identified};
use crate::settings::Settings;
use crate::socket::Socket;

/// The state of this process.
pub struct Process {
    id: AtomicU32,
    table: Mutex<Table>,
    settings: OnceLock<Settings>,
    reactor: Mutex<Option<Handle>>,
    services: Services,
    ports: Mutex<Ports>,
    closing: Arc<Closing>,
}

static CURRENT: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());
static START: Once = Once::new();

/// Locks a mutex, even if another holder has panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of this process.
pub fn current() -> &'static Process {
    START.call_once(|| {
        Process::new(Table::default()).install();
        // SAFETY: the three functions may be called at any fork, and `at_exit` at the exit of the process.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
            libc::atexit(at_exit);
        }
    });
    // SAFETY: the pointer is set above, or by `in_child`, to a value that is never freed.
    unsafe { &*CURRENT.load(Ordering::Acquire) }
}

impl Process {
    fn new(table: Table) -> Self {
        Self {
            id: AtomicU32::new(std::process::id()),
            table: Mutex::new(table),
            settings: OnceLock::new(),
            reactor: Mutex::new(None),
            services: Services::default(),
            ports: Mutex::default(),
            closing: Arc::default(),
        }
    }

    fn install(self) {
        CURRENT.store(Box::into_raw(Box::new(self)), Ordering::Release);
    }

    /// Whether the caller is this process. A child of `vfork` shares the memory of its parent until it executes
    /// another program, and runs no fork handlers. Its actions on descriptors do not affect the parent's sockets.
    pub fn is_current(&self) -> bool {
        self.id.load(Ordering::Relaxed) == std::process::id()
    }

    /// The settings of the environment.
    pub fn settings(&self) -> &Settings {
        self.settings.get_or_init(Settings::from_environment)
    }

    /// The runtime of the thread that drives the associations. Starts the thread.
    ///
    /// # Errors
    /// Errors of the system, for example if there are no more threads or descriptors.
    pub fn reactor(&self) -> Result<Handle> {
        let mut reactor = lock(&self.reactor);
        match &*reactor {
            Some(handle) => Ok(handle.clone()),
            None => Ok(reactor.insert(reactor::start()?).clone()),
        }
    }

    /// The endpoints of this process.
    pub const fn services(&self) -> &Services {
        &self.services
    }

    /// The SCTP ports to which its sockets are bound.
    const fn ports(&self) -> &Mutex<Ports> {
        &self.ports
    }

    /// The socket of a descriptor.
    pub fn find(&self, fd: i32) -> Found {
        lock(&self.table).find(fd)
    }

    /// Adds a descriptor of a socket.
    pub fn insert(&self, fd: i32, socket: Arc<Socket>) {
        lock(&self.table).insert(fd, socket);
    }

    /// Adds a descriptor of a socket that belongs to another process or program.
    pub fn insert_inherited(&self, fd: i32) {
        lock(&self.table).insert_inherited(fd);
    }

    /// Removes a descriptor. Returns the socket if this was its last one.
    pub fn remove(&self, fd: i32) -> Option<Arc<Socket>> {
        lock(&self.table).remove(fd)
    }

    /// Calls `work` with the descriptors of a socket, while none is added or removed.
    pub fn with_descriptors<T>(&self, socket: &Socket, work: impl FnOnce(&[i32]) -> T) -> T {
        let table = lock(&self.table);
        work(&table.descriptors_of(socket))
    }

    /// Checks that another process may continue this one: no socket has listened or connected.
    ///
    /// # Errors
    /// `EOPNOTSUPP`. The reason goes to standard error.
    pub fn may_move(&self) -> Result<()> {
        let has_sockets = !lock(&self.table).own().is_empty();
        if !has_sockets || lock(&self.reactor).is_none() {
            return Ok(());
        }
        background::tell("cannot go to the background (EOPNOTSUPP)");
        Err(Errno(libc::EOPNOTSUPP))
    }

    /// Ends an association in the background. The exit of the process waits for it.
    pub fn close_in_background<F: Future<Output = ()> + Send + 'static>(
        &self,
        end: impl FnOnce(Ending) -> F,
    ) {
        let Ok(handle) = self.reactor() else { return };
        handle.spawn(end(self.closing.begin()));
    }
}

/// Locks that the forking thread holds during the fork, so that the child finds a consistent state. The table is
/// locked first: [`Process::with_descriptors`] locks sockets after it, and those lock the others.
struct Held {
    table: MutexGuard<'static, Table>,
    reactor: MutexGuard<'static, Option<Handle>>,
    _ports: MutexGuard<'static, Ports>,
    /// The library's own descriptors, which the child closes.
    own: Vec<Identified>,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    let process = current();
    let of_services = process.services.descriptors();
    let table = lock(&process.table);
    let all = of_services.into_iter().chain(table.library_descriptors());
    let own = all.filter_map(Identified::new).collect();
    let reactor = lock(&process.reactor);
    let ports = lock(&process.ports);
    HELD.with(|held| held.replace(Some(Held { table, reactor, _ports: ports, own })));
}

extern "C" fn after_fork() {
    if let Some(held) = HELD.with(|held| held.take()) {
        background::note_fork(held.reactor.is_some() && !held.table.own().is_empty());
    }
}

/// After the thread has started, the child must not use the parent's state: its locks may be held by threads that
/// do not exist in the child.
extern "C" fn in_child() {
    note_use();
    let held = HELD.with(|held| held.take());
    match held {
        Some(Held { reactor, .. }) if reactor.is_none() => {
            current().id.store(std::process::id(), Ordering::Relaxed);
        }
        Some(Held { table, own, .. }) => {
            own.iter().for_each(Identified::close);
            inherited::replace(table.own());
            Process::new(table.inherited()).install();
        }
        None => Process::new(Table::default()).install(),
    }
}

/// The thread that exits may have been cancelled, and writing to standard error is a cancellation point.
extern "C" fn at_exit() {
    uncancelled(end_associations);
}

fn end_associations() {
    tell_of_sockets_left_behind();
    let process = current();
    let sockets = lock(&process.table).take_all();
    if sockets.is_empty() && process.closing.is_empty() {
        return;
    }
    for socket in sockets {
        socket.close();
    }
    let limit = process.settings().linger_s;
    let left = process.closing.wait(Duration::from_secs(limit));
    for (phase, what) in [
        (Phase::Handshake, "answered: what was sent to it is lost"),
        (Phase::Data, "acknowledged all data: it may be lost"),
        (Phase::Shutdown, "acknowledged the end of an association, whose data it has"),
    ] {
        if left.of(phase) > 0 {
            eprintln!("libropewalk: after {limit} s, a peer has not {what}");
        }
    }
}
