//! A hand-written end of an association: it sends the packets that a test makes, from any of its addresses, and
//! enforces no rules.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_base::{Serial16, Serial32, StreamId, Time};
use ropewalk_engine::sctp::wire::{Checksum, Ports, decode, encode};
use ropewalk_engine::sctp::{Chunk, Data, DataFlags, Init, Packet};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout_at};

/// Long enough for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for packets that must not arrive.
pub const SILENCE: Duration = Duration::from_millis(400);

/// A received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// Index of our address that received it.
    pub to: usize,
    /// Its source.
    pub from: SocketAddr,
    /// Its SCTP ports.
    pub ports: Ports,
    /// The packet.
    pub packet: Packet,
}

/// The end: its sockets, its ports, and the tags of the newest handshake.
#[derive(Debug)]
pub struct Crafted {
    sockets: Vec<UdpSocket>,
    /// Destination of packets.
    pub peer: SocketAddr,
    /// SCTP ports of packets to the peer.
    pub ports: Ports,
    /// Tag of packets to us.
    pub own_tag: u32,
    /// Tag of packets to the peer.
    pub peer_tag: u32,
    /// TSN of our next DATA.
    pub next_tsn: u32,
}

impl Crafted {
    /// Creates an end at these addresses.
    ///
    /// # Panics
    /// If one cannot be bound.
    pub async fn at(addresses: &[SocketAddr], peer: SocketAddr, ports: Ports) -> Self {
        let mut sockets = Vec::new();
        for address in addresses {
            sockets.push(UdpSocket::bind(address).await.expect("an address of this machine"));
        }
        Self { sockets, peer, ports, own_tag: 0, peer_tag: 0, next_tsn: 1000 }
    }

    /// The address to which a socket is bound.
    ///
    /// # Panics
    /// If there is no such socket.
    pub fn address(&self, of: usize) -> SocketAddr {
        self.sockets[of].local_addr().expect("it is bound")
    }

    /// Sends a packet of one chunk with the peer's tag.
    ///
    /// # Panics
    /// If the system refuses.
    pub async fn send(&self, from: usize, chunk: Chunk) {
        self.send_packet(from, self.ports, &Packet::of(self.peer_tag, chunk)).await;
    }

    /// Sends a packet between any ports.
    ///
    /// # Panics
    /// If the system refuses.
    pub async fn send_packet(&self, from: usize, ports: Ports, packet: &Packet) {
        let mut bytes = Vec::new();
        encode(packet, ports, Checksum::Crc32c, &mut bytes);
        self.sockets[from].send_to(&bytes, self.peer).await.expect("sent");
    }

    /// An INIT with this tag, which becomes ours, and these addresses.
    pub fn init(&mut self, tag: u32, addresses: &[IpAddr]) -> Init {
        self.own_tag = tag;
        self.next_tsn = tag.wrapping_mul(3);
        Init {
            tag,
            window: 100_000,
            outbound_streams: 10,
            inbound_streams: 10,
            initial_tsn: Serial32(self.next_tsn),
            addresses: addresses.to_vec(),
            ..Init::default()
        }
    }

    /// Sets up an association from one address. Returns the peer's INIT ACK.
    ///
    /// # Panics
    /// If it is not established.
    pub async fn open(&mut self, from: usize, tag: u32, addresses: &[IpAddr]) -> Init {
        let init = self.init(tag, addresses);
        let asked = Packet::of(0, Chunk::Init(Box::new(init)));
        self.send_packet(from, self.ports, &asked).await;
        let came = self.wait_for(|chunk| matches!(chunk, Chunk::InitAck(_))).await;
        assert_eq!((came.to, came.packet.tag), (from, tag));
        let Chunk::InitAck(both) = came.packet.chunks[0].clone() else { unreachable!() };
        self.peer_tag = both.0.tag;
        self.send(from, Chunk::CookieEcho(both.1.clone().expect("a cookie"))).await;
        self.wait_for(|chunk| matches!(chunk, Chunk::CookieAck)).await;
        both.0.clone()
    }

    /// Answers an INIT with this initiate tag from one address, and sets up the association.
    ///
    /// # Panics
    /// If it is not established.
    pub async fn accept(&mut self, from: usize, tag: u32, initiate_tag: u32) {
        let init = self.init(tag, &[]);
        self.peer_tag = initiate_tag;
        let cookie = Some(Bytes::from_static(b"cookie"));
        self.send(from, Chunk::InitAck(Box::new((init, cookie)))).await;
        self.wait_for(|chunk| matches!(chunk, Chunk::CookieEcho(_))).await;
        self.send(from, Chunk::CookieAck).await;
    }

    /// The next DATA on stream 0.
    pub fn data(&mut self, number: u16, bytes: &'static [u8]) -> Chunk {
        let tsn = Serial32(self.next_tsn);
        self.next_tsn = self.next_tsn.wrapping_add(1);
        Chunk::Data(Data {
            tsn,
            stream: StreamId(0),
            ssn: Serial16(number),
            ppid: 0,
            flags: DataFlags::WHOLE.and(DataFlags::IMMEDIATE),
            payload: Bytes::from_static(bytes).into(),
            message_high: 0,
            first_sent: Time::ZERO,
        })
    }

    /// The next packet of any kind. `None` if none arrives in time.
    ///
    /// # Panics
    /// If a datagram is not a valid packet.
    pub async fn next_within(&self, time: Duration) -> Option<Came> {
        self.next_until(Instant::now() + time).await
    }

    async fn next_until(&self, end: Instant) -> Option<Came> {
        let mut bytes = vec![0; 65_536];
        let look = async {
            loop {
                for (to, socket) in self.sockets.iter().enumerate() {
                    if let Ok((size, from)) = socket.try_recv_from(&mut bytes) {
                        return (to, from, size);
                    }
                }
                sleep(Duration::from_millis(2)).await;
            }
        };
        let (to, from, size) = timeout_at(end, look).await.ok()?;
        let mut packet = Packet::default();
        let whole = Bytes::copy_from_slice(&bytes[..size]);
        let ports = decode(&whole, Checksum::Crc32c, &mut packet).expect("a packet");
        Some(Came { to, from, ports, packet })
    }

    /// The next packet whose first chunk is `wanted`. Answers HEARTBEATs meanwhile.
    ///
    /// # Panics
    /// If no such packet arrives.
    pub async fn wait_for(&self, wanted: impl Fn(&Chunk) -> bool) -> Came {
        self.wait_within(PATIENCE, wanted).await.expect("the packet that is waited for")
    }

    /// As [`Crafted::wait_for`], but returns `None` if no such packet arrives in time.
    pub async fn wait_within(
        &self,
        time: Duration,
        wanted: impl Fn(&Chunk) -> bool,
    ) -> Option<Came> {
        let end = Instant::now() + time;
        loop {
            let came = self.next_until(end).await?;
            if came.packet.chunks.first().is_some_and(&wanted) {
                return Some(came);
            }
            self.answer(&came).await;
        }
    }

    /// Answers HEARTBEATs, as every live end must.
    async fn answer(&self, came: &Came) {
        for chunk in &came.packet.chunks {
            if let Chunk::Heartbeat(info) = chunk {
                self.send(came.to, Chunk::HeartbeatAck(info.clone())).await;
            }
        }
    }
}
