//! An association.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use ropewalk_runtime::endpoint::{
    Association as Native, CloseReason, Endpoint, PathEvent, Received, SendError,
};

use super::home::NetRuntime;
use super::inbox::{Found, Inbox};
use super::message::{Message, bytes_of};
use super::operation::{Operation, Outcome};
use super::stats;
use crate::error;

/// Why there is nothing more; none if the association was let go of.
type End = Option<CloseReason>;

/// An association that is up, or was.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Association {
    home: &'static NetRuntime,
    held: Arc<Held>,
}

struct Held {
    native: Native,
    messages: Inbox<Received, End>,
    news: Inbox<PathEvent, End>,
    /// Of the end that connected, the endpoint was opened for this one association.
    _endpoint: Option<Endpoint>,
}

impl Association {
    pub(super) fn new(
        home: &'static NetRuntime,
        native: Native,
        endpoint: Option<Endpoint>,
    ) -> Self {
        let (messages, news) = (Inbox::new(), Inbox::new());
        Self { home, held: Arc::new(Held { native, messages, news, _endpoint: endpoint }) }
    }
}

impl Held {
    async fn more_messages(&self) -> Found<Received, End> {
        let mut messages = Vec::new();
        self.native.receive_all(&mut messages).await;
        if messages.is_empty() {
            return Found::End(self.native.ended().await);
        }
        Found::Items(messages)
    }

    async fn more_news(&self) -> Found<PathEvent, End> {
        match self.native.next_path_event().await {
            Some(news) => Found::Items(vec![news]),
            None => Found::End(self.native.ended().await),
        }
    }
}

#[pymethods]
impl Association {
    /// Queues messages, waiting for room.
    fn send(
        &self,
        stream: u16,
        ppid: u32,
        messages: Vec<Bound<'_, PyAny>>,
        unordered: bool,
    ) -> PyResult<Operation> {
        self.home.check()?;
        let messages = messages.iter().map(bytes_of).collect::<PyResult<Vec<_>>>()?;
        let held = self.held.clone();
        Ok(Operation::new(self.home, "the send buffer was not free", async move {
            let mut messages = messages.into_iter();
            let sent = if unordered {
                let mut labelled = messages.map(|bytes| (ppid, bytes));
                held.native.send_all_unordered(stream, &mut labelled).await
            } else {
                held.native.send_all(stream, ppid, &mut messages).await
            };
            sent.map(|()| Outcome::Nothing).map_err(|error| unsent(&held.native, stream, error))
        }))
    }

    /// The next message that has arrived.
    fn take(&self, py: Python<'_>) -> Option<Message> {
        self.held.messages.take().map(|received| Message::new(py, &received))
    }

    /// All messages that have arrived.
    fn take_all(&self, py: Python<'_>) -> Vec<Message> {
        self.held.messages.take_all().iter().map(|received| Message::new(py, received)).collect()
    }

    /// Waits for messages: false if there will be none.
    fn arrival(&self) -> Operation {
        let held = self.held.clone();
        Operation::new(self.home, "no message came", async move {
            Ok(Outcome::Arrived(held.messages.arrival(held.more_messages()).await))
        })
    }

    /// The next news of a path: what, which path, its status.
    fn take_news<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(news) = self.held.news.take() else { return Ok(None) };
        let (what, path, status) = match news {
            PathEvent::Changed(path, status) => {
                ("changed", Some(path.index()), Some(stats::status(status)))
            }
            PathEvent::Restarted => ("restarted", None, None),
        };
        (what, path, status).into_pyobject(py).map(Some)
    }

    /// Waits for news of a path: false if there will be none.
    fn news(&self) -> Operation {
        let held = self.held.clone();
        Operation::new(self.home, "no path changed", async move {
            Ok(Outcome::Arrived(held.news.arrival(held.more_news()).await))
        })
    }

    /// Raises why it has ended, if that was not in order and all messages were taken.
    fn check_end(&self) -> PyResult<()> {
        match self.held.messages.end() {
            Some(Some(reason)) if reason != CloseReason::Shutdown => {
                Err(error::closed(format_args!("the association has ended: {reason}")))
            }
            _ => Ok(()),
        }
    }

    /// Nothing follows what was sent: waits until it has been acknowledged.
    fn shutdown(&self) -> Operation {
        let held = self.held.clone();
        Operation::new(self.home, "the peer did not acknowledge everything", async move {
            let ended = held.native.shutdown().await;
            ended.map(|()| Outcome::Nothing).map_err(|reason| {
                error::closed(format_args!(
                    "the association has ended, and some of what was sent may not have arrived: \
                     {reason}"
                ))
            })
        })
    }

    /// Waits until the peer has acknowledged all that was sent.
    fn flushed(&self) -> Operation {
        let held = self.held.clone();
        Operation::new(self.home, "the peer did not acknowledge everything", async move {
            held.native.flushed().await;
            Ok(Outcome::Nothing)
        })
    }

    /// Ends it at once.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.home.check()?;
        py.detach(|| self.held.native.abort());
        Ok(())
    }

    /// What it has done; none if it is gone.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.home.check()?;
        let stats = py.detach(|| self.held.native.stats());
        stats.map(|stats| stats::dict(py, &stats)).transpose()
    }

    /// Streams on which one may send.
    #[getter]
    fn streams(&self, py: Python<'_>) -> u16 {
        py.detach(|| self.held.native.streams())
    }

    /// Bytes of the largest message that travels in one packet.
    #[getter]
    fn message_size(&self, py: Python<'_>) -> usize {
        py.detach(|| self.held.native.message_size())
    }

    /// The SCTP ports of this end and of the peer; none if it is sealed or gone.
    #[getter]
    fn ports(&self, py: Python<'_>) -> Option<(u16, u16)> {
        py.detach(|| self.held.native.sctp_ports())
    }

    /// The peer's public key.
    #[getter]
    fn peer(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.held.native.peer_key()).map(|key| key.to_string())
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        if !self.home.is_here() {
            // The lock may have been held when the process was forked, and by whom is gone.
            std::mem::forget(self.held.clone());
        }
    }
}

/// A message that was not taken, as an exception.
fn unsent(native: &Native, stream: u16, error: SendError) -> PyErr {
    match error {
        SendError::Closed(_) => error::closed(error),
        SendError::Misuse(misuse) => match native.streams() {
            streams if stream >= streams => error::option(format_args!(
                "stream = {stream}: this association has {streams} streams, numbered from 0"
            )),
            _ => error::option(misuse),
        },
    }
}
