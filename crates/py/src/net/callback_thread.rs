//! The thread that tells Python what is done.
//!
//! It alone waits for the interpreter: a thread of the runtime that did so would let the sockets wait
//! for Python code.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use pyo3::prelude::*;

use super::operation::Outcome;

/// What became of an operation, and who wants to know.
pub(super) struct CompletedCall {
    pub result: PyResult<Outcome>,
    pub done: Py<PyAny>,
}

/// Hands over news.
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
        // It fails only where the interpreter has gone, and with it whoever wants to know.
        let _ = self.queue.send(completed);
    }
}

fn call_all(completed: &Receiver<CompletedCall>) {
    while let Ok(first) = completed.recv() {
        let result = Python::try_attach(|py| {
            call(py, first);
            // What has come meanwhile goes along.
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
