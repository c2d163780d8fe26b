//! The way to the peer: one association over each link and address, one after the other.

use std::net::SocketAddr;
use std::time::Duration;

use ropewalk_runtime::endpoint::{Endpoint, OpenError, Options, Target};
use tokio::time::{sleep, timeout};

use super::verdict::Check;
use crate::printer::time;

/// How long a handshake may take. It is repeated after 0.5 s, 1.5 s and 3.5 s.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// How long the search for the path MTU is watched, and between two looks.
const MTU_LOOKS: u32 = 30;
const LOOK: Duration = Duration::from_millis(100);
/// The search has ended if the path MTU stays the same for so many looks.
const STEADY_LOOKS: u32 = 15;

/// What one link and one address of the peer gave.
#[derive(Clone, Debug)]
pub struct Reach {
    pub link: String,
    pub remote: SocketAddr,
    /// The round trip, if a sample was taken, and the path MTU; or why there is no association.
    pub found: Result<(Option<f64>, u32), String>,
}

/// Tries each link of `options` with each address of the peer of its family.
pub async fn probe(options: &Options, target: &Target) -> Vec<Reach> {
    let mut reaches = Vec::new();
    for local in &options.locals {
        for remote in &target.addresses {
            if remote.is_ipv6() != local.address.is_ipv6() {
                continue;
            }
            let mut alone = options.clone();
            (alone.locals, alone.automatic) = (vec![local.clone()], false);
            let only = Target { addresses: vec![*remote], key: target.key };
            let any = if local.address.ip().is_unspecified() {
                "any".to_owned()
            } else {
                local.address.ip().to_string()
            };
            let link = local.interface.clone().unwrap_or(any);
            reaches.push(Reach { link, remote: *remote, found: try_link(alone, &only).await });
        }
    }
    reaches
}

async fn try_link(options: Options, target: &Target) -> Result<(Option<f64>, u32), String> {
    let endpoint = Endpoint::open(options).map_err(|error: OpenError| error.to_string())?;
    let connected = timeout(HANDSHAKE_LIMIT, endpoint.connect(target)).await;
    let connected = connected.map_err(|_| format!("no answer within {HANDSHAKE_LIMIT:?}"))?;
    let association = connected.map_err(|error| error.to_string())?;
    let (mut rtt_s, mut mtu, mut steady) = (None, 0, 0);
    for _ in 0..MTU_LOOKS {
        let stats = association.stats();
        let Some(path) = stats.as_ref().and_then(|stats| stats.paths.first()) else { break };
        steady = if path.mtu_bytes == mtu { steady + 1 } else { 0 };
        (rtt_s, mtu) = (path.srtt_s.or(rtt_s), path.mtu_bytes);
        if steady >= STEADY_LOOKS && rtt_s.is_some() {
            break;
        }
        sleep(LOOK).await;
    }
    association.abort();
    // The driver sends the abort in its next turn.
    sleep(Duration::from_millis(20)).await;
    Ok((rtt_s, mtu))
}

/// The verdicts. With `named`, the user has named the links, and each of them has to reach the peer.
pub fn checks(reaches: &[Reach], named: bool) -> Vec<Check> {
    const NAME: &str = "reach peer";
    let some = reaches.iter().any(|reach| reach.found.is_ok());
    let mut checks = Vec::new();
    for reach in reaches {
        let check = match &reach.found {
            Ok((rtt_s, mtu)) => {
                let rtt = rtt_s.map_or(String::new(), |rtt| format!(", RTT {}", time(rtt)));
                Check::ok(NAME, format!("{} answers{rtt}, path MTU at least {mtu} B", reach.remote))
            }
            Err(error) => {
                let found = format!("{}: {error}", reach.remote);
                let advice = "is the server running there with this public key, does it allow yours, is its UDP \
                              port open in the firewall, does the link have a route to it?";
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
    if some {
        let reason = "the protocol does not carry the address that the peer sees, nor its version";
        checks.push(Check::not_checked("NAT, peer version", reason));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Verdict;
    use super::*;

    #[test]
    fn a_silent_link_fails_if_it_was_named_or_if_it_is_the_last() {
        let reach = |link: &str, answers: bool| Reach {
            link: link.to_owned(),
            remote: ([192, 0, 2, 7], 9899).into(),
            found: if answers { Ok((Some(0.02), 1400)) } else { Err("no answer".to_owned()) },
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
            assert_eq!(found.len() == 3, answers[0], "{found:?}");
        }
        assert_eq!(checks(&[], false)[0].verdict, Verdict::Failure);
    }
}
