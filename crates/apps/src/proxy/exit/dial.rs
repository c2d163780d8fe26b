//! Connects to a target: resolves its name, filters the addresses and opens a TCP connection.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::limits::{QuotaUser, Quotas};
use super::policy::{self, Policy};
use super::resolver::Resolver;
use super::rule::Rule;
use crate::proxy::reason::{Reason, ReasonKind};
use crate::proxy::target::{Host, Target};

/// Time limit for all steps.
const DIAL_TIMEOUT: Duration = Duration::from_secs(12);
/// Delay before the next address is tried while the previous one has not answered (RFC 8305, 8).
const STAGGER: Duration = Duration::from_millis(250);
/// Maximum number of addresses of one name that are tried.
const ADDRESS_LIMIT: usize = 8;

/// Parameters of a dial.
pub struct Dialler<'a> {
    pub policy: &'a Policy,
    /// If not empty, the only destinations that this key may use.
    pub targets: &'a [Rule],
    pub resolver: &'a Resolver,
    pub quotas: &'a Quotas,
    pub user: QuotaUser,
}

impl Dialler<'_> {
    /// Connects to the target, if the policy permits it.
    ///
    /// # Errors
    /// Why the connection failed.
    pub async fn dial(&self, target: &Target) -> Result<TcpStream, Reason> {
        let until = Instant::now() + DIAL_TIMEOUT;
        let busy = |_| Reason::new(ReasonKind::Busy, "too many connections are being opened");
        let _place = timeout_at(until, self.quotas.dials.one(&self.user)).await.map_err(busy)?;
        let all = async {
            let addresses = self.resolve(target).await?;
            connect(addresses).await
        };
        let seconds = DIAL_TIMEOUT.as_secs();
        let late = |_| Reason::new(ReasonKind::TimedOut, format!("no answer within {seconds} s"));
        timeout_at(until, all).await.map_err(late)?
    }

    /// The addresses to try. The connection uses an address that was checked here. The name is not resolved again, so
    /// a second answer cannot lead elsewhere (DNS rebinding).
    async fn resolve(&self, target: &Target) -> Result<Vec<SocketAddr>, Reason> {
        match &target.host {
            Host::Ip(ip) => self.permitted(target, None, vec![*ip]),
            Host::Name(name) => {
                let found = {
                    let _place = self.quotas.lookups.one(&self.user).await;
                    self.resolver.lookup(name).await?
                };
                self.permitted(target, Some(name), found)
            }
        }
    }

    /// The addresses that the policy permits.
    fn permitted(
        &self,
        target: &Target,
        name: Option<&str>,
        found: Vec<IpAddr>,
    ) -> Result<Vec<SocketAddr>, Reason> {
        let mut refused = None;
        let mut allowed = Vec::new();
        for ip in found {
            let address = SocketAddr::new(ip, target.port);
            let checked = self.policy.check(name, address);
            match checked.and_then(|()| policy::check_targets(self.targets, name, address)) {
                Ok(()) if !allowed.contains(&address) => allowed.push(address),
                Ok(()) => {}
                Err(reason) => refused = Some(reason),
            }
        }
        if allowed.is_empty() {
            let empty =
                || Reason::new(ReasonKind::NameUnknown, format!("{} has no address", target.host));
            return Err(refused.unwrap_or_else(empty));
        }
        Ok(alternate(allowed))
    }
}

/// Alternates between address families, starting with that of the first address (RFC 8305, 4).
fn alternate(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v4 = addresses.first().is_some_and(|a| matches!(a.ip(), IpAddr::V4(_)));
    let (mut one, mut other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|a| a.is_ipv4() == first_is_v4);
    one.reverse();
    other.reverse();
    let mut order = Vec::new();
    while order.len() < ADDRESS_LIMIT && !(one.is_empty() && other.is_empty()) {
        order.extend(one.pop());
        order.extend(other.pop());
    }
    order.truncate(ADDRESS_LIMIT);
    order
}

/// Returns the first connection that succeeds.
async fn connect(addresses: Vec<SocketAddr>) -> Result<TcpStream, Reason> {
    let mut attempts = JoinSet::new();
    let mut failure = Reason::new(ReasonKind::Unreachable, "no address to connect to");
    let mut left = addresses.into_iter();
    loop {
        if let Some(address) = left.next() {
            attempts.spawn(async move {
                TcpStream::connect(address).await.map_err(|error| {
                    let reason = Reason::of_io(&error);
                    Reason::new(reason.kind, format!("{address}: {}", reason.detail))
                })
            });
        }
        let more = left.len() > 0;
        tokio::select! {
            Some(done) = attempts.join_next() => match done {
                Ok(Ok(socket)) => return Ok(socket),
                Ok(Err(reason)) => failure = reason,
                Err(_) => {}
            },
            () = sleep(STAGGER), if more => {}
        }
        if attempts.is_empty() && left.len() == 0 {
            return Err(failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let parse = |list: &[&str]| -> Vec<SocketAddr> {
            list.iter().map(|text| text.parse().unwrap()).collect()
        };
        for (given, order) in [
            (&["[::2]:1", "[::3]:1", "1.1.1.1:1"][..], &["[::2]:1", "1.1.1.1:1", "[::3]:1"][..]),
            (&["1.1.1.1:1", "1.1.1.2:1"], &["1.1.1.1:1", "1.1.1.2:1"]),
            (&[], &[]),
        ] {
            assert_eq!(alternate(parse(given)), parse(order));
        }
        let many: Vec<_> = (0..20).map(|i| SocketAddr::from(([9, 9, 9, i], 1))).collect();
        assert_eq!(alternate(many).len(), ADDRESS_LIMIT);
    }
}
