//! The near end: accepts connections of programs and forwards them through the exit.

mod answer;
mod chunked;
mod client_connection;
mod credentials;
mod exit_connection;
mod http;
mod serve;
mod socks5;

use std::net::SocketAddr;

/// The parsers for programs' requests and for answers to them, only for the fuzz targets. Not part of the public
/// interface.
#[doc(hidden)]
pub mod parsers {
    pub use super::answer::{AnswerContext, AnswerHead, AnswerStream, parse as answer};
    pub use super::http::{Request, RequestForm, parse as http};
    pub use super::socks5::{greeting, password, request};
}

pub use self::credentials::{Credentials, NotCredentials};
pub use self::exit_connection::{
    ConnectTimeouts, Connector, EstablishedConnection, ExitConnection, Stopped,
};
pub use self::serve::{ProxyClient, Service};
use super::target::{Host, Target, TargetError};

/// The protocol of a listening port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenProtocol {
    /// SOCKS 5.
    Socks,
    /// HTTP.
    Http,
    /// No protocol: each connection is forwarded to this target.
    Forward(Target),
}

/// Parses an address to listen on: `1080`, `127.0.0.1:1080`, `[::1]:1080`. Without an address, loopback is used.
///
/// # Errors
/// [`TargetError`].
pub fn parse_listen(text: &str) -> Result<SocketAddr, TargetError> {
    let port_alone = text.bytes().all(|c| c.is_ascii_digit());
    let whole = if port_alone { format!("127.0.0.1:{text}") } else { text.to_owned() };
    // With port 0 the system chooses a port.
    if let Ok(address) = whole.parse() {
        return Ok(address);
    }
    let target = Target::parse(&whole, None)?;
    match target.host {
        Host::Name(name) if name == "localhost" => Ok(([127, 0, 0, 1], target.port).into()),
        host => Err(TargetError::Host(host.to_string())),
    }
}

/// Parses a forwarded port: `[ADDR:]PORT=HOST:PORT`, for example `8080=example.org:80`.
///
/// # Errors
/// [`TargetError`].
pub fn parse_forward(text: &str) -> Result<(SocketAddr, Target), TargetError> {
    let (listen, target) =
        text.split_once('=').ok_or_else(|| TargetError::Shape(text.chars().take(80).collect()))?;
    Ok((parse_listen(listen)?, Target::parse(target, None)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_address_only_this_machine_is_listened_to() {
        for (text, expected) in [
            ("1080", "127.0.0.1:1080"),
            ("0", "127.0.0.1:0"),
            ("localhost:1080", "127.0.0.1:1080"),
            ("0.0.0.0:1080", "0.0.0.0:1080"),
            ("[::1]:1080", "[::1]:1080"),
        ] {
            assert_eq!(parse_listen(text).unwrap().to_string(), expected);
        }
        for text in ["", "70000", "example.org:80", "127.0.0.1", "::1"] {
            assert!(parse_listen(text).is_err(), "{text}");
        }
        let (listen, target) = parse_forward("8080=example.org:80").unwrap();
        assert_eq!(
            (listen.to_string().as_str(), target.to_string().as_str()),
            ("127.0.0.1:8080", "example.org:80")
        );
        for text in ["8080", "8080:example.org:80", "8080=example.org", "=a:1"] {
            assert!(parse_forward(text).is_err(), "{text}");
        }
    }
}
