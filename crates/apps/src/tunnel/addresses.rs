//! The hub's table of inner addresses: which client has which address, and which packets it may send.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use ropewalk_runtime::seal::PublicKey;

/// The networks of a tunnel, from which clients get addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    networks: Vec<IpNet>,
}

/// Why networks cannot form a pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// Two networks are of the same family.
    #[error("{0} and {1} are of one family: give one of IPv4, one of IPv6")]
    Family(IpNet, IpNet),
    /// There is no room for the hub and a client.
    #[error("{0} has no address for a client")]
    TooSmall(IpNet),
    /// The network is reserved: its addresses belong to no machine, or to every machine itself.
    #[error("{0} has addresses that no machine in a network can have")]
    Reserved(IpNet),
    /// There is no network.
    #[error("the tunnel has no network")]
    Empty,
}

/// Networks whose addresses no client can have: this host, loopback, link-local, multicast, reserved (RFC 6890).
const RESERVED: [&str; 8] = [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/16",
    "fe80::/10",
    "ff00::/8",
];

fn is_reserved(network: &IpNet) -> bool {
    RESERVED.iter().any(|text| overlap(network, &text.parse().expect("a network")))
}

/// Whether two networks have addresses in common.
pub(super) fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

impl Pool {
    /// A pool of at most one IPv4 and one IPv6 network. The hub has the first address of each.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn new(networks: &[IpNet]) -> Result<Self, PoolError> {
        let networks: Vec<IpNet> = networks.iter().map(IpNet::trunc).collect();
        if let [first, second, ..] = networks[..]
            && first.addr().is_ipv4() == second.addr().is_ipv4()
        {
            return Err(PoolError::Family(first, second));
        }
        let room = |network: &IpNet| network.max_prefix_len() - network.prefix_len() >= 2;
        if let Some(small) = networks.iter().find(|network| !room(network)) {
            return Err(PoolError::TooSmall(*small));
        }
        if let Some(reserved) = networks.iter().find(|network| is_reserved(network)) {
            return Err(PoolError::Reserved(*reserved));
        }
        if networks.is_empty() {
            return Err(PoolError::Empty);
        }
        if let [first, _, third, ..] = networks[..] {
            return Err(PoolError::Family(first, third));
        }
        Ok(Self { networks })
    }

    /// The pool without its IPv6 network. `None` if it has no IPv6 network, or no IPv4 network.
    pub fn without_ipv6(&self) -> Option<Self> {
        let is_ipv4 = |network: &&IpNet| network.addr().is_ipv4();
        let networks: Vec<IpNet> = self.networks.iter().filter(is_ipv4).copied().collect();
        (!networks.is_empty() && networks != self.networks).then_some(Self { networks })
    }

    /// The networks.
    pub fn networks(&self) -> &[IpNet] {
        &self.networks
    }

    /// The hub's addresses, with the prefix of their network.
    pub fn hub(&self) -> Vec<IpNet> {
        let first = |network: &IpNet| {
            IpNet::new(at(network, 1), network.prefix_len()).expect("the prefix of a network")
        };
        self.networks.iter().map(first).collect()
    }

    /// Whether the address is the hub's.
    pub fn is_hub(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| at(network, 1) == address)
    }

    /// Whether the address is in the tunnel.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// Whether a client can have the address.
    fn is_assignable(&self, address: IpAddr) -> bool {
        let inside = |network: &IpNet| {
            let end = network.broadcast() == address && address.is_ipv4();
            network.contains(&address) && network.network() != address && !end
        };
        self.networks.iter().any(inside) && !self.is_hub(address)
    }

    /// The prefix of the network of an address.
    fn with_prefix(&self, address: IpAddr) -> Option<IpNet> {
        let network = self.networks.iter().find(|network| network.contains(&address))?;
        IpNet::new(address, network.prefix_len()).ok()
    }
}

/// Number of the first address in a network that a client can have. The hub has the one before.
const FIRST_CLIENT: u128 = 2;

/// The number of an address in a network.
fn number_of(network: &IpNet, address: IpAddr) -> u128 {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    };
    bits(address) - bits(network.network())
}

/// The address of this number in a network.
fn at(network: &IpNet, number: u128) -> IpAddr {
    match network.network() {
        IpAddr::V4(ip) => IpAddr::from((u32::from(ip) + number as u32).to_be_bytes()),
        IpAddr::V6(ip) => IpAddr::from((u128::from(ip) + number).to_be_bytes()),
    }
}

/// Why a client cannot get an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// All addresses of this network are taken.
    #[error("all addresses of {0} are taken")]
    Full(IpNet),
    /// The configured address is taken by another client, or no client can have it.
    #[error("no client can have the address {0}")]
    Unusable(IpAddr),
}

/// Which key has which addresses, whether or not its client is connected. A key keeps its addresses.
#[derive(Clone, Debug)]
pub struct Leases {
    pool: Pool,
    by_key: BTreeMap<PublicKey, Vec<IpAddr>>,
    taken: BTreeMap<IpAddr, PublicKey>,
    /// The keys in the order in which they got their addresses.
    by_age: BTreeMap<u64, PublicKey>,
    /// For each network, a number below which no address is free. Searches start here.
    first_free: Vec<u128>,
}

impl Leases {
    /// Creates an empty table.
    pub fn new(pool: Pool) -> Self {
        let first_free = vec![FIRST_CLIENT; pool.networks.len()];
        let (by_key, taken, by_age) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { pool, by_key, taken, by_age, first_free }
    }

    /// Reads lines of [`Leases::line`]. The last line of a key applies, and the last key of an address. A line
    /// without an end was truncated, and addresses outside the pool are ignored.
    pub fn read(pool: Pool, text: &str) -> Self {
        let mut leases = Self::new(pool);
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let mut words = line.split_whitespace();
            let Some(key) = words.next().and_then(|word| word.parse().ok()) else { continue };
            let addresses: Vec<IpAddr> = words.filter_map(|word| word.parse().ok()).collect();
            leases.release(&key);
            for address in &addresses {
                if let Some(owner) = leases.taken.get(address).copied() {
                    leases.release(&owner);
                }
            }
            leases.take(key, &addresses);
        }
        leases
    }

    /// The line of a key in a file: the key and its addresses.
    pub fn line(&self, key: &PublicKey) -> String {
        let addresses = self.by_key.get(key).into_iter().flatten();
        let words: Vec<String> = addresses.map(ToString::to_string).collect();
        format!("{key} {}\n", words.join(" "))
    }

    /// The lines of all keys, the oldest first.
    pub fn text(&self) -> String {
        self.by_age.values().map(|key| self.line(key)).collect()
    }

    /// The networks.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    fn take(&mut self, key: PublicKey, addresses: &[IpAddr]) {
        for address in addresses {
            if self.pool.is_assignable(*address) && !self.taken.contains_key(address) {
                self.taken.insert(*address, key);
                self.by_key.entry(key).or_default().push(*address);
            }
        }
        if self.by_key.contains_key(&key) {
            let next = self.by_age.last_key_value().map_or(0, |(age, _)| age + 1);
            self.by_age.insert(next, key);
        }
    }

    /// Releases the addresses of a key.
    fn release(&mut self, key: &PublicKey) {
        self.by_age.retain(|_, other| other != key);
        for address in self.by_key.remove(key).unwrap_or_default() {
            self.taken.remove(&address);
            for (network, first) in self.pool.networks.iter().zip(&mut self.first_free) {
                if network.contains(&address) {
                    *first = number_of(network, address).min(*first);
                }
            }
        }
    }

    /// Assigns the addresses of a key, one of each network. Also returns whether they have changed. A new key gets
    /// the configured addresses in `wanted`, or free ones. If none is free, keys that are no longer admitted lose
    /// theirs, the oldest first.
    ///
    /// # Errors
    /// [`AddressError`]; in that case no admitted key has lost an address.
    pub fn assign(
        &mut self,
        key: PublicKey,
        wanted: &[IpAddr],
        is_admitted: impl Fn(&PublicKey) -> bool,
    ) -> Result<(Vec<IpNet>, bool), AddressError> {
        loop {
            let assigned = self.try_assign(key, wanted);
            if !matches!(assigned, Err(AddressError::Full(_))) {
                return assigned;
            }
            let gone = |other: &&PublicKey| **other != key && !is_admitted(other);
            match self.by_age.values().find(gone).copied() {
                Some(gone) => self.release(&gone),
                None => return assigned,
            }
        }
    }

    fn try_assign(
        &mut self,
        key: PublicKey,
        wanted: &[IpAddr],
    ) -> Result<(Vec<IpNet>, bool), AddressError> {
        let own = self.by_key.get(&key).cloned().unwrap_or_default();
        let mut assigned = Vec::new();
        for (index, network) in self.pool.networks.clone().into_iter().enumerate() {
            let configured = wanted.iter().copied().find(|it| network.contains(it));
            let kept = own.iter().copied().find(|it| network.contains(it));
            let address = match configured {
                Some(address) if !self.pool.is_assignable(address) => {
                    return Err(AddressError::Unusable(address));
                }
                Some(address) if !own.contains(&address) && self.taken.contains_key(&address) => {
                    return Err(AddressError::Unusable(address));
                }
                Some(address) => address,
                None => match kept.or_else(|| self.free(index, &network)) {
                    Some(address) => address,
                    None => return Err(AddressError::Full(network)),
                },
            };
            assigned.push(address);
        }
        let is_new = own != assigned;
        if is_new {
            self.release(&key);
            self.take(key, &assigned);
        }
        let with_prefix = assigned.into_iter().filter_map(|address| self.pool.with_prefix(address));
        Ok((with_prefix.collect(), is_new))
    }

    /// The first free address of the network with this index. The search starts where the last one ended.
    fn free(&mut self, index: usize, network: &IpNet) -> Option<IpAddr> {
        let bits = u32::from(network.max_prefix_len() - network.prefix_len());
        let last = 1_u128.checked_shl(bits).map_or(u128::MAX, |size| size - 1);
        let mut number = self.first_free[index];
        if number > last {
            return None;
        }
        let mut taken = self.taken.range(at(network, number)..=network.broadcast());
        while taken.next().map(|(address, _)| *address) == Some(at(network, number)) {
            number += 1;
            if number > last {
                break;
            }
        }
        self.first_free[index] = number;
        let address = (number <= last).then(|| at(network, number))?;
        self.pool.is_assignable(address).then_some(address)
    }
}

/// The connected clients, by address.
#[derive(Clone, Debug)]
pub struct Connected<C> {
    by_address: BTreeMap<IpAddr, C>,
    /// Addresses of IPv4 and of IPv6. A client has one of each family that the tunnel has.
    counts: [usize; 2],
}

impl<C> Default for Connected<C> {
    fn default() -> Self {
        Self { by_address: BTreeMap::new(), counts: [0; 2] }
    }
}

impl<C: PartialEq + Clone> Connected<C> {
    /// Adds a client. Returns the clients that had its addresses: the same client, over an earlier association.
    pub fn insert(&mut self, addresses: &[IpNet], client: &C) -> Vec<C> {
        let mut replaced = Vec::new();
        for address in addresses.iter().map(IpNet::addr) {
            match self.by_address.insert(address, client.clone()) {
                Some(other) if !replaced.contains(&other) => replaced.push(other),
                Some(_) => {}
                None => self.counts[usize::from(address.is_ipv6())] += 1,
            }
        }
        replaced
    }

    /// Removes a client with these addresses. Addresses that a newer association has taken over stay.
    pub fn remove(&mut self, addresses: &[IpNet], client: &C) {
        for address in addresses.iter().map(IpNet::addr) {
            if self.by_address.get(&address) == Some(client) {
                self.by_address.remove(&address);
                self.counts[usize::from(address.is_ipv6())] -= 1;
            }
        }
    }

    /// The client with this address.
    pub fn find(&self, address: IpAddr) -> Option<&C> {
        self.by_address.get(&address)
    }

    /// Number of clients.
    pub fn count(&self) -> usize {
        self.counts[0].max(self.counts[1])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ropewalk_runtime::seal::SecretKey;

    use super::*;

    fn pool(networks: &[&str]) -> Result<Pool, PoolError> {
        let networks: Vec<IpNet> = networks.iter().map(|it| it.parse().expect("one")).collect();
        Pool::new(&networks)
    }

    fn key() -> PublicKey {
        SecretKey::generate().expect("random numbers").public()
    }

    fn shown(addresses: &[IpNet]) -> Vec<String> {
        addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_key_gets_its_own_addresses_and_keeps_them() {
        let mut leases = Leases::new(pool(&["10.88.0.0/29", "fd88::/64"]).expect("a pool"));
        let keys: Vec<PublicKey> = (0..5).map(|_| key()).collect();
        for (number, key) in (2..).zip(&keys) {
            let (addresses, is_new) = leases.assign(*key, &[], |_| true).expect("room");
            assert!(is_new);
            let expected = [format!("10.88.0.{number}/29"), format!("fd88::{number}/64")];
            assert_eq!(shown(&addresses), expected);
        }
        assert!(matches!(leases.assign(key(), &[], |_| true), Err(AddressError::Full(_))));
        let again =
            Leases::read(leases.pool().clone(), &leases.text()).assign(keys[3], &[], |_| true);
        let (addresses, is_new) = again.expect("its own");
        assert_eq!(
            (shown(&addresses), is_new),
            (vec!["10.88.0.5/29".to_owned(), "fd88::5/64".to_owned()], false)
        );
    }

    #[test]
    fn a_configured_address_is_given_unless_another_key_has_it() {
        let mut leases = Leases::new(pool(&["10.88.0.0/24"]).expect("a pool"));
        let (first, second) = (key(), key());
        let wanted = [IpAddr::from([10, 88, 0, 9])];
        leases.assign(first, &[], |_| true).expect("room");
        assert_eq!(
            shown(&leases.assign(first, &wanted, |_| true).expect("it is free").0),
            ["10.88.0.9/24"]
        );
        assert_eq!(
            leases.assign(second, &wanted, |_| true),
            Err(AddressError::Unusable(wanted[0]))
        );
        for last in [0, 1, 255] {
            let wanted = [IpAddr::from([10, 88, 0, last])];
            assert_eq!(
                leases.assign(second, &wanted, |_| true),
                Err(AddressError::Unusable(wanted[0]))
            );
        }
        assert_eq!(shown(&leases.assign(second, &[], |_| true).expect("room").0), ["10.88.0.2/24"]);
    }

    #[test]
    fn a_file_that_was_changed_gives_no_address_twice_and_a_line_that_was_cut_off_none() {
        let (first, second) = (key(), key());
        let text = format!(
            "{second} 10.88.0.7\n{first} 10.88.0.2\n{second} 10.88.0.2 10.9.9.9\nnonsense\n{first} 10.88.0.2\n{second} 10.88.0.33"
        );
        let mut leases = Leases::read(pool(&["10.88.0.0/24"]).expect("a pool"), &text);
        assert_eq!(
            shown(&leases.assign(first, &[], |_| true).expect("its own").0),
            ["10.88.0.2/24"]
        );
        assert_eq!(shown(&leases.assign(second, &[], |_| true).expect("room").0), ["10.88.0.3/24"]);
    }

    #[test]
    fn in_a_full_network_keys_that_are_not_admitted_any_more_lose_their_addresses_the_oldest_first()
    {
        let pool = pool(&["10.88.0.0/29", "fd88::/64"]).expect("a pool");
        let mut leases = Leases::new(pool.clone());
        let keys: Vec<PublicKey> = (0..8).map(|_| key()).collect();
        let mut appended = String::new();
        let admitted = [keys[0], keys[3], keys[5], keys[6], keys[7]];
        let mut assign = |leases: &mut Leases, index: usize| {
            let assigned = leases.assign(keys[index], &[], |key| admitted.contains(key));
            let given = assigned.map(|(given, _)| given[0].addr().to_string())?;
            appended += &leases.line(&keys[index]);
            Ok::<String, AddressError>(given)
        };
        for index in 0..5 {
            assert_eq!(assign(&mut leases, index), Ok(format!("10.88.0.{}", index + 2)));
        }
        // The ages outlive a restart.
        let mut leases = Leases::read(pool.clone(), &leases.text());
        for (index, expected) in [(5, "10.88.0.3"), (6, "10.88.0.4"), (7, "10.88.0.6")] {
            assert_eq!(assign(&mut leases, index), Ok(expected.to_owned()));
        }
        assert!(matches!(assign(&mut leases, 1), Err(AddressError::Full(_))));
        assert_eq!(assign(&mut leases, 3), Ok("10.88.0.5".to_owned()), "its own");
        let appended = Leases::read(pool, &appended);
        assert_eq!(appended.by_key, leases.by_key);
    }

    proptest::proptest! {
        /// For any sequence of requests: no address is assigned twice, a key keeps its own, and the appended lines
        /// are equivalent to the table.
        #[test]
        fn addresses_are_unique_and_the_appended_lines_say_the_same(
            asked in proptest::collection::vec((0_usize..12, proptest::option::of(0_u8..16)), 1..60)
        ) {
            let keys: Vec<PublicKey> = (0..12).map(|_| key()).collect();
            let mut leases = Leases::new(pool(&["10.88.0.0/28"]).expect("a pool"));
            let mut appended = String::new();
            for (index, wanted) in asked {
                let wanted: Vec<IpAddr> = wanted.map(|last| [10, 88, 0, last].into()).into_iter().collect();
                let before = leases.by_key.get(&keys[index]).cloned();
                match leases.assign(keys[index], &wanted, |_| true) {
                    Ok((given, is_new)) => {
                        proptest::prop_assert!(wanted.is_empty() || given[0].addr() == wanted[0]);
                        let kept = before.is_some_and(|before| before == [given[0].addr()]);
                        proptest::prop_assert_eq!(is_new, !kept);
                        if is_new {
                            appended += &leases.line(&keys[index]);
                        }
                    }
                    Err(AddressError::Full(_)) => proptest::prop_assert_eq!(leases.taken.len(), 13),
                    Err(AddressError::Unusable(_)) => proptest::prop_assert!(!wanted.is_empty()),
                }
                let all: Vec<IpAddr> = leases.by_key.values().flatten().copied().collect();
                let unique: BTreeSet<IpAddr> = all.iter().copied().collect();
                proptest::prop_assert_eq!(all.len(), unique.len());
                proptest::prop_assert_eq!(unique, leases.taken.keys().copied().collect());
            }
            let read = Leases::read(leases.pool().clone(), &appended);
            proptest::prop_assert_eq!(read.text(), leases.text());
        }
    }

    #[test]
    fn networks_without_room_or_of_one_family_are_refused() {
        for (networks, expected) in [
            (&["10.0.0.0/31"][..], "no address for a client"),
            (&["10.0.0.0/24", "10.1.0.0/24"], "of one family"),
            (&["10.0.0.0/24", "fd00::/64", "fd01::/64"], "of one family"),
            (&[], "no network"),
        ] {
            let error = pool(networks).expect_err("it is refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_client_that_came_back_keeps_its_addresses_when_its_old_association_ends() {
        let addresses = ["10.88.0.2/24".parse().expect("one")];
        let mut connected = Connected::default();
        assert!(connected.insert(&addresses, &1).is_empty());
        assert_eq!(connected.insert(&addresses, &2), [1]);
        connected.remove(&addresses, &1);
        assert_eq!((connected.find([10, 88, 0, 2].into()), connected.count()), (Some(&2), 1));
        connected.remove(&addresses, &2);
        assert_eq!((connected.find([10, 88, 0, 2].into()), connected.count()), (None, 0));
    }
}
