//! Announces addresses of this machine that appear, and removes those that disappear, for unsealed associations whose
//! ends have agreed on address reconfiguration (RFC 5061; RFC 6458, 8.1.23).
//!
//! ```text
//! poll of the interfaces  ->  FollowedAddresses: which addresses have been present, or missing, for long enough
//!                         ->  for each association that does not know the last change: ADD-IP, DELETE-IP
//! ```
//!
//! An address that flaps faster than these times causes no request. An association has at most one outstanding
//! request per address, and at most 16 own addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ropewalk_base::{Duration, PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::AddressError;

use super::association::Association;
use super::local_interfaces::source_address_for;
use super::own_addresses::{ADDRESSES_LIMIT, may_list};
use super::peer::Peer;
use super::state::EndpointState;
use super::translated_addresses::Requested;
use crate::interfaces::InterfaceAddress;

/// How long an address must be present before it is announced. The system checks new IPv6 addresses for duplicates
/// for about a second, and routes may appear later than addresses.
const APPEARANCE: Duration = Duration::from_secs(1);
/// How long an address must be missing before it is removed. Data moves to other paths immediately; an address that
/// returns earlier needs no request.
const DISAPPEARANCE: Duration = Duration::from_secs(3);

/// The addresses of this machine that associations follow.
#[derive(Debug, Default)]
pub struct FollowedAddresses {
    /// Whether any association follows them.
    on: bool,
    /// The addresses that count as present. `None` before the first poll.
    present: Option<Vec<IpAddr>>,
    /// Addresses that have appeared or disappeared, and since when.
    changing: BTreeMap<IpAddr, Time>,
    /// Number of changes, including the first poll.
    changes: u64,
}

impl FollowedAddresses {
    /// Addresses, followed or not.
    pub fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    /// Whether the interfaces have to be polled.
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Counts these addresses as present: a peer already knows them, even if they have disappeared since.
    fn expect(&mut self, known: &[IpAddr]) {
        let present = self.present.get_or_insert_default();
        present
            .extend(known.iter().filter(|ip| !present.contains(ip)).copied().collect::<Vec<_>>());
    }

    /// When the next address starts or stops counting as present, if nothing else changes.
    pub fn next_change(&self) -> Option<Time> {
        let is_present = |ip| self.present.as_ref().is_some_and(|present| present.contains(ip));
        let due = self
            .changing
            .iter()
            .map(|(ip, since)| *since + if is_present(ip) { DISAPPEARANCE } else { APPEARANCE });
        due.min()
    }

    /// Updates the list with the addresses that exist now. Returns those that count as present from now on.
    fn update(&mut self, now: Time, seen: &[IpAddr]) -> Vec<IpAddr> {
        if self.changes == 0 {
            self.changes = 1;
            self.expect(seen);
        }
        let present = self.present.get_or_insert_default();
        let mut before = std::mem::take(&mut self.changing);
        let (mut appeared, mut gone) = (Vec::new(), Vec::new());
        for (ips, others, hold, due) in [
            (seen, &present[..], APPEARANCE, &mut appeared),
            (&present[..], seen, DISAPPEARANCE, &mut gone),
        ] {
            for ip in ips.iter().filter(|ip| !others.contains(ip)) {
                let since = before.remove(ip).unwrap_or(now);
                if now.since(since) >= hold {
                    due.push(*ip);
                } else {
                    self.changing.insert(*ip, since);
                }
            }
        }
        present.retain(|ip| !gone.contains(ip));
        present.extend(&appeared);
        self.changes += u64::from(!appeared.is_empty() || !gone.is_empty());
        appeared
    }
}

/// The addresses of interfaces that are up, without duplicates: two interfaces may have the same address.
fn present_addresses(all: &[InterfaceAddress]) -> Vec<IpAddr> {
    let mut seen: Vec<IpAddr> = Vec::new();
    for ip in all.iter().filter(|one| one.up).map(|one| one.ip.to_canonical()) {
        if !seen.contains(&ip) {
            seen.push(ip);
        }
    }
    seen
}

impl Association {
    /// Enables or disables announcements of own addresses that appear or disappear, as
    /// [`Transport::follow_interfaces`](super::Transport::follow_interfaces) does for all associations of an
    /// endpoint.
    pub fn set_follow_interfaces(&self, on: bool) {
        self.with_state(|state, peer| {
            peer.follows_interfaces = on;
            peer.told_changes = 0;
            state.followed.on |= on && peer.session.is_none();
            state.interface_poll_due |= on;
        });
        // The driver polls the interfaces from now on.
        self.wake_driver();
    }
}

impl EndpointState {
    /// Follows the addresses of `all`, the current list. Returns whether all peers know them.
    pub(super) fn follow_interfaces(&mut self, now: Time, all: &[InterfaceAddress]) -> bool {
        let seen = present_addresses(all);
        self.expect_known_addresses();
        let appeared = self.followed.update(now, &seen);
        let changes = self.followed.changes;
        let mut complete = true;
        for key in self.keys() {
            let unaware = |peer: &Peer| {
                let usable = peer.follows_interfaces && peer.connected && peer.ended.is_none();
                usable && (peer.told_changes != changes || !appeared.is_empty())
            };
            if !self.known(key).is_some_and(unaware) {
                continue;
            }
            let Some(mut peer) = self.take_out(key) else { continue };
            // An address that was removed and has been absent meanwhile counts as new.
            peer.given_up.retain(|ip| !appeared.contains(ip));
            let done = self.tell_changes(now, &mut peer);
            if done {
                peer.told_changes = changes;
            }
            complete &= done;
            self.put_back(key, peer);
            self.mark_ready(key);
        }
        complete
    }

    /// Marks addresses that new associations have listed to their peers as present.
    fn expect_known_addresses(&mut self) {
        for key in self.keys() {
            let new =
                |peer: &&Peer| peer.follows_interfaces && peer.connected && peer.told_changes == 0;
            let known =
                self.known(key).filter(new).map(|peer| peer.machine.own_addresses().to_vec());
            known.into_iter().for_each(|known| self.followed.expect(&known));
        }
    }

    /// Requests the changes after which the peer knows exactly the addresses that are present. Returns whether no
    /// request is left, so that the association can be skipped until the next change.
    fn tell_changes(&mut self, now: Time, peer: &mut Peer) -> bool {
        if !peer.machine.reconfigures_addresses() {
            return true;
        }
        self.note_own_addresses(peer);
        self.pin_sources(peer);
        let own = peer.machine.own_addresses().to_vec();
        let present = self.followed.present.clone().unwrap_or_default();
        let mut done = true;
        for ip in present.iter().filter(|ip| !own.contains(ip)) {
            if own.len() >= ADDRESSES_LIMIT || !self.may_announce(peer, *ip) {
                continue;
            }
            done = false;
            if !peer.machine.awaits_answer_about(*ip) {
                done |= !self.announce(now, peer, *ip);
            }
        }
        // RFC 5061, 5.3: the last address is never deleted. Missing addresses stay until the peer knows one
        // that is present.
        let stays = own.iter().any(|ip| present.contains(ip) && !peer.given_up.contains(ip));
        for ip in own.iter().filter(|ip| !present.contains(ip)) {
            if !self.is_followed(*ip) {
                continue;
            }
            done = false;
            if stays && !peer.machine.awaits_answer_about(*ip) {
                match self.request_removal(peer, *ip) {
                    Ok(Requested::Now) => self.leave_own(now, peer, *ip),
                    Ok(Requested::NotYet) | Err(AddressError::TooMany) => {}
                    Err(_) => done = true,
                }
            }
        }
        done
    }

    /// Requests the addition of an address. Returns whether the request was made, or can be repeated later.
    fn announce(&mut self, now: Time, peer: &mut Peer, ip: IpAddr) -> bool {
        if self.socket_at(ip).is_none() {
            return false;
        }
        match self.request_addition(now, peer, ip) {
            Ok(_) => true,
            Err(error) => error == AddressError::TooMany,
        }
    }

    /// Whether an own address that is present may be added to the association.
    fn may_announce(&self, peer: &Peer, ip: IpAddr) -> bool {
        let remote = peer.routes.iter().flatten().next();
        let reachable =
            |remote: IpAddr| may_list(remote.to_canonical(), ip) || self.is_translated(peer, ip);
        remote.is_some_and(|route| reachable(route.remote.ip()))
            && self.is_followed(ip)
            && !peer.given_up.contains(&ip)
    }

    /// Whether the endpoint uses an address exactly while it is present: a socket of its family is bound to the
    /// unspecified address, or the endpoint uses all interfaces. Addresses that the user has named are not followed.
    fn is_followed(&self, ip: IpAddr) -> bool {
        let family = |local: IpAddr| local.to_canonical().is_ipv4() == ip.is_ipv4();
        let locals = || self.sockets.iter().zip(&self.links);
        if self.options.all_interfaces {
            return locals().any(|(socket, _)| family(socket.local().ip()));
        }
        let named = locals().any(|(socket, _)| socket.local().ip().to_canonical() == ip);
        let anywhere = locals().any(|(socket, link)| {
            let local = socket.local().ip();
            local.is_unspecified() && link.local.interface.is_none() && family(local)
        });
        anywhere && !named
    }

    /// Whether paths to a peer may start at a socket: the peer knows an address that the socket sends from.
    pub(super) fn may_begin_at(&self, peer: &Peer, socket: usize) -> bool {
        let known = peer.machine.own_addresses();
        let (link, local) = (&self.links[socket], self.sockets[socket].local().ip());
        if !peer.follows_interfaces || known.is_empty() || !peer.machine.reconfigures_addresses() {
            return true;
        }
        match local.is_unspecified() {
            true if link.local.interface.is_none() => true,
            true => known.iter().any(|ip| link.has_address(*ip)),
            false => known.contains(&local.to_canonical()),
        }
    }

    /// Sets the source address of each route whose socket is bound to the unspecified address. Otherwise the system
    /// could send from a new address before the peer knows it.
    pub(super) fn pin_sources(&self, peer: &mut Peer) {
        let own = peer.machine.own_addresses();
        for route in peer.routes.iter_mut().flatten() {
            if route.source.is_some() || !self.sockets[route.socket].local().ip().is_unspecified() {
                continue;
            }
            let like = |ip: &IpAddr| ip.is_ipv4() == route.remote.ip().to_canonical().is_ipv4();
            let chosen = source_address_for(&route.remote).map(|ip| ip.to_canonical());
            let known = chosen.filter(|ip| own.contains(ip));
            let there = || self.links[route.socket].addresses().iter().copied().filter(like);
            let of_interface = there().find(|ip| own.contains(ip)).or_else(|| there().next());
            route.source = of_interface.or(known).or_else(|| own.iter().copied().find(like));
        }
    }
}

impl Peer {
    /// Notes that an own address was removed: no path starts there until it is added again.
    pub(super) fn give_up_address(&mut self, ip: IpAddr) {
        if !self.given_up.contains(&ip) {
            self.given_up.push(ip);
        }
    }

    /// Whether packets from the path's current source do not arrive, so that the path may change its source.
    pub(super) fn may_begin_elsewhere(&self, path: PathId) -> bool {
        matches!(self.machine.path_status(path), PathStatus::Inactive | PathStatus::Unconfirmed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn an_address_of_two_interfaces_is_there_once() {
        let on = |name: &str, last: u8, up| InterfaceAddress {
            name: name.to_owned(),
            index: None,
            ip: ip(last),
            prefix: 24,
            broadcast: None,
            up,
        };
        let all = [
            on("a", 1, true),
            on("a", 2, true),
            on("b", 1, true),
            on("b", 3, false),
            on("c", 2, true),
        ];
        assert_eq!(present_addresses(&all), [ip(1), ip(2)]);
    }

    #[test]
    fn an_address_counts_once_it_has_been_there_or_missing_for_long_enough() {
        let mut followed = FollowedAddresses::new(true);
        let both = [ip(1), ip(2)];
        // Time (ms), addresses in the list, addresses reported as new, addresses that count as present.
        type Look<'a> = (u64, &'a [IpAddr], &'a [IpAddr], &'a [IpAddr]);
        let looks: [Look<'_>; 9] = [
            (0, &both[..1], &[], &both[..1]),
            (500, &both, &[], &both[..1]),
            // A short absence restarts the timer.
            (900, &both[..1], &[], &both[..1]),
            (1000, &both, &[], &both[..1]),
            (1999, &both, &[], &both[..1]),
            (2000, &both, &both[1..], &both),
            (3000, &both[1..], &[], &both),
            (5999, &both[1..], &[], &both),
            (6000, &both[1..], &[], &both[1..]),
        ];
        for (at, seen, appeared, present) in looks {
            assert_eq!(followed.update(ms(at), seen), appeared, "{at} ms");
            assert_eq!(followed.present.as_deref(), Some(present), "{at} ms");
        }
        assert_eq!((followed.changes, followed.changing.len()), (3, 0));
    }

    #[test]
    fn the_next_poll_is_due_when_an_address_begins_or_ceases_to_count() {
        let mut followed = FollowedAddresses::new(true);
        let both = [ip(1), ip(2)];
        // Time (ms), addresses in the list, time of the next change (ms).
        type Look<'a> = (u64, &'a [IpAddr], Option<u64>);
        let looks: [Look<'_>; 5] = [
            (0, &both[..1], None),
            (500, &both, Some(1500)),
            (600, &both[1..], Some(1500)),
            (1500, &both[1..], Some(3600)),
            (3600, &both[1..], None),
        ];
        for (at, seen, due) in looks {
            followed.update(ms(at), seen);
            assert_eq!(followed.next_change(), due.map(ms), "{at} ms");
        }
        assert_eq!(followed.present.as_deref(), Some(&both[1..]));
    }

    proptest! {
        #[test]
        fn it_remembers_no_more_than_what_is_there_and_follows_what_stays(
            looks in prop::collection::vec((1_u64..2000, prop::collection::btree_set(0_u8..6, 0..6)), 1..60),
        ) {
            let (mut followed, mut at) = (FollowedAddresses::new(true), 0);
            let mut last = Vec::new();
            for (after, seen) in looks {
                at += after;
                last = seen.iter().copied().map(ip).collect();
                followed.update(ms(at), &last);
                prop_assert!(followed.changing.len() <= 6);
                prop_assert!(followed.present.as_ref().is_some_and(|known| known.len() <= 6));
            }
            // A list that stays the same becomes the list of present addresses.
            for _ in 0..2 {
                at += 3000;
                followed.update(ms(at), &last);
            }
            let mut present = followed.present.clone().unwrap_or_default();
            present.sort_unstable();
            prop_assert_eq!(present, last);
        }
    }
}
