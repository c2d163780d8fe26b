//! Associations that peers open: accept queues, and associations that become separate sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use libc::c_int;
use ropewalk_runtime::endpoint::Association;

use super::history::History;
use super::link::NewLink;
use super::wait::{Attempted, Until, Wait};
use super::{Phase, Socket, State, Stop, Style};
use crate::address::shown;
use crate::errno::{Errno, Result};
use crate::process::{Claim, Place, Service, current};

/// A new socket, its descriptor and its peer.
pub struct Accepted {
    /// The descriptor.
    pub fd: c_int,
    /// The socket.
    pub socket: Arc<Socket>,
    /// The peer's address.
    pub peer: SocketAddr,
}

/// The peer's address with its SCTP port.
pub fn peer_of(association: &Association) -> Option<SocketAddr> {
    let (_, port) = association.sctp_ports()?;
    let remote = association.stats()?.paths.iter().find_map(|path| path.remote)?;
    Some(SocketAddr::new(remote.ip().to_canonical(), port))
}

impl State {
    /// Free places in the accept queue. As in the kernel, the queue is one longer than the argument of `listen`. A
    /// one-to-many socket has no limit.
    pub(super) fn room(&self, style: Style) -> usize {
        match style {
            Style::OneToOne => (self.backlog + 1).saturating_sub(self.accept_queue.len()),
            Style::OneToMany => usize::MAX,
        }
    }

    /// Whether the socket listens and has no association that would have to follow a change of its
    /// addresses.
    pub(super) fn only_listens(&self) -> bool {
        self.listening.is_some() && self.links.is_empty() && self.accept_queue.is_empty()
    }

    /// The claim to the port of a socket that takes over one of the associations.
    fn inherited_claim(&self) -> Option<Arc<Claim>> {
        self.claim.as_ref().map(|claim| Arc::new(claim.inherited()))
    }
}

impl Socket {
    /// Accepts associations at the addresses of the socket.
    ///
    /// # Errors
    /// As [`Socket::listen`].
    pub(super) fn begin_listening(
        self: &Arc<Self>,
        state: &mut State,
        claim: &Claim,
    ) -> Result<()> {
        claim.listen()?;
        let service = self.service_to_listen(state, claim.port());
        if service.is_err() {
            claim.stop_listening();
        }
        state.listening = Some(service?);
        Ok(())
    }

    /// Listens at new addresses. If that fails, listens at the previous ones again.
    pub(super) fn listen_again(
        self: &Arc<Self>,
        state: &mut State,
        claim: &Claim,
        before: Place,
    ) -> Result<()> {
        state.stop_listening(self);
        let begun = self.begin_listening(state, claim);
        if begun.is_err() {
            state.place = before;
            self.begin_listening(state, claim)?;
        }
        begun
    }

    /// The endpoint that accepts associations for this socket.
    fn service_to_listen(self: &Arc<Self>, state: &mut State, port: u16) -> Result<Arc<Service>> {
        state.place.v6_only = state.settings.v6_only;
        let any_port = self.style == Style::OneToMany;
        let transport = state.settings.transport();
        let service = current().listening_at(&state.place, &transport, any_port)?;
        service.listen(port, self, state.room(self.style))?;
        Ok(service)
    }

    /// Called when a peer has opened an association.
    pub fn on_incoming(self: &Arc<Self>, association: Association, service: &Arc<Service>) {
        let state = &mut *self.lock();
        if state.closed || state.listening.is_none() {
            return association.abort();
        }
        if self.style == Style::OneToMany {
            let Some(peer) = peer_of(&association) else { return };
            state.settings.configure(&association);
            let new = NewLink {
                association: Arc::new(association),
                service: service.clone(),
                peer,
                up: true,
                streams: state.settings.init[0],
                id: None,
                history: History::default(),
            };
            if let Ok(id) = self.add_link(state, new) {
                state.pull_before_notification();
                self.announce(state, id);
            }
            return;
        }
        // The endpoint refuses handshakes when the queue is full. However, peers of sockets that share a port may
        // all choose the same queue.
        if state.room(self.style) == 0 {
            return association.abort();
        }
        state.accept_queue.push_back((association, service.clone()));
        self.tell_room(state);
        self.show(state);
    }

    /// Informs the endpoint of the free places in the accept queue.
    pub(super) fn tell_room(&self, state: &State) {
        if let Some(service) = &state.listening {
            service.set_room(state.port(), self, state.room(self.style));
        }
    }

    /// Takes the next association of the accept queue. `flags`: those of the new descriptor.
    ///
    /// # Errors
    /// `EINVAL` if the socket does not listen, `EOPNOTSUPP` if it is a one-to-many socket, `EAGAIN` if the queue is
    /// empty and the socket is nonblocking.
    pub fn accept(self: &Arc<Self>, flags: c_int) -> Attempted<Accepted> {
        if self.style == Style::OneToMany {
            return Err(Errno(libc::EOPNOTSUPP).into());
        }
        let state = &mut *self.lock();
        if state.closed || state.listening.is_none() {
            return Err(Errno(libc::EINVAL).into());
        }
        while let Some((association, service)) = state.accept_queue.pop_front() {
            self.tell_room(state);
            self.show(state);
            // An association that has already ended is also returned, because it may hold data.
            if let Some(peer) = peer_of(&association) {
                return Ok(self.give_out(state, Arc::new(association), service, peer, flags)?);
            }
        }
        if self.is_nonblocking() {
            return Err(Errno(libc::EAGAIN).into());
        }
        Err(Stop::Wait(Wait::new(self, Until::Readable)))
    }

    fn give_out(
        &self,
        state: &State,
        association: Arc<Association>,
        service: Arc<Service>,
        peer: SocketAddr,
        flags: c_int,
    ) -> Result<Accepted> {
        let settings = state.settings.clone();
        let (fd, socket) = Self::with(Style::OneToOne, self.ipv6, flags, settings)?;
        {
            let fresh = &mut *socket.lock();
            (fresh.place, fresh.claim) = (state.place.clone(), state.inherited_claim());
            fresh.phase = Phase::Connected;
            fresh.settings.configure(&association);
            let streams = fresh.settings.init[0];
            let history = History::default();
            let new = NewLink { association, service, peer, up: true, streams, id: None, history };
            let id = socket.add_link(fresh, new)?;
            socket.announce(fresh, id);
        }
        let peer = shown(peer, self.ipv6, state.settings.mapped);
        Ok(Accepted { fd, socket, peer })
    }

    /// Makes an association of a one-to-many socket a separate socket (`sctp_peeloff`).
    ///
    /// # Errors
    /// `EINVAL` on a one-to-one socket, and if there is no such association.
    pub fn peel_off(&self, id: i32, flags: c_int) -> Result<Accepted> {
        if self.style == Style::OneToOne {
            return Err(Errno(libc::EINVAL));
        }
        let state = &mut *self.lock();
        let Some(mut link) = state.links.remove(&id) else { return Err(Errno(libc::EINVAL)) };
        link.stop();
        state.ready.retain(|other| *other != id);
        let mut settings = state.settings.clone();
        settings.messages = link.messages;
        let (fd, socket) = Self::with(Style::OneToOne, self.ipv6, flags, settings)?;
        let peer = shown(link.peer, self.ipv6, state.settings.mapped);
        {
            let fresh = &mut *socket.lock();
            (fresh.place, fresh.claim) = (state.place.clone(), state.inherited_claim());
            (fresh.phase, fresh.is_peeled_off) = (Phase::Connected, true);
            let (moved, kept) = state.inbox.drain(..).partition(|item| item.id() == id);
            (fresh.inbox, state.inbox) = (moved, kept);
            if state.in_part.is_some_and(|message| message.id == id) {
                (fresh.in_part, state.in_part) = (state.in_part, None);
            }
            let super::Link { association, service, peer, streams, up, history, .. } = link;
            let new = NewLink { association, service, peer, up, streams, id: Some(id), history };
            socket.add_link(fresh, new)?;
            socket.show(fresh);
        }
        self.show(state);
        Ok(Accepted { fd, socket, peer })
    }
}
