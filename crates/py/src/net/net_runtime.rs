//! The runtime of the sockets: one tokio runtime for the module, started at the first use.

use std::process;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use super::callback_thread::CallbackThread;
use crate::error;

/// The runtime and the thread that calls back into Python.
pub(super) struct NetRuntime {
    pub runtime: Runtime,
    pub callback_thread: CallbackThread,
    /// The process that owns them: threads do not survive a fork.
    process: u32,
}

static NET_RUNTIME: Mutex<Option<&'static NetRuntime>> = Mutex::new(None);

impl NetRuntime {
    /// The runtime of this process. It is never shut down, because any socket may be the last one. After a
    /// fork, the child abandons it and starts another.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn get() -> PyResult<&'static Self> {
        let mut net_runtime = NET_RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
        match *net_runtime {
            Some(net_runtime) if net_runtime.belongs_to_this_process() => Ok(net_runtime),
            _ => {
                let fresh: &Self = Box::leak(Box::new(Self::start().map_err(error::net)?));
                *net_runtime = Some(fresh);
                Ok(fresh)
            }
        }
    }

    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("ropewalk-net")
            .enable_all()
            .build()?;
        Ok(Self { runtime, callback_thread: CallbackThread::start()?, process: process::id() })
    }

    /// Whether the threads of this process run.
    pub fn belongs_to_this_process(&self) -> bool {
        self.process == process::id()
    }

    /// # Errors
    /// An error in a forked process: nothing drives the sockets of its parent.
    pub fn check(&self) -> PyResult<()> {
        if self.belongs_to_this_process() {
            return Ok(());
        }
        Err(error::net(format_args!(
            "opened by process {}, and this is process {}: sockets do not survive a fork, so open \
             them after it",
            self.process,
            process::id()
        )))
    }
}
