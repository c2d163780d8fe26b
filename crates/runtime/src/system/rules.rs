//! Rules of policy routing: which routing table a packet uses.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use serde::{Deserialize, Serialize};

use super::netlink::{change, dump};

/// A rule. Packets that match all of its conditions use the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RoutingRule {
    /// Whether it is for IPv6.
    pub ipv6: bool,
    /// Rules with lower numbers come first.
    pub priority: u32,
    /// Number of the routing table.
    pub table: u32,
    /// The packet's destination is in this network.
    pub to: Option<IpNet>,
    /// The packet was received on this interface.
    pub from_interface: Option<String>,
    /// The packet's IANA protocol number.
    pub protocol: Option<u8>,
    /// Its source port.
    pub source_port: Option<u16>,
    /// Its destination port.
    pub destination_port: Option<u16>,
    /// The socket that sends the packet has this mark.
    pub mark: Option<u32>,
}

/// Adds a rule. Returns false if the same rule already exists.
///
/// # Errors
/// The error of the system.
pub fn add(rule: &RoutingRule) -> io::Result<bool> {
    let request = RouteNetlinkMessage::NewRule(message_of(rule));
    match change(NETLINK_ROUTE, request, NLM_F_CREATE | NLM_F_EXCL) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a rule.
///
/// # Errors
/// The error of the system.
pub fn remove(rule: &RoutingRule) -> io::Result<()> {
    change(NETLINK_ROUTE, RouteNetlinkMessage::DelRule(message_of(rule)), 0)
}

/// The rules of both address families. Conditions that a [`RoutingRule`] cannot express are omitted.
///
/// # Errors
/// The error of the system.
pub fn list() -> io::Result<Vec<RoutingRule>> {
    let mut all = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut message = RuleMessage::default();
        message.header.family = family;
        let found = dump(NETLINK_ROUTE, RouteNetlinkMessage::GetRule(message))?;
        all.extend(found.into_iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewRule(message) => Some(rule_of(&message)),
            _ => None,
        }));
    }
    Ok(all)
}

fn message_of(rule: &RoutingRule) -> RuleMessage {
    let mut message = RuleMessage::default();
    let family = if rule.ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    (message.header.family, message.header.action) = (family, RuleAction::ToTable);
    let attributes = &mut message.attributes;
    attributes.push(RuleAttribute::Priority(rule.priority));
    attributes.push(RuleAttribute::Table(rule.table));
    if let Some(to) = &rule.to {
        message.header.dst_len = to.prefix_len();
        attributes.push(RuleAttribute::Destination(to.network()));
    }
    attributes.extend(rule.from_interface.clone().map(RuleAttribute::Iifname));
    attributes.extend(
        rule.protocol.map(|number| RuleAttribute::IpProtocol(IpProtocol::from(i32::from(number)))),
    );
    let only = |port| RulePortRange { start: port, end: port };
    let (source, destination) = (rule.source_port.map(only), rule.destination_port.map(only));
    attributes.extend(source.map(RuleAttribute::SourcePortRange));
    attributes.extend(destination.map(RuleAttribute::DestinationPortRange));
    attributes.extend(rule.mark.map(RuleAttribute::FwMark));
    message
}

fn rule_of(message: &RuleMessage) -> RoutingRule {
    let header = &message.header;
    let ipv6 = header.family == AddressFamily::Inet6;
    let mut rule = RoutingRule { ipv6, table: header.table.into(), ..RoutingRule::default() };
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Priority(priority) => rule.priority = *priority,
            RuleAttribute::Table(table) => rule.table = *table,
            RuleAttribute::Destination(to) => rule.to = network(*to, header.dst_len),
            RuleAttribute::Iifname(name) => rule.from_interface = Some(name.clone()),
            RuleAttribute::IpProtocol(protocol) => {
                rule.protocol = u8::try_from(i32::from(*protocol)).ok();
            }
            RuleAttribute::SourcePortRange(range) => rule.source_port = Some(range.start),
            RuleAttribute::DestinationPortRange(range) => rule.destination_port = Some(range.start),
            RuleAttribute::FwMark(mark) => rule.mark = Some(*mark),
            _ => {}
        }
    }
    rule
}

fn network(address: IpAddr, prefix: u8) -> Option<IpNet> {
    IpNet::new(address, prefix).ok()
}
