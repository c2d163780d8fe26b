//! The parser of `peers.toml`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use ropewalk_runtime::seal::{PresharedKey, PublicKey};
use serde::Deserialize;
use toml::Spanned;
use toml::value::Datetime;

use super::date::{DATE_HELP, expiry};
use super::error::{Problem, line_of};
use super::policy::{ClientLimits, FilePolicy, PeerPolicy, TunnelPolicy};
use super::size::{SIZE_HELP, parse_monthly, parse_rate, parse_size};
use crate::proxy::exit::ExitPolicy;
use crate::proxy::exit::Rule;

/// Maximum length of a peer's name, characters.
pub const PEER_NAME_LIMIT: usize = 64;
/// Maximum number of addresses of an entry.
const ADDRESSES_LIMIT: usize = 16;
const ADDRESSES_HELP: &str = "give at most 16 addresses at which the peer's servers listen, such as 192.0.2.7, \
     [2001:db8::1]:9000 or host.example";
const NAME_HELP: &str = "give letters, digits and - _ . @ +, at most 64 characters";
const KEY_HELP: &str = "give the public key that `ropewalk keygen FILE` or `ropewalk recv` prints";
const FILE_HELP: &str = "an entry is [[peer]] with name, key and, optionally, addresses, psk_file, expires, [peer.files] \
     (directory, quota, max_file, overwrite), [peer.exit] (targets, connections) and [peer.tunnel] \
     (addresses, rate, quota)";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    peer: Vec<RawPeer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPeer {
    name: Spanned<String>,
    key: Spanned<String>,
    addresses: Option<Spanned<Vec<String>>>,
    psk_file: Option<Spanned<String>>,
    expires: Option<Spanned<toml::Value>>,
    #[serde(default)]
    files: RawFiles,
    #[serde(default)]
    exit: RawExit,
    #[serde(default)]
    tunnel: RawTunnel,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFiles {
    directory: Option<Spanned<String>>,
    quota: Option<Spanned<String>>,
    max_file: Option<Spanned<String>>,
    overwrite: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTunnel {
    addresses: Option<Spanned<Vec<Spanned<String>>>>,
    rate: Option<Spanned<String>>,
    quota: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExit {
    targets: Option<Spanned<Vec<Spanned<String>>>>,
    connections: Option<Spanned<i64>>,
}

/// Parses all entries, and reads the pre-shared keys whose files they name relative to `directory`. No two entries
/// may have the same key or name.
pub(super) fn parse(text: &str, directory: &Path) -> Result<Vec<PeerPolicy>, Problem> {
    let raw: RawFile = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Problem::new(at, error.message().trim().replace('\n', ", "), FILE_HELP)
    })?;
    let (mut names, mut keys) = (BTreeMap::new(), BTreeMap::new());
    let mut peers = Vec::with_capacity(raw.peer.len());
    for raw in &raw.peer {
        let peer = entry(raw, directory)?;
        let (name_at, key_at) = (raw.name.span().start, raw.key.span().start);
        if let Some(first) = names.insert(peer.name.clone(), name_at) {
            let first = line_of(text, first);
            let message = format!("the name `{}` is taken by the entry in line {first}", peer.name);
            return Err(Problem::new(name_at, message, "give each peer a name of its own"));
        }
        if let Some(first) = keys.insert(peer.key, key_at) {
            let first = line_of(text, first);
            let message = format!("the key {} has an entry already, in line {first}", peer.key);
            return Err(Problem::new(key_at, message, "keep one entry for each key"));
        }
        peers.push(peer);
    }
    Ok(peers)
}

fn entry(raw: &RawPeer, base: &Path) -> Result<PeerPolicy, Problem> {
    let name = raw.name.get_ref();
    if !is_peer_name(name) {
        let message = format!("{name:?} is not a valid name for a peer");
        return Err(Problem::new(raw.name.span().start, message, NAME_HELP));
    }
    let key = raw.key.get_ref().parse::<PublicKey>().map_err(|error| {
        let message = format!("`{}` is not a public key: {error}", raw.key.get_ref());
        Problem::new(raw.key.span().start, message, KEY_HELP)
    })?;
    let mut peer = PeerPolicy::unrestricted(name.as_str(), key);
    peer.addresses = raw.addresses.as_ref().map(addresses).transpose()?.unwrap_or_default();
    peer.psk = raw.psk_file.as_ref().map(|file| psk(file, base)).transpose()?;
    peer.expires = raw.expires.as_ref().map(expires).transpose()?;
    peer.files = files(&raw.files)?;
    peer.exit = exit(&raw.exit)?;
    peer.tunnel = tunnel(&raw.tunnel)?;
    Ok(peer)
}

/// Whether a text can be the name of a peer.
pub fn is_peer_name(text: &str) -> bool {
    let good = |c: char| c.is_alphanumeric() || "-_.@+".contains(c);
    !text.is_empty() && text.chars().count() <= PEER_NAME_LIMIT && text.chars().all(good)
}

fn addresses(raw: &Spanned<Vec<String>>) -> Result<Vec<String>, Problem> {
    let good = |c: char| c.is_alphanumeric() || "-_.:[]".contains(c);
    let wrong = |text: &&String| text.is_empty() || !text.chars().all(good);
    let all = raw.get_ref();
    let message = match all.iter().find(wrong) {
        Some(wrong) => format!("{wrong:?} is not an address"),
        None if all.len() > ADDRESSES_LIMIT => format!("{} addresses", all.len()),
        None => return Ok(all.clone()),
    };
    Err(Problem::new(raw.span().start, message, ADDRESSES_HELP))
}

fn psk(raw: &Spanned<String>, base: &Path) -> Result<PresharedKey, Problem> {
    PresharedKey::read_file(&base.join(raw.get_ref()))
        .map_err(|error| Problem::new(raw.span().start, error.to_string(), error.help()))
}

fn expires(raw: &Spanned<toml::Value>) -> Result<SystemTime, Problem> {
    let date = match raw.get_ref() {
        toml::Value::Datetime(date) => Some(*date),
        toml::Value::String(text) => Datetime::from_str(text).ok(),
        _ => None,
    };
    date.and_then(expiry).ok_or_else(|| {
        let message = match raw.get_ref() {
            toml::Value::String(text) => format!("{text:?} is not a date"),
            toml::Value::Integer(number) => format!("{number} is not a date"),
            other => format!("a value of type {} is not a date", other.type_str()),
        };
        Problem::new(raw.span().start, message, DATE_HELP)
    })
}

fn files(raw: &RawFiles) -> Result<FilePolicy, Problem> {
    let bytes = |raw: &Option<Spanned<String>>| raw.as_ref().map(size).transpose();
    Ok(FilePolicy {
        directory: raw.directory.as_ref().map(directory).transpose()?,
        quota_bytes: bytes(&raw.quota)?,
        max_file_bytes: bytes(&raw.max_file)?,
        allow_overwrite: raw.overwrite.unwrap_or(true),
    })
}

fn size(raw: &Spanned<String>) -> Result<u64, Problem> {
    parse_size(raw.get_ref()).ok_or_else(|| {
        let message = format!("`{}` is not a size", raw.get_ref());
        Problem::new(raw.span().start, message, SIZE_HELP)
    })
}

/// Parses a path of plain names. Such names do not begin with a dot, as the receiver's own files do.
fn directory(raw: &Spanned<String>) -> Result<PathBuf, Problem> {
    let path = Path::new(raw.get_ref());
    let plain = |part: Component<'_>| match part {
        Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
        _ => false,
    };
    let control = raw.get_ref().contains(|c: char| c.is_control() || c == '\\');
    if control || path.components().next().is_none() || !path.components().all(plain) {
        let message = format!("{:?} is not a directory below the inbox", raw.get_ref());
        let help =
            "give plain names, such as `anna` or `team/anna`: no `..`, no leading `/` or dot";
        return Err(Problem::new(raw.span().start, message, help));
    }
    Ok(path.components().collect())
}

fn exit(raw: &RawExit) -> Result<ExitPolicy, Problem> {
    let targets = raw.targets.as_ref().map(targets).transpose()?.unwrap_or_default();
    let max_connections = raw.connections.as_ref().map(connections).transpose()?;
    Ok(ExitPolicy { targets, max_connections })
}

fn tunnel(raw: &RawTunnel) -> Result<TunnelPolicy, Problem> {
    let address = |text: &Spanned<String>| {
        text.get_ref().parse::<IpAddr>().map_err(|_| {
            let message = format!("{:?} is not an address", text.get_ref());
            let help = "give addresses of the hub's networks, such as 10.88.0.9 and fd88::9";
            Problem::new(text.span().start, message, help)
        })
    };
    let all = raw.addresses.iter().flat_map(Spanned::get_ref);
    let rate = raw.rate.as_ref().map(|raw| limit(raw, "a rate", parse_rate));
    let quota = raw.quota.as_ref().map(|raw| limit(raw, "a volume", parse_monthly));
    let limits = ClientLimits { rate_bps: rate.transpose()?, quota_bytes: quota.transpose()? };
    Ok(TunnelPolicy { addresses: all.map(address).collect::<Result<_, _>>()?, limits })
}

fn limit(
    raw: &Spanned<String>,
    what: &str,
    parse: impl Fn(&str) -> Result<u64, String>,
) -> Result<u64, Problem> {
    parse(raw.get_ref()).map_err(|help| {
        let message = format!("{:?} is not {what}", raw.get_ref());
        Problem::new(raw.span().start, message, help)
    })
}

fn targets(raw: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<Rule>, Problem> {
    if raw.get_ref().is_empty() {
        let help =
            "name a destination, or leave `targets` out: then the exit's own rules count alone";
        return Err(Problem::new(raw.span().start, "`targets` is empty", help));
    }
    let rule = |text: &Spanned<String>| {
        text.get_ref().parse::<Rule>().map_err(|error| {
            let help = "the syntax is that of `ropewalk proxy exit --allow-to`";
            Problem::new(text.span().start, error.to_string(), help)
        })
    };
    raw.get_ref().iter().map(rule).collect()
}

fn connections(raw: &Spanned<i64>) -> Result<usize, Problem> {
    let number = usize::try_from(*raw.get_ref()).ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        let message = format!("{} is not a number of connections", raw.get_ref());
        let help = "give at least 1; to exclude a peer, remove its entry";
        Problem::new(raw.span().start, message, help)
    })
}
