//! One UDP socket: many datagrams per system call, bound to one address or interface.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, ready};

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockAddr, Type};
use tokio::io::Interest;

use super::batch::Batch;
use super::df_bit::Cuttable;

/// Socket buffers asked for, bytes. The kernel gives no more than its own limit
/// (`net.core.rmem_max`); a burst of a fast path that does not fit is lost.
const SOCKET_BUFFER: usize = 4 << 20;

/// Largest datagram, or row of datagrams that the kernel joined, bytes.
const ROW_LIMIT: usize = 65_535;

/// Rows taken with one system call. Each needs a buffer of [`ROW_LIMIT`].
pub const ROWS: usize = if BATCH_SIZE < 8 { BATCH_SIZE } else { 8 };

/// Where a socket is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAddress {
    /// Address and port; port 0: any.
    pub address: SocketAddr,
    /// Nothing leaves by another interface than this one (Linux).
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
    /// An address alone.
    pub const fn of(address: SocketAddr) -> Self {
        Self { address, interface: None }
    }
}

/// What the system holds of it.
#[derive(Debug)]
struct Open {
    io: tokio::net::UdpSocket,
    state: UdpSocketState,
}

/// A bound socket.
#[derive(Debug)]
pub struct Socket {
    /// None while what it stood on is gone.
    open: Option<Open>,
    local: SocketAddr,
    /// IPv4 has a socket of its own beside this one of IPv6.
    beside_ipv4: bool,
    /// What the kernel would not take yet, in order.
    backlog: std::collections::VecDeque<Batch>,
    /// Segments in one call at most.
    segments: usize,
    /// Whether more than one is wanted.
    offload: bool,
    /// Datagrams that the kernel refused for good.
    pub refused: u64,
}

/// Buffers for one call of [`Socket::receive`].
#[derive(Debug)]
pub struct RecvBatch {
    buffers: Vec<Vec<u8>>,
    metas: [RecvMeta; ROWS],
    filled: usize,
}

impl Default for RecvBatch {
    fn default() -> Self {
        let buffers = (0..ROWS).map(|_| vec![0; ROW_LIMIT]).collect();
        Self { buffers, metas: [RecvMeta::default(); ROWS], filled: 0 }
    }
}

/// Datagrams of one sender that came in a row, all but the last of the same size.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Who sent them.
    pub from: SocketAddr,
    /// To which own address, where the system tells.
    pub to: Option<IpAddr>,
    /// The bytes, one datagram after the other.
    pub bytes: &'a [u8],
    /// Bytes of each but the last.
    pub stride: usize,
    /// Whether the network has marked them (CE).
    pub ce: bool,
}

impl RecvBatch {
    /// What the last call brought.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.buffers.iter().zip(&self.metas).take(self.filled).map(|(buffer, meta)| Row {
            from: meta.addr,
            to: meta.dst_ip,
            bytes: &buffer[..meta.len],
            stride: meta.stride.max(1),
            ce: meta.ecn == Some(EcnCodepoint::Ce),
        })
    }
}

impl Socket {
    /// Binds it.
    ///
    /// # Errors
    /// As the system says: address in use, no such address or interface, no permission.
    pub fn bind(local: &BindAddress) -> io::Result<Self> {
        Self::bind_as(local, false)
    }

    /// As [`Socket::bind`], where there are sockets of IPv4 as well: one of IPv6 that is bound to no address
    /// leaves IPv4 to them.
    ///
    /// # Errors
    /// As [`Socket::bind`].
    pub fn bind_beside_ipv4(local: &BindAddress) -> io::Result<Self> {
        Self::bind_as(local, true)
    }

    fn bind_as(local: &BindAddress, beside_ipv4: bool) -> io::Result<Self> {
        let (open, local) = open(local, beside_ipv4)?;
        let segments = open.state.max_gso_segments();
        let backlog = Default::default();
        let open = Some(open);
        Ok(Self { open, local, beside_ipv4, backlog, segments, offload: true, refused: 0 })
    }

    /// What it stood on is gone: it takes nothing and gives nothing until it is bound again.
    pub fn close(&mut self) {
        self.open = None;
        self.backlog.clear();
    }

    /// Binds it anew, to the port that it had if that is still free.
    ///
    /// # Errors
    /// As [`Socket::bind`]; it is closed then.
    pub fn bind_again(&mut self, local: &BindAddress) -> io::Result<()> {
        // The port is free only without the old one.
        self.close();
        let address = SocketAddr::new(local.address.ip(), self.local.port());
        let same = BindAddress { address, ..local.clone() };
        let beside = self.beside_ipv4;
        let (open, bound) = open(&same, beside).or_else(|_| open(local, beside))?;
        self.segments = if self.offload { open.state.max_gso_segments() } else { 1 };
        (self.open, self.local) = (Some(open), bound);
        Ok(())
    }

    /// The address that it is bound to.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    #[cfg(test)]
    pub(super) fn io(&self) -> Option<&tokio::net::UdpSocket> {
        self.open.as_ref().map(|open| &open.io)
    }

    /// Datagrams that one call can send.
    pub const fn segments(&self) -> usize {
        self.segments
    }

    /// Sends each datagram with a call of its own, as a machine without segmentation offload does.
    pub const fn without_offload(&mut self) {
        (self.segments, self.offload) = (1, false);
    }

    /// Takes what has come, as far as it fits into `rows`; pending if there is nothing.
    pub fn receive(&self, context: &mut Context<'_>, rows: &mut RecvBatch) -> Poll<io::Result<()>> {
        rows.filled = 0;
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
                // An answer to something sent before, told by ICMP: it belongs to no datagram here.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Sends a batch, or keeps it until the kernel takes more. What it refuses for good is lost, as
    /// on any network; the error says why.
    ///
    /// # Errors
    /// If the kernel refuses it: no route, interface gone, datagram too long.
    pub fn send(&mut self, batch: &mut Batch) -> io::Result<()> {
        if !self.backlog.is_empty() {
            self.backlog.push_back(batch.take());
            return Ok(());
        }
        match self.try_send(batch) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.backlog.push_back(batch.take());
                Ok(())
            }
            other => {
                batch.clear();
                other
            }
        }
    }

    fn try_send(&mut self, batch: &Batch) -> io::Result<()> {
        let Some(Open { io, state }) = &self.open else {
            return Err(io::ErrorKind::NetworkDown.into());
        };
        let _cuttable = batch.may_be_cut().then(|| Cuttable::new(io));
        let mut rest = batch.bytes();
        while !rest.is_empty() {
            // A machine may lose its offload while running: what was joined goes one by one then.
            let most = batch.segment() * self.segments.max(1);
            let (now, later) = rest.split_at(most.min(rest.len()));
            let transmit = Transmit {
                destination: batch.destination(),
                ecn: batch.ect().then_some(EcnCodepoint::Ect0),
                contents: now,
                segment_size: (now.len() > batch.segment()).then_some(batch.segment()),
                src_ip: batch.source(),
            };
            let sent =
                io.try_io(Interest::WRITABLE, || state.try_send(UdpSockRef::from(io), &transmit));
            if let Err(error) = sent {
                let lost_offload = state.max_gso_segments() < self.segments;
                if lost_offload && error.kind() != io::ErrorKind::WouldBlock {
                    self.segments = state.max_gso_segments();
                    continue;
                }
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.refused += now.len().div_ceil(batch.segment()) as u64;
                }
                return Err(without_source(error, batch));
            }
            rest = later;
        }
        Ok(())
    }

    /// Whether the kernel has yet to take something: then nothing new should be made for it.
    pub fn is_blocked(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Sends what waits; ready when nothing does any more.
    pub fn flush(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Some(batch) = self.backlog.pop_front() {
            let blocked = |sent: &io::Result<()>| {
                sent.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
            };
            // The call tells tokio that the socket is full, and only then it can be waited for.
            if blocked(&self.try_send(&batch)) {
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
fn bind_interface(socket: &socket2::Socket, interface: &str) -> io::Result<()> {
    socket.bind_device(Some(interface.as_bytes()))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind_interface(_: &socket2::Socket, _: &str) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "binding to an interface needs Linux; name its address instead",
    ))
}

/// What the system gives, and the address that it is bound to.
fn open(local: &BindAddress, beside_ipv4: bool) -> io::Result<(Open, SocketAddr)> {
    let domain = Domain::for_address(local.address);
    let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if beside_ipv4 && local.address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if let Some(interface) = &local.interface {
        bind_interface(&socket, interface)?;
    }
    socket.bind(&SockAddr::from(local.address))?;
    let std = std::net::UdpSocket::from(socket);
    let state = UdpSocketState::new(UdpSockRef::from(&std))?;
    // Best effort: the kernel has a limit of its own.
    let _ = state.set_recv_buffer_size(UdpSockRef::from(&std), SOCKET_BUFFER);
    let _ = state.set_send_buffer_size(UdpSockRef::from(&std), SOCKET_BUFFER);
    std.set_nonblocking(true)?;
    let io = tokio::net::UdpSocket::from_std(std)?;
    let local = io.local_addr()?;
    Ok((Open { io, state }, local))
}

/// Linux calls a source address that has gone an invalid argument.
fn without_source(error: io::Error, batch: &Batch) -> io::Error {
    let gone = batch.source().is_some() && error.kind() == io::ErrorKind::InvalidInput;
    if gone { io::ErrorKind::AddrNotAvailable.into() } else { error }
}

/// Linux's number of "no such device": the interface that a socket is bound to has been removed.
const NO_DEVICE: i32 = 19;

/// Whether an error of sending says that the interface does not carry datagrams of that length (EMSGSIZE).
pub fn is_too_long(error: &io::Error) -> bool {
    const TOO_LONG: i32 = if cfg!(windows) {
        10_040
    } else if cfg!(any(target_os = "linux", target_os = "android")) {
        90
    } else {
        40
    };
    error.raw_os_error() == Some(TOO_LONG)
}

/// Whether an error of sending says that nothing can leave there for now, whatever it is.
pub fn leads_nowhere(error: &io::Error) -> bool {
    let no_device = cfg!(any(target_os = "linux", target_os = "android"))
        && error.raw_os_error() == Some(NO_DEVICE);
    let gone = matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::AddrNotAvailable
    );
    gone || no_device
}
