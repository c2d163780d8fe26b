//! Two ends of an unsealed association, and a middlebox between them.

#[allow(dead_code, reason = "not every test needs it")]
pub mod moving;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_engine::sctp::wire::{Checksum, Ports, decode};
use ropewalk_engine::sctp::{Chunk, Packet};
use ropewalk_runtime::endpoint::{Association, Endpoint, Options, Target};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Timeout that no step should reach.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

pub async fn socket() -> UdpSocket {
    UdpSocket::bind(loopback()).await.expect("a free port")
}

pub fn read(bytes: &[u8]) -> (Ports, Packet) {
    let mut packet = Packet::default();
    let ports = decode(&Bytes::copy_from_slice(bytes), Checksum::Crc32c, &mut packet);
    (ports.expect("our own packets"), packet)
}

/// The size of the next datagram from this sender. Others may still send to a port that the system has reassigned.
pub async fn receive_from(socket: &UdpSocket, sender: SocketAddr, buffer: &mut [u8]) -> usize {
    loop {
        let (size, from) = socket.recv_from(buffer).await.expect("a datagram");
        if from == sender {
            return size;
        }
    }
}

/// A middlebox between a client and a server that acts like a NAT. It sees every packet.
pub struct Translator {
    pub inside: UdpSocket,
    pub outside: UdpSocket,
    pub client: Option<SocketAddr>,
    pub server: SocketAddr,
    /// The newest packet to the server, with its ports.
    pub to_server: (Ports, Packet),
    /// HEARTBEATs of the server since the port was changed.
    pub asked: usize,
    /// The receive windows that the server advertised, bytes.
    pub windows: Vec<u32>,
}

impl Translator {
    async fn before(server: SocketAddr) -> Self {
        let (inside, outside) = (socket().await, socket().await);
        let to_server = Default::default();
        Self { inside, outside, client: None, server, to_server, asked: 0, windows: Vec::new() }
    }

    /// Forwards datagrams both ways while `action` runs.
    pub async fn through<T>(&mut self, action: impl Future<Output = T>) -> T {
        let both = async {
            tokio::select! {
                done = action => done,
                () = self.carry() => unreachable!("it carries for ever"),
            }
        };
        timeout(PATIENCE, both).await.expect("it goes on")
    }

    async fn carry(&mut self) {
        let (mut there, mut back) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                came = self.inside.recv_from(&mut there) => {
                    let (size, from) = came.expect("the client's datagram");
                    self.client = Some(from);
                    self.to_server = read(&there[..size]);
                    self.outside.send_to(&there[..size], self.server).await.expect("sent");
                }
                size = receive_from(&self.outside, self.server, &mut back) => {
                    let (_, packet) = read(&back[..size]);
                    let asks = |chunk: &&Chunk| matches!(chunk, Chunk::Heartbeat(_));
                    self.asked += packet.chunks.iter().filter(asks).count();
                    self.windows.extend(packet.chunks.iter().filter_map(|chunk| match chunk {
                        Chunk::Sack(sack) => Some(sack.window),
                        _ => None,
                    }));
                    if let Some(client) = self.client {
                        self.inside.send_to(&back[..size], client).await.expect("sent");
                    }
                }
            }
        }
    }
}

/// Two ends of an association with a translator between them. The endpoints must be kept alive.
pub struct Pair {
    pub between: Translator,
    pub near: Association,
    pub far: Association,
    _endpoints: [Endpoint; 2],
}

pub async fn pair(server: Options) -> Pair {
    pair_of(Options::connecting(&[loopback()]), server).await
}

pub async fn pair_of(client: Options, server: Options) -> Pair {
    let server = Endpoint::open(server).expect("a free port");
    let client = Endpoint::open(client).expect("a free port");
    let mut between = Translator::before(server.locals()[0]).await;
    let inside = between.inside.local_addr().expect("its address");
    let target = Target { addresses: vec![inside], key: None };
    let near = between.through(client.connect(&target)).await.expect("the server listens");
    let far = between.through(server.accept()).await;
    Pair { between, near, far, _endpoints: [server, client] }
}
