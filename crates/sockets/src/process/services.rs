//! Endpoints of this process. Listening sockets share one endpoint per set of addresses, because they share its UDP
//! port. The endpoint stays open until the process ends, or until it is idle and another endpoint needs the UDP
//! port. A socket that only connects has its own endpoint.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ropewalk_runtime::endpoint::{Association, Endpoint, OpenError, Options, RawError, Transport};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::{Process, current, lock, routes};
use crate::errno::{Errno, Result};
use crate::settings::{CLIENT_UDP_PORT, PEER_UDP_PORT, UDP_PORT};
use crate::socket::{Socket, peer_of};

/// Number of attempts, and pause between them, to open a UDP port that endpoints of this process are
/// releasing.
const CLOSING_TRIES: u32 = 500;
const CLOSING_PAUSE: Duration = Duration::from_millis(2);

/// An interface to which a socket is bound (`SO_BINDTODEVICE`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Interface {
    /// Interface index.
    pub index: u32,
    /// Name.
    pub name: String,
}

/// The addresses and the interface to which a socket is bound.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// The addresses. Empty for all addresses of this machine.
    pub addresses: Vec<IpAddr>,
    /// Whether the socket is an IPv6 socket.
    pub ipv6: bool,
    /// Whether an IPv6 socket uses no IPv4 addresses.
    pub v6_only: bool,
    /// The only interface that it uses. `None` for all interfaces.
    pub interface: Option<Interface>,
}

impl Place {
    /// The addresses with a UDP port.
    fn sockets(&self, port: u16) -> Vec<SocketAddr> {
        let unspecified: &[IpAddr] = match (self.ipv6, self.v6_only) {
            (false, _) => &[IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
            (true, true) => &[IpAddr::V6(Ipv6Addr::UNSPECIFIED)],
            (true, false) => {
                &[IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)]
            }
        };
        let all = if self.addresses.is_empty() { unspecified } else { &self.addresses };
        all.iter().map(|ip| SocketAddr::new(*ip, port)).collect()
    }

    /// Restricts an endpoint to the interface.
    fn restrict(&self, options: &mut Options) {
        for local in &mut options.locals {
            local.interface = self.interface.as_ref().map(|interface| interface.name.clone());
        }
    }
}

/// An endpoint.
#[derive(Debug)]
pub struct Service {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The sockets that listen on each SCTP port. Several sockets may share a port
    /// (`SO_REUSEPORT`).
    listeners: Mutex<BTreeMap<u16, Vec<Listener>>>,
}

/// A listening socket.
#[derive(Debug)]
struct Listener {
    socket: Weak<Socket>,
    /// Free places in its accept queue.
    room: usize,
}

/// Total free places of all sockets that share a port.
fn room_of(listeners: &[Listener]) -> usize {
    listeners.iter().map(|one| one.room).fold(0, usize::saturating_add)
}

impl Service {
    /// Opens an endpoint. Needs a tokio runtime.
    fn open(options: Options) -> std::result::Result<Arc<Self>, Refused> {
        let reactor = current().reactor();
        let _inside = reactor.as_ref().map(Handle::enter);
        let endpoint = Endpoint::open(options.over(current().settings().carrier))?;
        let service = Arc::new(Self { endpoint, listeners: Mutex::default() });
        let mut all = lock(&current().services().all);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&service));
        Ok(service)
    }

    /// Opens an endpoint for one socket that connects to `remotes` (addresses with UDP ports).
    ///
    /// # Errors
    /// Errors of the system when the UDP sockets are bound; `ENETUNREACH` if the settings exclude all
    /// interfaces.
    pub fn connecting(
        place: &Place,
        remotes: &[SocketAddr],
        transport: Transport,
    ) -> Result<Arc<Self>> {
        let mut place = place.clone();
        // A socket of one family is enough if the peer only has that family.
        if place.addresses.is_empty() && remotes.iter().all(|remote| !remote.is_ipv6()) {
            place.ipv6 = false;
        } else if remotes.iter().all(SocketAddr::is_ipv6) {
            place.v6_only = true;
        }
        let mut options = Options::connecting(&place.sockets(current().settings().client_udp_port));
        options.ipv6_only = place.v6_only;
        options.transport = transport;
        if place.interface.is_some() {
            place.restrict(&mut options);
        } else if place.addresses.is_empty() {
            options = routes::on_interfaces(options, remotes)?;
        }
        current().reactor()?;
        Self::open(options).map_err(|e| e.report("--client-udp-port", CLIENT_UDP_PORT))
    }

    /// Delivers associations on an SCTP port to a socket that has claimed it and has this many free
    /// places.
    ///
    /// # Errors
    /// `EADDRINUSE` if another program uses the port directly over IP.
    pub fn listen(&self, port: u16, socket: &Arc<Socket>, room: usize) -> Result<()> {
        let mut listeners = lock(&self.listeners);
        // Directly over IP, another program may use the port.
        if !self.endpoint.listen_on(port) && !self.endpoint.listens_on(port) {
            return Err(Errno(libc::EADDRINUSE));
        }
        let sharing = listeners.entry(port).or_default();
        sharing.push(Listener { socket: Arc::downgrade(socket), room });
        self.endpoint.set_room(port, room_of(sharing));
        Ok(())
    }

    /// Updates the number of free places in a socket's accept queue.
    pub fn set_room(&self, port: u16, socket: &Socket, room: usize) {
        let mut listeners = lock(&self.listeners);
        let Some(sharing) = listeners.get_mut(&port) else { return };
        let own = sharing.iter_mut().find(|one| std::ptr::eq(one.socket.as_ptr(), socket));
        if let Some(own) = own {
            own.room = room;
        }
        self.endpoint.set_room(port, room_of(sharing));
    }

    /// Stops the delivery to a socket.
    pub fn stop_listening(&self, port: u16, socket: &Socket) {
        let mut listeners = lock(&self.listeners);
        let Some(sockets) = listeners.get_mut(&port) else { return };
        sockets.retain(|Listener { socket: other, .. }| {
            other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), socket)
        });
        if sockets.is_empty() {
            listeners.remove(&port);
            self.endpoint.stop_listening_on(port);
        } else {
            self.endpoint.set_room(port, room_of(sockets));
        }
    }

    /// The socket to which an association is delivered. Sockets that share a port share the peers, as in the
    /// kernel.
    fn listener_of(&self, association: &Association) -> Option<Arc<Socket>> {
        let (port, _) = association.sctp_ports()?;
        let listeners = lock(&self.listeners);
        let sockets: Vec<_> =
            listeners.get(&port)?.iter().filter_map(|one| one.socket.upgrade()).collect();
        let chosen = match sockets.len() {
            0 | 1 => 0,
            count => {
                let mut hasher = DefaultHasher::new();
                peer_of(association).hash(&mut hasher);
                (hasher.finish() % count as u64) as usize
            }
        };
        sockets.into_iter().nth(chosen)
    }

    /// Delivers the associations that peers open.
    async fn accept(self: Arc<Self>) {
        loop {
            let association = self.endpoint.accept().await;
            match self.listener_of(&association) {
                Some(socket) => socket.on_incoming(association, &self),
                None => association.abort(),
            }
        }
    }
}

/// Why an endpoint could not be opened.
struct Refused {
    errno: Errno,
    error: OpenError,
}

impl Refused {
    /// The error number. The reason goes to standard error, because the UDP port in use differs from the SCTP port
    /// that the program has requested. `option` and `variable` set the UDP port.
    fn report(self, option: &str, variable: &str) -> Errno {
        let chosen = match self.errno {
            Errno(libc::EADDRINUSE) => format!(" ({option} of `ropewalk preload`, {variable})"),
            _ => String::new(),
        };
        eprintln!("libropewalk: {}{chosen}", self.error);
        self.errno
    }
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Self {
        let number = match &error {
            OpenError::Raw(RawError::NotPermitted) => libc::EPERM,
            OpenError::Raw(_) => libc::EPROTONOSUPPORT,
            OpenError::Bind(_, error) => error.raw_os_error().unwrap_or(libc::EIO),
            _ => libc::EINVAL,
        };
        Self { errno: Errno(number), error }
    }
}

/// The endpoints of this process.
#[derive(Debug, Default)]
pub struct Services {
    all: Mutex<Vec<Weak<Service>>>,
    /// Those that accept associations.
    listening: Mutex<BTreeMap<Place, (Arc<Service>, AbortHandle)>>,
}

impl Services {
    /// Whether packets to this address are loopback packets that reach one of the endpoints.
    pub fn have(&self, address: &SocketAddr) -> bool {
        if !address.ip().to_canonical().is_loopback() {
            return false;
        }
        let reaches = |local: &SocketAddr| {
            local.port() == address.port()
                && (local.ip().is_unspecified() || local.ip() == address.ip())
        };
        let all: Vec<_> = lock(&self.all).iter().filter_map(Weak::upgrade).collect();
        all.iter().any(|service| service.endpoint.locals().iter().any(reaches))
    }

    /// The open descriptors of all endpoints.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let all: Vec<_> = lock(&self.all).iter().filter_map(Weak::upgrade).collect();
        all.iter().flat_map(|service| service.endpoint.descriptors()).collect()
    }
}

/// Closes endpoints that have neither listening sockets nor associations. Returns whether some are closed or may
/// close soon.
fn close_idle(listening: &mut BTreeMap<Place, (Arc<Service>, AbortHandle)>) -> bool {
    let mut unused = false;
    listening.retain(|_, (service, accepting)| {
        let listens = !lock(&service.listeners).is_empty();
        let idle = !listens && service.endpoint.associations() == 0;
        unused |= !listens;
        if idle {
            accepting.abort();
        }
        !idle
    });
    unused
}

type Opened = std::result::Result<Arc<Service>, Refused>;

fn is_in_use(opened: &Opened) -> bool {
    matches!(opened, Err(Refused { errno: Errno(libc::EADDRINUSE), .. }))
}

/// Opens an endpoint. If an unused endpoint of this process holds its UDP ports, closes that one.
#[expect(clippy::disallowed_methods, reason = "the program has called `listen`, and waits")]
fn open_in_place_of_unused(
    listening: &mut BTreeMap<Place, (Arc<Service>, AbortHandle)>,
    open: impl Fn() -> Opened,
) -> Opened {
    let mut opened = open();
    // The last associations of an endpoint may still be shutting down, and its task closes the UDP
    // sockets later.
    let (mut tries, mut unused) = (0, false);
    while is_in_use(&opened) && tries < CLOSING_TRIES {
        unused |= close_idle(listening);
        if !unused {
            break;
        }
        tries += 1;
        std::thread::sleep(CLOSING_PAUSE);
        opened = open();
    }
    opened
}

impl Process {
    /// The endpoint that listens at a place. Opens it with `transport` if there is none. If another program uses
    /// the UDP port, `any_port` allows a different one: programs with one-to-many sockets listen even if they only
    /// connect.
    ///
    /// # Errors
    /// Errors of the system when the UDP sockets are bound.
    pub fn listening_at(
        &self,
        place: &Place,
        transport: &Transport,
        any_port: bool,
    ) -> Result<Arc<Service>> {
        self.reactor()?;
        let mut key = place.clone();
        key.addresses.sort_unstable();
        let mut listening = lock(&self.services().listening);
        if let Some((service, _)) = listening.get(&key) {
            return Ok(service.clone());
        }
        let open = |port| {
            let mut options = Options::listening(&place.sockets(port)).on_sctp_ports(&[]);
            options.avoided_interfaces.clone_from(&self.settings().avoid);
            options.ipv6_only = place.ipv6 && place.v6_only;
            place.restrict(&mut options);
            options.transport = transport.clone();
            Service::open(options)
        };
        let port = self.settings().udp_port;
        let refused = |error: Refused| error.report("--udp-port", UDP_PORT);
        let opened = open_in_place_of_unused(&mut listening, || open(port));
        let service = match opened {
            opened if any_port && is_in_use(&opened) => {
                let service = open(0).map_err(refused)?;
                let used = service.endpoint.locals().first().map_or(0, SocketAddr::port);
                eprintln!(
                    "libropewalk: UDP port {port} is in use, by another program or by a socket of this one: peers that connect to this one need \
                     {PEER_UDP_PORT}={used}"
                );
                service
            }
            opened => opened.map_err(refused)?,
        };
        let accepting = self.reactor()?.spawn(service.clone().accept()).abort_handle();
        listening.insert(key, (service.clone(), accepting));
        Ok(service)
    }
}
