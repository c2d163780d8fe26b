//! The interfaces and addresses that sockets are bound to, and how they change.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Type};

use super::socket::{BindAddress, bind_interface};
use crate::interfaces::{InterfaceAddress, list};

/// Maximum number of interfaces that are used automatically.
const AUTOMATIC_LIMIT: usize = 8;

/// Whether peers on other machines may be reachable through this interface.
const fn is_usable(seen: &InterfaceAddress) -> bool {
    seen.up && seen.is_routable()
}

/// State of a socket's interface or address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Not watched: the socket may use every interface, or the address was never in the list.
    Unwatched,
    Present,
    /// Present, but without carrier (an unplugged cable, a radio without a network).
    Down,
    Gone,
}

/// Change since the last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No relevant change.
    Nothing,
    /// The interface or address is gone: the socket is unusable.
    Gone,
    /// Present, but without carrier.
    Down,
    /// The carrier is back; the socket is still usable.
    Up,
    /// The interface or address is back, possibly on another interface: the socket must be bound again.
    Replaced,
    /// The interface has other addresses.
    AddressesChanged,
}

/// The interface or address that a socket is bound to.
#[derive(Clone, Debug)]
pub struct BoundInterface {
    /// Where the socket is bound.
    pub local: BindAddress,
    /// The interface on which it was last seen. `None` if several are possible.
    name: Option<String>,
    presence: Presence,
    index: Option<u32>,
    addresses: Vec<IpAddr>,
}

impl BoundInterface {
    /// Finds the interface or address of a socket bound to `local`.
    pub fn new(local: BindAddress, all: &[InterfaceAddress]) -> Self {
        let mut link = Self {
            name: local.interface.clone(),
            local,
            presence: Presence::Unwatched,
            index: None,
            addresses: Vec::new(),
        };
        let present = link.matching(all);
        let ip = link.local.address.ip();
        let wildcard = ip.is_unspecified() && link.local.interface.is_none();
        let foreign = !ip.is_unspecified() && present.is_empty();
        if !(wildcard || foreign || ip.is_loopback()) {
            link.presence = presence(&present);
        }
        link.record(&present);
        link
    }

    /// A socket that waits for its interface or address.
    pub fn waiting(local: BindAddress) -> Self {
        Self { presence: Presence::Gone, ..Self::new(local, &[]) }
    }

    fn record(&mut self, matching: &[&InterfaceAddress]) {
        self.index = matching.first().and_then(|seen| seen.index);
        if matching.is_empty() {
            // The previous source addresses of paths still distinguish these paths.
            return;
        }
        self.addresses = matching.iter().map(|seen| seen.ip).collect();
        self.addresses.sort_unstable();
        if let [seen] = matching {
            self.name = Some(seen.name.clone());
        }
    }

    /// Whether `name` is its interface or one of its addresses.
    pub fn is_called(&self, name: &str) -> bool {
        let is_address = |ip: &IpAddr| name.parse() == Ok(*ip);
        self.name() == Some(name)
            || is_address(&self.local.address.ip())
            || self.addresses.iter().any(is_address)
    }

    /// The interface on which it was last seen. `None` if several are possible.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The entries of `all` that this link refers to.
    fn matching<'a>(&self, all: &'a [InterfaceAddress]) -> Vec<&'a InterfaceAddress> {
        let ip = self.local.address.ip();
        let matches = |seen: &&InterfaceAddress| {
            let address =
                if ip.is_unspecified() { seen.ip.is_ipv4() == ip.is_ipv4() } else { seen.ip == ip };
            let interface = self.local.interface.as_ref().is_none_or(|name| *name == seen.name);
            address && interface
        };
        all.iter().filter(matches).collect()
    }

    /// Whether the link can appear and disappear.
    pub fn is_watched(&self) -> bool {
        self.presence != Presence::Unwatched
    }

    /// Whether `all` shows that no packet can be sent on it.
    pub fn is_missing_in(&self, all: &[InterfaceAddress]) -> bool {
        self.is_watched() && presence(&self.matching(all)) != Presence::Present
    }

    /// Whether the link has gone.
    pub fn is_gone(&self) -> bool {
        self.presence == Presence::Gone
    }

    /// Whether the socket sends from this address of the interface that it is bound to.
    pub fn has_address(&self, ip: IpAddr) -> bool {
        self.local.interface.is_some() && !self.is_gone() && self.addresses.contains(&ip)
    }

    /// The addresses of the interface that the socket is bound to, as last seen.
    pub fn addresses(&self) -> &[IpAddr] {
        if self.local.interface.is_some() { &self.addresses } else { &[] }
    }

    /// An address of the link, for comparison with the peer's addresses.
    pub fn address(&self) -> SocketAddr {
        let bound = self.local.address;
        let own = self.addresses.first().filter(|_| self.local.interface.is_some());
        own.map_or(bound, |ip| SocketAddr::new(*ip, bound.port()))
    }

    /// Compares the state with the present interfaces.
    pub fn update(&mut self, all: &[InterfaceAddress]) -> Change {
        if self.presence == Presence::Unwatched {
            return Change::Nothing;
        }
        let present = self.matching(all);
        let (before, now) = (self.presence, presence(&present));
        let (index, addresses) = (self.index, self.addresses.clone());
        self.presence = now;
        self.record(&present);
        match (before, now) {
            (Presence::Gone, Presence::Gone) => Change::Nothing,
            (_, Presence::Gone) => Change::Gone,
            (Presence::Gone, _) => Change::Replaced,
            _ if index != self.index => Change::Replaced,
            (Presence::Present, Presence::Down) => Change::Down,
            (Presence::Down, Presence::Present) => Change::Up,
            _ if addresses != self.addresses => Change::AddressesChanged,
            _ => Change::Nothing,
        }
    }

    /// The socket could not be bound again: the next poll retries.
    pub fn retry_binding(&mut self) {
        self.presence = Presence::Gone;
    }
}

fn presence(matching: &[&InterfaceAddress]) -> Presence {
    match matching {
        [] => Presence::Gone,
        some if some.iter().any(|seen| seen.up) => Presence::Present,
        _ => Presence::Down,
    }
}

/// Whether a socket that is bound there could send packets now.
pub fn may_send(local: &BindAddress, all: &[InterfaceAddress]) -> bool {
    let link = BoundInterface::new(local.clone(), all);
    match link.presence {
        Presence::Present => true,
        Presence::Down | Presence::Gone => false,
        // The system can permit addresses that no interface has.
        Presence::Unwatched => UdpSocket::bind(local.address).is_ok(),
    }
}

/// Whether the interface or address is missing.
pub fn is_missing(local: &BindAddress, all: &[InterfaceAddress]) -> bool {
    BoundInterface::new(local.clone(), all).matching(all).is_empty()
}

/// Whether paths to these addresses leave this machine.
pub fn leave_this_machine(remotes: &[SocketAddr], all: &[InterfaceAddress]) -> bool {
    let own = |ip: IpAddr| ip.is_loopback() || all.iter().any(|seen| seen.ip == ip);
    !remotes.is_empty() && !remotes.iter().any(|remote| own(remote.ip()))
}

/// One socket for each usable interface and address family of the peer. The interface that the system would choose
/// comes first. Paths from interfaces that do not lead to the peer stay unconfirmed.
///
/// A family without an interface gets a socket that is not bound to one: the system chooses the interface for each
/// packet, including one that appears later or that cannot be listed. [`without_unbound`] removes such sockets where
/// interfaces are avoided.
pub fn automatic(remotes: &[SocketAddr], all: &[InterfaceAddress]) -> Vec<BindAddress> {
    let mut locals: Vec<BindAddress> = Vec::new();
    for ipv6 in [false, true] {
        let Some(remote) = remotes.iter().find(|remote| remote.is_ipv6() == ipv6) else { continue };
        let chosen = source_address_for(remote);
        let first = all.iter().filter(|seen| Some(seen.ip) == chosen && !seen.ip.is_loopback());
        let like = all.iter().filter(|seen| seen.ip.is_ipv6() == ipv6 && is_usable(seen));
        for seen in first.chain(like).take(AUTOMATIC_LIMIT) {
            let local = on(&seen.name, ipv6, 0);
            if !locals.contains(&local) {
                locals.push(local);
            }
        }
        if !locals.iter().any(|local| local.address.is_ipv6() == ipv6) {
            locals.push(BindAddress::of(unspecified(ipv6)));
        }
    }
    locals
}

/// The sockets that are bound to an interface. Others follow the routes, which may use avoided interfaces.
pub fn without_unbound(mut locals: Vec<BindAddress>) -> Vec<BindAddress> {
    locals.retain(|local| local.interface.is_some());
    locals
}

/// Binds to an interface with the unspecified address.
pub fn on(name: &str, ipv6: bool, port: u16) -> BindAddress {
    let mut address = unspecified(ipv6);
    address.set_port(port);
    BindAddress { address, interface: Some(name.to_owned()) }
}

/// The same interface by its address, for systems that restrict binding to interfaces.
pub fn by_address(local: &BindAddress, all: &[InterfaceAddress]) -> Option<BindAddress> {
    let name = local.interface.as_ref()?;
    let like = |seen: &&InterfaceAddress| {
        seen.name == *name && seen.ip.is_ipv4() == local.address.is_ipv4() && is_usable(seen)
    };
    let ip = all.iter().find(like)?.ip;
    Some(BindAddress::of(SocketAddr::new(ip, 0)))
}

/// Any address, any port.
pub fn unspecified(ipv6: bool) -> SocketAddr {
    let ip: IpAddr = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, 0)
}

/// The interface and address from which a socket sends to `remote`, as far as known. `source` is the chosen source
/// address, if the socket has several.
pub fn local_address_towards(
    link: &BoundInterface,
    source: Option<IpAddr>,
    remote: &SocketAddr,
) -> (String, SocketAddr) {
    let mut local = link.address();
    if local.ip().is_unspecified()
        && let Some(ip) = source.or_else(|| source_address_for(remote))
    {
        local.set_ip(ip);
    }
    let named = || list().ok()?.into_iter().find(|seen| seen.ip == local.ip()).map(|s| s.name);
    let name = link.local.interface.clone().or_else(named);
    (name.unwrap_or_else(|| local.ip().to_string()), local)
}

/// The local address from which the system would send to `remote`. No packet is sent.
pub fn source_address_for(remote: &SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind(unspecified(remote.is_ipv6())).ok()?;
    socket.connect(remote).ok()?;
    socket.local_addr().ok().map(|local| local.ip())
}

/// Whether packets to `remote` leave through an interface with this source address. True if the system does not say.
/// No packet is sent.
pub fn leads_to(interface: &str, ip: IpAddr, remote: &SocketAddr) -> bool {
    let socket = socket2::Socket::new(Domain::for_address(*remote), Type::DGRAM, None);
    let bound = socket.and_then(|socket| bind_interface(&socket, interface).map(|()| socket));
    let Ok(socket) = bound else { return true };
    let connected = socket.connect(&(*remote).into()).is_ok();
    let source = socket.local_addr().ok().and_then(|local| local.as_socket());
    connected && source.is_some_and(|source| source.ip().to_canonical() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, index: u32, ip: &str, up: bool) -> InterfaceAddress {
        let ip = ip.parse().expect("an address");
        let name = name.to_owned();
        InterfaceAddress { name, index: Some(index), ip, prefix: 24, broadcast: None, up }
    }

    fn local(ip: &str, interface: Option<&str>) -> BindAddress {
        let ip = ip.parse().expect("an address");
        BindAddress { address: SocketAddr::new(ip, 0), interface: interface.map(str::to_owned) }
    }

    #[test]
    fn interfaces_and_addresses_that_come_and_go_are_told() {
        let wifi = seen("wlan0", 3, "192.0.2.1", true);
        let (down, replaced) = (
            InterfaceAddress { up: false, ..wifi.clone() },
            InterfaceAddress { index: Some(9), ..wifi.clone() },
        );
        let other = seen("wlan0", 3, "192.0.2.9", true);
        let both = [local("192.0.2.1", None), local("0.0.0.0", Some("wlan0"))];
        let only = std::slice::from_ref;
        // The interfaces present, and the change for a socket on the address and for one on the interface.
        let looks: [(&[InterfaceAddress], [Change; 2]); 9] = [
            (only(&wifi), [Change::Nothing; 2]),
            (&[], [Change::Gone; 2]),
            (&[], [Change::Nothing; 2]),
            (only(&replaced), [Change::Replaced; 2]),
            (only(&wifi), [Change::Replaced; 2]),
            (only(&down), [Change::Down; 2]),
            (only(&wifi), [Change::Up; 2]),
            (only(&other), [Change::Gone, Change::AddressesChanged]),
            (&[wifi.clone(), other.clone()], [Change::Replaced, Change::AddressesChanged]),
        ];
        let mut links = both.map(|local| BoundInterface::new(local, only(&wifi)));
        for (number, (all, expected)) in looks.into_iter().enumerate() {
            let changes = links.each_mut().map(|link| link.update(all));
            assert_eq!(changes, expected, "look {number}");
        }
    }

    #[test]
    fn what_is_bound_to_no_interface_is_not_watched() {
        let all = [seen("lo", 1, "127.0.0.1", true), seen("wlan0", 3, "192.0.2.1", true)];
        for (local, watched) in [
            (local("0.0.0.0", None), false),
            (local("127.0.0.1", None), false),
            // Bound to an address that no interface has, which the system can allow.
            (local("192.0.2.77", None), false),
            (local("192.0.2.1", None), true),
            (local("0.0.0.0", Some("wlan0")), true),
            (local("::", Some("wlan0")), true),
        ] {
            let mut link = BoundInterface::new(local, &all);
            assert_eq!(link.is_watched(), watched, "{}", link.local);
            assert_eq!(link.update(&[]) == Change::Gone, watched && !link.local.address.is_ipv6());
        }
    }

    #[test]
    fn what_is_missing_or_down_cannot_send_yet() {
        let up = seen("wlan0", 3, "192.0.2.1", true);
        let all = [up, seen("wwan0", 4, "192.0.2.2", false)];
        for (local, sends, missing) in [
            (local("0.0.0.0", Some("wlan0")), true, false),
            (local("192.0.2.1", None), true, false),
            // The interface has no address of that family.
            (local("::", Some("wlan0")), false, true),
            (local("0.0.0.0", Some("wwan0")), false, false),
            (local("192.0.2.2", None), false, false),
            (local("0.0.0.0", Some("usb0")), false, true),
            (local("192.0.2.77", None), false, true),
            (local("127.0.0.1", None), true, true),
        ] {
            assert_eq!(
                (may_send(&local, &all), is_missing(&local, &all)),
                (sends, missing),
                "{local}"
            );
        }
        assert!(BoundInterface::waiting(local("192.0.2.77", None)).is_gone());
    }

    #[test]
    fn each_usable_interface_of_the_peer_s_family_is_a_path() {
        let all = [
            seen("lo", 1, "127.0.0.1", true),
            seen("eth0", 2, "192.0.2.1", false),
            seen("wlan0", 3, "198.51.100.2", true),
            seen("wlan0", 3, "198.51.100.3", true),
            seen("wlan0", 3, "fe80::1", true),
            seen("wwan0", 4, "203.0.113.4", true),
            seen("usb0", 5, "169.254.1.1", true),
            seen("wwan0", 4, "2001:db8::4", true),
        ];
        // Documentation addresses: the system's route to them uses none of the interfaces above.
        let four = "192.0.2.200:9899".parse().expect("an address");
        let six = "[2001:db8:1::1]:9899".parse().expect("an address");
        let shown = |remotes: &[SocketAddr]| {
            automatic(remotes, &all).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[four]), ["0.0.0.0:0 on wlan0", "0.0.0.0:0 on wwan0"]);
        assert_eq!(shown(&[six]), ["[::]:0 on wwan0"]);
        assert_eq!(shown(&[four, six]).len(), 3);
        assert!(leave_this_machine(&[four, six], &all));
        for own in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "203.0.113.4:1"] {
            assert!(!leave_this_machine(&[four, own.parse().expect("an address")], &all), "{own}");
        }
        assert_eq!(automatic(&[four], &[]), [local("0.0.0.0", None)]);
        assert_eq!(without_unbound(automatic(&[four], &[])), []);
        assert_eq!(without_unbound(automatic(&[four], &all)).len(), 2);
        let by = by_address(&local("0.0.0.0", Some("wwan0")), &all);
        assert_eq!(by, Some(local("203.0.113.4", None)));
    }
}
