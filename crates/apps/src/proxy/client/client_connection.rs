//! A client's connection to the near end: first its request, limited in size, time and work, then bytes for the
//! server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::chunked::{ChunkedBody, Malformed};
use crate::proxy::relay::Socket;

/// Time limit for a client's request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Why there is no valid request.
#[derive(Debug)]
pub enum RequestError<E> {
    /// The request is malformed or refused.
    Malformed(E),
    /// The request is longer than permitted.
    TooLong,
    /// The request was not complete in time.
    TimedOut,
    /// The client closed the connection.
    Closed,
    /// A newer client needed its place.
    Displaced,
}

/// When the parser is called again for an incomplete request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Short binary messages: after each byte.
    Binary,
    /// Lines that end with a blank line. The parser starts from the beginning each time, so it is called only when
    /// the blank line has arrived or the text has doubled: the work stays linear in the length.
    BlankLine,
}

impl<E: std::fmt::Display> std::fmt::Display for RequestError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(f),
            Self::TooLong => f.write_str("the request is too long"),
            Self::TimedOut => {
                write!(f, "the request was not complete within {} s", REQUEST_TIMEOUT.as_secs())
            }
            Self::Closed => f.write_str("closed before the request was complete"),
            Self::Displaced => f.write_str(
                "disconnected before the request was complete: too many clients have not completed theirs",
            ),
        }
    }
}

/// A client's connection, with bytes that were already read.
#[derive(Debug)]
pub struct ClientConnection {
    socket: TcpStream,
    /// Bytes that were read and not yet parsed or forwarded.
    ahead: BytesMut,
    until: Instant,
    /// Which of the client's bytes go to the server.
    body: Body,
}

/// The bytes that follow a request.
#[derive(Clone, Debug)]
pub enum Body {
    /// All bytes until the client closes.
    Everything,
    /// This number of bytes; later ones are discarded.
    Length(u64),
    /// A chunked body; later bytes are discarded.
    Chunked(ChunkedBody),
}

impl ClientConnection {
    pub fn new(socket: TcpStream) -> Self {
        let until = Instant::now() + REQUEST_TIMEOUT;
        Self { socket, ahead: BytesMut::new(), until, body: Body::Everything }
    }

    /// Reads until `parse` returns a message and its length, or `limit` bytes were read.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn read_message<T, E>(
        &mut self,
        limit: usize,
        framing: Framing,
        parse: impl Fn(&[u8]) -> Result<Option<(T, usize)>, E>,
    ) -> Result<T, RequestError<E>> {
        let mut parsed = 0;
        let mut due = true;
        loop {
            if due {
                if let Some((message, length)) =
                    parse(&self.ahead).map_err(RequestError::Malformed)?
                {
                    self.ahead.advance(length);
                    return Ok(message);
                }
                parsed = self.ahead.len();
            }
            if self.ahead.len() >= limit {
                return Err(RequestError::TooLong);
            }
            let before = self.ahead.len();
            let read = self.socket.read_buf(&mut self.ahead);
            match timeout_at(self.until, read).await {
                Err(_) => return Err(RequestError::TimedOut),
                Ok(Ok(0) | Err(_)) => return Err(RequestError::Closed),
                Ok(Ok(_)) => {}
            }
            due = framing.is_due(&self.ahead, before, parsed);
        }
    }

    /// Sends bytes to the client.
    ///
    /// # Errors
    /// If the client has closed the connection, or does not read.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        // The answer may be sent long after the request. A client that reads accepts it within a second.
        let until = self.until.max(Instant::now() + Duration::from_secs(1));
        timeout_at(until, self.socket.write_all(bytes)).await.map_err(late)?
    }

    /// Sends the last answer and gives the client time to read it. Closing a connection with unread bytes would reset
    /// it and lose the answer (RFC 9112, 9.6).
    pub async fn send_and_close(&mut self, bytes: &[u8]) {
        if self.send(bytes).await.is_ok() && self.socket.shutdown().await.is_ok() {
            let mut sink = [0; 1024];
            let until = Instant::now() + Duration::from_secs(1);
            while let Ok(Ok(1..)) = timeout_at(until, self.socket.read(&mut sink)).await {}
        }
    }

    /// Sets which of the following bytes go to the server.
    pub fn set_body(&mut self, body: Body) {
        self.body = body;
    }

    fn poll_ahead_or_socket(
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

impl ClientConnection {
    /// Reads bytes that belong to the body.
    fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
        body: &mut Body,
    ) -> Poll<io::Result<()>> {
        let limit = match body {
            Body::Everything => return self.poll_ahead_or_socket(context, out),
            Body::Length(left) => usize::try_from(*left).unwrap_or(usize::MAX),
            Body::Chunked(_) => usize::MAX,
        };
        let limit = limit.min(out.remaining());
        let mut part = ReadBuf::new(out.initialize_unfilled_to(limit));
        ready!(self.poll_ahead_or_socket(context, &mut part))?;
        let taken = body
            .advance(part.filled())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "malformed chunked body"))?;
        out.advance(taken);
        Poll::Ready(Ok(()))
    }

    /// Discards bytes, because another request on this connection would go to the wrong server. Only the end of the
    /// client's bytes matters.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut sink = [0; 1024];
            let mut sink = ReadBuf::new(&mut sink);
            ready!(self.poll_ahead_or_socket(context, &mut sink))?;
            if sink.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl Body {
    /// Processes bytes. Returns how many of them belong to the body.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self {
            Self::Everything => Ok(bytes.len()),
            Self::Length(left) => {
                let taken = (*left).min(bytes.len() as u64);
                *left -= taken;
                Ok(taken as usize)
            }
            Self::Chunked(chunked) => chunked.advance(bytes),
        }
    }

    pub fn has_ended(&self) -> bool {
        match self {
            Self::Everything => false,
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_done(),
        }
    }
}

impl Framing {
    /// Whether the parser may succeed with `bytes`, after it failed with the first `parsed` of them. Bytes after
    /// `before` are new.
    pub fn is_due(self, bytes: &[u8], before: usize, parsed: usize) -> bool {
        let blank_line = || {
            let new = &bytes[before.saturating_sub(3)..];
            new.windows(2).any(|two| two == b"\n\n")
                || new.windows(3).any(|three| three == b"\n\r\n")
        };
        self == Self::Binary || bytes.len() >= 2 * parsed || blank_line()
    }
}

impl Socket for ClientConnection {
    fn tcp(&self) -> &TcpStream {
        &self.socket
    }
}

impl AsyncRead for ClientConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.body.has_ended() {
            return self.poll_discard(context);
        }
        let mut body = std::mem::replace(&mut self.body, Body::Everything);
        let read = self.poll_body(context, out, &mut body);
        self.body = body;
        read
    }
}

impl AsyncWrite for ClientConnection {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_in_single_bytes_is_parsed_in_time_and_not_with_every_byte() {
        for end in ["\r\n\r\n", "\n\n", "\n\r\n"] {
            let text = "A: b".repeat(10_000) + end;
            let (mut parsed, mut times) = (0, 0);
            for length in 1..=text.len() {
                if Framing::BlankLine.is_due(&text.as_bytes()[..length], length - 1, parsed) {
                    (parsed, times) = (length, times + 1);
                }
            }
            assert_eq!(parsed, text.len(), "{end:?}: parsed as soon as it is whole");
            assert!(times <= 20, "{end:?}: {times} times");
        }
    }
}
