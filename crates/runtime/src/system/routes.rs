//! Links, addresses and routes of the machine.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHop,
    RouteNextHopFlags, RouteProtocol, RouteScope, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use serde::{Deserialize, Serialize};

use super::netlink::{change, dump};

/// The main table.
pub const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// Destination network.
    pub to: IpNet,
    /// The next hops, which share the packets. If empty, the destination is unreachable.
    pub hops: Vec<Hop>,
    /// The metric; the route with the lowest one is used. `None` selects that of the system.
    pub metric: Option<u32>,
    /// The source address of packets whose sender has not chosen one. `None` leaves the choice to the system.
    pub source: Option<IpAddr>,
}

/// A next hop of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hop {
    /// Router on the link. `None` if the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// Index of the interface.
    pub interface: u32,
    /// Whether the router is on the link although no network of the interface contains it.
    pub on_link: bool,
    /// Its share of the packets is this number plus 1, relative to the sum over all next hops.
    pub weight: u8,
}

impl Hop {
    /// A destination on the link of this interface.
    pub const fn to_link(interface: u32) -> Self {
        Self { gateway: None, interface, on_link: false, weight: 0 }
    }
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether it is a TUN device, which carries the IP packets of a program.
    pub is_tun: bool,
    /// Whether it is administratively up.
    pub is_up: bool,
}

/// The interfaces of this machine.
///
/// # Errors
/// The error of the system.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let links = dump(NETLINK_ROUTE, request)?.into_iter().filter_map(|message| match message {
        RouteNetlinkMessage::NewLink(link) => interface(link),
        _ => None,
    });
    Ok(links.collect())
}

fn interface(link: LinkMessage) -> Option<Interface> {
    let (mut name, mut kind) = (None, None);
    for attribute in link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name = Some(text),
            LinkAttribute::LinkInfo(all) => {
                kind = all.into_iter().find_map(|info| match info {
                    LinkInfo::Kind(kind) => Some(kind),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    // TAP devices have the same kind, but carry Ethernet.
    let is_tun = kind == Some(InfoKind::Tun) && link.header.link_layer_type == LinkLayerType::None;
    let is_up = link.header.flags.contains(LinkFlags::Up);
    Some(Interface { index: link.header.index, name: name?, is_tun, is_up })
}

/// The index of the interface of this name.
///
/// # Errors
/// If there is none.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let found = interfaces()?.into_iter().find(|other| other.name == name);
    found.map(|interface| interface.index).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Sets the MTU of an interface, bytes, and starts it.
///
/// # Errors
/// The error of the system.
pub fn start_interface(index: u32, mtu: u32) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    link.attributes.push(LinkAttribute::Mtu(mtu));
    change(NETLINK_ROUTE, RouteNetlinkMessage::SetLink(link), 0)
}

/// The addresses of an interface, with the prefixes of their networks.
///
/// # Errors
/// The error of the system.
pub fn addresses(index: u32) -> io::Result<Vec<IpNet>> {
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let found = dump(NETLINK_ROUTE, request)?.into_iter().filter_map(|message| match message {
        RouteNetlinkMessage::NewAddress(message) if message.header.index == index => {
            let local = message.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Local(address) => Some(*address),
                _ => None,
            });
            let address = message.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Address(address) => Some(*address),
                _ => None,
            });
            IpNet::new(local.or(address)?, message.header.prefix_len).ok()
        }
        _ => None,
    });
    Ok(found.collect())
}

/// Adds an address with its network prefix to an interface.
///
/// # Errors
/// The error of the system. An address that the interface already has is not an error.
pub fn add_address(index: u32, address: IpNet) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    message.header.index = index;
    // The other end of a tunnel assigns each address once, so duplicate address detection would
    // only cause a delay.
    message.header.flags = AddressHeaderFlags::Nodad;
    message.attributes.push(AddressAttribute::Local(address.addr()));
    message.attributes.push(AddressAttribute::Address(address.addr()));
    let request = RouteNetlinkMessage::NewAddress(message);
    change(NETLINK_ROUTE, request, NLM_F_CREATE | NLM_F_REPLACE)
}

/// Removes an address from an interface.
///
/// # Errors
/// The error of the system.
pub fn remove_address(index: u32, address: IpNet) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    message.header.index = index;
    message.attributes.push(AddressAttribute::Local(address.addr()));
    change(NETLINK_ROUTE, RouteNetlinkMessage::DelAddress(message), 0)
}

/// Adds a route. Returns false if a route with the same destination and metric exists.
///
/// # Errors
/// The error of the system.
pub fn add_route(route: &Route) -> io::Result<bool> {
    add_route_in(MAIN, route)
}

/// Adds a route to this table, as [`add_route`] does to the main table.
///
/// # Errors
/// The error of the system.
pub fn add_route_in(table: u32, route: &Route) -> io::Result<bool> {
    let request = RouteNetlinkMessage::NewRoute(message_of(table, route));
    match change(NETLINK_ROUTE, request, NLM_F_CREATE | NLM_F_EXCL) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a route.
///
/// # Errors
/// The error of the system.
pub fn remove_route(route: &Route) -> io::Result<()> {
    remove_route_in(MAIN, route)
}

/// Removes a route of this table.
///
/// # Errors
/// The error of the system.
pub fn remove_route_in(table: u32, route: &Route) -> io::Result<()> {
    change(NETLINK_ROUTE, RouteNetlinkMessage::DelRoute(message_of(table, route)), 0)
}

/// The unicast routes of one address family in the main table. Next hops on interfaces that are down are omitted.
///
/// # Errors
/// The error of the system.
pub fn main_routes(ipv6: bool) -> io::Result<Vec<Route>> {
    routes_in(MAIN, ipv6)
}

/// The interfaces of the IPv4 and IPv6 default routes.
///
/// # Errors
/// The error of the system.
pub fn default_interfaces() -> io::Result<Vec<Interface>> {
    let mut all = main_routes(false)?;
    all.extend(main_routes(true)?);
    let default = all.into_iter().filter(|route| route.to.prefix_len() == 0);
    let indexes: Vec<u32> = default.flat_map(|route| route.hops).map(|hop| hop.interface).collect();
    Ok(interfaces()?.into_iter().filter(|one| indexes.contains(&one.index)).collect())
}

/// The routes of another table, like [`main_routes`], but including unreachable networks.
///
/// # Errors
/// The error of the system.
pub fn routes_in(table: u32, ipv6: bool) -> io::Result<Vec<Route>> {
    let mut message = RouteMessage::default();
    message.header.address_family = if ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let found = dump(NETLINK_ROUTE, RouteNetlinkMessage::GetRoute(message))?;
    let found = found.into_iter().filter_map(|message| route(message, table));
    Ok(found.filter(|it| it.to.addr().is_ipv6() == ipv6).collect())
}

fn route(message: RouteNetlinkMessage, table: u32) -> Option<Route> {
    let RouteNetlinkMessage::NewRoute(message) = message else { return None };
    let header = &message.header;
    let is_unreachable = header.kind == RouteType::Unreachable && table != MAIN;
    let usable = header.kind == RouteType::Unicast || is_unreachable;
    if !usable || table_of(&message) != table {
        return None;
    }
    let ipv6 = header.address_family == AddressFamily::Inet6;
    let (mut to, mut metric, mut source) = (None, None, None);
    let mut hops: Vec<Hop> = Vec::new();
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => to = ip_of(address),
            RouteAttribute::PrefSource(address) => source = ip_of(address),
            RouteAttribute::Priority(value) => metric = Some(*value),
            RouteAttribute::MultiPath(several) => hops.extend(several.iter().filter_map(next_hop)),
            _ => {}
        }
    }
    let is_dead = header.flags.contains(RouteFlags::Dead);
    if hops.is_empty() && !is_dead && !is_unreachable {
        let on_link = header.flags.contains(RouteFlags::Onlink);
        hops.extend(hop(&message.attributes, None, on_link, 0));
    }
    let to =
        to.unwrap_or_else(|| if ipv6 { IpAddr::from([0_u8; 16]) } else { IpAddr::from([0_u8; 4]) });
    let to = IpNet::new(to, header.destination_prefix_length).ok()?;
    (is_unreachable || !hops.is_empty()).then_some(Route { to, hops, metric, source })
}

fn table_of(message: &RouteMessage) -> u32 {
    let given = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    given.unwrap_or_else(|| message.header.table.into())
}

fn next_hop(found: &RouteNextHop) -> Option<Hop> {
    if found.flags.contains(RouteNextHopFlags::Dead) {
        return None;
    }
    let on_link = found.flags.contains(RouteNextHopFlags::Onlink);
    hop(&found.attributes, Some(found.interface_index), on_link, found.hops)
}

fn hop(
    attributes: &[RouteAttribute],
    mut interface: Option<u32>,
    on_link: bool,
    weight: u8,
) -> Option<Hop> {
    let mut gateway = None;
    for attribute in attributes {
        match attribute {
            RouteAttribute::Gateway(address) => gateway = ip_of(address),
            RouteAttribute::Via(RouteVia::Inet6(ip)) => gateway = Some(IpAddr::V6(*ip)),
            RouteAttribute::Oif(index) => interface = Some(*index),
            _ => {}
        }
    }
    Some(Hop { gateway, interface: interface?, on_link, weight })
}

const fn ip_of(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some(IpAddr::V4(*ip)),
        RouteAddress::Inet6(ip) => Some(IpAddr::V6(*ip)),
        _ => None,
    }
}

fn message_of(table: u32, route: &Route) -> RouteMessage {
    let mut message = RouteMessage::default();
    let header = &mut message.header;
    header.address_family = family(route.to.addr());
    header.destination_prefix_length = route.to.prefix_len();
    // A number that does not fit in the header is in the attribute only.
    header.table = u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
    header.protocol = RouteProtocol::Static;
    header.kind = if route.hops.is_empty() { RouteType::Unreachable } else { RouteType::Unicast };
    let has_router = route.hops.iter().any(|hop| hop.gateway.is_some());
    let ipv4_on_link = !route.hops.is_empty() && !has_router && route.to.addr().is_ipv4();
    header.scope = if ipv4_on_link { RouteScope::Link } else { RouteScope::Universe };
    let attributes = &mut message.attributes;
    attributes.push(RouteAttribute::Table(table));
    if route.to.prefix_len() > 0 {
        attributes.push(RouteAttribute::Destination(route.to.network().into()));
    }
    attributes.extend(route.metric.map(RouteAttribute::Priority));
    attributes.extend(route.source.map(|source| RouteAttribute::PrefSource(source.into())));
    let ipv6 = route.to.addr().is_ipv6();
    match &route.hops[..] {
        [] => {}
        [hop] => {
            if hop.on_link {
                header.flags |= RouteFlags::Onlink;
            }
            attributes.extend(hop.gateway.map(|gateway| by(gateway, ipv6)));
            attributes.push(RouteAttribute::Oif(hop.interface));
        }
        several => {
            let next_hops = several.iter().map(|hop| next_hop_of(hop, ipv6)).collect();
            attributes.push(RouteAttribute::MultiPath(next_hops));
        }
    }
    message
}

fn next_hop_of(hop: &Hop, ipv6: bool) -> RouteNextHop {
    let mut message = RouteNextHop::default();
    message.interface_index = hop.interface;
    message.hops = hop.weight;
    if hop.on_link {
        message.flags |= RouteNextHopFlags::Onlink;
    }
    message.attributes.extend(hop.gateway.map(|gateway| by(gateway, ipv6)));
    message
}

/// The attribute of a router, for a destination of IPv6 or of IPv4.
fn by(gateway: IpAddr, ipv6: bool) -> RouteAttribute {
    match gateway {
        IpAddr::V6(ip) if !ipv6 => RouteAttribute::Via(RouteVia::Inet6(ip)),
        other => RouteAttribute::Gateway(other.into()),
    }
}

const fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet }
}
