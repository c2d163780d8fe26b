//! The thread that drives all associations of the process.

use std::sync::{Arc, Condvar, Mutex};
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

/// Counts associations that are being closed.
#[derive(Debug, Default)]
pub struct Closing {
    count: Mutex<usize>,
    none: Condvar,
}

/// One of them.
#[derive(Debug)]
pub struct Held(Arc<Closing>);

impl Closing {
    /// One more begins.
    pub fn begin(self: &Arc<Self>) -> Held {
        *lock(&self.count) += 1;
        Held(self.clone())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *lock(&self.count) == 0
    }

    /// Waits until there is none, at most for `limit`. Returns whether there is none.
    pub fn wait(&self, limit: Duration) -> bool {
        let busy = |count: &mut usize| *count > 0;
        let waited = self.none.wait_timeout_while(lock(&self.count), limit, busy);
        waited.is_ok_and(|(count, _)| *count == 0)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut count = lock(&self.0.count);
        *count -= 1;
        if *count == 0 {
            self.0.none.notify_all();
        }
    }
}
