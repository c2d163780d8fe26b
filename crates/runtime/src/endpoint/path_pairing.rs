//! Pairs local addresses with addresses of the peer to form paths.

use std::net::{IpAddr, SocketAddr};

use super::peer::Route;

/// Paths from sockets bound to `locals` to `remotes`, in the order of the locals.
///
/// With `by_place` and equally many addresses at both ends, addresses are paired by their place in the lists.
/// Otherwise each local address is paired with the nearest remote one (longest common prefix), and each remaining
/// remote address with the nearest local one. So one address of a server serves all paths of a client, one address of
/// a client reaches all addresses of a server, and links with their own subnets are paired.
pub(super) fn pair(locals: &[SocketAddr], remotes: &[SocketAddr], by_place: bool) -> Vec<Route> {
    let mut routes = Vec::new();
    let alike = |local: &SocketAddr, remote: &SocketAddr| local.is_ipv4() == remote.is_ipv4();
    let by_place = by_place && locals.len() == remotes.len();
    if by_place && locals.iter().zip(remotes).all(|(l, r)| alike(l, r)) {
        let each = remotes.iter().enumerate();
        return each.map(|(socket, remote)| Route::new(socket, *remote)).collect();
    }
    for (socket, local) in locals.iter().enumerate() {
        let near = remotes.iter().filter(|remote| alike(local, remote));
        if let Some(remote) = near.max_by_key(|remote| common(local.ip(), remote.ip())) {
            routes.push(Route::new(socket, *remote));
        }
    }
    for remote in remotes {
        if routes.iter().any(|route| route.remote == *remote) {
            continue;
        }
        if let Some(socket) = nearest(locals, remote) {
            routes.push(Route::new(socket, *remote));
        }
    }
    routes
}

/// The local address nearest to `remote`.
pub(super) fn nearest(locals: &[SocketAddr], remote: &SocketAddr) -> Option<usize> {
    let alike = |(_, local): &(usize, &SocketAddr)| local.is_ipv4() == remote.is_ipv4();
    let near = locals.iter().enumerate().filter(alike);
    near.max_by_key(|(_, local)| common(local.ip(), remote.ip())).map(|(socket, _)| socket)
}

/// Whether `one` has more leading bits in common with `local` than `other` has.
pub(super) fn is_nearer(local: &SocketAddr, one: &SocketAddr, other: &SocketAddr) -> bool {
    common(local.ip(), one.ip()) > common(local.ip(), other.ip())
}

/// Number of leading bits that two addresses have in common.
fn common(one: IpAddr, other: IpAddr) -> u32 {
    match (one, other) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|a| SocketAddr::new(a.parse().expect("an address"), 9899)).collect()
    }

    #[test]
    fn paths_are_paired_by_place_else_by_nearness() {
        type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [(usize, &'a str)]);
        let cases: [Case<'_>; 6] = [
            (
                &["10.0.1.1", "10.0.2.1"],
                &["10.0.1.2", "10.0.2.2"],
                &[(0, "10.0.1.2"), (1, "10.0.2.2")],
            ),
            // By place, regardless of prefixes.
            (
                &["10.0.1.1", "10.0.2.1"],
                &["10.0.2.2", "10.0.1.2"],
                &[(0, "10.0.2.2"), (1, "10.0.1.2")],
            ),
            (&["10.0.1.1", "10.0.2.1"], &["192.0.2.7"], &[(0, "192.0.2.7"), (1, "192.0.2.7")]),
            (&["10.0.1.1"], &["10.0.1.2", "10.0.2.2"], &[(0, "10.0.1.2"), (0, "10.0.2.2")]),
            (
                &["10.0.1.1", "10.0.2.1", "10.0.3.1"],
                &["10.0.3.2", "10.0.1.2"],
                &[(0, "10.0.1.2"), (1, "10.0.3.2"), (2, "10.0.3.2")],
            ),
            // An IPv6 path needs IPv6 at both ends.
            (&["10.0.1.1", "fd00::1"], &["10.0.1.2"], &[(0, "10.0.1.2")]),
        ];
        for (locals, remotes, expected) in cases {
            let found = pair(&addresses(locals), &addresses(remotes), true);
            let found: Vec<_> =
                found.iter().map(|r| (r.socket, r.remote.ip().to_string())).collect();
            let expected: Vec<_> = expected.iter().map(|(s, r)| (*s, (*r).to_owned())).collect();
            assert_eq!(found, expected, "{locals:?} to {remotes:?}");
        }
    }

    #[test]
    fn where_the_order_means_nothing_the_nearest_find_each_other() {
        let locals = addresses(&["10.0.2.1", "10.0.1.1"]);
        let routes = pair(&locals, &addresses(&["10.0.1.2", "10.0.2.2"]), false);
        let found: Vec<_> = routes.iter().map(|r| r.remote.ip().to_string()).collect();
        assert_eq!(found, ["10.0.2.2", "10.0.1.2"]);
    }
}
