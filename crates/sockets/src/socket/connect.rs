//! Associations that a socket opens.

use std::net::SocketAddr;
use std::sync::Arc;

use ropewalk_runtime::endpoint::{Association, ConnectError, SctpPorts, Target, Transport};

use super::history::History;
use super::link::NewLink;
use super::wait::{Until, Wait, Waiter};
use super::{Phase, Socket, State, Stop, Style};
use crate::errno::{Errno, Result};
use crate::process::{Service, current, routes};

fn errno_of(error: &ConnectError) -> Errno {
    Errno(match error {
        ConnectError::NoPath => libc::ENETUNREACH,
        ConnectError::PortTaken(_) => libc::EADDRINUSE,
        // As in Linux (`sctp_endpoint_is_peeled_off`), the association may belong to another socket.
        ConnectError::Exists(..) | ConnectError::NoFreePort => libc::EADDRNOTAVAIL,
        ConnectError::SctpPort => libc::EINVAL,
        _ => libc::EIO,
    })
}

/// Maximum number of random ports to try for one association.
const DRAWS: usize = 64;

impl Socket {
    /// Opens an association to a peer with these addresses. Their ports are SCTP ports (`connect`,
    /// `sctp_connectx`). Returns its identifier and the event that the call waits for, or `EINPROGRESS` if the
    /// socket is nonblocking.
    ///
    /// # Errors
    /// `EISCONN`, `EALREADY`; `EINVAL` and `ENETUNREACH` as [`routes::check`] says.
    pub fn connect(self: &Arc<Self>, peers: &[SocketAddr]) -> Result<(i32, Stop)> {
        let blocking = !self.is_nonblocking();
        self.forget_refusal()?;
        let waiter = (blocking && self.style == Style::OneToMany)
            .then(|| Waiter::on(&self.pair).map(Arc::new))
            .transpose()?;
        let id = {
            let state = &mut *self.lock();
            self.may_connect(state, peers)?;
            let streams = state.settings.init[0];
            let id = self.open(state, peers, streams)?;
            if self.style == Style::OneToOne {
                (state.phase, state.error) = (Phase::Connecting, None);
                state.awaits_outcome = blocking;
            }
            if let Some(link) = state.links.get_mut(&id) {
                link.connecting.clone_from(&waiter);
            }
            self.show(state);
            id
        };
        if !blocking {
            self.await_own_peer(id, |link| link.up);
            return Ok((id, Stop::Error(Errno(libc::EINPROGRESS))));
        }
        let until = waiter.map_or(Until::Connected(id), Until::Outcome);
        Ok((id, Stop::Wait(Wait::new(self, until))))
    }

    fn may_connect(&self, state: &State, peers: &[SocketAddr]) -> Result<()> {
        if state.closed {
            return Err(Errno(libc::EBADF));
        }
        if self.style == Style::OneToOne {
            if state.listening.is_some() {
                return Err(Errno(libc::EISCONN));
            }
            match state.phase {
                Phase::Idle => {}
                Phase::Connecting => return Err(Errno(libc::EALREADY)),
                Phase::Connected => return Err(Errno(libc::EISCONN)),
            }
        } else {
            let mut links = state.links.values();
            if let Some(link) = links.find(|link| peers.iter().any(|peer| link.has_peer(peer))) {
                return Err(Errno(if link.up { libc::EISCONN } else { libc::EALREADY }));
            }
        }
        Ok(())
    }

    /// Starts an association.
    pub(super) fn open(
        self: &Arc<Self>,
        state: &mut State,
        peers: &[SocketAddr],
        streams: u16,
    ) -> Result<i32> {
        let first = *peers.first().ok_or(Errno(libc::EINVAL))?;
        if first.port() == 0 || peers.iter().any(|peer| peer.port() != first.port()) {
            return Err(Errno(libc::EINVAL));
        }
        let mut addresses = Vec::with_capacity(peers.len());
        let udp_port = state.settings.peer_udp_port;
        let udp_port = udp_port.unwrap_or(current().settings().peer_udp_port);
        for peer in peers {
            let mut ip = peer.ip().to_canonical();
            if ip.is_ipv6() && !self.ipv6 || ip.is_ipv4() && state.settings.v6_only {
                return Err(Errno(libc::EINVAL));
            }
            if ip.is_unspecified() {
                // The unspecified address means this machine, as with TCP.
                ip = if ip.is_ipv4() {
                    std::net::Ipv4Addr::LOCALHOST.into()
                } else {
                    std::net::Ipv6Addr::LOCALHOST.into()
                };
            }
            let mut address = SocketAddr::new(ip, udp_port);
            if let (SocketAddr::V6(to), SocketAddr::V6(from)) = (&mut address, peer) {
                to.set_scope_id(from.scope_id());
            }
            addresses.push(address);
        }
        let place = super::Place { v6_only: state.settings.v6_only, ..state.place.clone() };
        routes::check(&place, &addresses)?;
        // A listening socket opens associations from its own UDP port.
        let service = match &state.listening {
            Some(service) => service.clone(),
            None => {
                let transport = Transport { streams, ..state.settings.transport() };
                Service::connecting(&place, &addresses, transport)?
            }
        };
        let peer = SocketAddr::new(addresses[0].ip(), first.port());
        let target = Target { addresses, key: None };
        let association = self.start(state, &service, &target, first.port())?;
        state.settings.configure(&association);
        if let Some(attempts) = Some(state.settings.init[2]).filter(|most| *most > 0)
            && let Some(mut parameters) = association.parameters()
        {
            parameters.max_init_retransmits = u32::from(attempts);
            let _ = association.set_parameters(parameters);
        }
        let association = Arc::new(association);
        let history = History::default();
        let new = NewLink { association, service, peer, up: false, streams, id: None, history };
        self.add_link(state, new)
    }

    /// Starts an association. An unbound socket uses any free port.
    fn start(
        &self,
        state: &mut State,
        service: &Service,
        target: &Target,
        remote: u16,
    ) -> Result<Association> {
        let mut draws = 0;
        loop {
            let drawn = match &state.claim {
                Some(_) => None,
                None => Some(self.claim_any(state)?),
            };
            draws += 1;
            let local = drawn.as_ref().map_or_else(|| state.port(), |claim| claim.port());
            let ports = SctpPorts { local: Some(local), remote };
            match service.endpoint.start_connect(target, ports) {
                // Directly over IP, another program may use the port.
                Err(ConnectError::PortTaken(_)) if drawn.is_some() && draws < DRAWS => {}
                started => {
                    let association = started.map_err(|error| errno_of(&error))?;
                    state.claim = drawn.map(Arc::new).or(state.claim.take());
                    return Ok(association);
                }
            }
        }
    }

    /// Whether the association of a one-to-one socket is established.
    ///
    /// # Errors
    /// Why it could not be established.
    pub(super) fn has_connected(&self, id: i32) -> Result<bool> {
        let state = &mut *self.lock();
        if let Some(link) = state.links.get(&id) {
            return Ok(link.up);
        }
        let error = state.error.take();
        state.awaits_outcome = false;
        self.show(state);
        Err(error.unwrap_or(Errno(libc::ETIMEDOUT)))
    }

    /// Called when a call no longer waits for the outcome of the handshake, which continues.
    pub(super) fn stop_awaiting_outcome(&self) {
        let state = &mut *self.lock();
        state.awaits_outcome = false;
        self.show(state);
    }
}
