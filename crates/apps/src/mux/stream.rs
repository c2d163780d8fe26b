//! A byte stream with the usual read and write interfaces.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::{Shared, State, Wakers};
use super::machine::{Read, StreamError, StreamKey};
use super::message::Refusal;

/// A byte stream. Shutting down its write half ends it in an orderly way. Dropping it without that resets it, and
/// reading and writing fail at the peer.
#[derive(Debug)]
pub struct Stream {
    shared: Arc<Shared>,
    key: StreamKey,
}

impl Stream {
    pub(super) fn new(shared: Arc<Shared>, key: StreamKey) -> Self {
        shared.with(|state| state.wakers.insert(key, Wakers::default()));
        Self { shared, key }
    }

    /// Waits for the other end's answer.
    ///
    /// # Errors
    /// [`Refusal`]. If the connection has ended, its code is [`Refusal::CANCELLED`].
    pub async fn opened(&self) -> Result<(), Refusal> {
        self.answered().await.map_err(|error| match error {
            StreamError::Refused(refusal) => refusal,
            StreamError::Reset | StreamError::Finished => {
                Refusal::new(Refusal::CANCELLED, "the connection between the two ends was lost")
            }
        })
    }

    pub(super) async fn answered(&self) -> Result<(), StreamError> {
        poll_fn(|context| {
            self.poll(
                context.waker(),
                |w| &mut w.open,
                |state, key| match state.mux.is_open(key) {
                    Ok(true) => Poll::Ready(Ok(())),
                    Ok(false) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                },
            )
        })
        .await
    }

    /// Why the other end refused it, if it did.
    pub fn refusal(&self) -> Option<Refusal> {
        match self.shared.with(|state| state.mux.is_open(self.key)) {
            Err(StreamError::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }

    pub(super) fn accept(&self) -> bool {
        self.shared.with(|state| state.mux.accept(self.key))
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        self.shared.with(|state| state.mux.refuse(self.key, refusal));
    }

    /// Calls `attempt`. If it has no result yet, the task is woken for the next try.
    fn poll<T>(
        &self,
        waker: &Waker,
        place: fn(&mut Wakers) -> &mut Option<Waker>,
        attempt: impl FnOnce(&mut State, StreamKey) -> Poll<T>,
    ) -> Poll<T> {
        self.shared.with(|state| {
            let result = attempt(state, self.key);
            if result.is_pending() {
                let wakers = state.wakers.entry(self.key).or_default();
                *place(wakers) = Some(waker.clone());
            }
            result
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(
            context.waker(),
            |w| &mut w.read,
            |state, key| match state.mux.read(key, out.initialize_unfilled()) {
                Ok(Read::Bytes(n)) => {
                    out.advance(n);
                    Poll::Ready(Ok(()))
                }
                Ok(Read::Nothing) => Poll::Pending,
                Ok(Read::End) => Poll::Ready(Ok(())),
                Err(error) => Poll::Ready(Err(broken(error, io::ErrorKind::ConnectionReset))),
            },
        )
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(
            context.waker(),
            |w| &mut w.write,
            |state, key| match state.mux.write(key, bytes) {
                Ok(0) if !bytes.is_empty() => Poll::Pending,
                Ok(n) => Poll::Ready(Ok(n)),
                Err(error) => Poll::Ready(Err(broken(error, io::ErrorKind::BrokenPipe))),
            },
        )
    }

    /// Written bytes are sent without a flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let finished = self.shared.with(|state| state.mux.finish(self.key));
        Poll::Ready(finished.map_err(|error| broken(error, io::ErrorKind::BrokenPipe)))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.with(|state| {
            state.wakers.remove(&self.key);
            state.mux.release(self.key);
        });
    }
}

fn broken(error: StreamError, kind: io::ErrorKind) -> io::Error {
    match error {
        StreamError::Refused(refusal) => {
            io::Error::new(io::ErrorKind::ConnectionRefused, refusal.detail.to_string())
        }
        StreamError::Reset => io::Error::new(kind, "the stream was reset"),
        StreamError::Finished => io::Error::new(kind, "written after the end"),
    }
}
