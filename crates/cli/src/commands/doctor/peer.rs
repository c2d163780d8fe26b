//! Checks the way to the peer: opens one association over each link and address in turn.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ropewalk_apps::captive_portal::{self, CaptivePortal};
#[cfg(target_os = "linux")]
use ropewalk_apps::tunnel::machine::OUTSIDE_MARK as MARK;
use ropewalk_runtime::endpoint::{
    BindAddress, BindingResponse, ConnectError, Endpoint, OpenError, Options, Target,
};
use ropewalk_runtime::interfaces;
use ropewalk_runtime::seal::{CLOCK_TOLERANCE, ClockRefusal};
use serde::Serialize;
use tokio::time::{sleep, timeout};

use super::nat::{self, Nat};
use super::verdict::Check;
use crate::printer::time;

/// Timeout of a handshake. It is repeated after 0.5 s, 1.5 s and 3.5 s.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of polls of the path MTU search, and interval between them.
const MTU_LOOKS: u32 = 30;
const LOOK: Duration = Duration::from_millis(100);
/// The search has ended if the path MTU stays the same for this many polls.
const STEADY_LOOKS: u32 = 15;
/// Timeout for the answer to a request after the handshake.
const BINDING_LIMIT: Duration = Duration::from_secs(2);
const CLOCK_ADVICE: &str = "find out which clock is wrong, and set it: `timedatectl set-ntp true`, or `date --set`. A clock that is set \
     back keeps its machine from its peers until it has passed the date of the last handshake";
/// Sockets have no mark on other systems.
#[cfg(not(target_os = "linux"))]
const MARK: u32 = 0;
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Result for one link and one address of the peer.
#[derive(Clone, Debug)]
pub struct Reach {
    pub link: String,
    pub remote: SocketAddr,
    /// Results of the association, or why there is none.
    pub found: Result<Found, String>,
    /// The captive portal of the link's network.
    pub portal: Option<CaptivePortal>,
    /// How much the peer's clock is ahead of this machine's, seconds. Negative if it is behind. The peer may have
    /// reported it although it refused the handshake.
    pub clock_ahead_s: Option<f64>,
    /// The peer refused the handshake because of its date.
    pub refused_date: bool,
}

impl Reach {
    /// Why there is no association, with possible causes.
    fn problem(&self) -> Option<String> {
        let error = self.found.as_ref().err()?;
        let portal = self.portal.as_ref().map(|portal| format!("; {portal}"));
        Some(error.clone() + &portal.unwrap_or_default())
    }
}

/// Results of an association.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The round trip of the request, otherwise a smoothed one, seconds.
    pub rtt_s: Option<f64>,
    /// The largest packet size that the path is known to carry, bytes.
    pub mtu_bytes: u32,
    /// The peer's answer, if it supports the request.
    pub binding: Option<BindingResponse>,
    /// The port of the local socket.
    pub local_port: u16,
}

/// A row of the JSON document.
#[derive(Debug, Serialize)]
pub struct PeerRow {
    link: String,
    remote: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu_bytes: Option<u32>,
    /// The address that the peer sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_address: Option<SocketAddr>,
    /// How much the peer's clock is ahead of this machine's. Negative if it is behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_ahead_s: Option<f64>,
    /// The peer's release of Ropewalk.
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Tries each link of `options` with each address of the peer of the same family. All associations of a link
/// share its socket, so that the peer's responses show how a NAT maps it.
pub async fn probe(options: &Options, target: &Target) -> Vec<Reach> {
    let mut reaches = Vec::new();
    // TUN devices lead into tunnels, which use the other links.
    let tun = interfaces::tun_devices().unwrap_or_default();
    let is_tun = |local: &&BindAddress| local.interface.as_ref().is_some_and(|it| tun.contains(it));
    for local in options.locals.iter().filter(|local| !(options.automatic && is_tun(local))) {
        let mut alone = options.clone();
        (alone.locals, alone.automatic) = (vec![local.clone()], false);
        let any = if local.address.ip().is_unspecified() {
            "any".to_owned()
        } else {
            local.address.ip().to_string()
        };
        let link = local.interface.clone().unwrap_or(any);
        let endpoint = Endpoint::open(alone).map_err(|error: OpenError| error.to_string());
        for remote in &target.addresses {
            if remote.is_ipv6() != local.address.is_ipv6() {
                continue;
            }
            let only = Target { addresses: vec![*remote], key: target.key };
            let mut reach = match &endpoint {
                Ok(endpoint) => reach(&link, *remote, try_address(endpoint, &only).await),
                Err(error) => reach(&link, *remote, Err(Unreached::of(error))),
            };
            if reach.found.is_err() && !reach.refused_date {
                reach.portal = captive_portal::find(local, remote.ip().to_canonical(), MARK).await;
            }
            reaches.push(reach);
        }
    }
    reaches
}

/// Why there is no association.
struct Unreached {
    why: String,
    refusal: Option<ClockRefusal>,
}

impl Unreached {
    fn of(why: impl ToString) -> Self {
        Self { why: why.to_string(), refusal: None }
    }
}

impl From<ConnectError> for Unreached {
    fn from(error: ConnectError) -> Self {
        let refusal = match &error {
            ConnectError::OldDate(refusal) => Some(*refusal),
            _ => None,
        };
        Self { why: error.to_string(), refusal }
    }
}

fn reach(link: &str, remote: SocketAddr, result: Result<Found, Unreached>) -> Reach {
    let clock_ahead_s = match &result {
        Ok(found) => found.binding.as_ref().and_then(|binding| binding.clock_ahead_s),
        Err(unreached) => unreached.refusal.map(|refusal| refusal.difference_s()),
    };
    let refused_date = result.as_ref().is_err_and(|unreached| unreached.refusal.is_some());
    let found = result.map_err(|unreached| unreached.why);
    Reach { link: link.to_owned(), remote, found, portal: None, clock_ahead_s, refused_date }
}

async fn try_address(endpoint: &Endpoint, target: &Target) -> Result<Found, Unreached> {
    let connected = timeout(HANDSHAKE_LIMIT, endpoint.connect(target)).await;
    let silent = |_| Unreached::of(format!("no answer within {HANDSHAKE_LIMIT:?}"));
    let association = connected.map_err(silent)??;
    let local_port = endpoint.locals().first().map_or(0, SocketAddr::port);
    let binding = association.request_binding(0, BINDING_LIMIT).await;
    let rtt_s = binding.as_ref().and_then(|seen| seen.rtt).map(|rtt| rtt.as_secs_f64());
    let mut found = Found { local_port, binding, rtt_s, ..Found::default() };
    let mut steady = 0;
    for _ in 0..MTU_LOOKS {
        let stats = association.stats();
        let Some(path) = stats.as_ref().and_then(|stats| stats.paths.first()) else { break };
        steady = if path.mtu_bytes == found.mtu_bytes { steady + 1 } else { 0 };
        (found.rtt_s, found.mtu_bytes) = (found.rtt_s.or(path.srtt_s), path.mtu_bytes);
        if steady >= STEADY_LOOKS && found.rtt_s.is_some() {
            break;
        }
        sleep(LOOK).await;
    }
    association.abort();
    // The driver sends the abort in its next turn.
    sleep(Duration::from_millis(20)).await;
    Ok(found)
}

/// The verdicts. With `named`, the user has specified the links, and each of them must reach the
/// peer.
pub fn checks(reaches: &[Reach], named: bool) -> Vec<Check> {
    let own: Vec<IpAddr> =
        interfaces::list().unwrap_or_default().into_iter().map(|interface| interface.ip).collect();
    let mut checks = reach_checks(reaches, named);
    let mut links: Vec<&str> = reaches.iter().map(|reach| reach.link.as_str()).collect();
    links.dedup();
    for link in links {
        let of_link = reaches.iter().filter(|reach| reach.link == link);
        let found: Vec<&Found> = of_link.filter_map(|reach| reach.found.as_ref().ok()).collect();
        if !found.is_empty() {
            checks.push(nat_check(&found, &own).on(link));
        }
    }
    checks.extend(version_check(reaches));
    checks.extend(clock_check(reaches));
    checks
}

fn reach_checks(reaches: &[Reach], named: bool) -> Vec<Check> {
    const NAME: &str = "reach peer";
    let some = reaches.iter().any(|reach| reach.found.is_ok());
    let mut checks = Vec::new();
    for reach in reaches {
        let check = match &reach.found {
            Ok(Found { rtt_s, mtu_bytes, .. }) => {
                let rtt = rtt_s.map_or(String::new(), |rtt| format!(", RTT {}", time(rtt)));
                let found =
                    format!("{} answers{rtt}, path MTU at least {mtu_bytes} B", reach.remote);
                Check::ok(NAME, found)
            }
            Err(_) => {
                let found = format!("{}: {}", reach.remote, reach.problem().unwrap_or_default());
                let advice = match (&reach.portal, reach.refused_date) {
                    (_, true) => CLOCK_ADVICE,
                    (Some(_), _) => "log in with a browser over this link",
                    (None, _) => {
                        "is the server running there with this public key, does it allow yours, is its UDP port open in \
                         the firewall, does the link have a route to it?"
                    }
                };
                if some && !named {
                    Check::warning(NAME, found, advice)
                } else {
                    Check::failure(NAME, found, advice)
                }
            }
        };
        checks.push(check.on(&reach.link));
    }
    if reaches.is_empty() {
        let advice = "both ends need an address of one family (IPv4 or IPv6)";
        checks.push(Check::failure(NAME, "no link has an address of the peer's family", advice));
    }
    checks
}

fn nat_check(found: &[&Found], own: &[IpAddr]) -> Check {
    const NAME: &str = "public address";
    let seen: Vec<(u16, SocketAddr)> = found
        .iter()
        .filter_map(|one| Some((one.local_port, one.binding.as_ref()?.address)))
        .collect();
    let Some(nat) = nat::kind(&seen, own) else {
        return Check::not_checked(NAME, "the peer's release does not tell which address it sees");
    };
    match nat {
        Nat::None(address) => {
            Check::ok(NAME, format!("no NAT: the peer sees this machine's own address {address}"))
        }
        Nat::Unknown(address) => Check::ok(
            NAME,
            format!(
                "NAT: the peer sees {address}. A second address of the peer (--to A,B) would show its kind"
            ),
        ),
        Nat::EndpointIndependent(address) => Check::ok(
            NAME,
            format!(
                "NAT with endpoint-independent mapping: the peer sees {address} from each of its addresses"
            ),
        ),
        Nat::EndpointDependent(addresses) => {
            let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            let found = format!(
                "NAT with mapping that depends on the peer's address: the peer sees {}",
                shown.join(" and ")
            );
            let advice = "nothing, if this machine opens the associations. To be reached, it needs a forwarded port";
            Check::warning(NAME, found, advice)
        }
    }
}

fn version_check(reaches: &[Reach]) -> Option<Check> {
    const NAME: &str = "peer version";
    let found: Vec<&Found> = reaches.iter().filter_map(|reach| reach.found.as_ref().ok()).collect();
    let release = found.iter().find_map(|one| Some(&one.binding.as_ref()?.release));
    match release {
        None if found.is_empty() => None,
        None => Some(Check::not_checked(NAME, "the peer's release does not tell it")),
        Some(release) if release.unescaped() == RELEASE => {
            Some(Check::ok(NAME, format!("both ends run {RELEASE}")))
        }
        Some(release) => Some(Check::warning(
            NAME,
            format!("the peer runs {release}, and this machine runs {RELEASE}"),
            "install the same release on both machines",
        )),
    }
}

/// Compares the clocks. The readings of all links concern the same two clocks. The most precise reading has the
/// shortest round trip.
fn clock_check(reaches: &[Reach]) -> Option<Check> {
    const NAME: &str = "peer clock";
    let rtt = |reach: &Reach| reach.found.as_ref().ok().and_then(|found| found.rtt_s);
    let read = reaches.iter().filter_map(|one| Some((rtt(one), one.clock_ahead_s?)));
    // Refused handshakes have no round trip.
    let exactness = |rtt: Option<f64>| rtt.unwrap_or(f64::INFINITY);
    let best = read.min_by(|(a, _), (b, _)| exactness(*a).total_cmp(&exactness(*b)));
    let Some((rtt, ahead)) = best else {
        let reached = reaches.iter().any(|reach| reach.found.is_ok());
        return reached
            .then(|| Check::not_checked(NAME, "the peer's release does not tell its date"));
    };
    let side = if ahead < 0.0 { "behind" } else { "ahead of" };
    let exact = rtt.map_or(String::new(), |rtt| format!(", exact to {}", time(rtt / 2.0)));
    let found = format!(
        "the clock of the peer is {} {side} that of this machine{exact}",
        time(ahead.abs())
    );
    Some(match ahead.abs() < CLOCK_TOLERANCE.as_secs_f64() {
        true => Check::ok(NAME, found),
        false => Check::warning(NAME, found, CLOCK_ADVICE),
    })
}

/// The rows of the JSON document.
pub fn rows(reaches: &[Reach]) -> Vec<PeerRow> {
    let row = |reach: &Reach| {
        let found = reach.found.as_ref().ok();
        let binding = found.and_then(|found| found.binding.as_ref());
        PeerRow {
            link: reach.link.clone(),
            remote: reach.remote,
            rtt_s: found.and_then(|found| found.rtt_s),
            mtu_bytes: found.map(|found| found.mtu_bytes),
            public_address: binding.map(|seen| seen.address),
            clock_ahead_s: reach.clock_ahead_s,
            release: binding.map(|seen| seen.release.to_string()),
            error: reach.problem(),
        }
    };
    reaches.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use ropewalk_base::PeerText;

    use super::super::verdict::Verdict;
    use super::*;

    fn reach(link: &str, found: Result<Found, String>) -> Reach {
        super::reach(link, ([192, 0, 2, 7], 9899).into(), found.map_err(Unreached::of))
    }

    #[test]
    fn a_silent_link_fails_if_it_was_named_or_if_it_is_the_last() {
        let reach = |link: &str, answers: bool| {
            let found = Found { rtt_s: Some(0.02), mtu_bytes: 1400, ..Found::default() };
            reach(link, if answers { Ok(found) } else { Err("no answer".to_owned()) })
        };
        for (answers, named, expected) in [
            ([true, true], true, [Verdict::Ok, Verdict::Ok]),
            ([true, false], false, [Verdict::Ok, Verdict::Warning]),
            ([true, false], true, [Verdict::Ok, Verdict::Failure]),
            ([false, false], false, [Verdict::Failure, Verdict::Failure]),
        ] {
            let reaches = [reach("wlan0", answers[0]), reach("wwan0", answers[1])];
            let found = checks(&reaches, named);
            let verdicts: Vec<_> = found.iter().take(2).map(|check| check.verdict).collect();
            assert_eq!(verdicts, expected, "{found:?}");
            // The peer reported neither address nor release nor date.
            let silent: Vec<_> = found.iter().skip(2).map(|check| check.verdict).collect();
            let links = answers.iter().filter(|answers| **answers).count();
            assert_eq!(silent.len(), if links == 0 { 0 } else { links + 2 }, "{found:?}");
            assert!(silent.iter().all(|verdict| *verdict == Verdict::NotChecked), "{found:?}");
        }
        assert_eq!(checks(&[], false)[0].verdict, Verdict::Failure);
    }

    #[test]
    fn the_clock_difference_of_the_shortest_round_trip_is_shown() {
        let read = |rtt_s: Option<f64>, ahead: f64| {
            let found = Found { rtt_s, ..Found::default() };
            Reach { clock_ahead_s: Some(ahead), ..reach("wlan0", Ok(found)) }
        };
        let near = read(Some(0.02), -7200.0);
        let far = read(Some(0.4), -7200.2);
        let check = clock_check(&[far, near]).expect("a check");
        assert_eq!(check.verdict, Verdict::Warning);
        let expected = format!(
            "the clock of the peer is {} behind that of this machine, exact to {}",
            time(7200.0),
            time(0.01)
        );
        assert_eq!(check.found, expected);
        assert_eq!(clock_check(&[read(Some(0.02), 0.3)]).expect("a check").verdict, Verdict::Ok);
        let refused =
            Reach { clock_ahead_s: Some(86_400.0), ..reach("wlan0", Err("refused".to_owned())) };
        let check = clock_check(&[refused]).expect("a check");
        assert!(check.found.ends_with("ahead of that of this machine"), "{}", check.found);
        assert_eq!(clock_check(&[]), None);
    }

    #[test]
    fn releases_that_differ_are_a_warning_and_are_shown_escaped() {
        for (release, verdict, shown) in
            [(RELEASE, Verdict::Ok, RELEASE), ("9\u{1b}[1m", Verdict::Warning, "9\\u{1b}[1m")]
        {
            let address = ([203, 0, 113, 5], 7).into();
            let release = PeerText::new(release);
            let binding =
                Some(BindingResponse { address, release, rtt: None, clock_ahead_s: None });
            let found = Found { binding, ..Found::default() };
            let check = version_check(&[reach("wlan0", Ok(found))]).expect("a check");
            assert_eq!(check.verdict, verdict);
            assert!(check.found.contains(shown), "{}", check.found);
        }
        assert_eq!(version_check(&[reach("wlan0", Err(String::new()))]), None);
    }
}
