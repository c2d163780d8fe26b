//! Finds the association that an unsealed packet belongs to (RFC 9260, 5.1.2 and 8.5).
//!
//! An association is identified by the SCTP ports of both ends and any address of the peer. Packets with this end's
//! verification tag are found by the tag and the ports. UDP ports are not part of the identity, because translators
//! change them (RFC 6951, 5.4).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::wire::Ports;

use super::state::AssociationKey;

/// The SCTP ports of an association, as seen from this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortPair {
    /// Port of this end.
    pub local: u16,
    /// Port of the peer.
    pub remote: u16,
}

impl PortPair {
    /// The ports of a received packet.
    pub const fn of_arrival(ports: Ports) -> Self {
        Self { local: ports.destination, remote: ports.source }
    }

    /// The ports of a sent packet.
    pub const fn of_departure(ports: Ports) -> Self {
        Self { local: ports.source, remote: ports.destination }
    }

    /// The ports as packets to the peer carry them.
    pub const fn departure(self) -> Ports {
        Ports { source: self.local, destination: self.remote }
    }
}

/// What identifies an association.
#[derive(Debug)]
struct Identity {
    ports: PortPair,
    tag: u32,
    addresses: Vec<IpAddr>,
}

/// Maximum number of associations that are remembered after their shutdown.
const SHUT_DOWN_LIMIT: usize = 64;

/// All unsealed associations that have not ended.
#[derive(Debug, Default)]
pub struct AssociationTable {
    /// Tags of the last associations that were shut down in order.
    shut_down: VecDeque<(u32, PortPair)>,
    by_tag: BTreeMap<(u32, PortPair), AssociationKey>,
    by_address: BTreeMap<(PortPair, IpAddr), AssociationKey>,
    known: BTreeMap<AssociationKey, Identity>,
}

impl AssociationTable {
    /// Adds an association, or updates what identifies it. An address that another association with the same ports
    /// uses stays with that association.
    pub fn set(
        &mut self,
        key: AssociationKey,
        ports: PortPair,
        tag: u32,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) {
        self.remove(key);
        let mut own = Vec::new();
        for address in addresses {
            let address = address.to_canonical();
            if *self.by_address.entry((ports, address)).or_insert(key) == key
                && !own.contains(&address)
            {
                own.push(address);
            }
        }
        self.by_tag.insert((tag, ports), key);
        self.known.insert(key, Identity { ports, tag, addresses: own });
    }

    /// Removes an association that has ended. Late packets are recognised if it was shut down in order.
    pub fn remove_ended(&mut self, key: AssociationKey, reason: CloseReason) {
        if reason == CloseReason::Shutdown
            && let Some(Identity { ports, tag, .. }) = self.known.get(&key)
        {
            if self.shut_down.len() == SHUT_DOWN_LIMIT {
                self.shut_down.pop_front();
            }
            self.shut_down.push_back((*tag, *ports));
        }
        self.remove(key);
    }

    /// Whether received packets with that tag and those ports belong to an association that was shut down.
    pub fn was_shut_down(&self, tag: u32, ports: PortPair) -> bool {
        self.shut_down.contains(&(tag, ports))
    }

    /// The local ports of all associations, including those that were shut down recently: their peers may still
    /// expect an answer (RFC 9260, 8.4 (5)).
    pub fn local_ports(&self) -> BTreeSet<u16> {
        let known = self.known.values().map(|one| one.ports.local);
        known.chain(self.shut_down.iter().map(|(_, ports)| ports.local)).collect()
    }

    /// Removes an association: packets no longer find it.
    pub fn remove(&mut self, key: AssociationKey) {
        let Some(Identity { ports, tag, addresses }) = self.known.remove(&key) else { return };
        if self.by_tag.get(&(tag, ports)) == Some(&key) {
            self.by_tag.remove(&(tag, ports));
        }
        for address in addresses {
            self.by_address.remove(&(ports, address));
        }
    }

    /// The association whose received packets carry that tag and those ports.
    pub fn by_tag(&self, tag: u32, ports: PortPair) -> Option<AssociationKey> {
        self.by_tag.get(&(tag, ports)).copied()
    }

    /// The association with those ports whose peer has one of these addresses.
    pub fn by_address<'a>(
        &self,
        ports: PortPair,
        addresses: impl IntoIterator<Item = &'a IpAddr>,
    ) -> Option<AssociationKey> {
        let mut addresses = addresses.into_iter();
        addresses.find_map(|ip| self.by_address.get(&(ports, ip.to_canonical())).copied())
    }

    /// The addresses of all peers of associations with those ports.
    pub fn addresses(&self, ports: PortPair) -> impl Iterator<Item = IpAddr> {
        let from = (ports, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let all = self.by_address.range(from..).map(|(known, _)| *known);
        all.take_while(move |(known, _)| *known == ports).map(|(_, ip)| ip)
    }

    /// Whether the peer of that association has the address.
    pub fn has(&self, key: AssociationKey, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.known.get(&key).is_some_and(|one| one.addresses.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(at: u32) -> AssociationKey {
        AssociationKey { slot_index: at, generation: 1 }
    }

    const fn ports(local: u16, remote: u16) -> PortPair {
        PortPair { local, remote }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn associations_are_told_apart_by_ports_and_known_by_any_address() {
        let mut table = AssociationTable::default();
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        table.set(key(1), ports(9899, 5001), 11, [one, other]);
        table.set(key(2), ports(9899, 5002), 11, [one]);
        for (local, remote, address, expected) in [
            (9899, 5001, one, Some(key(1))),
            (9899, 5001, other, Some(key(1))),
            (9899, 5001, ip("::ffff:192.0.2.2"), Some(key(1))),
            (9899, 5002, one, Some(key(2))),
            (9899, 5002, other, None),
            (9898, 5001, one, None),
            (5001, 9899, one, None),
        ] {
            let found = table.by_address(ports(local, remote), [&address]);
            assert_eq!(found, expected, "{local} {remote} {address}");
        }
        assert_eq!(table.by_tag(11, ports(9899, 5001)), Some(key(1)));
        assert_eq!(table.by_tag(11, ports(9899, 5002)), Some(key(2)));
        assert_eq!(table.by_tag(11, ports(9899, 5003)), None);
        assert_eq!(table.by_address(ports(9899, 5001), [&ip("::1"), &other]), Some(key(1)));
        assert!(table.has(key(1), other) && !table.has(key(2), other));
        let addresses = |pair| table.addresses(pair).collect::<Vec<_>>();
        assert_eq!(addresses(ports(9899, 5001)), [one, other]);
        assert_eq!(addresses(ports(9899, 5002)), [one]);
        assert!(addresses(ports(5001, 9899)).is_empty() && addresses(ports(9899, 5000)).is_empty());
    }

    #[test]
    fn what_an_association_was_known_by_is_forgotten_when_it_changes_or_goes() {
        let mut table = AssociationTable::default();
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        let pair = ports(9899, 9899);
        table.set(key(1), pair, 11, [one]);
        // A restart: another tag and another address.
        table.set(key(1), pair, 12, [other]);
        assert_eq!((table.by_tag(11, pair), table.by_tag(12, pair)), (None, Some(key(1))));
        assert_eq!(table.by_address(pair, [&one]), None);
        // A claimed address stays with its association, whichever association is removed first.
        table.set(key(2), pair, 21, [one, other]);
        assert_eq!(table.by_address(pair, [&other]), Some(key(1)));
        table.remove(key(2));
        assert_eq!(table.by_address(pair, [&one]), None);
        assert_eq!(table.by_address(pair, [&other]), Some(key(1)));
        table.remove(key(1));
        assert_eq!(table.by_tag(12, pair), None);
        assert!(table.known.is_empty() && table.by_address.is_empty());
    }

    #[test]
    fn the_last_associations_that_were_shut_down_are_recognised_by_tag_and_ports() {
        let mut table = AssociationTable::default();
        let last = SHUT_DOWN_LIMIT as u32 + 1;
        for number in 0..=last {
            table.set(key(number), ports(1, 2), number, []);
            match number == last {
                true => table.remove_ended(key(number), CloseReason::Unreachable),
                false => table.remove_ended(key(number), CloseReason::Shutdown),
            }
        }
        let found = [0, 1, last - 1, last].map(|tag| table.was_shut_down(tag, ports(1, 2)));
        assert_eq!(found, [false, true, true, false]);
        assert!(!table.was_shut_down(1, ports(1, 3)) && table.by_tag(1, ports(1, 2)).is_none());
    }
}
