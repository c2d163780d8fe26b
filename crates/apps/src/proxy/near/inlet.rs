//! The beginning of a program's connection: bytes until they make sense, but neither many nor for long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::proxy::relay::Socket;

/// A program has to say what it wants within this time.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why it did not become clear what a program wants.
#[derive(Debug)]
pub enum Unclear<E> {
    /// It does not speak the language.
    Wrong(E),
    /// It says too much.
    TooLong,
    /// It says too little in its time.
    TooSlow,
    /// It has gone.
    Gone,
}

impl<E: std::fmt::Display> std::fmt::Display for Unclear<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wrong(error) => error.fmt(f),
            Self::TooLong => f.write_str("its request is too long"),
            Self::TooSlow => write!(f, "its request did not come within {} s", PATIENCE.as_secs()),
            Self::Gone => f.write_str("it has gone before its request was complete"),
        }
    }
}

/// A program's connection, of which some bytes have been read already.
#[derive(Debug)]
pub struct Inlet {
    socket: TcpStream,
    /// Read, and not yet understood or passed on.
    ahead: BytesMut,
    until: Instant,
    /// Bytes that still go to the other side; what follows goes nowhere. None: all.
    body: Option<u64>,
}

impl Inlet {
    pub fn new(socket: TcpStream) -> Self {
        let until = Instant::now() + PATIENCE;
        Self { socket, ahead: BytesMut::new(), until, body: None }
    }

    /// Reads until `parse` understands something, which it tells with its length; at most `most` bytes.
    ///
    /// # Errors
    /// [`Unclear`].
    pub async fn understand<T, E>(
        &mut self,
        most: usize,
        parse: impl Fn(&[u8]) -> Result<Option<(T, usize)>, E>,
    ) -> Result<T, Unclear<E>> {
        loop {
            if let Some((understood, length)) = parse(&self.ahead).map_err(Unclear::Wrong)? {
                self.ahead.advance(length);
                return Ok(understood);
            }
            if self.ahead.len() >= most {
                return Err(Unclear::TooLong);
            }
            let read = self.socket.read_buf(&mut self.ahead);
            match timeout_at(self.until, read).await {
                Err(_) => return Err(Unclear::TooSlow),
                Ok(Ok(0) | Err(_)) => return Err(Unclear::Gone),
                Ok(Ok(_)) => {}
            }
        }
    }

    /// Says something to the program.
    ///
    /// # Errors
    /// If it has gone, or does not listen.
    pub async fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        // The answer to a request may come long after it: a program that listens at all takes it now.
        let until = self.until.max(Instant::now() + Duration::from_secs(1));
        timeout_at(until, self.socket.write_all(bytes)).await.map_err(late)?
    }

    /// Says the last thing, and lets the program read it: closing a connection with bytes unread would
    /// reset it, and the answer with it (RFC 9112, 9.6).
    pub async fn say_and_close(&mut self, bytes: &[u8]) {
        if self.say(bytes).await.is_ok() && self.socket.shutdown().await.is_ok() {
            let mut sink = [0; 1024];
            let until = Instant::now() + Duration::from_secs(1);
            while let Ok(Ok(1..)) = timeout_at(until, self.socket.read(&mut sink)).await {}
        }
    }

    /// Only so many bytes more go to the other side.
    pub const fn limit(&mut self, body: u64) {
        self.body = Some(body);
    }

    fn poll_some(
        &mut self,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.socket).poll_read(context, out);
        }
        let n = self.ahead.len().min(out.remaining());
        out.put_slice(&self.ahead.split_to(n));
        Poll::Ready(Ok(()))
    }
}

impl Socket for Inlet {
    fn tcp(&self) -> &TcpStream {
        &self.socket
    }
}

impl AsyncRead for Inlet {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.body {
                None => return self.poll_some(context, out),
                Some(0) => {
                    // Another request on this connection would go to the wrong place. Only the end counts.
                    let mut sink = [0; 1024];
                    let mut sink = ReadBuf::new(&mut sink);
                    ready!(self.poll_some(context, &mut sink))?;
                    if sink.filled().is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                }
                Some(left) => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX).min(out.remaining());
                    let mut part = ReadBuf::new(out.initialize_unfilled_to(most));
                    ready!(self.poll_some(context, &mut part))?;
                    let n = part.filled().len();
                    out.advance(n);
                    self.body = Some(left - n as u64);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Inlet {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
