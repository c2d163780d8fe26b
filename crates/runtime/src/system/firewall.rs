//! Packet filter and address translation by nftables, with one table per purpose.
//!
//! A table belongs to one tunnel: removing the table undoes everything, and no other rules are changed.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{DefaultNla, NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE};
use netlink_packet_netfilter::nftables::{
    Bitwise, ChainAttribute, ChainMessage, Cmp, DataAttribute, ExpressionAttribute, Expressions,
    Hook as HookAttribute, Immediate, InetHookNumber, ListAttribute, Meta, MetaKey,
    NfTablesMessage, Operator, Payload, Register, RuleAttribute, RuleMessage, TableAttribute,
    TableFlags, TableMessage, Verdict, VerdictAttribute,
};
use netlink_packet_netfilter::none::ControlMessage;
use netlink_packet_netfilter::{
    NetfilterHeader, NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily,
};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_NETFILTER;

use super::netlink::{Request, connect, dump, send, send_by};

/// `NFNL_SUBSYS_NFTABLES` of linux/netfilter/nfnetlink.h: the subsystem of a batch.
const NFTABLES: u16 = 10;
/// Length of an interface's name in a comparison, bytes (IFNAMSIZ).
const NAME_LENGTH: usize = 16;
/// Protocol numbers of IP (IANA).
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
/// Types of neighbour discovery: router solicitation to neighbour advertisement (RFC 4861, 4).
const DISCOVERY_TYPES: std::ops::RangeInclusive<u8> = 133..=136;
/// `NF_DROP` and `NF_ACCEPT` of linux/netfilter.h.
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;
/// `NFT_REG_1`, and the attributes and the key of the expression `ct` (linux/netfilter/nf_tables.h).
const REGISTER_1: u32 = 1;
const CT_REGISTER: u16 = 1;
const CT_KEY: u16 = 2;
const CT_STATE: u32 = 0;
/// Bits of a connection's state: established and related (linux/netfilter/nf_conntrack_common.h).
const ESTABLISHED: u32 = 1 << 1 | 1 << 2;
/// `nft_payload_bases` of linux/netfilter/nf_tables.h.
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;

/// A table of the family `inet`, which covers IPv4 and IPv6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its chains.
    pub chains: Vec<Chain>,
}

/// A chain and its hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The place.
    pub hook: Hook,
    /// Whether packets that match no rule are dropped. If not, they are accepted.
    pub drops: bool,
    /// Its rules, in order.
    pub rules: Vec<Rule>,
}

/// Where packets pass a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Incoming packets, before connection tracking.
    RawInput,
    /// Packets that this machine sends, before connection tracking.
    RawOutput,
    /// Filter of packets to this machine.
    Input,
    /// Filter of packets that this machine sends.
    Output,
    /// Filter of packets that this machine forwards.
    Forward,
    /// Address translation of outgoing packets.
    SourceNat,
}

/// A rule: what happens to packets that match all of its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The conditions.
    pub matches: Vec<Match>,
    /// The action.
    pub action: Action,
}

/// A condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// The packet arrived on this interface.
    From(String),
    /// The packet leaves on this interface.
    By(String),
    /// The packet leaves on another interface.
    NotBy(String),
    /// The packet leaves on an interface whose name does not start with this prefix.
    NotByPrefix(String),
    /// The packet arrived on another interface.
    NotFrom(String),
    /// The packet arrived on an interface whose name does not start with this prefix.
    NotFromPrefix(String),
    /// The packet is IPv6.
    Ipv6,
    /// The sending socket has this mark.
    Mark(u32),
    /// The packet belongs to a connection with packets in both directions, or is an error message about one.
    Established,
    /// The packet's source is in this network.
    Source(IpNet),
    /// The packet's destination is in this network.
    Destination(IpNet),
    /// The packet is UDP from this port.
    UdpSource(u16),
    /// The packet is UDP to this port.
    UdpDestination(u16),
    /// The packet is TCP to this port.
    TcpDestination(u16),
    /// The packet is IPv6 neighbour discovery.
    NeighbourDiscovery,
}

/// The action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Accepts the packet.
    Accept,
    /// Drops the packet.
    Drop,
    /// Drops the packet and notifies its sender that it is prohibited.
    Reject,
    /// Replaces the source address with that of the outgoing interface.
    Masquerade,
    /// Does not track the connection, so that its addresses are not translated.
    NoTrack,
}

/// Installs a table. One of the same name is replaced. Either all of it is installed, or nothing.
///
/// # Errors
/// The error of the system.
pub fn install(table: &Table) -> io::Result<()> {
    send(NETLINK_NETFILTER, batch_of(requests_for(table, None)))
}

/// Owner of a table. While this value exists, no other program can change or remove the table. The table remains
/// afterwards.
#[derive(Debug)]
pub struct Owner {
    socket: Socket,
}

impl Owner {
    /// An owner of no table yet.
    ///
    /// # Errors
    /// The error of the system.
    pub fn new() -> io::Result<Self> {
        Ok(Self { socket: connect(NETLINK_NETFILTER)? })
    }

    /// Installs a table as [`install`] does, and owns it; on Linux before 6.9 without ownership.
    ///
    /// # Errors
    /// The error of the system.
    pub fn install(&mut self, table: &Table) -> io::Result<()> {
        let flags = Some(TableFlags::Owner | TableFlags::Persisent);
        // The first request creates a table, or takes over one that has lost its owner. It fails for a table that
        // this value owns, and for one that never had an owner: in that case there is a table to delete.
        for skipped in [0, 1] {
            let requests = requests_for(table, flags).into_iter().skip(skipped).collect();
            if send_by(&self.socket, batch_of(requests)).is_ok() {
                return Ok(());
            }
            self.socket = connect(NETLINK_NETFILTER)?;
        }
        install(table)
    }
}

/// The requests that install a table. The first one only ensures that the second one succeeds.
fn requests_for(table: &Table, flags: Option<TableFlags>) -> Vec<Request<NetfilterMessage>> {
    let new = || {
        let mut message = named(&table.name);
        message.attributes.extend(flags.map(TableAttribute::Flags));
        request(NfTablesMessage::NewTable(message), NLM_F_CREATE)
    };
    let delete = request(NfTablesMessage::DeleteTable(named(&table.name)), 0);
    let mut all = vec![new(), delete, new()];
    for chain in &table.chains {
        all.push(request(NfTablesMessage::NewChain(chain_of(table, chain)), NLM_F_CREATE));
        for rule in &chain.rules {
            let message = NfTablesMessage::NewRule(RuleMessage {
                attributes: vec![
                    RuleAttribute::Table(table.name.clone()),
                    RuleAttribute::Chain(chain.hook.name().to_owned()),
                    RuleAttribute::Expressions(rule.expressions()),
                ],
            });
            all.push(request(message, NLM_F_CREATE | NLM_F_APPEND));
        }
    }
    all
}

/// Whether a table exists with all rules that [`install`] has written. The contents of the rules are not compared.
///
/// # Errors
/// The error of the system.
pub fn is_installed(table: &Table) -> io::Result<bool> {
    let of_table = RuleMessage { attributes: vec![RuleAttribute::Table(table.name.clone())] };
    let header = NetfilterHeader::new(NetfilterProtoFamily::Inet, 0, 0);
    let message = NetfilterMessage::new(header, NfTablesMessage::GetRule(of_table));
    let mut found: Vec<String> = Vec::new();
    let replies = match dump(NETLINK_NETFILTER, message) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    for reply in replies {
        if let NetfilterMessageInner::NfTables(NfTablesMessage::NewRule(rule)) = reply.inner {
            let of = |wanted: &str, name: &String| wanted == name.as_str();
            let is_own = rule.attributes.iter().any(|attribute| {
                matches!(attribute, RuleAttribute::Table(name) if of(&table.name, name))
            });
            found.extend(rule.attributes.into_iter().filter_map(|attribute| match attribute {
                RuleAttribute::Chain(name) if is_own => Some(name),
                _ => None,
            }));
        }
    }
    let is_complete = |chain: &Chain| {
        let name = chain.hook.name();
        found.iter().filter(|one| *one == name).count() == chain.rules.len()
    };
    Ok(!found.is_empty() && table.chains.iter().all(is_complete))
}

/// Removes a table. Does nothing if there is none.
///
/// # Errors
/// The error of the system.
pub fn remove(name: &str) -> io::Result<()> {
    let delete = request(NfTablesMessage::DeleteTable(named(name)), 0);
    match send(NETLINK_NETFILTER, batch_of(vec![delete])) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Requests that succeed or fail together.
fn batch_of(requests: Vec<Request<NetfilterMessage>>) -> Vec<Request<NetfilterMessage>> {
    let control = |message| {
        let header = NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, NFTABLES);
        Request { message: NetfilterMessage::new(header, message), flags: 0 }
    };
    let mut batch = vec![control(ControlMessage::BatchBegin)];
    batch.extend(requests);
    batch.push(control(ControlMessage::BatchEnd));
    batch
}

fn request(message: NfTablesMessage, flags: u16) -> Request<NetfilterMessage> {
    let header = NetfilterHeader::new(NetfilterProtoFamily::Inet, 0, 0);
    Request { message: NetfilterMessage::new(header, message), flags: flags | NLM_F_ACK }
}

fn named(name: &str) -> TableMessage {
    TableMessage { attributes: vec![TableAttribute::Name(name.to_owned())] }
}

fn chain_of(table: &Table, chain: &Chain) -> ChainMessage {
    let (place, kind, priority) = match chain.hook {
        // NF_IP_PRI_RAW
        Hook::RawInput => (InetHookNumber::PreRouting, "filter", -300),
        Hook::RawOutput => (InetHookNumber::LocalOut, "filter", -300),
        Hook::Input => (InetHookNumber::LocalIn, "filter", 0),
        Hook::Output => (InetHookNumber::LocalOut, "filter", 0),
        Hook::Forward => (InetHookNumber::Forward, "filter", 0),
        // NF_IP_PRI_NAT_SRC
        Hook::SourceNat => (InetHookNumber::PostRouting, "nat", 100),
    };
    let hook = vec![
        HookAttribute::Number(place.into()),
        HookAttribute::Priority(i32::cast_unsigned(priority)),
    ];
    ChainMessage {
        attributes: vec![
            ChainAttribute::Table(table.name.clone()),
            ChainAttribute::Name(chain.hook.name().to_owned()),
            ChainAttribute::Hook(hook),
            ChainAttribute::Policy(if chain.drops { NF_DROP } else { NF_ACCEPT }),
            ChainAttribute::Type(kind.to_owned()),
        ],
    }
}

impl Hook {
    const fn name(self) -> &'static str {
        match self {
            Self::RawInput => "raw-input",
            Self::RawOutput => "raw-output",
            Self::Input => "input",
            Self::Output => "output",
            Self::Forward => "forward",
            Self::SourceNat => "source-nat",
        }
    }
}

impl Rule {
    /// A rule that applies `action` to packets that match all of `matches`.
    pub fn new(matches: impl Into<Vec<Match>>, action: Action) -> Self {
        Self { matches: matches.into(), action }
    }

    fn expressions(&self) -> Vec<ListAttribute<ExpressionAttribute>> {
        let mut all = Vec::new();
        self.matches.iter().for_each(|one| one.append(&mut all));
        all.push(match self.action {
            Action::Accept => verdict(NF_ACCEPT),
            Action::Drop => verdict(NF_DROP),
            Action::Reject => reject(),
            Action::Masquerade => other("masq", Vec::new()),
            Action::NoTrack => other("notrack", Vec::new()),
        });
        all.into_iter().map(Into::into).collect()
    }
}

impl Match {
    fn append(&self, all: &mut Vec<Expressions>) {
        match self {
            Self::From(name) => meta(all, MetaKey::Iifname, Operator::Equal, padded(name)),
            Self::By(name) => meta(all, MetaKey::Oifname, Operator::Equal, padded(name)),
            Self::NotBy(name) => meta(all, MetaKey::Oifname, Operator::NotEqual, padded(name)),
            // A comparison covers the length of the value.
            Self::NotByPrefix(prefix) => {
                meta(all, MetaKey::Oifname, Operator::NotEqual, prefix.as_bytes().to_vec());
            }
            Self::NotFromPrefix(prefix) => {
                meta(all, MetaKey::Iifname, Operator::NotEqual, prefix.as_bytes().to_vec());
            }
            Self::NotFrom(name) => meta(all, MetaKey::Iifname, Operator::NotEqual, padded(name)),
            Self::Ipv6 => {
                let ipv6 = vec![NetfilterProtoFamily::IPv6.into()];
                meta(all, MetaKey::Nfproto, Operator::Equal, ipv6);
            }
            Self::Mark(mark) => {
                meta(all, MetaKey::Mark, Operator::Equal, mark.to_ne_bytes().to_vec());
            }
            Self::Established => established(all),
            Self::Source(network) => address(all, network, [12, 8]),
            Self::Destination(network) => address(all, network, [16, 24]),
            Self::UdpSource(port) => port_of(all, UDP, 0, *port),
            Self::UdpDestination(port) => port_of(all, UDP, 2, *port),
            Self::TcpDestination(port) => port_of(all, TCP, 2, *port),
            Self::NeighbourDiscovery => {
                meta(all, MetaKey::L4Proto, Operator::Equal, vec![ICMPV6]);
                all.push(load(TRANSPORT_HEADER, 0, 1));
                all.push(compare(Operator::GreatherThanEqual, vec![*DISCOVERY_TYPES.start()]));
                all.push(compare(Operator::LessThanEqual, vec![*DISCOVERY_TYPES.end()]));
            }
        }
    }
}

/// Compares an address with a network. `offsets` are the positions of the address in the headers of IPv4
/// and IPv6.
fn address(all: &mut Vec<Expressions>, network: &IpNet, offsets: [u32; 2]) {
    let (family, offset, octets, mask) = match (network.network(), network.netmask()) {
        (IpAddr::V4(ip), IpAddr::V4(mask)) => {
            (NetfilterProtoFamily::IPv4, offsets[0], ip.octets().to_vec(), mask.octets().to_vec())
        }
        (ip, mask) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets().to_vec(),
                IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            (NetfilterProtoFamily::IPv6, offsets[1], octets(ip), octets(mask))
        }
    };
    meta(all, MetaKey::Nfproto, Operator::Equal, vec![family.into()]);
    let length = octets.len() as u32;
    all.push(load(NETWORK_HEADER, offset, length));
    all.push(Expressions::Bitwise(vec![
        Bitwise::SourceRegister(Register::Reg1),
        Bitwise::DestinationRegister(Register::Reg1),
        Bitwise::Length(length),
        Bitwise::Mask(DataAttribute::Value(mask)),
        Bitwise::Xor(DataAttribute::Value(vec![0; length as usize])),
    ]));
    all.push(compare(Operator::Equal, octets));
}

fn established(all: &mut Vec<Expressions>) {
    let register = DefaultNla::new(CT_REGISTER, REGISTER_1.to_be_bytes().to_vec());
    let key = DefaultNla::new(CT_KEY, CT_STATE.to_be_bytes().to_vec());
    all.push(other("ct", vec![register, key]));
    all.push(Expressions::Bitwise(vec![
        Bitwise::SourceRegister(Register::Reg1),
        Bitwise::DestinationRegister(Register::Reg1),
        Bitwise::Length(size_of::<u32>() as u32),
        Bitwise::Mask(DataAttribute::Value(ESTABLISHED.to_ne_bytes().to_vec())),
        Bitwise::Xor(DataAttribute::Value(vec![0; size_of::<u32>()])),
    ]));
    all.push(compare(Operator::NotEqual, vec![0; size_of::<u32>()]));
}

/// Compares a port, which is at `offset` in the header of the protocol.
fn port_of(all: &mut Vec<Expressions>, protocol: u8, offset: u32, port: u16) {
    meta(all, MetaKey::L4Proto, Operator::Equal, vec![protocol]);
    all.push(load(TRANSPORT_HEADER, offset, 2));
    all.push(compare(Operator::Equal, port.to_be_bytes().to_vec()));
}

fn meta(all: &mut Vec<Expressions>, key: MetaKey, operator: Operator, value: Vec<u8>) {
    all.push(Expressions::Meta(vec![Meta::DestinationRegister(Register::Reg1), Meta::Key(key)]));
    all.push(compare(operator, value));
}

fn load(base: u32, offset: u32, length: u32) -> Expressions {
    Expressions::Payload(vec![
        Payload::DestinationRegister(Register::Reg1),
        Payload::Base(base),
        Payload::Offset(offset),
        Payload::Len(length),
    ])
}

fn compare(operator: Operator, value: Vec<u8>) -> Expressions {
    Expressions::Cmp(vec![
        Cmp::SourceRegister(Register::Reg1),
        Cmp::Op(operator),
        Cmp::Data(DataAttribute::Value(value)),
    ])
}

fn verdict(code: u32) -> Expressions {
    let code = VerdictAttribute::Code(Verdict::Other(code));
    Expressions::Immediate(vec![
        Immediate::DestinationRegister(Register::Verdict),
        Immediate::Data(DataAttribute::Verdict(vec![code])),
    ])
}

/// Answers with ICMP or ICMPv6 "administratively prohibited".
fn reject() -> Expressions {
    // NFTA_REJECT_TYPE: NFT_REJECT_ICMPX_UNREACH; NFTA_REJECT_ICMP_CODE: NFT_REJECT_ICMPX_ADMIN_PROHIBITED.
    let kind = DefaultNla::new(1, 2_u32.to_be_bytes().to_vec());
    other("reject", vec![kind, DefaultNla::new(2, vec![3])])
}

fn other(name: &str, attributes: Vec<DefaultNla>) -> Expressions {
    Expressions::Other { expression_type: name.to_owned(), attributes }
}

/// An interface name in the form that the kernel compares.
fn padded(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.truncate(NAME_LENGTH - 1);
    bytes.resize(NAME_LENGTH, 0);
    bytes
}
