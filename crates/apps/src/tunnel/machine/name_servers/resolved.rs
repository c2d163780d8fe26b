//! systemd-resolved: the name servers of a link, set over D-Bus
//! ([interface](https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.resolve1.html)).
//!
//! The settings belong to the link and end with it, even after `kill -9`. systemd-resolved keeps them in `/run`
//! across restarts.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use rustix::net::AddressFamily;
use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::message::Type;
use zbus::{
    Connection, DynamicType, MatchRule, MessageStream, OwnedObjectPath, OwnedVariant, Variant, fdo,
};

/// Timeout of the bus and systemd-resolved for one task.
const LIMIT: Duration = Duration::from_secs(2);
/// Poll interval while systemd-resolved does not know a new link.
const LINK_POLL: Duration = Duration::from_millis(50);
/// Minimum time between two checks of the settings.
const SETTLE: Duration = Duration::from_millis(200);
/// Delay of the next attempt after a failure.
const RETRY: Duration = Duration::from_secs(2);

/// A domain of a link: all names. It only selects the link for queries, and is not appended to names (`~.` of
/// resolvectl(1)).
const ALL_NAMES: &[(&str, bool)] = &[(".", true)];

/// The netlink sockets of this network namespace.
const NETLINK_SOCKETS: &str = "/proc/thread-self/net/netlink";

const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const NAME: &str = "org.freedesktop.resolve1";
const PATH: &str = "/org/freedesktop/resolve1";
const MANAGER: &str = "org.freedesktop.resolve1.Manager";
const LINK: &str = "org.freedesktop.resolve1.Link";

/// Why systemd-resolved cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResolvedError {
    /// The service does not run, or there is no system bus.
    #[error("it is not running")]
    NotRunning,
    /// The service runs in another network namespace, or this cannot be determined.
    #[error("it does not run in this network namespace, or this user may not see where it runs")]
    OtherNamespace,
    /// The service or the bus did not answer.
    #[error("no answer within {} s", LIMIT.as_secs())]
    Silent,
    /// The service refused, or the bus failed.
    #[error("{0}")]
    Bus(zbus::Error),
}

impl ResolvedError {
    /// Whether the error is unexpected on a correctly configured machine.
    pub fn is_unexpected(&self) -> bool {
        matches!(self, Self::Silent | Self::Bus(_))
    }
}

impl From<zbus::Error> for ResolvedError {
    fn from(error: zbus::Error) -> Self {
        match &error {
            zbus::Error::Connection(io, _)
                if matches!(
                    io.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Self::NotRunning
            }
            zbus::Error::FDO(fdo) if is_gone(fdo) => Self::NotRunning,
            _ => Self::Bus(error),
        }
    }
}

/// Whether the bus reports that a service does not run, or has ended before it answered.
const fn is_gone(error: &fdo::Error) -> bool {
    use fdo::Error::{NameHasNoOwner, NoReply, ServiceUnknown};
    matches!(error, NameHasNoOwner(_) | NoReply(_) | ServiceUnknown(_))
}

/// Runs a task with the timeout [`LIMIT`].
async fn bounded<T>(
    what: impl Future<Output = Result<T, ResolvedError>>,
) -> Result<T, ResolvedError> {
    tokio::time::timeout(LIMIT, what).await.unwrap_or(Err(ResolvedError::Silent))
}

/// Sends all names to these servers, through this interface.
pub async fn set(interface: u32, servers: &[IpAddr]) -> Result<(), ResolvedError> {
    bounded(async {
        let resolved = Resolved::open().await?;
        resolved.check().await?;
        resolved.set(interface, servers).await
    })
    .await
}

/// Sets the servers whenever they are not set. Each failure is reported once, until it succeeds again.
pub async fn keep(
    interface: u32,
    servers: &[IpAddr],
    report: impl Fn(ResolvedError),
) -> Infallible {
    let mut reported = String::new();
    loop {
        let Err(error) = watch(interface, servers, &mut reported).await;
        // The service is restarting, or was stopped on purpose.
        if !matches!(error, ResolvedError::NotRunning) && reported != error.to_string() {
            reported = error.to_string();
            report(error);
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Sets the servers whenever they are not set, until an operation fails.
async fn watch(
    interface: u32,
    servers: &[IpAddr],
    reported: &mut String,
) -> Result<Infallible, ResolvedError> {
    let resolved = bounded(Resolved::open()).await?;
    // The signal is sent when any name servers of the machine change.
    let changed = MatchRule::builder()
        .msg_type(Type::Signal)
        .path(PATH)
        .interface(PROPERTIES)
        .member("PropertiesChanged")
        .build()?;
    let owner = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(BUS)
        .interface(BUS)
        .member("NameOwnerChanged")
        .add_arg(NAME)
        .build()?;
    let (mut changed, mut owner) =
        bounded(async { Ok((resolved.signals(changed).await?, resolved.signals(owner).await?)) })
            .await?;
    loop {
        let is_set = async {
            resolved.check().await?;
            if !resolved.is_set(interface, servers).await? {
                resolved.set(interface, servers).await?;
            }
            Ok(())
        };
        match bounded(is_set).await {
            Ok(()) => reported.clear(),
            Err(ResolvedError::NotRunning) => {}
            Err(error) => return Err(error),
        }
        tokio::select! {
            one = next(&mut changed) => one?,
            one = next(&mut owner) => one?,
        }
        tokio::time::sleep(SETTLE).await;
    }
}

/// Waits for a signal.
async fn next(signals: &mut MessageStream) -> Result<(), ResolvedError> {
    let signal = poll_fn(|cx| Pin::new(&mut *signals).poll_next(cx)).await;
    let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "the system bus has ended");
    signal.unwrap_or_else(|| Err(gone().into()))?;
    Ok(())
}

/// A connection to systemd-resolved.
#[derive(Debug)]
pub struct Resolved {
    bus: Connection,
}

impl Resolved {
    /// Connects to systemd-resolved of this machine.
    ///
    /// # Errors
    /// The service does not run here, or does not answer within [`LIMIT`].
    pub async fn connect() -> Result<Self, ResolvedError> {
        bounded(async {
            let resolved = Self::open().await?;
            resolved.check().await?;
            Ok(resolved)
        })
        .await
    }

    async fn open() -> Result<Self, ResolvedError> {
        Ok(Self { bus: Connection::system().await? })
    }

    /// Checks that systemd-resolved runs in this network namespace: in another one, the same numbers refer to other
    /// links.
    async fn check(&self) -> Result<(), ResolvedError> {
        let process: u32 =
            self.call(BUS, BUS_PATH, BUS, "GetConnectionUnixProcessID", &NAME).await?;
        let of = |place: PathBuf| std::fs::read_link(place.join("ns/net")).ok();
        let is_here = match of(PathBuf::from(format!("/proc/{process}"))) {
            Some(theirs) => Some(theirs) == of(PathBuf::from("/proc/thread-self")),
            // This needs CAP_SYS_PTRACE, which services do not have.
            None => std::fs::read_to_string(NETLINK_SOCKETS)
                .is_ok_and(|sockets| has_route_socket(&sockets, process)),
        };
        if is_here { Ok(()) } else { Err(ResolvedError::OtherNamespace) }
    }

    async fn set(&self, interface: u32, servers: &[IpAddr]) -> Result<(), ResolvedError> {
        let link = interface as i32;
        let servers: Vec<(i32, Vec<u8>)> = servers.iter().map(address).collect();
        // The service may not know yet that the link exists.
        while let Err(error) = self.manager("SetLinkDNS", &(link, &servers)).await {
            if !is_error(&error, "org.freedesktop.resolve1.NoSuchLink") {
                return Err(error);
            }
            tokio::time::sleep(LINK_POLL).await;
        }
        self.manager("SetLinkDomains", &(link, ALL_NAMES)).await?;
        match self.manager("SetLinkDefaultRoute", &(link, true)).await {
            // systemd before 240 accepts only the domain.
            Err(ResolvedError::Bus(zbus::Error::FDO(error)))
                if matches!(*error, fdo::Error::UnknownMethod(_)) => {}
            other => other?,
        }
        self.manager("FlushCaches", &()).await
    }

    async fn is_set(&self, interface: u32, servers: &[IpAddr]) -> Result<bool, ResolvedError> {
        let link: OwnedObjectPath =
            self.call(NAME, PATH, MANAGER, "GetLink", &(interface as i32)).await?;
        let now: Vec<(i32, Vec<u8>)> = self.property(&link, "DNS").await?;
        let names: Vec<(String, bool)> = self.property(&link, "Domains").await?;
        Ok(now.into_iter().eq(servers.iter().map(address))
            && names
                .iter()
                .map(|(name, is_route)| (name.as_str(), *is_route))
                .eq(ALL_NAMES.iter().copied()))
    }

    /// Calls a method of the manager that returns nothing.
    async fn manager(
        &self,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<(), ResolvedError> {
        self.call(NAME, PATH, MANAGER, method, body).await
    }

    async fn property<T>(&self, link: &str, name: &str) -> Result<T, ResolvedError>
    where
        T: TryFrom<Variant<'static>>,
        T::Error: Into<zbus::Error>,
    {
        let value: OwnedVariant = self.call(NAME, link, PROPERTIES, "Get", &(LINK, name)).await?;
        Ok(T::try_from(value.into()).map_err(Into::into)?)
    }

    async fn call<T: DeserializeOwned + zbus::Type>(
        &self,
        peer: &str,
        path: &str,
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<T, ResolvedError> {
        let reply = self.bus.call_method(Some(peer), path, Some(interface), method, body).await?;
        Ok(reply.body().deserialize()?)
    }

    async fn signals(&self, rule: MatchRule<'static>) -> Result<MessageStream, ResolvedError> {
        Ok(MessageStream::for_match_rule(rule, &self.bus, None).await?)
    }
}

/// Whether a process has a socket of the routing protocol in the network namespace of this table. The kernel names the first
/// such socket of a process by the number of the process, and systemd-resolved watches the links of its namespace by one.
fn has_route_socket(sockets: &str, process: u32) -> bool {
    const NETLINK_ROUTE: &str = "0";
    let process = process.to_string();
    // The columns are: address, protocol, port ID.
    sockets.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(NETLINK_ROUTE) && words.next() == Some(&process)
    })
}

/// An address as D-Bus has it: the number of its family (AF_INET, AF_INET6) and its bytes.
fn address(server: &IpAddr) -> (i32, Vec<u8>) {
    match server {
        IpAddr::V4(address) => (i32::from(AddressFamily::INET.as_raw()), address.octets().to_vec()),
        IpAddr::V6(address) => {
            (i32::from(AddressFamily::INET6.as_raw()), address.octets().to_vec())
        }
    }
}

/// Whether systemd-resolved has answered with this error.
fn is_error(error: &ResolvedError, name: &str) -> bool {
    matches!(error, ResolvedError::Bus(zbus::Error::MethodError(this, ..)) if this.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_routing_socket_of_a_process_shows_its_namespace() {
        let sockets = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n\
            00000000e9a6e0a4 0   812        00000551 0        0        0     2        0        21405\n\
            000000009d1c4f7e 15  733        00000002 0        0        0     2        0        1177\n\
            00000000c4a1f0b3 0   0          00000000 0        0        0     2        0        8\n";
        for (process, is_here) in [(812, true), (81, false), (733, false), (1, false)] {
            assert_eq!(has_route_socket(sockets, process), is_here, "{process}");
        }
        assert!(!has_route_socket("", 812));
    }
}
