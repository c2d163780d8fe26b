//! Reports why a link is not used: it has only addresses of a family in which no hub is known.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ropewalk_runtime::interfaces::{self, InterfaceAddress};
use ropewalk_runtime::system::Changes;
use tokio::time::Instant;

use super::client::Family;
use super::network_watch::NetworkWatch;
use crate::observe::{Event, PeerIdentity, Reporter};

/// How long a link has only unusable addresses before that is reported: those of DHCP arrive later than those of
/// IPv6.
const SETTLED: Duration = Duration::from_secs(5);
/// Poll interval if the system reports no change.
const LOOK: Duration = Duration::from_secs(30);

/// The links of a client, and their state.
#[derive(Debug)]
pub struct UnusableLinks {
    /// Interfaces and addresses that the user has named. If empty, all interfaces except TUN devices.
    named: Vec<String>,
    hubs: Vec<SocketAddr>,
    /// The links that cannot be used, and since when.
    since: BTreeMap<String, Instant>,
    told: BTreeSet<String>,
}

impl UnusableLinks {
    /// The links of a client of these hubs.
    pub const fn new(named: Vec<String>, hubs: Vec<SocketAddr>) -> Self {
        Self { named, hubs, since: BTreeMap::new(), told: BTreeSet::new() }
    }

    /// Reports each unusable link once.
    pub async fn report(mut self, reporter: Reporter) -> Infallible {
        let mut watch = NetworkWatch::open(Changes::Interfaces, LOOK);
        loop {
            let next = self.look(Instant::now(), &reporter);
            watch.changed(next).await;
        }
    }

    /// Reports those that have been unusable for long enough. Returns when the next one may be, if there is one.
    fn look(&mut self, now: Instant, reporter: &Reporter) -> Option<Duration> {
        let all = match self.named.is_empty() {
            true => interfaces::outside_tunnels(&[]).or_else(|_| interfaces::list()),
            false => interfaces::list(),
        };
        let all = all.ok()?;
        let found = unusable(&self.named, &self.hubs, &all);
        self.since.retain(|link, _| found.contains_key(link));
        let mut next = None;
        for (link, family) in found {
            let age = now - *self.since.entry(link.clone()).or_insert(now);
            if self.told.contains(&link) {
                continue;
            }
            if let Some(left) = SETTLED.checked_sub(age).filter(|left| !left.is_zero()) {
                next = next.into_iter().chain([left]).min();
                continue;
            }
            reporter.report(PeerIdentity::default(), Event::Problem(problem(&link, family)));
            self.told.insert(link);
        }
        next
    }
}

fn problem(link: &str, family: Family) -> String {
    let (has, known) = match family {
        Family::V4 => (Family::V4, Family::V6),
        Family::V6 => (Family::V6, Family::V4),
    };
    let (has, known) = (has.name(), known.name());
    format!(
        "link {link} is not used: it has only {has}, and the hub is known by {known} alone; help: name an {has} address of \
         the hub with --to as well, if it has one"
    )
}

/// The links that have addresses of only one family, in which no hub is known, with that family.
fn unusable(
    named: &[String],
    hubs: &[SocketAddr],
    all: &[InterfaceAddress],
) -> BTreeMap<String, Family> {
    let reaches = |family| hubs.iter().any(|hub| Family::of(hub.ip().to_canonical()) == family);
    let mut families: BTreeMap<String, Vec<Family>> = BTreeMap::new();
    for seen in all.iter().filter(|seen| seen.up && seen.is_routable()) {
        let by_address = named.iter().find(|name| name.parse::<IpAddr>() == Ok(seen.ip));
        if named.is_empty() || named.iter().any(|name| seen.is_called(name)) {
            let link = by_address.unwrap_or(&seen.name).clone();
            families.entry(link).or_default().push(Family::of(seen.ip));
        }
    }
    let wrong = |(link, families): (String, Vec<Family>)| {
        let first = *families.first()?;
        (!families.iter().any(|family| reaches(*family))).then_some((link, first))
    };
    families.into_iter().filter_map(wrong).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, ip: &str, up: bool) -> InterfaceAddress {
        let ip = ip.parse().expect("an address");
        let name = name.to_owned();
        InterfaceAddress { name, index: Some(1), ip, prefix: 24, broadcast: None, up }
    }

    #[test]
    fn a_link_without_the_family_of_any_hub_is_unusable() {
        let all = [
            seen("lo", "127.0.0.1", true),
            seen("lo", "::1", true),
            seen("eth0", "192.0.2.1", true),
            seen("eth0", "fe80::1", true),
            seen("wlan0", "198.51.100.1", true),
            seen("wlan0", "2001:db8::1", true),
            seen("wwan0", "2001:db8:1::1", true),
            seen("usb0", "2001:db8:2::1", false),
            seen("tap0", "fe80::2", true),
        ];
        let four: SocketAddr = "203.0.113.1:9899".parse().expect("an address");
        let six: SocketAddr = "[2001:db8:3::1]:9899".parse().expect("an address");
        let found = |named: &[&str], hubs: &[SocketAddr]| {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            unusable(&named, hubs, &all).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(found(&[], &[four]), ["wwan0"]);
        assert_eq!(found(&[], &[six]), ["eth0"]);
        assert_eq!(found(&[], &[four, six]), Vec::<String>::new());
        assert_eq!(found(&["wlan0", "wwan0"], &[six]), Vec::<String>::new());
        assert_eq!(found(&["eth0", "2001:db8::1"], &[four]), ["2001:db8::1"]);
        assert!(problem("wwan0", Family::V6).contains("only IPv6, and the hub is known by IPv4"));
    }
}
