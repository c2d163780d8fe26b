//! The thread that drives all associations of the process.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};

use super::lock;
use crate::errno::Result;

/// Starts the thread. The caller has blocked all signals, so the program's handlers never run on it.
pub fn start() -> Result<Handle> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    let drive = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name("ropewalk".to_owned()).spawn(drive)?;
    Ok(handle)
}

/// Associations that are being closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unfinished {
    /// Those whose peers have not answered yet.
    pub unanswered: usize,
    /// Those whose peers have not acknowledged everything yet.
    pub unacknowledged: usize,
}

impl Unfinished {
    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Counts associations that are being closed.
#[derive(Debug, Default)]
pub struct Closing {
    count: Mutex<Unfinished>,
    none: Condvar,
}

/// One of them.
#[derive(Debug)]
pub struct Held {
    closing: Arc<Closing>,
    answered: bool,
}

impl Closing {
    /// One more begins.
    pub fn begin(self: &Arc<Self>) -> Held {
        lock(&self.count).unanswered += 1;
        Held { closing: self.clone(), answered: false }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        lock(&self.count).is_empty()
    }

    /// Waits until there is none, at most for `limit`. Returns what is left.
    pub fn wait(&self, limit: Duration) -> Unfinished {
        let busy = |count: &mut Unfinished| !count.is_empty();
        let waited = self.none.wait_timeout_while(lock(&self.count), limit, busy);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Held {
    /// The peer has answered.
    pub fn on_answer(&mut self) {
        if !std::mem::replace(&mut self.answered, true) {
            let mut count = lock(&self.closing.count);
            count.unanswered -= 1;
            count.unacknowledged += 1;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut count = lock(&self.closing.count);
        if self.answered {
            count.unacknowledged -= 1;
        } else {
            count.unanswered -= 1;
        }
        if count.is_empty() {
            self.closing.none.notify_all();
        }
    }
}
