//! HTTP: CONNECT, and requests for `http://…`, one per connection (RFC 9110, 9.3.6; RFC 9112, 3.2.2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::answer::AnswerContext;
use super::credentials::Credentials;
use crate::proxy::target::{Target, TargetError};

/// Maximum length of a request's head, bytes.
pub const HEAD_LIMIT: usize = 64 << 10;
/// Maximum number of header fields.
const FIELD_LIMIT: usize = 128;

/// Fields that apply to one connection only (RFC 9110, 7.6.1), or to the proxy.
const HOP_BY_HOP: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "upgrade",
];

/// A program's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The target.
    pub target: Target,
    /// How to handle it.
    pub form: RequestForm,
}

/// How to handle a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestForm {
    /// Relay all further bytes in both directions.
    Tunnel,
    /// Send the head, then the body, and rewrite the answer.
    Plain {
        /// The request's head for the server.
        head: Vec<u8>,
        /// The length of the body.
        body: Length,
        /// How to read the answer.
        answer: AnswerContext,
    },
}

/// The length of a request's body (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This number of bytes.
    Bytes(u64),
    /// Given by the chunks.
    Chunked,
}

/// Why a request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Not an HTTP request.
    #[error("not a request of HTTP/1.1: {0}")]
    Syntax(httparse::Error),
    /// A path without a host, as sent to a server instead of a proxy.
    #[error(
        "this is a proxy, not a server: enter its address as HTTP proxy in the settings of the program"
    )]
    NoProxyRequest,
    /// A scheme other than `http://`.
    #[error("`{0}` is not supported; programs use CONNECT for https://")]
    Scheme(String),
    /// Not a valid host and port.
    #[error("{0}")]
    Target(TargetError),
    /// The end of the body is ambiguous.
    #[error("the length of the request's body is unclear")]
    Body,
    /// More than one Host field.
    #[error("more than one Host field")]
    Host,
    /// Missing or wrong name and password.
    #[error("no name and password, or wrong ones")]
    Password,
}

impl HttpError {
    /// The status code of the answer.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Password => 407,
            Self::Scheme(_) => 501,
            Self::Syntax(httparse::Error::TooManyHeaders) => 431,
            _ => 400,
        }
    }
}

/// Parses the request in `bytes`. Returns it with the length of its head. `None` if the head is incomplete.
///
/// # Errors
/// `HttpError`.
pub fn parse(
    bytes: &[u8],
    credentials: Option<&Credentials>,
) -> Result<Option<(Request, usize)>, HttpError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELD_LIMIT];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes).map_err(HttpError::Syntax)? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(length) => length,
    };
    if credentials.is_some_and(|credentials| !authorized(request.headers, credentials)) {
        return Err(HttpError::Password);
    }
    let (method, path) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
    let version = request.version.unwrap_or(0);
    // RFC 9112, 3.2: "A server MUST respond with a 400 (Bad Request) status code to any request message that
    // contains more than one Host header field line".
    if values(request.headers, "host").count() > 1 {
        return Err(HttpError::Host);
    }
    let request = if method == "CONNECT" {
        // RFC 9110, 9.3.6: a CONNECT request has no content. Its framing would be ambiguous.
        if body_of(request.headers, version)? != Length::Bytes(0) {
            return Err(HttpError::Body);
        }
        Request {
            target: Target::parse(path, None).map_err(HttpError::Target)?,
            form: RequestForm::Tunnel,
        }
    } else {
        plain(method, path, version, request.headers)?
    };
    Ok(Some((request, length)))
}

/// Parses a request with an absolute URI and rewrites it for the server.
fn plain(
    method: &str,
    uri: &str,
    version: u8,
    fields: &[httparse::Header<'_>],
) -> Result<Request, HttpError> {
    if uri.starts_with('/') || uri == "*" {
        return Err(HttpError::NoProxyRequest);
    }
    let (scheme, rest) = uri.split_once("://").ok_or(HttpError::NoProxyRequest)?;
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(HttpError::Scheme(scheme.chars().take(20).collect()));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let target = Target::parse(authority, Some(80)).map_err(HttpError::Target)?;
    let path = path.split('#').next().unwrap_or("");
    let path = match path {
        "" if method == "OPTIONS" => "*".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("/{path}"),
    };
    let body = body_of(fields, version)?;
    let mut head =
        format!("{method} {path} HTTP/1.{version}\r\nHost: {authority}\r\n").into_bytes();
    for field in fields {
        if !field.name.eq_ignore_ascii_case("host") && !is_hop_by_hop(field.name, fields) {
            head.extend([field.name.as_bytes(), b": ", field.value, b"\r\n"].concat());
        }
    }
    // The program's next request may be for another server, so it needs a new connection.
    head.extend(b"Connection: close\r\n\r\n");
    let answer = AnswerContext { head_only: method == "HEAD", interim: version >= 1 };
    Ok(Request { target, form: RequestForm::Plain { head, body, answer } })
}

/// The values of a field.
pub fn values<'a>(
    fields: &'a [httparse::Header<'a>],
    name: &'a str,
) -> impl Iterator<Item = &'a [u8]> + 'a {
    fields
        .iter()
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .map(|field| field.value)
}

/// Whether a field applies to one hop only, including the fields that the Connection field lists.
pub fn is_hop_by_hop(name: &str, fields: &[httparse::Header<'_>]) -> bool {
    let named = |value: &[u8]| {
        let text = String::from_utf8_lossy(value);
        text.split(',').any(|token| token.trim().eq_ignore_ascii_case(name))
    };
    // The fields that give the length are never dropped.
    let framing = ["content-length", "transfer-encoding"];
    HOP_BY_HOP.iter().any(|own| name.eq_ignore_ascii_case(own))
        || (!framing.iter().any(|own| name.eq_ignore_ascii_case(own))
            && values(fields, "connection").any(named))
}

/// The length of the body (RFC 9112, 6.3). Ambiguous requests are refused, because one request could hide in another.
fn body_of(fields: &[httparse::Header<'_>], version: u8) -> Result<Length, HttpError> {
    let mut lengths = values(fields, "content-length");
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(HttpError::Body);
    }
    let mut encodings = values(fields, "transfer-encoding");
    match (length, encodings.next(), encodings.next()) {
        (None, None, _) => Ok(Length::Bytes(0)),
        (Some(digits), None, _) => {
            let text = std::str::from_utf8(digits).unwrap_or("").trim();
            let number = text.bytes().all(|c| c.is_ascii_digit());
            let length = if number { text.parse().ok() } else { None };
            length.map(Length::Bytes).ok_or(HttpError::Body)
        }
        // RFC 9112, 6.1: an HTTP/1.0 message with Transfer-Encoding has faulty framing.
        (None, Some(chunked), None) if version >= 1 && chunked.eq_ignore_ascii_case(b"chunked") => {
            Ok(Length::Chunked)
        }
        _ => Err(HttpError::Body),
    }
}

/// Whether the request has the right name and password (RFC 7617, 2).
fn authorized(fields: &[httparse::Header<'_>], credentials: &Credentials) -> bool {
    let given = values(fields, "proxy-authorization").next();
    let basic = given.and_then(|value| {
        let (scheme, rest) = std::str::from_utf8(value).ok()?.split_once(' ')?;
        let basic = scheme.eq_ignore_ascii_case("basic");
        basic.then(|| STANDARD.decode(rest.trim())).and_then(Result::ok)
    });
    basic.is_some_and(|pair| {
        let colon = pair.iter().position(|c| *c == b':');
        colon.is_some_and(|at| credentials.are(&pair[..at], &pair[at + 1..]))
    })
}

/// The answer to CONNECT.
pub const CONNECTED: &[u8] = b"HTTP/1.1 200 Connected\r\n\r\n";

/// An answer with an error status and the reason.
pub fn refusal(status: u16, why: &str) -> Vec<u8> {
    let words = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Bad Gateway",
    };
    let ask = if status == 407 { "Proxy-Authenticate: Basic realm=\"ropewalk\"\r\n" } else { "" };
    let text = format!("ropewalk proxy: {why}\n");
    format!(
        "HTTP/1.1 {status} {words}\r\n{ask}Content-Type: text/plain; charset=utf-8\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests;
