//! The two ends on real sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::interfaces;
use ropewalk_runtime::seal::{PairedPeer, PairingError};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::initiator::{Initiator, Joined};
use super::message::DATAGRAM_MAX;
use super::responder::Responder;

/// Time between two transmissions of the same datagram.
const RETRANSMIT: Duration = Duration::from_millis(300);
/// How long the initiator waits for the peer. The peer answers immediately.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How long the initiator looks for further addresses at which the peer answers.
const ADDRESSES_TIME: Duration = Duration::from_millis(800);
/// How long the responder answers retransmissions after the exchange has ended. Longer than `ADDRESSES_TIME`.
const LINGER: Duration = Duration::from_secs(2);
/// How long an initiator that has proved the code may take to finish.
const PROVED_LIMIT: Duration = Duration::from_secs(15);
/// Maximum number of datagrams that wait to be handled. Further ones are dropped, as by a full socket.
const QUEUE: usize = 64;
/// Maximum number of addresses of this machine that are bound.
const SOCKETS_LIMIT: usize = 32;

/// Why two ends were not paired.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// No peer answered, or none connected before the code expired.
    #[error("no peer answered")]
    NoPeer,
    /// A peer used a wrong code, or the peer refused ours.
    #[error("{}", PairingError::WrongCode)]
    WrongCode,
    /// The peer proved the code and then fell silent.
    #[error("the peer proved the code and then sent no key")]
    Unfinished,
    /// The system provides no random numbers.
    #[error("{}", PairingError::NoRandomness)]
    NoRandomness,
    /// A socket cannot be opened.
    #[error("cannot open a socket: {0}")]
    Socket(io::Error),
    /// The peer could not be stored.
    #[error("{0}")]
    Store(String),
}

/// The sockets of the end that shows the code.
pub struct OfferSockets {
    sockets: Vec<UdpSocket>,
}

impl OfferSockets {
    /// Binds these addresses.
    ///
    /// # Errors
    /// An address cannot be bound; it is returned with the error.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, (SocketAddr, io::Error)> {
        let mut sockets = Vec::new();
        for address in addresses {
            let bound = UdpSocket::bind(address).await;
            sockets.push(bound.map_err(|error| (*address, error))?);
        }
        Ok(Self { sockets })
    }

    /// Binds each address of this machine at this port, so that an answer leaves from the address of the request.
    /// If another program uses the port, binds a free one.
    ///
    /// # Errors
    /// No address can be bound.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn bind_all(port: u16) -> Result<Self, (SocketAddr, io::Error)> {
        let addresses = own_addresses();
        match Self::bind(&at(&addresses, port)).await {
            Err((_, error)) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
        // The port that is free at the first address may be in use at another address.
        let mut last = Err((SocketAddr::new(addresses[0], 0), io::ErrorKind::AddrInUse.into()));
        for _ in 0..16 {
            let first = UdpSocket::bind((addresses[0], 0)).await;
            let port = first.and_then(|socket| socket.local_addr()).map(|local| local.port());
            let port = port.map_err(|error| (SocketAddr::new(addresses[0], 0), error))?;
            last = Self::bind(&at(&addresses, port)).await;
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// The bound addresses.
    pub fn locals(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }
}

fn at(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect()
}

/// The addresses of this machine that a socket can be bound to without naming an interface.
fn own_addresses() -> Vec<IpAddr> {
    let found = interfaces::list().unwrap_or_default();
    let mut addresses: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into()];
    for interface in found {
        let scoped = matches!(interface.ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if interface.up && !scoped && !addresses.contains(&interface.ip) {
            addresses.push(interface.ip);
        }
    }
    addresses.truncate(SOCKETS_LIMIT);
    addresses
}

/// Answers peers until one of them proves the code, one uses a wrong code, or the time `limit` has passed. `store` is
/// called before the peer gets its confirmation.
///
/// # Errors
/// [`PairError`].
pub async fn offer(
    sockets: OfferSockets,
    mut responder: Responder,
    clock: &Clock,
    limit: Duration,
    store: impl FnOnce(&PairedPeer) -> Result<(), String>,
) -> Result<PairedPeer, PairError> {
    let mut inbox = Inbox::new(sockets.sockets);
    let mut deadline = Instant::now() + limit;
    let mut store = Some(store);
    let mut result = Err(PairError::NoPeer);
    while let Ok(received) = timeout_at(deadline, inbox.next()).await {
        let Some(received) = received else { break };
        let proved = responder.is_proved();
        let Received { from, datagram, .. } = &received;
        let Some(answer) = responder.handle_datagram(clock.now(), *from, datagram) else {
            continue;
        };
        if let Some(store) = store.take_if(|_| responder.paired().is_some()) {
            let peer = responder.paired().expect("just checked");
            store(peer).map_err(PairError::Store)?;
            result = Ok(peer.clone());
            deadline = Instant::now() + LINGER;
        } else if responder.is_refused() && !matches!(result, Err(PairError::WrongCode)) {
            result = Err(PairError::WrongCode);
            deadline = Instant::now() + LINGER;
        } else if responder.is_proved() && !proved {
            result = Err(PairError::Unfinished);
            deadline = Instant::now() + PROVED_LIMIT;
        }
        inbox.send(received.socket, &answer, received.from).await;
    }
    result
}

/// Runs an initiator's exchange to its end.
///
/// # Errors
/// [`PairError`].
pub async fn join(mut initiator: Initiator) -> Result<Joined, PairError> {
    let mut inbox = Inbox::new(open_for(initiator.transmit().1).await.map_err(PairError::Socket)?);
    let mut deadline = Instant::now() + ANSWER_LIMIT;
    let mut next = Instant::now();
    let mut paired = false;
    loop {
        if let Some(error) = initiator.failed() {
            return Err(error.into());
        }
        if initiator.joined().is_some() && !paired {
            (paired, deadline) = (true, Instant::now() + ADDRESSES_TIME);
        }
        let now = Instant::now();
        if now >= deadline {
            return initiator.joined().cloned().ok_or(PairError::NoPeer);
        }
        if now >= next {
            let (datagram, targets) = initiator.transmit();
            for target in targets {
                inbox.send_to(datagram, *target).await;
            }
            next = now + RETRANSMIT;
        }
        tokio::select! {
            () = sleep_until(next.min(deadline)) => {}
            received = inbox.next() => {
                let Some(received) = received else { return Err(PairError::NoPeer) };
                if initiator.handle_datagram(received.from, &received.datagram) {
                    next = Instant::now();
                }
            }
        }
    }
}

/// A socket for each family of the targets. A family that this machine lacks is left out if there is another.
async fn open_for(targets: &[SocketAddr]) -> io::Result<Vec<UdpSocket>> {
    let any = |ipv6: bool| -> IpAddr {
        if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
    };
    let (mut sockets, mut failed) = (Vec::new(), None);
    for ipv6 in [false, true] {
        if targets.iter().any(|target| target.is_ipv6() == ipv6) {
            match UdpSocket::bind((any(ipv6), 0)).await {
                Ok(socket) => sockets.push(socket),
                Err(error) => failed = Some(error),
            }
        }
    }
    match failed {
        Some(error) if sockets.is_empty() => Err(error),
        _ => Ok(sockets),
    }
}

/// A received datagram.
struct Received {
    socket: usize,
    from: SocketAddr,
    datagram: Vec<u8>,
}

/// Several sockets, each read by a task that ends with this value.
struct Inbox {
    sockets: Vec<std::sync::Arc<UdpSocket>>,
    received: mpsc::Receiver<Received>,
    _readers: JoinSet<()>,
}

impl Inbox {
    fn new(sockets: Vec<UdpSocket>) -> Self {
        let (sender, received) = mpsc::channel(QUEUE);
        let sockets: Vec<_> = sockets.into_iter().map(std::sync::Arc::new).collect();
        let mut readers = JoinSet::new();
        for (index, socket) in sockets.iter().enumerate() {
            readers.spawn(read(index, socket.clone(), sender.clone()));
        }
        Self { sockets, received, _readers: readers }
    }

    /// The next datagram. `None` if no socket can be read.
    async fn next(&mut self) -> Option<Received> {
        self.received.recv().await
    }

    /// A datagram that cannot be sent counts as lost.
    async fn send(&self, socket: usize, datagram: &[u8], to: SocketAddr) {
        let _ = self.sockets[socket].send_to(datagram, to).await;
    }

    /// Sends from the socket of the address's family.
    async fn send_to(&self, datagram: &[u8], to: SocketAddr) {
        for (index, socket) in self.sockets.iter().enumerate() {
            if socket.local_addr().is_ok_and(|local| local.is_ipv6() == to.is_ipv6()) {
                return self.send(index, datagram, to).await;
            }
        }
    }
}

async fn read(index: usize, socket: std::sync::Arc<UdpSocket>, sender: mpsc::Sender<Received>) {
    // One byte more than permitted, so that a longer datagram is not truncated to a valid one.
    let mut buffer = [0; DATAGRAM_MAX + 1];
    loop {
        // Linux reports the ICMP errors of earlier datagrams here; the socket stays usable.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let datagram = buffer[..length].to_vec();
        if sender.try_send(Received { socket: index, from, datagram }).is_err()
            && sender.is_closed()
        {
            return;
        }
    }
}

impl From<PairingError> for PairError {
    fn from(error: PairingError) -> Self {
        match error {
            PairingError::NoRandomness => Self::NoRandomness,
            // This end's introduction is never too long.
            PairingError::WrongCode | PairingError::IntroductionTooLong(_) => Self::WrongCode,
        }
    }
}
