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
pub(super) struct News {
    pub result: PyResult<Outcome>,
    pub done: Py<PyAny>,
}

/// Hands over news.
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
        // It fails only where the interpreter has gone, and with it whoever wants to know.
        let _ = self.queue.send(news);
    }
}

fn tell_all(news: &Receiver<News>) {
    while let Ok(first) = news.recv() {
        let told = Python::try_attach(|py| {
            tell(py, first);
            // What has come meanwhile goes along.
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
