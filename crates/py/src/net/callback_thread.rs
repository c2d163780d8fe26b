//! The thread that reports finished operations to Python.
//!
//! Only this thread waits for the interpreter. If a thread of the runtime did, the sockets would have to wait
//! for Python code.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use pyo3::prelude::*;

use super::operation::Outcome;

/// The result of an operation, and the callback that wants it.
pub(super) struct CompletedCall {
    pub result: PyResult<Outcome>,
    pub done: Py<PyAny>,
}

/// Queues results for the thread.
pub(super) struct CallbackThread {
    queue: Sender<CompletedCall>,
}

impl CallbackThread {
    pub fn start() -> io::Result<Self> {
        let (queue, completed) = channel();
        let thread = thread::Builder::new().name("ropewalk-tell".to_owned());
        thread.spawn(move || call_all(&completed))?;
        Ok(Self { queue })
    }

    /// Calls `done` soon.
    pub fn call(&self, completed: CompletedCall) {
        // Sending fails only if the interpreter has ended, and the callbacks with it.
        let _ = self.queue.send(completed);
    }
}

fn call_all(completed: &Receiver<CompletedCall>) {
    while let Ok(first) = completed.recv() {
        let result = Python::try_attach(|py| {
            call(py, first);
            // Results that arrived meanwhile are delivered with the same hold of the interpreter.
            while let Ok(next) = completed.try_recv() {
                call(py, next);
            }
        });
        if result.is_none() {
            return;
        }
    }
}

fn call(py: Python<'_>, CompletedCall { result, done }: CompletedCall) {
    let result = result.and_then(|outcome| outcome.into_python(py));
    let result = match result {
        Ok(value) => done.call1(py, (value, py.None())),
        Err(error) => done.call1(py, (py.None(), error)),
    };
    if let Err(error) = result {
        error.write_unraisable(py, Some(done.bind(py)));
    }
}
