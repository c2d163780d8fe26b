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
pub(super) struct News {
    pub result: PyResult<Outcome>,
    pub done: Py<PyAny>,
}

/// Queues results for the thread.
pub(super) struct CallbackThread {
    queue: Sender<News>,
}

impl CallbackThread {
    pub fn start() -> io::Result<Self> {
        let (queue, news) = channel();
        let thread = thread::Builder::new().name("ropewalk-tell".to_owned());
        thread.spawn(move || tell_all(&news))?;
        Ok(Self { queue })
    }

    /// Calls `done` soon.
    pub fn tell(&self, news: News) {
        // Sending fails only if the interpreter has ended, and the callbacks with it.
        let _ = self.queue.send(news);
    }
}

fn tell_all(news: &Receiver<News>) {
    while let Ok(first) = news.recv() {
        let told = Python::try_attach(|py| {
            tell(py, first);
            // Results that arrived meanwhile are delivered with the same hold of the interpreter.
            while let Ok(next) = news.try_recv() {
                tell(py, next);
            }
        });
        if told.is_none() {
            return;
        }
    }
}

fn tell(py: Python<'_>, News { result, done }: News) {
    let result = result.and_then(|outcome| outcome.into_python(py));
    let told = match result {
        Ok(value) => done.call1(py, (value, py.None())),
        Err(error) => done.call1(py, (py.None(), error)),
    };
    if let Err(error) = told {
        error.write_unraisable(py, Some(done.bind(py)));
    }
}
