//! A network between a sealed client and its server. The server sees the client's packets from
//! several addresses: the client's own, that of a NAT after a rebinding, or that of an attacker that
//! sends copies.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_runtime::endpoint::{Association, Endpoint, Options, Target};
use ropewalk_runtime::seal::{Allowed, SecretKey};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::{PATIENCE, loopback, receive_from, socket};

/// Headers of IPv4 and UDP, bytes.
const BELOW: u64 = 28;
/// How much earlier a copy arrives than the packet.
const EARLIER: Duration = Duration::from_millis(5);

/// Where the client's packets come from, as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client's address.
    Straight,
    /// A copy from the other address, and then the packet.
    CopyFirst,
    /// The same, but the attacker also relays to the client what it receives.
    CopyFirstAndRelay,
    /// The next packet from the other address, the rest from the client's.
    OneElsewhere,
    /// Alternately.
    ByTurns,
    /// From the other address, while the client still receives packets at its own.
    Elsewhere,
    /// The NAT binding has changed: the old address is dead, and the other one leads to the client.
    Rebound,
}

/// The network.
pub struct Moving {
    inside: UdpSocket,
    outside: Arc<UdpSocket>,
    other: UdpSocket,
    client: Option<SocketAddr>,
    server: SocketAddr,
    turn: u64,
    /// Bytes of IP packets from the other address to the server, and back.
    pub from_other: u64,
    pub to_other: u64,
    pub way: Way,
}

impl Moving {
    /// Forwards datagrams both ways while `action` runs. Fails as soon as the other address, which never
    /// answers, has received more than three times the bytes that it sent.
    pub async fn through<T>(&mut self, action: impl Future<Output = T>) -> T {
        let way = self.way;
        let both = async {
            tokio::select! {
                done = action => done,
                () = self.carry() => unreachable!("it carries for ever"),
            }
        };
        timeout(PATIENCE, both).await.unwrap_or_else(|_| panic!("{way:?}: it stands still"))
    }

    /// The client's new address as the server sees it.
    pub fn other(&self) -> SocketAddr {
        self.other.local_addr().expect("its address")
    }

    async fn carry(&mut self) {
        let mut buffers = [vec![0; 65_536], vec![0; 65_536], vec![0; 65_536]];
        let [there, back, astray] = &mut buffers;
        loop {
            tokio::select! {
                came = self.inside.recv_from(there) => {
                    let (size, from) = came.expect("the client's datagram");
                    self.client = Some(from);
                    self.forward(&there[..size]).await;
                }
                size = receive_from(&self.outside, self.server, back) => {
                    if self.way != Way::Rebound {
                        self.deliver(&back[..size]).await;
                    }
                }
                size = receive_from(&self.other, self.server, astray) => {
                    self.to_other += size as u64 + BELOW;
                    let answers = matches!(self.way, Way::Rebound | Way::CopyFirstAndRelay);
                    let fair = self.to_other <= 3 * self.from_other;
                    let (to, from) = (self.to_other, self.from_other);
                    assert!(answers || fair, "{:?}: {to} B in answer to {from} B", self.way);
                    if answers {
                        self.deliver(&astray[..size]).await;
                    }
                }
            }
        }
    }

    async fn deliver(&self, datagram: &[u8]) {
        if let Some(client) = self.client {
            self.inside.send_to(datagram, client).await.expect("sent");
        }
    }

    async fn forward(&mut self, datagram: &[u8]) {
        self.turn += 1;
        let (elsewhere, straight) = match self.way {
            Way::Straight => (false, true),
            Way::CopyFirst | Way::CopyFirstAndRelay => (true, true),
            Way::OneElsewhere => {
                self.way = Way::Straight;
                (true, false)
            }
            Way::ByTurns => (self.turn.is_multiple_of(2), !self.turn.is_multiple_of(2)),
            Way::Elsewhere | Way::Rebound => (true, false),
        };
        if elsewhere {
            self.from_other += datagram.len() as u64 + BELOW;
            self.other.send_to(datagram, self.server).await.expect("sent");
        }
        if straight && elsewhere {
            let (outside, server, datagram) =
                (self.outside.clone(), self.server, datagram.to_vec());
            tokio::spawn(async move {
                tokio::time::sleep(EARLIER).await;
                outside.send_to(&datagram, server).await
            });
        } else if straight {
            self.outside.send_to(datagram, self.server).await.expect("sent");
        }
    }
}

/// A sealed client and its server with that network between them. The endpoints must be kept alive.
pub struct SealedPair {
    pub between: Moving,
    pub near: Association,
    pub far: Association,
    _endpoints: [Endpoint; 2],
}

pub async fn sealed_pair() -> SealedPair {
    let [one, other] = [(); 2].map(|()| SecretKey::generate().expect("random numbers"));
    let key = one.public();
    let server = Options::listening(&[loopback()]).sealed(one, Allowed::Anyone);
    let client = Options::connecting(&[loopback()]).sealed(other, Allowed::Anyone);
    let server = Endpoint::open(server).expect("a free port");
    let client = Endpoint::open(client).expect("a free port");
    let mut between = Moving {
        inside: socket().await,
        outside: Arc::new(socket().await),
        other: socket().await,
        client: None,
        server: server.locals()[0],
        turn: 0,
        from_other: 0,
        to_other: 0,
        way: Way::Straight,
    };
    let inside = between.inside.local_addr().expect("its address");
    let target = Target { addresses: vec![inside], key: Some(key) };
    let near = between.through(client.connect(&target)).await.expect("the server listens");
    let far = between.through(server.accept()).await;
    SealedPair { between, near, far, _endpoints: [server, client] }
}
