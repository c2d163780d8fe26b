//! Answers of servers to plain HTTP requests, rewritten for the program.
//!
//! The near end carries one request per connection. RFC 9112, 9.6: "A server that does not support persistent
//! connections MUST send the 'close' connection option in every response message that does not have a 1xx
//! (Informational) status code." The server's own Connection field says nothing about the program's connection.
//!
//! ```text
//!   head (1xx) --> head (1xx) --> head (final) --> body --> end
//! ```

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::chunked::ChunkedBody;
use super::client_connection::{Body, Framing};
use super::http::{HEAD_LIMIT, is_hop_by_hop, refusal, values};

/// Maximum number of header fields in an answer. Some servers set one cookie per setting.
const FIELD_LIMIT: usize = 256;

/// Properties of a request that determine how its answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerContext {
    /// RFC 9112, 6.3: an answer to HEAD has no content, regardless of its fields.
    pub head_only: bool,
    /// RFC 9110, 15.2: "a server MUST NOT send a 1xx response to an HTTP/1.0 client".
    pub interim: bool,
}

/// A rewritten head.
#[derive(Clone, Debug)]
pub enum AnswerHead {
    /// An interim answer, another one follows.
    Interim(Vec<u8>),
    /// The final answer and its body.
    Final(Vec<u8>, Body),
}

/// Parses the head in `bytes` and rewrites it for the program. Returns it with the length of the original head;
/// `None` if the head is incomplete.
///
/// # Errors
/// The reason why the program cannot read the answer.
pub fn parse(
    bytes: &[u8],
    context: AnswerContext,
) -> Result<Option<(AnswerHead, usize)>, &'static str> {
    let mut fields = [httparse::EMPTY_HEADER; FIELD_LIMIT];
    let mut answer = httparse::Response::new(&mut fields);
    // RFC 9112, 5.1 and 5.2: a proxy removes spaces before the colon of an answer and unfolds its lines.
    let parsed = httparse::ParserConfig::default()
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_multiple_spaces_in_response_status_delimiters(true)
        .ignore_invalid_headers_in_responses(true)
        .parse_response(&mut answer, bytes);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err("the server's answer has too many fields");
        }
        Err(_) => return Err("the server's answer is not valid HTTP"),
    };
    let status = answer.code.unwrap_or(0);
    let fields = &*answer.headers;
    let interim = (100..200).contains(&status);
    // The Upgrade field of the request has been removed.
    if status == 101 {
        return Err("the server switched protocols without a request to do so");
    }
    let chunked = values(fields, "transfer-encoding").next().is_some();
    let length_field = if chunked || interim { None } else { content_length(fields)? };
    let (version, reason) = (answer.version.unwrap_or(0), answer.reason.unwrap_or(""));
    let mut head = format!("HTTP/1.{version} {status:03} {reason}\r\n").into_bytes();
    for field in fields {
        let is_length = field.name.eq_ignore_ascii_case("content-length");
        if !is_length && !is_hop_by_hop(field.name, fields) {
            head.extend([field.name.as_bytes(), b": "].concat());
            head.extend(
                field
                    .value
                    .iter()
                    .map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }),
            );
            head.extend(b"\r\n");
        }
    }
    if let Some(bytes) = length_field {
        head.extend(format!("Content-Length: {bytes}\r\n").bytes());
    }
    if interim {
        head.extend(b"\r\n");
        return Ok(Some((AnswerHead::Interim(head), length)));
    }
    head.extend(b"Connection: close\r\n\r\n");
    let empty = context.head_only || matches!(status, 204 | 304);
    let body = match length_field {
        _ if empty => Body::Length(0),
        Some(bytes) => Body::Length(bytes),
        None if ends_chunked(fields) => Body::Chunked(ChunkedBody::new()),
        None => Body::Everything,
    };
    Ok(Some((AnswerHead::Final(head, body), length)))
}

/// RFC 9112, 6.3: equal values count as one. Different or invalid values are an error, because two readers could
/// find different ends.
fn content_length(fields: &[httparse::Header<'_>]) -> Result<Option<u64>, &'static str> {
    let mut length = None;
    for value in
        values(fields, "content-length").flat_map(|value| value.split(|byte| *byte == b','))
    {
        let digits = value.trim_ascii();
        let number = digits.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(digits).ok().filter(|_| number);
        let bytes = text.and_then(|text| text.parse().ok());
        let bytes: u64 = bytes.ok_or("the length of the server's answer is invalid")?;
        if length.is_some_and(|earlier| earlier != bytes) {
            return Err("the server's answer has two lengths");
        }
        length = Some(bytes);
    }
    Ok(length)
}

/// RFC 9112, 6.3: if chunked is not the last encoding of an answer, the end of the connection ends it.
fn ends_chunked(fields: &[httparse::Header<'_>]) -> bool {
    let last = values(fields, "transfer-encoding").last().unwrap_or(b"");
    let last = last.rsplit(|byte| *byte == b',').next().unwrap_or(b"");
    last.trim_ascii().eq_ignore_ascii_case(b"chunked")
}

/// The stream of a plain request. Written bytes go to the server unchanged, read bytes are rewritten.
#[derive(Debug)]
pub struct AnswerStream<S> {
    stream: S,
    context: AnswerContext,
    /// Bytes of the server that have not been parsed or forwarded yet.
    received: BytesMut,
    /// Rewritten bytes for the program.
    ready: BytesMut,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Waits for a complete head. The parser has failed with this number of bytes.
    Head { parsed: usize },
    /// Forwards the body.
    Body(Body),
    /// The answer has ended. Later bytes belong to no request.
    End,
}

impl<S: AsyncRead + Unpin> AnswerStream<S> {
    /// A stream whose server has not answered yet.
    pub fn new(stream: S, context: AnswerContext) -> Self {
        let (received, ready) = (BytesMut::new(), BytesMut::new());
        Self { stream, context, received, ready, state: State::Head { parsed: 0 } }
    }

    /// Handles the received bytes of a head.
    fn advance_head(&mut self, parsed: usize) {
        // Neither HTTP/0.9 nor ICY has a Connection field, and both end with the connection.
        let start = &self.received[..self.received.len().min(5)];
        if !start.is_empty() && !b"HTTP/".starts_with(start) {
            self.state = State::Body(Body::Everything);
            return;
        }
        match parse(&self.received, self.context) {
            Ok(Some((head, length))) => {
                self.received.advance(length);
                self.accept(head);
            }
            Ok(None) if self.received.len() >= HEAD_LIMIT => {
                self.fail("the head of the server's answer is too long");
            }
            Ok(None) => self.state = State::Head { parsed: parsed.max(self.received.len()) },
            Err(why) => self.fail(why),
        }
    }

    fn accept(&mut self, head: AnswerHead) {
        match head {
            AnswerHead::Interim(head) => {
                if self.context.interim {
                    self.ready.extend_from_slice(&head);
                }
                self.state = State::Head { parsed: 0 };
            }
            AnswerHead::Final(head, body) => {
                self.ready.extend_from_slice(&head);
                self.state = if body.has_ended() { State::End } else { State::Body(body) };
            }
        }
    }

    /// Answers in place of the server.
    fn fail(&mut self, why: &str) {
        self.ready.extend_from_slice(&refusal(502, why));
        self.state = State::End;
    }

    /// Reads a part of the head. The parser runs again only if the head may be complete: its work stays linear.
    fn poll_head(&mut self, context: &mut Context<'_>, parsed: usize) -> Poll<io::Result<()>> {
        let before = self.received.len();
        let mut part = [0; 4096];
        let mut part = ReadBuf::new(&mut part);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
        if part.filled().is_empty() {
            self.fail("the server closed the connection without a complete answer");
            return Poll::Ready(Ok(()));
        }
        self.received.extend_from_slice(part.filled());
        if Framing::BlankLine.is_due(&self.received, before, parsed) {
            self.advance_head(parsed);
        }
        Poll::Ready(Ok(()))
    }

    /// Forwards bytes of the body.
    fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        if self.received.is_empty() {
            ready!(Pin::new(&mut self.stream).poll_read(context, out))?;
        } else {
            let n = self.received.len().min(out.remaining());
            out.put_slice(&self.received.split_to(n));
        }
        let new = &out.filled()[before..];
        let State::Body(body) = &mut self.state else { return Poll::Ready(Ok(())) };
        if new.is_empty() {
            self.state = State::End;
            return Poll::Ready(Ok(()));
        }
        // Programs read malformed chunks in different ways. The connection ends here, so the end of its bytes is
        // unambiguous.
        let taken = body.advance(new).unwrap_or_else(|_| {
            *body = Body::Everything;
            new.len()
        });
        if body.has_ended() {
            self.state = State::End;
        }
        out.set_filled(before + taken);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AnswerStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.ready.is_empty() {
                let n = this.ready.len().min(out.remaining());
                out.put_slice(&this.ready.split_to(n));
                return Poll::Ready(Ok(()));
            }
            match &this.state {
                State::End => return Poll::Ready(Ok(())),
                State::Body(_) => return this.poll_body(context, out),
                // A head may have arrived together with the previous one.
                State::Head { parsed: 0 } if !this.received.is_empty() => this.advance_head(0),
                State::Head { parsed } => {
                    let parsed = *parsed;
                    ready!(this.poll_head(context, parsed))?;
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AnswerStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
