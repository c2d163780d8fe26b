//! Checks whether a peer is reachable before a packet is sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use ropewalk_runtime::endpoint::Options;
use ropewalk_runtime::interfaces;

use super::{Interface, Place, current};
use crate::errno::{Errno, Result};
use crate::interpose::raw;
use crate::settings::AVOID;

/// Checks the addresses of a peer.
///
/// # Errors
/// `EINVAL` if an address cannot belong to a peer: multicast, broadcast, or link-local without an interface
/// (`sctp_verify_addr` of Linux). `ENETUNREACH` if there is no route to any of them from the addresses of the
/// socket.
pub fn check(place: &Place, remotes: &[SocketAddr]) -> Result<()> {
    if remotes.iter().any(|remote| !may_be_a_peer(remote)) {
        return Err(Errno(libc::EINVAL));
    }
    match remotes.iter().any(|remote| has_route(place, remote)) {
        true => Ok(()),
        false => Err(Errno(libc::ENETUNREACH)),
    }
}

fn may_be_a_peer(remote: &SocketAddr) -> bool {
    match remote {
        SocketAddr::V4(v4) => !v4.ip().is_multicast() && !v4.ip().is_broadcast(),
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => v6.scope_id() != 0,
        SocketAddr::V6(v6) => !v6.ip().is_multicast(),
    }
}

/// Whether the system has a route to an address from one of the socket's addresses. For an unbound socket this
/// tries any source: the system's rules may choose the routing table by the source address.
fn has_route(place: &Place, remote: &SocketAddr) -> bool {
    let alike = |ip: &IpAddr| ip.is_ipv4() == remote.is_ipv4();
    let leads_from = |ip| leads_from(ip, place.interface.as_ref(), remote);
    if !place.addresses.is_empty() {
        return place.addresses.iter().copied().filter(alike).any(leads_from);
    }
    let any = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    if leads_from(any) {
        return true;
    }
    let own = interfaces::list().unwrap_or_default().into_iter();
    own.filter(|seen| seen.up && seen.is_routable())
        .map(|seen| seen.ip)
        .filter(alike)
        .any(leads_from)
}

/// Whether the system has a route from an address. No packet is sent. If the answer is unknown, the handshake will
/// show.
fn leads_from(ip: IpAddr, interface: Option<&Interface>, remote: &SocketAddr) -> bool {
    let Ok(socket) = UdpSocket::bind((ip, 0)) else { return true };
    if let Some(Interface { name, .. }) = interface
        && raw::bind_to_device(socket.as_raw_fd(), name).is_err()
    {
        return true;
    }
    socket.connect(remote).is_ok()
}

/// Chooses one socket for each interface that may reach the peer and that the settings do not
/// exclude.
///
/// # Errors
/// `ENETUNREACH` if the settings exclude all of them.
pub fn on_interfaces(options: Options, remotes: &[SocketAddr]) -> Result<Options> {
    let avoid = &current().settings().avoid;
    let chosen = options.clone().avoiding(avoid).on_all_interfaces(remotes);
    if avoid.is_empty() || chosen.all_interfaces {
        return Ok(chosen);
    }
    if options.on_all_interfaces(remotes).all_interfaces {
        tell_that_all_are_avoided(remotes);
        return Err(Errno(libc::ENETUNREACH));
    }
    Ok(chosen)
}

fn tell_that_all_are_avoided(remotes: &[SocketAddr]) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    let avoid = current().settings().avoid.join(",");
    let peer = remotes.first().map(|remote| remote.ip().to_string()).unwrap_or_default();
    eprintln!(
        "libropewalk: {AVOID}={avoid} (--avoid) leaves no interface that may reach {peer}: avoid fewer"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_no_peer_has_are_told_from_others() {
        for (address, expected) in [
            ("192.0.2.1:9899", true),
            ("127.0.0.1:9899", true),
            ("224.0.0.1:9899", false),
            ("255.255.255.255:9899", false),
            ("[2001:db8::1]:9899", true),
            ("[::1]:9899", true),
            ("[ff02::1]:9899", false),
            ("[fe80::1]:9899", false),
            ("[fe80::1%2]:9899", true),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(may_be_a_peer(&address), expected, "{address}");
        }
    }
}
