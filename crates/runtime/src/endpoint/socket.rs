//! A socket, bound to one address or interface, that transfers many datagrams per system call. It is a UDP socket, or
//! a raw socket whose datagrams are SCTP packets over IP.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockAddr, SockRef, Type};
use tokio::io::Interest;

use super::batch::Batch;
use super::df_bit::FragmentationAllowed;
use super::dscp::Dscp;
use super::raw::{self, Carrier};
use super::refusals::{ErrorQueue, Refusal};
use super::send_errors::{despite_queued_errors, without_source};
use super::send_marked;
use super::shards::Steering;

/// Requested size of the socket buffers, bytes. The kernel grants no more than its own limit (`net.core.rmem_max`). A
/// burst that does not fit is lost.
const SOCKET_BUFFER: usize = 4 << 20;

/// Size of the largest datagram, or row of datagrams that the kernel joined, bytes.
const ROW_LIMIT: usize = 65_535;

/// Maximum number of rows per system call. Each needs a buffer of [`ROW_LIMIT`].
pub const BATCH_ROWS: usize = if BATCH_SIZE < 8 { BATCH_SIZE } else { 8 };

/// Where a socket is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAddress {
    /// Address and port; port 0: any free port.
    pub address: SocketAddr,
    /// Interface that the socket is restricted to (Linux).
    pub interface: Option<String>,
}

impl std::fmt::Display for BindAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.interface {
            None => self.address.fmt(f),
            Some(interface) => write!(f, "{} on {interface}", self.address),
        }
    }
}

impl BindAddress {
    /// An address without an interface.
    pub const fn of(address: SocketAddr) -> Self {
        Self { address, interface: None }
    }
}

/// How a socket shares its address.
#[derive(Clone, Copy, Debug, Default)]
struct Form {
    /// Whether IPv4 has a separate socket in addition to this IPv6 socket.
    beside_ipv4: bool,
    /// How datagrams are distributed among sockets with the same address. `None` if the address is not shared.
    steering: Option<Steering>,
    /// What carries the datagrams.
    carrier: Carrier,
}

/// Why a batch was not sent, or not completely.
#[derive(Debug)]
struct Unsent {
    error: io::Error,
    /// Number of bytes of the datagrams that were sent, which are the first ones.
    sent: usize,
}

/// The system's socket.
#[derive(Debug)]
struct Open {
    io: tokio::net::UdpSocket,
    state: UdpSocketState,
}

/// A bound socket.
#[derive(Debug)]
pub struct Socket {
    /// `None` while its address or interface is gone.
    open: Option<Open>,
    local: SocketAddr,
    form: Form,
    /// The socket of another program that this one duplicates. `None` if it was bound here.
    inherited: Option<Arc<std::net::UdpSocket>>,
    /// The SCTP ports whose packets a raw socket receives.
    ports: Vec<u16>,
    /// ICMP messages about its datagrams, while they are watched.
    errors: Option<ErrorQueue>,
    /// Batches that the kernel could not take yet, in order.
    backlog: VecDeque<Batch>,
    /// Maximum number of datagrams per system call.
    segments: usize,
    /// Whether more than one per call is permitted.
    offload: bool,
    /// Number of datagrams that the kernel refused permanently.
    pub refused: u64,
}

/// Buffers for one call of [`Socket::receive`].
#[derive(Debug)]
pub struct RecvBatch {
    buffers: Vec<Vec<u8>>,
    metas: [RecvMeta; BATCH_ROWS],
    filled: usize,
    /// Whether each row begins with an IPv4 header.
    has_ip_header: bool,
}

impl Default for RecvBatch {
    fn default() -> Self {
        let buffers = (0..BATCH_ROWS).map(|_| vec![0; ROW_LIMIT]).collect();
        let metas = [RecvMeta::default(); BATCH_ROWS];
        Self { buffers, metas, filled: 0, has_ip_header: false }
    }
}

/// Consecutive datagrams of one sender, all of the same size except the last.
#[derive(Debug)]
pub struct ReceivedDatagrams<'a> {
    /// The sender's address.
    pub from: SocketAddr,
    /// The local address that they were sent to, if the system provides it.
    pub to: Option<IpAddr>,
    /// The bytes of all datagrams, concatenated. Sealed ones are opened in place.
    pub bytes: &'a mut [u8],
    /// Size of each datagram except the last, bytes.
    pub stride: usize,
    /// Whether the network has marked them as having experienced congestion (CE).
    pub ce: bool,
}

impl RecvBatch {
    /// The rows that the last call received.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = ReceivedDatagrams<'_>> {
        self.buffers.iter_mut().zip(&self.metas).take(self.filled).map(|(buffer, meta)| {
            let bytes = &mut buffer[..meta.len];
            let header = if self.has_ip_header { raw::ip_header(bytes) } else { 0 };
            let bytes = &mut bytes[header..];
            ReceivedDatagrams {
                from: meta.addr,
                to: meta.dst_ip,
                bytes,
                stride: meta.stride.max(1),
                ce: meta.ecn == Some(EcnCodepoint::Ce),
            }
        })
    }
}

impl Socket {
    /// Binds a socket.
    ///
    /// # Errors
    /// The error of the system: address in use, no such address or interface, no permission.
    pub fn bind(local: &BindAddress) -> io::Result<Self> {
        Self::bind_as(local, Form::default())
    }

    /// Like [`Socket::bind`], if IPv4 has separate sockets: an IPv6 socket that is bound to the unspecified address
    /// then leaves IPv4 to them.
    ///
    /// # Errors
    /// Like [`Socket::bind`].
    pub fn bind_beside_ipv4(local: &BindAddress) -> io::Result<Self> {
        Self::bind_as(local, Form { beside_ipv4: true, ..Form::default() })
    }

    /// Binds a raw socket, which receives SCTP packets over IP. It receives none until [`Socket::receive_ports`].
    ///
    /// # Errors
    /// Like [`Socket::bind`].
    pub fn bind_raw(local: &BindAddress) -> io::Result<Self> {
        Self::bind_as(local, Form { carrier: Carrier::Ip, ..Form::default() })
    }

    /// Receives packets to these SCTP ports from now on, if it is a raw socket.
    ///
    /// # Errors
    /// The error of the system.
    pub fn receive_ports(&mut self, ports: &[u16]) -> io::Result<()> {
        if self.ports == ports {
            return Ok(());
        }
        self.ports = ports.to_vec();
        self.apply_ports()
    }

    /// Starts or stops watching for ICMP messages about its datagrams.
    pub fn watch_refusals(&mut self, watch: bool) {
        let Some(open) = self.open.as_ref().filter(|_| watch != self.errors.is_some()) else {
            return;
        };
        match self.errors.take() {
            Some(queue) => queue.close(&open.io),
            // Without the queue, timers detect that the peer does not answer.
            None => self.errors = ErrorQueue::open(&open.io, self.form.carrier).ok(),
        }
    }

    /// INITs that were refused. Pending if there are none.
    pub fn poll_refusals(&mut self, context: &mut Context<'_>) -> Poll<Vec<Refusal>> {
        self.errors.as_mut().map_or(Poll::Pending, |queue| queue.poll(context))
    }

    fn apply_ports(&self) -> io::Result<()> {
        match &self.open {
            Some(open) if self.form.carrier == Carrier::Ip => {
                raw::deliver_only(SockRef::from(&open.io), self.local.is_ipv4(), &self.ports)
            }
            _ => Ok(()),
        }
    }

    /// Binds another socket like this one to the same address, or binds this one again so that others may
    /// follow.
    ///
    /// # Errors
    /// Like [`Socket::bind`].
    pub fn bind_sharing(&self, local: &BindAddress, steering: Steering) -> io::Result<Self> {
        Self::bind_as(&self.with_port(local), Form { steering: Some(steering), ..self.form })
    }

    /// The same place with the port of this socket.
    fn with_port(&self, local: &BindAddress) -> BindAddress {
        let address = SocketAddr::new(local.address.ip(), self.local.port());
        BindAddress { address, ..local.clone() }
    }

    fn bind_as(local: &BindAddress, form: Form) -> io::Result<Self> {
        let (open, local) = open(local, form)?;
        Ok(Self::of(open, local, form))
    }

    fn of(open: Open, local: SocketAddr, form: Form) -> Self {
        Self {
            segments: segments(&open, form),
            open: Some(open),
            local,
            form,
            inherited: None,
            ports: Vec::new(),
            errors: None,
            backlog: VecDeque::new(),
            offload: true,
            refused: 0,
        }
    }

    /// Uses a socket that another program has bound.
    ///
    /// # Errors
    /// The error of the system.
    pub fn adopt(inherited: Arc<std::net::UdpSocket>) -> io::Result<Self> {
        let (open, local) = prepare(inherited.try_clone()?)?;
        let socket = Self::of(open, local, Form::default());
        Ok(Self { inherited: Some(inherited), ..socket })
    }

    /// Whether other sockets may be bound to the same address.
    ///
    /// # Errors
    /// The error of the system.
    pub fn permits_others(&self) -> io::Result<bool> {
        self.open.as_ref().map_or(Ok(false), |open| permits_others(SockRef::from(&open.io)))
    }

    /// Starts distributing datagrams among this socket and others with its address.
    pub fn share(&mut self, steering: Steering) {
        self.form.steering = Some(steering);
        if let Some(open) = &self.open {
            // Without steering, shards forward datagrams.
            let _ = steering.attach(&SockRef::from(&open.io));
        }
    }

    /// Closes the socket because its address or interface is gone. It sends and receives nothing until it is bound
    /// again.
    pub fn close(&mut self) {
        (self.open, self.errors) = (None, None);
        self.backlog.clear();
    }

    /// Binds the socket again, to its previous port if that is still free.
    ///
    /// # Errors
    /// Like [`Socket::bind`]; the socket is closed then.
    pub fn bind_again(&mut self, local: &BindAddress) -> io::Result<()> {
        // The old socket must release the port first.
        self.close();
        let form = self.form;
        if let Some(inherited) = &self.inherited {
            self.open = Some(prepare(inherited.try_clone()?)?.0);
            return Ok(());
        }
        let (open, bound) = open(&self.with_port(local), form).or_else(|_| open(local, form))?;
        self.segments = if self.offload { segments(&open, form) } else { 1 };
        (self.open, self.local) = (Some(open), bound);
        self.apply_ports()
    }

    /// The local address.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// The open descriptors.
    #[cfg(target_os = "linux")]
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let data = self.open.as_ref().map(|open| open.io.as_raw_fd());
        data.into_iter().chain(self.errors.as_ref().map(ErrorQueue::descriptor))
    }

    #[cfg(test)]
    pub(super) fn io(&self) -> Option<&tokio::net::UdpSocket> {
        self.open.as_ref().map(|open| &open.io)
    }

    /// Maximum number of datagrams that one call can send.
    pub const fn segments(&self) -> usize {
        self.segments
    }

    /// Sends each datagram in a separate call, as on a machine without segmentation offload.
    pub const fn without_offload(&mut self) {
        (self.segments, self.offload) = (1, false);
    }

    /// Receives as many rows as fit into `rows`. Pending if there are none.
    pub fn receive(&self, context: &mut Context<'_>, rows: &mut RecvBatch) -> Poll<io::Result<()>> {
        rows.filled = 0;
        rows.has_ip_header = self.form.carrier == Carrier::Ip && self.local.is_ipv4();
        let Some(Open { io, state }) = &self.open else { return Poll::Pending };
        loop {
            ready!(io.poll_recv_ready(context))?;
            let taken = io.try_io(Interest::READABLE, || {
                let mut slices: Vec<_> =
                    rows.buffers.iter_mut().map(|b| io::IoSliceMut::new(b)).collect();
                state.recv(UdpSockRef::from(io), &mut slices, &mut rows.metas)
            });
            match taken {
                Ok(filled) => {
                    rows.filled = filled;
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An ICMP error about an earlier datagram.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Sends a batch, or keeps it until the kernel accepts more. Datagrams that the kernel refuses permanently
    /// are lost, as in any network.
    ///
    /// # Errors
    /// If the kernel refuses the batch permanently: no route, interface gone, datagram too long.
    pub fn send(&mut self, batch: &mut Batch) -> io::Result<()> {
        if !self.backlog.is_empty() {
            self.backlog.push_back(batch.take());
            return Ok(());
        }
        match self.try_send(batch) {
            Err(Unsent { error, sent }) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut rest = batch.take();
                rest.skip(sent);
                self.backlog.push_back(rest);
                Ok(())
            }
            other => {
                batch.clear();
                other.map_err(|unsent| unsent.error)
            }
        }
    }

    /// Sends a batch of at most [`Socket::segments`] datagrams immediately or not at all.
    ///
    /// # Errors
    /// If the socket is full ([`io::ErrorKind::WouldBlock`]), and like [`Socket::send`].
    pub fn send_now(&mut self, batch: &Batch) -> io::Result<()> {
        if self.is_blocked() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.try_send(batch).map_err(|unsent| unsent.error)
    }

    fn try_send(&mut self, batch: &Batch) -> Result<(), Unsent> {
        let Some(Open { io, state }) = &self.open else {
            return Err(Unsent { error: io::ErrorKind::NetworkDown.into(), sent: 0 });
        };
        let _cuttable = batch.may_be_fragmented().then(|| FragmentationAllowed::new(io));
        let mut rest = batch.bytes();
        while !rest.is_empty() {
            // A machine may lose its offload while running: the datagrams are then sent separately.
            let most = batch.segment() * self.segments.max(1);
            let now = &rest[..most.min(rest.len())];
            let transmit = Transmit {
                destination: batch.destination(),
                ecn: EcnCodepoint::from_bits(batch.ecn() as u8),
                contents: now,
                segment_size: (now.len() > batch.segment()).then_some(batch.segment()),
                src_ip: batch.source(),
            };
            let raw = self.form.carrier == Carrier::Ip;
            let marked = batch.dscp() != Dscp::DEFAULT && send_marked::AVAILABLE;
            let mut taken = now.len();
            let send = || {
                io.try_io(Interest::WRITABLE, || match raw || marked {
                    true => send_marked::send(io, batch, now).map(|bytes| taken = bytes),
                    false => state.try_send(UdpSockRef::from(io), &transmit),
                })
            };
            let sent = match self.errors {
                Some(_) => despite_queued_errors(send),
                None => {
                    let mut send = send;
                    send()
                }
            };
            if let Err(error) = sent {
                let lost_offload = !raw && state.max_gso_segments() < self.segments;
                if lost_offload && error.kind() != io::ErrorKind::WouldBlock {
                    self.segments = state.max_gso_segments();
                    continue;
                }
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.refused += now.len().div_ceil(batch.segment()) as u64;
                }
                let sent = batch.bytes().len() - rest.len();
                return Err(Unsent { error: without_source(error, batch), sent });
            }
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// Whether datagrams wait for the kernel. No new ones should be created for this socket in that case.
    pub fn is_blocked(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Sends the waiting batches. Ready once none is left.
    pub fn flush(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Some(mut batch) = self.backlog.pop_front() {
            // Only a failed call tells tokio that the socket is full, so that the task can wait for it.
            if let Err(Unsent { error, sent }) = self.try_send(&batch)
                && error.kind() == io::ErrorKind::WouldBlock
            {
                batch.skip(sent);
                self.backlog.push_front(batch);
                let Some(Open { io, .. }) = &self.open else { continue };
                if io.poll_send_ready(context).is_pending() {
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(())
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn bind_interface(socket: &socket2::Socket, interface: &str) -> io::Result<()> {
    socket.bind_device(Some(interface.as_bytes()))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn bind_interface(_: &socket2::Socket, _: &str) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "binding to an interface needs Linux; name its address instead",
    ))
}

/// Opens a socket. Returns it and the address that it is bound to.
fn open(local: &BindAddress, form: Form) -> io::Result<(Open, SocketAddr)> {
    match form.carrier {
        Carrier::Udp => prepare(bind_socket(local, form)?),
        Carrier::Ip => {
            let (open, mut bound) = prepare(raw::bind(local)?)?;
            // The system reports the number of the protocol here.
            bound.set_port(0);
            Ok((open, bound))
        }
    }
}

/// Maximum number of datagrams that one call can send.
fn segments(open: &Open, form: Form) -> usize {
    if form.carrier == Carrier::Ip { send_marked::PACKETS } else { open.state.max_gso_segments() }
}

fn configure(socket: &std::net::UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(UdpSockRef::from(socket))?;
    // Best effort: the kernel has its own limit.
    let _ = state.set_recv_buffer_size(UdpSockRef::from(socket), SOCKET_BUFFER);
    let _ = state.set_send_buffer_size(UdpSockRef::from(socket), SOCKET_BUFFER);
    Ok(state)
}

/// Prepares a bound socket for use. Returns it and the address that it is bound to.
fn prepare(socket: std::net::UdpSocket) -> io::Result<(Open, SocketAddr)> {
    socket.set_nonblocking(true)?;
    let state = configure(&socket)?;
    let io = tokio::net::UdpSocket::from_std(socket)?;
    let local = io.local_addr()?;
    Ok((Open { io, state }, local))
}

#[cfg(unix)]
fn permits_others(socket: SockRef<'_>) -> io::Result<bool> {
    socket.reuse_port()
}

#[cfg(not(unix))]
fn permits_others(_: SockRef<'_>) -> io::Result<bool> {
    Ok(false)
}

#[cfg(unix)]
fn share_address(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(unix))]
fn share_address(_: &socket2::Socket) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "several shards need `SO_REUSEPORT`, which this system has not",
    ))
}

fn bind_socket(local: &BindAddress, form: Form) -> io::Result<std::net::UdpSocket> {
    let domain = Domain::for_address(local.address);
    let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if form.beside_ipv4 && local.address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if let Some(interface) = &local.interface {
        bind_interface(&socket, interface)?;
    }
    if form.steering.is_some() {
        share_address(&socket)?;
    }
    socket.bind(&SockAddr::from(local.address))?;
    if let Some(steering) = form.steering {
        // Only now: an unbound socket would start its own group. Without steering, shards forward datagrams.
        let _ = steering.attach(&socket);
    }
    Ok(socket.into())
}

/// Buffer sizes and offloads that the system grants a socket of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketGrants {
    /// Requested size of each buffer, bytes.
    pub requested_buffer: usize,
    /// Receive buffer, bytes.
    pub receive_buffer: usize,
    /// Send buffer, bytes.
    pub send_buffer: usize,
    /// Maximum number of datagrams that one call sends (GSO); 1 without segmentation offload.
    pub send_segments: usize,
    /// Maximum number of datagrams that one buffer receives (GRO); 1 without it.
    pub receive_segments: usize,
}

impl SocketGrants {
    /// Binds a socket as an endpoint does, reads the granted values, and closes it. Nothing is sent.
    ///
    /// # Errors
    /// The error of the system: address in use, no such address or interface, no permission.
    pub fn try_bind(local: &BindAddress) -> io::Result<Self> {
        let socket = bind_socket(local, Form::default())?;
        let state = configure(&socket)?;
        // Linux reports twice the size, for its own bookkeeping.
        let halves = if cfg!(any(target_os = "linux", target_os = "android")) { 2 } else { 1 };
        Ok(Self {
            requested_buffer: SOCKET_BUFFER,
            receive_buffer: state.recv_buffer_size(UdpSockRef::from(&socket))? / halves,
            send_buffer: state.send_buffer_size(UdpSockRef::from(&socket))? / halves,
            send_segments: state.max_gso_segments(),
            receive_segments: state.gro_segments(),
        })
    }
}
