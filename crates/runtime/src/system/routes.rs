//! Links, addresses and routes of the machine.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;

use super::netlink::{change, dump};

/// A route of the main table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination network.
    pub to: IpNet,
    /// Router on the link; none: the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// Index of the interface.
    pub interface: u32,
    /// The route with the lowest metric is used; none: that of the system.
    pub metric: Option<u32>,
}

/// The name of each interface, by its index.
///
/// # Errors
/// As the system says.
pub fn interface_names() -> io::Result<Vec<(u32, String)>> {
    let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let links = dump(NETLINK_ROUTE, request)?.into_iter().filter_map(|message| match message {
        RouteNetlinkMessage::NewLink(link) => {
            let name = link.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::IfName(name) => Some(name),
                _ => None,
            });
            Some((link.header.index, name?))
        }
        _ => None,
    });
    Ok(links.collect())
}

/// The index of the interface of this name.
///
/// # Errors
/// If there is none.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let found = interface_names()?.into_iter().find(|(_, other)| other == name);
    found.map(|(index, _)| index).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Sets the MTU of an interface, bytes, and starts it.
///
/// # Errors
/// As the system says.
pub fn start_interface(index: u32, mtu: u32) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    link.attributes.push(LinkAttribute::Mtu(mtu));
    change(NETLINK_ROUTE, RouteNetlinkMessage::SetLink(link), 0)
}

/// Gives an interface an address in a network.
///
/// # Errors
/// As the system says; not if the interface has the address.
pub fn add_address(index: u32, address: IpNet) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    message.header.index = index;
    // The other end of a tunnel assigns each address once: duplicate address detection only delays.
    message.header.flags = AddressHeaderFlags::Nodad;
    message.attributes.push(AddressAttribute::Local(address.addr()));
    message.attributes.push(AddressAttribute::Address(address.addr()));
    let request = RouteNetlinkMessage::NewAddress(message);
    change(NETLINK_ROUTE, request, NLM_F_CREATE | NLM_F_REPLACE)
}

/// Removes an address from an interface.
///
/// # Errors
/// As the system says.
pub fn remove_address(index: u32, address: IpNet) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    message.header.index = index;
    message.attributes.push(AddressAttribute::Local(address.addr()));
    change(NETLINK_ROUTE, RouteNetlinkMessage::DelAddress(message), 0)
}

/// Adds a route. Returns whether it was added: false if the same one exists.
///
/// # Errors
/// As the system says.
pub fn add_route(route: &Route) -> io::Result<bool> {
    let request = RouteNetlinkMessage::NewRoute(message_of(route));
    match change(NETLINK_ROUTE, request, NLM_F_CREATE | NLM_F_EXCL) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a route.
///
/// # Errors
/// As the system says.
pub fn remove_route(route: &Route) -> io::Result<()> {
    change(NETLINK_ROUTE, RouteNetlinkMessage::DelRoute(message_of(route)), 0)
}

/// The unicast routes of the main table, of one family of addresses. Routes with several next hops are not listed.
///
/// # Errors
/// As the system says.
pub fn main_routes(ipv6: bool) -> io::Result<Vec<Route>> {
    let mut message = RouteMessage::default();
    message.header.address_family = if ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let found = dump(NETLINK_ROUTE, RouteNetlinkMessage::GetRoute(message))?;
    Ok(found.into_iter().filter_map(route).filter(|it| it.to.addr().is_ipv6() == ipv6).collect())
}

fn route(message: RouteNetlinkMessage) -> Option<Route> {
    let RouteNetlinkMessage::NewRoute(message) = message else { return None };
    let header = &message.header;
    let usable = header.table == RouteHeader::RT_TABLE_MAIN && header.kind == RouteType::Unicast;
    if !usable {
        return None;
    }
    let ipv6 = header.address_family == AddressFamily::Inet6;
    let prefix = header.destination_prefix_length;
    let anywhere = if ipv6 { IpAddr::from([0_u8; 16]) } else { IpAddr::from([0_u8; 4]) };
    let (mut to, mut gateway, mut interface, mut metric) = (anywhere, None, None, None);
    for attribute in message.attributes {
        match attribute {
            RouteAttribute::Gateway(RouteAddress::Inet(ip)) => gateway = Some(IpAddr::V4(ip)),
            RouteAttribute::Gateway(RouteAddress::Inet6(ip)) => gateway = Some(IpAddr::V6(ip)),
            RouteAttribute::Destination(RouteAddress::Inet(ip)) => to = IpAddr::V4(ip),
            RouteAttribute::Destination(RouteAddress::Inet6(ip)) => to = IpAddr::V6(ip),
            RouteAttribute::Oif(index) => interface = Some(index),
            RouteAttribute::Priority(value) => metric = Some(value),
            _ => {}
        }
    }
    Some(Route { to: IpNet::new(to, prefix).ok()?, gateway, interface: interface?, metric })
}

fn message_of(route: &Route) -> RouteMessage {
    let mut message = RouteMessage::default();
    let header = &mut message.header;
    header.address_family = family(route.to.addr());
    header.destination_prefix_length = route.to.prefix_len();
    header.table = RouteHeader::RT_TABLE_MAIN;
    header.protocol = RouteProtocol::Static;
    header.kind = RouteType::Unicast;
    let ipv4_on_link = route.gateway.is_none() && route.to.addr().is_ipv4();
    header.scope = if ipv4_on_link { RouteScope::Link } else { RouteScope::Universe };
    let attributes = &mut message.attributes;
    if route.to.prefix_len() > 0 {
        attributes.push(RouteAttribute::Destination(route.to.network().into()));
    }
    attributes.extend(route.gateway.map(|gateway| RouteAttribute::Gateway(gateway.into())));
    attributes.push(RouteAttribute::Oif(route.interface));
    attributes.extend(route.metric.map(RouteAttribute::Priority));
    message
}

const fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet }
}
