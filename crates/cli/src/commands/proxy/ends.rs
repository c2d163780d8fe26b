//! Addresses and keys, as both ends are told them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

use ropewalk_runtime::endpoint::{Local, OpenError, PORT};
use ropewalk_runtime::seal::{PublicKey, SecretKey};

use crate::failure::Failure;

/// Most characters of a public key, and the words for it.
const KEY_HELP: &str = "a public key has 44 characters; `ropewalk keygen --public FILE` prints it";

/// The secret key.
pub fn secret(path: Option<&Path>) -> Result<SecretKey, Failure> {
    let path = path.ok_or_else(|| {
        Failure::input(
            "this end has no key: --key is missing",
            "make one with `ropewalk keygen me.key`, and give the public key that it prints to the other end",
        )
    })?;
    Ok(SecretKey::read_file(path)?)
}

/// Public keys: given themselves, or a file with one in each line.
pub fn peers(texts: &[String]) -> Result<BTreeSet<PublicKey>, Failure> {
    let mut keys = BTreeSet::new();
    for text in texts {
        if let Ok(key) = text.parse() {
            keys.insert(key);
            continue;
        }
        let content = std::fs::read_to_string(text).map_err(|_| {
            Failure::input(
                format!("`{text}` is neither a public key nor a readable file of them"),
                KEY_HELP,
            )
        })?;
        for line in content.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = line.parse().map_err(|error| {
                Failure::input(
                    format!("`{text}` holds `{line}`, which is no key: {error}"),
                    KEY_HELP,
                )
            })?;
            keys.insert(key);
        }
    }
    Ok(keys)
}

/// `ADDR[:PORT]` to listen at.
pub fn listen(text: &str) -> Result<SocketAddr, Failure> {
    if let Ok(ip) = bare(text).parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, PORT));
    }
    text.parse().map_err(|_| {
        Failure::input(
            format!("`{text}` is no address to listen at"),
            "write 0.0.0.0, 192.0.2.7:9899 or [2001:db8::7]:9899",
        )
    })
}

/// `HOST[:PORT]` of the peer: all addresses that it has, if it is a name.
pub fn remote(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(ip) = bare(text).parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, PORT)]);
    }
    let whole = match text.rsplit_once(':') {
        Some((_, port)) if port.bytes().all(|c| c.is_ascii_digit()) => text.to_owned(),
        _ => format!("{text}:{PORT}"),
    };
    let found = whole.to_socket_addrs().map_err(|error| {
        Failure::input(
            format!("no address for `{text}`: {error}"),
            "name the exit as HOST or HOST:PORT, for example exit.example.org or 192.0.2.7:9899",
        )
    })?;
    Ok(found.collect())
}

/// An address without the brackets that IPv6 may have.
fn bare(text: &str) -> &str {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text)
}

/// Where packets leave: an address or an interface for each path.
pub fn locals(from: &[String], to: &[SocketAddr]) -> Vec<Local> {
    let any: IpAddr = match to.first() {
        Some(address) if address.is_ipv6() => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    };
    if from.is_empty() {
        return vec![Local::of((any, 0).into())];
    }
    let local = |text: &String| match bare(text).parse::<IpAddr>() {
        Ok(ip) => Local::of((ip, 0).into()),
        Err(_) => Local { address: (any, 0).into(), interface: Some(text.clone()) },
    };
    from.iter().map(local).collect()
}

/// What is wrong with an endpoint's options is wrong input.
pub fn not_open(error: &OpenError) -> Failure {
    Failure::Input(error.to_string())
}
