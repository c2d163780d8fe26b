//! Shards: parts of an endpoint that run on different cores. Each has its own sockets, associations and lock, and
//! none takes another's lock.
//!
//! The sockets of all shards are bound to the same addresses (`SO_REUSEPORT`). A number in each datagram determines
//! its shard, regardless of the source: an association has several paths, and its peer may move.
//!
//! ```text
//! sealed     session number of this end, modulo the number of shards. Each shard chooses such numbers. In the first
//!            datagram of a handshake it is the initiator's number: repeated attempts reach one shard.
//! unsealed   both SCTP ports, mixed. Peers with the same two ports share a shard. The verification tag is unsuitable: an
//!            INIT carries none, and an ABORT may carry the peer's.
//! ```
//!
//! On Linux the kernel evaluates this rule for each datagram (a classic BPF program) and delivers it to the shard's
//! socket. A datagram that arrives at the wrong shard, on other systems or while sockets are bound again, is
//! forwarded through a queue.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use ropewalk_base::Time;
use ropewalk_engine::sctp::Packet;
use tokio::sync::mpsc;

use super::association_table::PortPair;
use super::joint_sockets::JointSockets;
use super::socket::{ReceivedDatagrams, RecvBatch};
use super::state::EndpointState;

/// Maximum number of shards of an endpoint.
pub const SHARDS_LIMIT: usize = 64;

/// Maximum number of misdelivered datagrams that wait for a shard. Further ones are dropped.
const QUEUE_LIMIT: usize = 1024;

/// Maximum number of misdelivered datagrams that a shard takes in one round of the driver.
const TAKEN_PER_ROUND: usize = 64;

/// Multiplier that mixes port numbers: 2^32 divided by the golden ratio.
const MIXER: u32 = 0x9E37_79B1;

/// The number that determines the shard of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// The session number.
    Session,
    /// The SCTP ports.
    Ports,
}

/// The rule that assigns datagrams to shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steering {
    number: Number,
    shards: u32,
}

/// The big-endian number at `offset`; 0 if the datagram is too short, and thus not a packet.
fn number_at(datagram: &[u8], offset: usize) -> u32 {
    let bytes = datagram.get(offset..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

const fn mixed(ports: u32) -> u32 {
    ports.wrapping_mul(MIXER) >> 16
}

impl Steering {
    /// The rule for this number of shards.
    pub const fn new(sealed: bool, shards: usize) -> Self {
        let number = if sealed { Number::Session } else { Number::Ports };
        Self { number, shards: shards as u32 }
    }

    /// The shard of a received datagram.
    pub fn shard_of(self, datagram: &[u8]) -> usize {
        let number = match self.number {
            Number::Session => number_at(datagram, 2),
            Number::Ports => mixed(number_at(datagram, 0)),
        };
        (number % self.shards) as usize
    }

    /// The shard of sessions with this number at this end.
    pub const fn shard_of_session(self, session: u32) -> usize {
        (session % self.shards) as usize
    }

    /// The shard of associations with these SCTP ports.
    pub const fn shard_of_ports(self, ports: PortPair) -> usize {
        let arrival = (ports.remote as u32) << 16 | ports.local as u32;
        (mixed(arrival) % self.shards) as usize
    }

    /// Makes the kernel distribute datagrams by this rule among the sockets that are bound to the address of
    /// `socket`, in the order in which they were bound.
    ///
    /// # Errors
    /// If the system has no such function. Shards then forward datagrams.
    #[cfg(target_os = "linux")]
    pub fn attach(self, socket: &socket2::Socket) -> io::Result<()> {
        use nix::libc::{
            BPF_A, BPF_ABS, BPF_ALU, BPF_K, BPF_LD, BPF_MOD, BPF_MUL, BPF_RET, BPF_RSH, BPF_W,
            sock_filter, sock_fprog,
        };
        use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
        let step = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
        let load = |offset| step(BPF_LD | BPF_W | BPF_ABS, offset);
        // The program sees the datagram from its UDP payload on. It returns 0 for a datagram that is too short.
        let mut program = match self.number {
            Number::Session => vec![load(2)],
            Number::Ports => vec![
                load(0),
                step(BPF_ALU | BPF_MUL | BPF_K, MIXER),
                step(BPF_ALU | BPF_RSH | BPF_K, 16),
            ],
        };
        program.push(step(BPF_ALU | BPF_MOD | BPF_K, self.shards));
        program.push(step(BPF_RET | BPF_A, 0));
        let program = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        setsockopt(socket, AttachReusePortCbpf, &program).map_err(io::Error::from)
    }

    #[cfg(not(target_os = "linux"))]
    pub fn attach(self, _: &socket2::Socket) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A datagram that arrived at the wrong shard.
#[derive(Debug)]
pub struct Misdelivered {
    socket: usize,
    from: SocketAddr,
    to: Option<IpAddr>,
    ce: bool,
    bytes: Vec<u8>,
}

/// A message from one shard to another.
#[derive(Debug)]
pub enum Passed {
    Datagram(Misdelivered),
    /// Sockets are ready to be taken.
    Sockets,
}

/// Messages from other shards.
pub type Misdeliveries = mpsc::Receiver<Passed>;

/// A shard among those of its endpoint.
#[derive(Debug)]
pub struct Shard {
    pub index: usize,
    pub steering: Steering,
    /// The sockets of addresses that were added later.
    pub joint: Arc<JointSockets>,
    /// The queue of each shard.
    queues: Vec<mpsc::Sender<Passed>>,
}

impl Shard {
    /// All shards of an endpoint, with the queues of messages from other shards. `None` if there is only one.
    pub fn all(sealed: bool, count: usize) -> Vec<Option<(Self, Misdeliveries)>> {
        if count <= 1 {
            return vec![None];
        }
        let steering = Steering::new(sealed, count);
        let (queues, ends): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::channel(QUEUE_LIMIT)).unzip();
        let joint = Arc::<JointSockets>::default();
        let shard = |(index, end)| {
            Some((Self { index, steering, joint: joint.clone(), queues: queues.clone() }, end))
        };
        ends.into_iter().enumerate().map(shard).collect()
    }

    /// Number of shards of the endpoint.
    pub const fn count(&self) -> usize {
        self.queues.len()
    }

    /// Makes the other shards take sockets that were opened for them.
    pub fn wake_others(&self) {
        let others = self.queues.iter().enumerate().filter(|(index, _)| *index != self.index);
        // A shard whose queue is full is awake.
        others.for_each(|(_, queue)| drop(queue.try_send(Passed::Sockets)));
    }

    /// Whether any of these datagrams belongs to another shard.
    fn is_misdelivered(&self, row: &ReceivedDatagrams<'_>) -> bool {
        row.bytes.chunks(row.stride).any(|bytes| self.steering.shard_of(bytes) != self.index)
    }

    /// Forwards a datagram to its shard. Returns false if it belongs to this one.
    fn pass_on(&self, socket: usize, one: &ReceivedDatagrams<'_>) -> bool {
        let shard = self.steering.shard_of(one.bytes);
        if shard == self.index {
            return false;
        }
        let ReceivedDatagrams { from, to, ce, .. } = *one;
        let bytes = one.bytes.to_vec();
        // A shard whose queue is full is overloaded already.
        let _ = self.queues[shard].try_send(Passed::Datagram(Misdelivered {
            socket,
            from,
            to,
            ce,
            bytes,
        }));
        true
    }
}

impl EndpointState {
    /// Processes everything that one call of [`Socket::receive`](super::socket::Socket::receive) returned. All
    /// datagrams of a row are processed before any is answered: they arrived together, and one SACK acknowledges
    /// them all.
    pub(super) fn receive_batch(&mut self, now: Time, socket: usize, rows: &mut RecvBatch) {
        let mut packet = std::mem::take(&mut self.packet);
        for mut row in rows.iter_mut() {
            self.counters.received += row.bytes.len().div_ceil(row.stride) as u64;
            if self.shard.as_ref().is_some_and(|shard| shard.is_misdelivered(&row)) {
                self.receive_one_by_one(now, socket, &mut row, &mut packet);
            } else {
                self.receive_row(now, socket, &mut row, &mut packet);
            }
        }
        self.packet = packet;
    }

    #[cold]
    fn receive_one_by_one(
        &mut self,
        now: Time,
        socket: usize,
        row: &mut ReceivedDatagrams<'_>,
        packet: &mut Packet,
    ) {
        let ReceivedDatagrams { from, to, stride, ce, .. } = *row;
        for bytes in row.bytes.chunks_mut(stride) {
            let mut one = ReceivedDatagrams { from, to, bytes, stride, ce };
            if self.shard.as_ref().is_some_and(|shard| shard.pass_on(socket, &one)) {
                self.counters.passed_on += 1;
            } else {
                self.receive_row(now, socket, &mut one, packet);
            }
        }
    }

    /// Handles messages from other shards. Returns whether there may be more, or new sockets must be registered.
    pub(super) fn take_misdelivered(
        &mut self,
        now: Time,
        queue: &mut Misdeliveries,
        context: &mut Context<'_>,
    ) -> bool {
        let mut packet = std::mem::take(&mut self.packet);
        let (mut taken, sockets) = (0, self.sockets.len());
        while taken < TAKEN_PER_ROUND
            && let Poll::Ready(Some(passed)) = queue.poll_recv(context)
        {
            taken += 1;
            self.take_joint_sockets();
            let Passed::Datagram(one) = passed else { continue };
            let Misdelivered { socket, from, to, ce, mut bytes } = one;
            if socket < self.sockets.len() {
                let stride = bytes.len().max(1);
                let mut row = ReceivedDatagrams { from, to, bytes: &mut bytes, stride, ce };
                self.receive_row(now, socket, &mut row, &mut packet);
            }
        }
        self.packet = packet;
        taken == TAKEN_PER_ROUND || self.sockets.len() > sockets
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Endpoint, Options, Target};
    use super::*;

    #[test]
    fn a_datagram_belongs_to_the_shard_that_chose_its_number() {
        for shards in 1..9 {
            let sealed = Steering::new(true, shards);
            let plain = Steering::new(false, shards);
            for number in (0..1000).map(|n: u32| n.wrapping_mul(0x1234_5677)) {
                let [a, b, c, d] = number.to_be_bytes();
                let datagram = [0x80, 1, a, b, c, d, 7, 7];
                assert_eq!(sealed.shard_of(&datagram), sealed.shard_of_session(number));
                let ports = PortPair {
                    remote: u16::from_be_bytes([a, b]),
                    local: u16::from_be_bytes([c, d]),
                };
                assert_eq!(plain.shard_of(&[a, b, c, d, 1, 2]), plain.shard_of_ports(ports));
            }
            assert_eq!((sealed.shard_of(&[0x80, 1, 9]), plain.shard_of(&[])), (0, 0));
        }
    }

    #[test]
    fn ports_that_clients_draw_are_spread_evenly() {
        let steering = Steering::new(false, 4);
        let mut counts = [0; 4];
        for remote in 49152..=65535 {
            counts[steering.shard_of_ports(PortPair { local: 9899, remote })] += 1;
        }
        assert!(counts.iter().all(|count| (3900..4300).contains(count)), "{counts:?}");
    }

    /// Models a kernel that does not know the rule, or that numbers the sockets differently because some were
    /// bound again.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn datagrams_that_all_arrive_at_one_shard_reach_theirs() {
        let local = ([127, 0, 0, 1], 0).into();
        let options = Options { shards: 3, ..Options::listening(&[local]) };
        let server = Endpoint::open(options).expect("a free port");
        {
            let state = server.shards[1].lock();
            let io = state.sockets[0].io().expect("an open socket");
            Steering::new(false, 1).attach(&socket2::SockRef::from(io)).expect("a valid program");
        }
        let client = Endpoint::open(Options::connecting(&[local])).expect("a free port");
        let target = Target { addresses: server.locals().to_vec(), key: None };
        for number in 0..20 {
            let near = client.connect(&target).await.expect("the server listens");
            let far = server.accept().await;
            near.send(0, number, vec![7; 9000].into()).await.expect("it is up");
            assert_eq!(far.receive().await.map(|message| message.ppid), Some(number));
            let (closed, end) = tokio::join!(near.shutdown(), far.receive());
            assert_eq!((closed, end), (Ok(()), None));
        }
        let counters = server.shards.iter().map(|shard| shard.lock().counters);
        let counters: Vec<_> = counters.map(|one| (one.received > 0, one.passed_on > 0)).collect();
        assert_eq!(counters, [(true, true), (false, false), (false, false)]);
    }
}
