//! Endpoints of this process. Sockets that listen share one endpoint for each set of addresses, because they share its
//! UDP port; it stays open until the process ends. A socket that only connects has an endpoint of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};

use ropewalk_runtime::endpoint::{Endpoint, OpenError, Options, RawError, Transport};

use tokio::runtime::Handle;

use super::{Process, current, lock};
use crate::errno::{Errno, Result};
use crate::settings::PEER_UDP_PORT;
use crate::socket::Socket;

/// Client ports: the dynamic range of RFC 6335, 6.
const DYNAMIC_FROM: u16 = 49_152;

/// Where a socket is bound.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// The addresses; none: all of this machine.
    pub addresses: Vec<IpAddr>,
    /// Whether the socket is an IPv6 socket.
    pub ipv6: bool,
    /// Whether an IPv6 socket uses no IPv4 addresses.
    pub v6_only: bool,
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
}

/// An endpoint.
#[derive(Debug)]
pub struct Service {
    /// The endpoint.
    pub endpoint: Endpoint,
    listeners: Mutex<BTreeMap<u16, Weak<Socket>>>,
}

impl Service {
    /// Opens an endpoint. Needs a tokio runtime.
    fn open(options: Options) -> std::result::Result<Arc<Self>, Refused> {
        let reactor = current().reactor();
        let _inside = reactor.as_ref().map(Handle::enter);
        let endpoint = Endpoint::open(options.over(current().settings().carrier))?;
        Ok(Arc::new(Self { endpoint, listeners: Mutex::default() }))
    }

    /// Opens an endpoint for one socket that connects to `remotes` (addresses with UDP ports).
    ///
    /// # Errors
    /// As the system says when the UDP sockets are bound.
    pub fn connecting(
        place: &Place,
        remotes: &[SocketAddr],
        transport: Transport,
    ) -> Result<Arc<Self>> {
        let mut place = place.clone();
        // A socket of one family suffices where the peer has no other.
        if place.addresses.is_empty() && remotes.iter().all(|remote| !remote.is_ipv6()) {
            place.ipv6 = false;
        } else if remotes.iter().all(SocketAddr::is_ipv6) {
            place.v6_only = true;
        }
        let mut options = Options::connecting(&place.sockets(current().settings().client_udp_port));
        options.transport = transport;
        if place.addresses.is_empty() {
            options = options.avoiding(&current().settings().avoid).on_all_interfaces(remotes);
        }
        current().reactor()?;
        Self::open(options).map_err(Refused::report)
    }

    /// Delivers associations on an SCTP port to a socket.
    ///
    /// # Errors
    /// `EADDRINUSE` if another socket listens there, or another program over IP alone.
    pub fn listen(&self, port: u16, socket: &Arc<Socket>) -> Result<()> {
        let mut listeners = lock(&self.listeners);
        if listeners.get(&port).is_some_and(|other| other.strong_count() > 0) {
            return Err(Errno(libc::EADDRINUSE));
        }
        // Over IP alone, another program may have the port.
        if !self.endpoint.listen_on(port) && !self.endpoint.listens_on(port) {
            return Err(Errno(libc::EADDRINUSE));
        }
        listeners.insert(port, Arc::downgrade(socket));
        Ok(())
    }

    /// Ends that.
    pub fn stop_listening(&self, port: u16) {
        lock(&self.listeners).remove(&port);
        self.endpoint.stop_listening_on(port);
    }

    /// Delivers the associations that peers open.
    async fn accept(self: Arc<Self>) {
        loop {
            let association = self.endpoint.accept().await;
            let port = association.sctp_ports().map_or(0, |(local, _)| local);
            let listener = lock(&self.listeners).get(&port).and_then(Weak::upgrade);
            match listener {
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
    /// The error number. The reason goes to standard error, because a UDP port in use is not the SCTP port that the
    /// program has asked for.
    fn report(self) -> Errno {
        eprintln!("libropewalk: {}", self.error);
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

/// The endpoints that accept associations.
#[derive(Debug, Default)]
pub struct Services {
    listening: Mutex<BTreeMap<Place, Arc<Service>>>,
}

impl Process {
    /// The endpoint that listens at a place. Opens it with `transport` if there is none. If another program has the UDP
    /// port, `any_port` allows another one: programs with one-to-many sockets listen even if they only connect.
    ///
    /// # Errors
    /// As the system says when the UDP sockets are bound.
    pub fn listening_at(
        &self,
        place: &Place,
        transport: &Transport,
        any_port: bool,
    ) -> Result<Arc<Service>> {
        self.reactor()?;
        let mut listening = lock(&self.services().listening);
        if let Some(service) = listening.get(place) {
            return Ok(service.clone());
        }
        let open = |port| {
            let mut options = Options::listening(&place.sockets(port)).on_sctp_ports(&[]);
            options.avoided_interfaces.clone_from(&self.settings().avoid);
            options.transport = transport.clone();
            Service::open(options)
        };
        let port = self.settings().udp_port;
        let service = match open(port) {
            Err(Refused { errno: Errno(libc::EADDRINUSE), .. }) if any_port => {
                let service = open(0).map_err(Refused::report)?;
                let used = service.endpoint.locals().first().map_or(0, SocketAddr::port);
                eprintln!(
                    "libropewalk: another program has UDP port {port}: peers that connect to this one need \
                     {PEER_UDP_PORT}={used}"
                );
                service
            }
            opened => opened.map_err(Refused::report)?,
        };
        self.reactor()?.spawn(service.clone().accept());
        listening.insert(place.clone(), service.clone());
        Ok(service)
    }
}

/// A free SCTP port for a socket that has chosen none. RFC 6056, 3.3.1: a random one.
///
/// # Errors
/// `EIO` if the system provides no random numbers.
pub fn free_port() -> Result<u16> {
    let drawn = getrandom::u32().map_err(|_| Errno(libc::EIO))?;
    let count = u32::from(u16::MAX - DYNAMIC_FROM) + 1;
    Ok(DYNAMIC_FROM + (drawn % count) as u16)
}
