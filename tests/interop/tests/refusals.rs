//! Forgeable ICMP messages that claim that a host or port does not receive the packets of this end.

use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use ropewalk_engine::sctp::wire::{Checksum, Ports, encode};
use ropewalk_engine::sctp::{Chunk, Init, Packet};
use ropewalk_interop::crafted::Crafted;
use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::{Missing, or_skip};
use ropewalk_runtime::endpoint::{
    Association, Carrier, CloseReason, ConnectError, Endpoint, Options, RawError, SctpPorts, Target,
};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::time::timeout;

/// Longer than any step of these tests takes.
const LIMIT: Duration = Duration::from_secs(20);

/// A sender of forged ICMP messages.
struct Forger {
    socket: Socket,
    from: SocketAddrV4,
    to: SocketAddrV4,
}

impl Forger {
    /// Quotes UDP datagrams from one address to the other.
    fn new(from: SocketAddr, to: SocketAddr) -> Self {
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, to) else { panic!("IPv4 only") };
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4));
        Self { socket: socket.expect("a raw socket"), from, to }
    }

    /// Sends "destination unreachable" with this code, quoting a datagram that begins with
    /// `quoted`.
    fn unreachable(&self, code: u8, quoted: &[u8]) {
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
        ip.extend(self.from.ip().octets());
        ip.extend(self.to.ip().octets());
        let total = (ip.len() + 8 + quoted.len()) as u16;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        let mut message = vec![3, code, 0, 0, 0, 0, 0, 0];
        message.extend(ip);
        message.extend(self.from.port().to_be_bytes());
        message.extend(self.to.port().to_be_bytes());
        message.extend((8 + quoted.len() as u16).to_be_bytes());
        message.extend([0, 0]);
        message.extend(quoted);
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        self.socket.send_to(&message, &SocketAddr::V4(self.from).into()).expect("sent");
    }
}

/// Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// A host on which ICMP can be forged.
fn host() -> Result<Hosts, Missing> {
    let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4));
    raw.map_err(|error| Missing(format!("raw sockets (run it as root): {error}")))?;
    Hosts::new(0)
}

/// An association that is being set up with a hand-written end, and the INIT that it has sent.
struct SettingUp {
    endpoint: Endpoint,
    association: Association,
    peer: Crafted,
    ports: Ports,
    init: Init,
}

impl SettingUp {
    async fn new() -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let endpoint = Endpoint::open(Options::connecting(&[loopback])).expect("a free port");
        let ports = Ports { source: 5000, destination: 6000 };
        let own = endpoint.locals()[0];
        let peer = Crafted::at(&[loopback], own, Ports { source: 6000, destination: 5000 }).await;
        let target = Target { addresses: vec![peer.address(0)], key: None };
        let between = SctpPorts { local: Some(5000), remote: 6000 };
        let association = endpoint.start_connect(&target, between).expect("a way");
        let came = peer.wait_for(|chunk| matches!(chunk, Chunk::Init(_))).await;
        let Chunk::Init(init) = came.packet.chunks[0].clone() else { unreachable!() };
        Self { endpoint, association, peer, ports, init: *init }
    }

    fn forger(&self) -> Forger {
        Forger::new(self.endpoint.locals()[0], self.peer.address(0))
    }

    fn quote(&self, ports: Ports, tag: u32) -> Vec<u8> {
        let init = Init { tag, ..self.init.clone() };
        let packet = Packet::of(0, Chunk::Init(Box::new(init)));
        let mut bytes = Vec::new();
        encode(&packet, ports, Checksum::Crc32c, &mut bytes);
        bytes
    }

    /// Sends messages with the right UDP ports and addresses that must have no effect.
    fn forge(&self) {
        let forger = self.forger();
        let right = self.quote(self.ports, self.init.tag);
        for n in 0..50_u32 {
            forger.unreachable(3, &self.quote(self.ports, self.init.tag ^ 1 << (n % 32)));
        }
        let other = Ports { source: 5001, ..self.ports };
        forger.unreachable(3, &self.quote(other, self.init.tag));
        forger.unreachable(3, &self.quote(self.ports.swapped(), self.init.tag));
        // Truncated before the end of the tag.
        (0..20).for_each(|length| forger.unreachable(3, &right[..length]));
        // Network unreachable, host unreachable, fragmentation needed, prohibited.
        [0, 1, 4, 13].iter().for_each(|code| forger.unreachable(*code, &right));
    }

    /// The peer answers, and the association is established.
    async fn finish(&mut self) {
        self.peer.accept(0, 4711, self.init.tag).await;
        let up = timeout(LIMIT, self.association.established()).await.expect("an answer");
        assert_eq!(up, Ok(()));
    }
}

#[test]
fn a_message_with_the_initiate_tag_ends_an_attempt_and_forged_ones_do_not() {
    let host = or_skip!(host());
    host.live(async || {
        let mut one = SettingUp::new().await;
        one.forge();
        one.finish().await;
        // An established association ignores all of them.
        one.forge();
        let right = one.quote(one.ports, one.init.tag);
        one.forger().unreachable(3, &right);
        one.forger().unreachable(2, &right);
        one.association.send(0, 7, vec![1; 100].into()).await.expect("it is up");
        one.peer.wait_for(|chunk| matches!(chunk, Chunk::Data(_))).await;
        assert_eq!(one.association.close_reason(), None);

        for code in [2, 3] {
            let other = SettingUp::new().await;
            let right = other.quote(other.ports, other.init.tag);
            // More messages than the endpoint processes in one turn precede it.
            other.forge();
            other.forger().unreachable(code, &right[..20]);
            let ended = timeout(LIMIT, other.association.established()).await.expect("an answer");
            assert_eq!(ended, Err(CloseReason::Refused), "code {code}");
        }
    });
}

/// The kernel of a host without SCTP refuses the packets.
#[test]
fn a_host_without_sctp_refuses_over_ip_alone() {
    or_skip!(RawError::check().map_err(|error| Missing(error.to_string())));
    let hosts = or_skip!(Hosts::new(1));
    let families = [
        (hosts.addresses(Side::Ours), hosts.addresses(Side::Theirs)),
        (hosts.addresses_v6(Side::Ours), hosts.addresses_v6(Side::Theirs)),
    ];
    for (ours, theirs) in families {
        hosts.live(async || {
            let at =
                |ips: &[IpAddr]| ips.iter().map(|ip| SocketAddr::new(*ip, 0)).collect::<Vec<_>>();
            let options = Options::connecting(&at(&ours)).over(Carrier::Ip);
            let endpoint = Endpoint::open(options).expect("an endpoint");
            let target = Target { addresses: at(&theirs), key: None };
            let refused = timeout(LIMIT, endpoint.connect(&target)).await.expect("an answer");
            let refused = refused.map(|_| ());
            assert_eq!(refused, Err(ConnectError::Ended(CloseReason::Refused)), "{theirs:?}");
        });
    }
}
