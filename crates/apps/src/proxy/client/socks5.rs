//! SOCKS 5 messages of programs, and the answers (RFC 1928, RFC 1929).
//!
//! Only the command CONNECT is supported; BIND and UDP ASSOCIATE are refused.

use std::fmt;

use super::client_connection::{ClientConnection, Framing, RequestError};
use super::credentials::Credentials;
use crate::proxy::target::{Target, TargetError, host_of};

const VERSION: u8 = 5;
/// Version of the negotiation of a name and password (RFC 1929, 2).
const PASSWORD_VERSION: u8 = 1;
/// Methods (RFC 1928, 3).
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NONE_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;
/// Replies (RFC 1928, 6).
const SUCCEEDED: u8 = 0;
const FAILED: u8 = 1;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_NOT_SUPPORTED: u8 = 8;

/// Maximum length of a SOCKS 5 message, bytes: a name and a password of 255 bytes each.
const MESSAGE_LIMIT: usize = 3 + 2 * 255;

/// Why a program's message is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocksError {
    /// Another version of SOCKS.
    Version(u8),
    /// The program offers no acceptable method.
    Method,
    /// Wrong name or password.
    Password,
    /// A command other than CONNECT.
    Command(u8),
    /// An invalid address.
    Target(TargetError),
}

impl fmt::Display for SocksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(4) => f.write_str("it speaks SOCKS 4; choose SOCKS 5 in its settings"),
            Self::Version(c) if c.is_ascii_uppercase() => f.write_str(
                "it does not speak SOCKS 5 but perhaps HTTP, which has a port of its own (--http)",
            ),
            Self::Version(v) => write!(f, "it does not speak SOCKS 5: it began with {v:#04x}"),
            Self::Method => f.write_str("it does not offer the required authentication"),
            Self::Password => f.write_str("wrong name or password"),
            Self::Command(2) => f.write_str("BIND is not supported"),
            Self::Command(3) => f.write_str("UDP ASSOCIATE is not supported"),
            Self::Command(c) => write!(f, "command {c} is not supported"),
            Self::Target(error) => error.fmt(f),
        }
    }
}

/// A parsed message and its length. `None` if it is incomplete.
pub type Parsed<T> = Result<Option<(T, usize)>, SocksError>;

/// Parses the methods that a program offers.
///
/// # Errors
/// `SocksError`.
pub fn greeting(bytes: &[u8]) -> Parsed<Vec<u8>> {
    match bytes {
        [VERSION, count, rest @ ..] => {
            let methods = rest.get(..usize::from(*count));
            Ok(methods.map(|methods| (methods.to_vec(), 2 + methods.len())))
        }
        [] | [VERSION] => Ok(None),
        [version, ..] => Err(SocksError::Version(*version)),
    }
}

/// Parses a name and a password (RFC 1929, 2).
///
/// # Errors
/// `SocksError`.
pub fn password(bytes: &[u8]) -> Parsed<(Vec<u8>, Vec<u8>)> {
    if let [version, ..] = bytes
        && *version != PASSWORD_VERSION
    {
        return Err(SocksError::Version(*version));
    }
    let field = |at: usize| -> Option<(Vec<u8>, usize)> {
        let end = at + 1 + usize::from(*bytes.get(at)?);
        Some((bytes.get(at + 1..end)?.to_vec(), end))
    };
    let Some((name, end)) = field(1) else { return Ok(None) };
    Ok(field(end).map(|(password, end)| ((name, password), end)))
}

/// Parses a request for a target (RFC 1928, 4).
///
/// # Errors
/// `SocksError`.
pub fn request(bytes: &[u8]) -> Parsed<Target> {
    if let [version, ..] = bytes
        && *version != VERSION
    {
        return Err(SocksError::Version(*version));
    }
    let [_, command, _, kind, rest @ ..] = bytes else { return Ok(None) };
    if *command != CONNECT {
        return Err(SocksError::Command(*command));
    }
    let (skip, length) = match (kind, rest) {
        (1, _) => (0, 4),
        (4, _) => (0, 16),
        (3, [length, ..]) => (1, usize::from(*length)),
        (3, []) => return Ok(None),
        _ => return Err(SocksError::Target(TargetError::Malformed)),
    };
    let Some([.., high, low]) = rest.get(..skip + length + 2) else { return Ok(None) };
    let host = host_of(*kind, &rest[skip..skip + length]).map_err(SocksError::Target)?;
    let port = u16::from_be_bytes([*high, *low]);
    let target = Target::new(host, port).map_err(SocksError::Target)?;
    Ok(Some((target, 4 + skip + length + 2)))
}

/// A reply. It does not disclose the address of the exit's connection.
fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

/// Reads a client's request for a target.
///
/// # Errors
/// [`RequestError`]; the program has received an answer then.
pub async fn read_request(
    client: &mut ClientConnection,
    credentials: Option<&Credentials>,
) -> Result<Target, RequestError<SocksError>> {
    let methods = client.read_message(MESSAGE_LIMIT, Framing::Binary, greeting).await?;
    let wanted = if credentials.is_some() { PASSWORD } else { NO_AUTHENTICATION };
    if !methods.contains(&wanted) {
        client.send_and_close(&[VERSION, NONE_ACCEPTABLE]).await;
        return Err(RequestError::Malformed(SocksError::Method));
    }
    client.send(&[VERSION, wanted]).await.map_err(|_| RequestError::Closed)?;
    if let Some(credentials) = credentials {
        let (name, password) =
            client.read_message(MESSAGE_LIMIT, Framing::Binary, password).await?;
        if !credentials.are(&name, &password) {
            client.send_and_close(&[PASSWORD_VERSION, 1]).await;
            return Err(RequestError::Malformed(SocksError::Password));
        }
        client.send(&[PASSWORD_VERSION, 0]).await.map_err(|_| RequestError::Closed)?;
    }
    match client.read_message(MESSAGE_LIMIT, Framing::Binary, request).await {
        Err(RequestError::Malformed(error)) => {
            let code = match error {
                SocksError::Command(_) => COMMAND_NOT_SUPPORTED,
                SocksError::Target(_) => ADDRESS_NOT_SUPPORTED,
                _ => FAILED,
            };
            client.send_and_close(&reply(code)).await;
            Err(RequestError::Malformed(error))
        }
        other => other,
    }
}

/// Tells the program that its connection is open.
///
/// # Errors
/// If the program has closed its connection.
pub async fn succeed(client: &mut ClientConnection) -> std::io::Result<()> {
    client.send(&reply(SUCCEEDED)).await
}

/// Tells the program why its connection failed.
pub async fn fail(client: &mut ClientConnection, code: u8) {
    client.send_and_close(&reply(code)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_understood_once_they_are_whole_and_not_before() {
        let whole = b"\x05\x02\x00\x02".as_slice();
        assert_eq!(greeting(whole), Ok(Some((vec![0, 2], 4))));
        let (name, pass) = (b"anne".to_vec(), b"pw".to_vec());
        let words = b"\x01\x04anne\x02pw".as_slice();
        assert_eq!(password(words), Ok(Some(((name, pass), 9))));
        for n in 0..whole.len() {
            assert_eq!(greeting(&whole[..n]), Ok(None));
        }
        for n in 0..words.len() {
            assert_eq!(password(&words[..n]), Ok(None));
        }
        for (bytes, shown) in [
            (&b"\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50"[..], "192.0.2.1:80"),
            (b"\x05\x01\x00\x03\x09localhost\x1f\x90", "localhost:8080"),
            (b"\x05\x01\x00\x03\x071.2.3.4\x00\x50", "1.2.3.4:80"),
            (b"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb", "[::1]:443"),
        ] {
            for n in 0..bytes.len() {
                assert_eq!(request(&bytes[..n]), Ok(None), "{shown} {n}");
            }
            let mut more = bytes.to_vec();
            more.extend_from_slice(b"GET /");
            let (target, length) = request(&more).unwrap().unwrap();
            assert_eq!((target.to_string().as_str(), length), (shown, bytes.len()));
        }
    }

    #[test]
    fn what_is_not_socks_5_is_told_apart() {
        assert_eq!(greeting(b"\x04\x01"), Err(SocksError::Version(4)));
        assert!(greeting(b"GET / HTTP").unwrap_err().to_string().contains("--http"));
        assert_eq!(password(b"\x05"), Err(SocksError::Version(5)));
        for (bytes, error) in [
            (&b"\x05\x02\x00\x01"[..], SocksError::Command(2)),
            (b"\x05\x03\x00\x01", SocksError::Command(3)),
            (b"\x05\x01\x00\x09", SocksError::Target(TargetError::Malformed)),
            (b"\x05\x01\x00\x03\x00\x00\x50", SocksError::Target(TargetError::Host(String::new()))),
            (
                b"\x05\x01\x00\x01\x01\x01\x01\x01\x00\x00",
                SocksError::Target(TargetError::Port("0".into())),
            ),
            (
                b"\x05\x01\x00\x03\x02a\n\x00\x50",
                SocksError::Target(TargetError::Host("a\n".into())),
            ),
        ] {
            assert_eq!(request(bytes), Err(error));
        }
    }
}
