//! Configuration of an endpoint.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use super::connect::SctpPorts;
use super::incoming::{IncomingFilter, OnLimit};
use super::limits::Limits;
use super::local_interfaces;
use super::observer::Observer;
use super::raw::Carrier;
use super::socket::BindAddress;
use super::transport::Transport;
use crate::capture::Capture;
use crate::interfaces::{self, InterfaceAddress};
use crate::seal::{Allowed, PresharedKey, SecretKey};

/// UDP port of SCTP in UDP (RFC 6951, 5.1), and the SCTP port of Ropewalk's own services.
pub const PORT: u16 = 9899;

/// The keys of this endpoint, and its allowed peers.
#[derive(Clone, Debug)]
pub struct Sealing {
    /// This endpoint's own key.
    pub secret: SecretKey,
    /// The peers whose associations are accepted.
    pub allowed: Allowed,
    /// Pre-shared key: used in each handshake that this end initiates, and required of peers that have none of their
    /// own in `allowed`.
    pub psk: Option<PresharedKey>,
}

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keys. `None` sends packets unsealed, as SCTP in UDP (RFC 6951), for other SCTP implementations.
    pub sealing: Option<Sealing>,
    /// What carries the packets (UDP). Without sealing, they can be sent over IP alone.
    pub carrier: Carrier,
    /// Local sockets, one per local path.
    pub locals: Vec<BindAddress>,
    /// Whether IPv6 sockets bound to the unspecified address leave IPv4 to other programs, even if the endpoint has
    /// no IPv4 socket (off).
    pub ipv6_only: bool,
    /// Sockets that another program, such as a service manager, has bound: one for each of `locals`. If there are
    /// any, no socket is bound except for further shards, which require that `SO_REUSEPORT` was set when the
    /// inherited sockets were bound.
    pub inherited: Vec<Arc<UdpSocket>>,
    /// Whether sockets of `locals` whose interface or address is missing are bound once it appears. At least one must
    /// be present when the endpoint opens.
    pub wait_for_locals: bool,
    /// Whether interfaces that appear while the endpoint runs add paths to the associations that it opens. For sealed
    /// endpoints: an unsealed peer does not learn of new paths.
    pub automatic: bool,
    /// Whether the local sockets are those of all interfaces. Their order has no meaning: each is paired with
    /// the nearest address of the peer.
    pub all_interfaces: bool,
    /// Names of interfaces that are never used automatically.
    pub avoided_interfaces: Vec<String>,
    /// Whether TUN devices are excluded from automatic use, because they usually lead into tunnels. A TUN device with
    /// a peer in its own network is still used.
    pub avoid_tun: bool,
    /// Addresses of the peers, set by `automatic`.
    pub peers: Vec<IpAddr>,
    /// Interfaces or own addresses that sealed handshakes avoid, unless there are no others.
    pub handshake_avoids: Vec<String>,
    /// Number of shards (1): parts with their own sockets and associations, each of which can use a core. For
    /// endpoints with many associations, in a runtime with as many threads. Not with `automatic` or `all_interfaces`.
    pub shards: usize,
    /// Whether the endpoint accepts associations of peers.
    pub listen: bool,
    /// Without sealing, the SCTP ports on which associations are accepted (only 9899), one for each service. The
    /// first is also the local port of associations that a listening endpoint opens.
    pub sctp_ports: Vec<u16>,
    /// Without sealing, the SCTP ports of associations that [`Endpoint::connect`](super::Endpoint::connect) opens.
    pub connect_ports: SctpPorts,
    /// How associations behave.
    pub transport: Transport,
    /// Whether several datagrams are sent per system call where the system supports it. Otherwise one is sent
    /// per call, as with a network card without segmentation offload.
    pub offload: bool,
    /// Limits on what peers may make the endpoint hold.
    pub limits: Limits,
    /// Filter of incoming associations, in addition to keys and limits. `None` accepts all.
    pub incoming: Option<IncomingFilter>,
    /// Receives reports of reached limits.
    pub on_limit: Option<OnLimit>,
    /// If set, all packets are also written to these files, in the form inside the seal.
    pub capture: Option<Capture>,
    /// If set, figures and events are published to it.
    pub observer: Option<Observer>,
}

impl Options {
    /// Sets the SCTP ports on which associations are accepted.
    #[must_use]
    pub fn on_sctp_ports(mut self, ports: &[u16]) -> Self {
        self.sctp_ports = ports.to_vec();
        self
    }

    /// Sets what carries the packets.
    #[must_use]
    pub const fn over(mut self, carrier: Carrier) -> Self {
        self.carrier = carrier;
        self
    }

    /// Enables sealing: the endpoint communicates with allowed peers only.
    #[must_use]
    pub fn sealed(mut self, secret: SecretKey, allowed: Allowed) -> Self {
        self.sealing = Some(Sealing { secret, allowed, psk: None });
        self
    }

    /// Sets the pre-shared key, if sealing is enabled.
    #[must_use]
    pub fn with_psk(mut self, psk: Option<PresharedKey>) -> Self {
        if let Some(sealing) = &mut self.sealing {
            sealing.psk = psk;
        }
        self
    }

    /// Excludes these interfaces from automatic use.
    #[must_use]
    pub fn avoiding(mut self, interfaces: &[String]) -> Self {
        self.avoided_interfaces = interfaces.to_vec();
        self
    }

    /// Excludes TUN devices from automatic use, except those with a peer in their own network, such as emulated
    /// links.
    #[must_use]
    pub const fn avoiding_tun(mut self) -> Self {
        self.avoid_tun = true;
        self
    }

    /// The addresses of the interfaces that may be used.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn interfaces(&self) -> io::Result<Vec<InterfaceAddress>> {
        let mut all = match self.avoid_tun {
            true => interfaces::outside_tunnels(&self.peers)?,
            false => interfaces::list()?,
        };
        all.retain(|seen| !self.avoided_interfaces.contains(&seen.name));
        Ok(all)
    }

    /// Whether there are interfaces that must not be used automatically.
    pub(super) const fn avoids_interfaces(&self) -> bool {
        self.avoid_tun || !self.avoided_interfaces.is_empty()
    }

    /// Waits for interfaces and addresses of `locals` that are missing.
    #[must_use]
    pub const fn waiting_for_locals(mut self) -> Self {
        self.wait_for_locals = true;
        self
    }

    /// Whether one of `locals` may be used now. False if the endpoint waits for missing ones, and each is
    /// missing or down.
    pub fn has_local(&self) -> bool {
        let Some(all) = self.wait_for_locals.then(|| self.interfaces().ok()).flatten() else {
            return !self.locals.is_empty();
        };
        self.locals.iter().any(|local| local_interfaces::may_send(local, &all))
    }

    /// Uses one socket for each interface that may reach these addresses, and adds paths for interfaces that appear
    /// later. Does nothing if a peer is on this machine. If only avoided interfaces may reach the addresses, `locals`
    /// stays empty, and opening the endpoint fails with `OpenError::NoInterface`.
    #[must_use]
    pub fn automatic(mut self, remotes: &[SocketAddr]) -> Self {
        self.peers = remotes.iter().map(|remote| remote.ip().to_canonical()).collect();
        let all = self.interfaces().unwrap_or_default();
        if self.sealing.is_some() && local_interfaces::leave_this_machine(remotes, &all) {
            let found = local_interfaces::automatic(remotes, &all);
            let avoids = self.avoids_interfaces();
            self.locals = if avoids { local_interfaces::without_unbound(found) } else { found };
            self.automatic = true;
        }
        self
    }

    /// Without sealing, uses one socket for each interface that may reach these addresses now. Does nothing if a peer
    /// is on this machine, or if no interface may reach them. Addresses of a family that only avoided interfaces may
    /// reach are left out.
    #[must_use]
    pub fn on_all_interfaces(mut self, remotes: &[SocketAddr]) -> Self {
        let all = self.interfaces().unwrap_or_default();
        let mut locals = local_interfaces::automatic(remotes, &all);
        let is_named = |local: &BindAddress| local.interface.is_some();
        if !self.avoided_interfaces.is_empty() && locals.iter().any(is_named) {
            locals.retain(is_named);
        }
        let named = locals.iter().all(is_named);
        if self.sealing.is_none() && named && local_interfaces::leave_this_machine(remotes, &all) {
            self.locals = locals;
            self.all_interfaces = true;
        }
        self
    }

    /// An endpoint without sealing that listens at these addresses.
    pub fn listening(locals: &[SocketAddr]) -> Self {
        Self { listen: true, ..Self::connecting(locals) }
    }

    /// An endpoint without sealing that listens at sockets which another program has bound.
    ///
    /// # Errors
    /// One of them is not bound.
    pub fn inheriting(sockets: Vec<UdpSocket>) -> io::Result<Self> {
        let locals: Vec<_> =
            sockets.iter().map(UdpSocket::local_addr).collect::<io::Result<_>>()?;
        let inherited = sockets.into_iter().map(Arc::new).collect();
        Ok(Self { inherited, ..Self::listening(&locals) })
    }

    /// An endpoint without sealing that connects from these addresses.
    pub fn connecting(locals: &[SocketAddr]) -> Self {
        let locals = locals.iter().copied().map(BindAddress::of).collect();
        Self {
            sealing: None,
            carrier: Carrier::Udp,
            locals,
            ipv6_only: false,
            inherited: Vec::new(),
            wait_for_locals: false,
            automatic: false,
            all_interfaces: false,
            avoided_interfaces: Vec::new(),
            avoid_tun: false,
            peers: Vec::new(),
            handshake_avoids: Vec::new(),
            shards: 1,
            listen: false,
            sctp_ports: vec![PORT],
            connect_ports: SctpPorts::default(),
            transport: Transport::default(),
            offload: true,
            limits: Limits::default(),
            incoming: None,
            on_limit: None,
            capture: None,
            observer: None,
        }
    }
}
