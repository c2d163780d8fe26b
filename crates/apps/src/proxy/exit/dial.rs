//! From a target to a TCP connection: resolve, choose, connect.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::policy::Policy;
use crate::proxy::reason::{Kind, Reason};
use crate::proxy::target::{Host, Target};

/// All of it takes at most so long.
const PATIENCE: Duration = Duration::from_secs(12);
/// The next address is tried although the one before has not answered (RFC 8305, 8).
const STAGGER: Duration = Duration::from_millis(250);
/// Most addresses of one name that are tried.
const MOST: usize = 8;

/// Connects to the target, if the policy lets it.
///
/// # Errors
/// Why not.
pub async fn dial(target: &Target, policy: &Policy) -> Result<TcpStream, Reason> {
    let all = async {
        let addresses = resolve(target, policy).await?;
        connect(addresses).await
    };
    let late = || Reason::new(Kind::TimedOut, format!("no answer within {} s", PATIENCE.as_secs()));
    timeout(PATIENCE, all).await.map_err(|_| late())?
}

/// Addresses to try. What was checked is what is connected to: a name is not asked for again, so that
/// it cannot change its meaning in between.
async fn resolve(target: &Target, policy: &Policy) -> Result<Vec<SocketAddr>, Reason> {
    let (name, found): (_, Vec<_>) = match &target.host {
        Host::Ip(ip) => (None, vec![SocketAddr::new(*ip, target.port)]),
        Host::Name(name) => {
            let found = lookup_host((name.as_str(), target.port)).await.map_err(|error| {
                Reason::new(Kind::NameUnknown, format!("{name} cannot be resolved: {error}"))
            })?;
            (Some(name.as_str()), found.collect())
        }
    };
    let mut refused = None;
    let mut allowed = Vec::new();
    for address in found {
        match policy.check(name, address) {
            Ok(()) if !allowed.contains(&address) => allowed.push(address),
            Ok(()) => {}
            Err(reason) => refused = Some(reason),
        }
    }
    if allowed.is_empty() {
        let empty = || Reason::new(Kind::NameUnknown, format!("{} has no address", target.host));
        return Err(refused.unwrap_or_else(empty));
    }
    Ok(alternate(allowed))
}

/// One family after the other in turn, beginning with the first one's (RFC 8305, 4).
fn alternate(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v4 = addresses.first().is_some_and(|a| matches!(a.ip(), IpAddr::V4(_)));
    let (mut one, mut other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|a| a.is_ipv4() == first_is_v4);
    one.reverse();
    other.reverse();
    let mut order = Vec::new();
    while order.len() < MOST && !(one.is_empty() && other.is_empty()) {
        order.extend(one.pop());
        order.extend(other.pop());
    }
    order.truncate(MOST);
    order
}

/// The first connection that comes about.
async fn connect(addresses: Vec<SocketAddr>) -> Result<TcpStream, Reason> {
    let mut attempts = JoinSet::new();
    let mut failure = Reason::new(Kind::Unreachable, "no address to connect to");
    let mut left = addresses.into_iter();
    loop {
        if let Some(address) = left.next() {
            attempts.spawn(async move {
                TcpStream::connect(address).await.map_err(|error| {
                    let reason = Reason::of_io(&error);
                    Reason { detail: format!("{address}: {}", reason.detail), ..reason }
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
        assert_eq!(alternate(many).len(), MOST);
    }
}
