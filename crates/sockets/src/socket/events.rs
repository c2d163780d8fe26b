//! Events of a socket's associations, and notifications (RFC 6458, 6.1).

use std::net::SocketAddr;
use std::sync::Arc;

use ropewalk_runtime::endpoint::{
    AddressChange, CloseReason, Outcome, PathEvent, Reconfigured, Streams, Undelivered,
};

use super::link::Link;
use super::receive::Item;
use super::{Phase, Socket, State, Style};
use crate::abi::control::SendInfo;
use crate::abi::notification::{AddressState, AssociationState, KeyState, Notification};
use crate::abi::number::{message, reconfiguration as flag};
use crate::address::shown;
use crate::errno::of_close;

/// The flag for the outcome of a request.
const fn outcome_flag(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Performed => 0,
        Outcome::Denied => flag::DENIED,
        Outcome::Failed => flag::FAILED,
    }
}

impl State {
    /// Queues a notification if the program has subscribed to it.
    pub fn notify(&mut self, id: i32, what: &Notification) {
        let item = self.notification(id, what);
        self.inbox.extend(item);
    }

    /// A notification, if the program has subscribed to it.
    pub(super) fn notification(&self, id: i32, what: &Notification) -> Option<Item> {
        let kind = what.types().iter().find(|kind| self.messages_of(id).wants(**kind))?;
        let peer = self.links.get(&id).map(|link| link.peer);
        Some(Item::notification(id, peer, what.image(*kind, id)))
    }

    /// Queues a notification about the state of an association.
    pub fn notify_state(&mut self, id: i32, state: AssociationState) {
        self.notify_association(id, state, 0, Vec::new());
    }

    /// Reports that an association has failed, or could not be established, for this reason.
    fn notify_failure(&mut self, id: i32, state: AssociationState, reason: CloseReason) {
        let (error, abort) = match reason {
            CloseReason::AbortedByPeer(cause) => {
                let link = self.links.get(&id);
                let said = link.and_then(|link| link.association.abort_reason_bytes());
                (cause.code(), abort_chunk(cause.code(), &said.unwrap_or_default()))
            }
            CloseReason::Aborted(cause) => (cause.code(), Vec::new()),
            _ => (0, Vec::new()),
        };
        self.notify_association(id, state, error, abort);
    }

    fn notify_association(&mut self, id: i32, state: AssociationState, error: u16, abort: Vec<u8>) {
        let streams =
            self.links.get(&id).map_or((0, 0), |link| (link.streams(), link.inbound_streams()));
        self.notify(id, &Notification::Association { state, error, streams, abort });
    }

    /// Reports the messages of an association that were not delivered (RFC 6458, 6.1.11).
    fn notify_undelivered(&mut self, id: i32) {
        let Some(association) = self.links.get(&id).map(|link| link.association.clone()) else {
            return;
        };
        for message in association.unacknowledged().into_iter().chain(association.unsent()) {
            self.notify(id, &send_failed(message));
        }
    }

    /// Reports once that the peer shuts the association down (RFC 6458, 6.1.5), unless this end has started
    /// its own shutdown.
    fn notify_shutdown(&mut self, id: i32) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if !link.history.leaving && !std::mem::replace(&mut link.history.peer_leaving, true) {
            self.notify(id, &Notification::Shutdown);
        }
    }

    /// Reports that an association is established, and information from the peer's handshake (RFC 6458, 6.1.6,
    /// 6.1.8).
    fn notify_established(&mut self, id: i32) {
        self.notify_state(id, AssociationState::CommUp);
        let Some(link) = self.links.get(&id) else { return };
        let authenticates = link.association.authenticates();
        if let Some(layer) = link.association.peer_adaptation() {
            self.notify(id, &Notification::Adaptation { layer });
        }
        // As in Linux (`sctp_sf_do_5_1D_ce`), whether or not this end authenticates chunks.
        if !authenticates {
            self.notify_key(id, KeyState::NoAuthentication, 0);
        }
    }

    /// Reports an event of a shared key (RFC 6458, 6.1.8).
    fn notify_key(&mut self, id: i32, state: KeyState, number: u16) {
        self.notify(id, &Notification::Key { state, number });
    }

    /// Reports a reconfiguration of the streams of an association (RFC 6525, 6.1).
    pub(super) fn on_reconfigured(&mut self, id: i32, event: &Reconfigured) {
        let streams = |streams: &Streams| streams.listed().iter().map(|one| one.0).collect();
        let what = match event {
            Reconfigured::ResetByPeer(all) => {
                Notification::StreamsReset { flags: flag::INCOMING, streams: streams(all) }
            }
            Reconfigured::Reset(all, outcome) => {
                let flags = flag::OUTGOING | outcome_flag(*outcome);
                Notification::StreamsReset { flags, streams: streams(all) }
            }
            Reconfigured::PeerResetRefused(all, outcome) => {
                let flags = flag::INCOMING | outcome_flag(*outcome);
                Notification::StreamsReset { flags, streams: streams(all) }
            }
            Reconfigured::Association { outcome, local_tsn, peer_tsn, .. } => {
                let (flags, tsns) = (outcome_flag(*outcome), (local_tsn.0, peer_tsn.0));
                Notification::AssociationReset { flags, tsns }
            }
            Reconfigured::StreamsAdded { outgoing, incoming, outcome } => {
                let flags = outcome_flag(*outcome);
                let streams = match (flags, self.links.get_mut(&id)) {
                    (0, Some(link)) => link.add_streams(*outgoing),
                    _ => (*incoming, *outgoing),
                };
                Notification::StreamsChanged { flags, streams }
            }
        };
        self.notify(id, &what);
    }

    /// Reports a change of the peer's addresses (RFC 6458, 6.1.2).
    fn on_address_change(&mut self, id: i32, change: AddressChange, ipv6: bool) {
        let (state, ip) = match change {
            AddressChange::Added(ip) => (AddressState::Added, ip),
            AddressChange::Removed(ip) => (AddressState::Removed, ip),
            AddressChange::Primary(ip) => (AddressState::MadePrimary, ip),
            // RFC 6458 has no notification about this end's addresses.
            AddressChange::OwnAdded(..)
            | AddressChange::OwnRemoved(..)
            | AddressChange::OwnPrimary(..) => return,
        };
        let Some(link) = self.links.get(&id) else { return };
        let address = SocketAddr::new(ip, link.peer.port());
        let address = shown(address, ipv6, self.settings.mapped);
        self.notify(id, &Notification::Address { state, address });
    }

    /// Takes all messages of an association that have arrived, so that later notifications follow
    /// them.
    fn take_all(&mut self, id: i32) {
        while self.pull(id, usize::MAX) {}
    }
}

impl Socket {
    /// Called when an association is established.
    pub(super) fn on_established(&self, id: i32) {
        let state = &mut *self.lock();
        let Some(link) = state.links.get_mut(&id) else { return };
        link.up = true;
        link.end_connecting(Ok(()));
        if self.style == Style::OneToOne {
            state.phase = Phase::Connected;
        }
        if !state.settings.heartbeats {
            let association = state.links[&id].association.clone();
            for path in 0..association.paths().len() {
                association.set_heartbeats(path, false, None);
            }
        }
        state.notify_established(id);
        self.show(state);
    }

    /// Called when an association could not be established.
    pub(super) fn on_not_established(&self, id: i32, reason: CloseReason) {
        let state = &mut *self.lock();
        let Some(link) = state.links.get_mut(&id) else { return };
        link.end_connecting(of_close(reason, false).map_or(Ok(()), Err));
        state.notify_undelivered(id);
        state.notify_failure(id, AssociationState::CannotStart, reason);
        state.links.remove(&id);
        state.ready.retain(|other| *other != id);
        if self.style == Style::OneToOne {
            state.phase = Phase::Idle;
            state.error = of_close(reason, false);
        }
        self.show(state);
    }

    /// Called for an event of a path or of the association.
    pub(super) fn on_path_event(&self, id: i32, event: PathEvent) {
        let state = &mut *self.lock();
        match event {
            PathEvent::Restarted => {
                state.take_all(id);
                state.cut_all_short(id);
                state.notify_state(id, AssociationState::Restart);
            }
            PathEvent::PeerUsesKey(number) => state.notify_key(id, KeyState::New, number),
            PathEvent::Address(change) => state.on_address_change(id, change, self.ipv6),
            PathEvent::Changed(path, status) => {
                let Some(link) = state.links.get_mut(&id) else { return };
                let port = link.peer.port();
                let Some(change) = link.history.on_path_status(path.index(), status) else {
                    return;
                };
                let stats = link.association.stats();
                let remote = stats.and_then(|stats| stats.paths.get(path.index())?.remote);
                let Some(mut address) = remote else { return };
                address.set_port(port);
                let address = shown(address, self.ipv6, state.settings.mapped);
                state.notify(id, &Notification::Address { state: change, address });
            }
        }
        self.show(state);
    }

    /// Called when a shared key is deactivated: later packets are authenticated with another key.
    pub fn on_key_free(&self, state: &mut State, id: i32, number: u16) {
        state.notify_key(id, KeyState::Free, number);
        self.show(state);
    }

    /// Called when messages are abandoned (RFC 3758, 3.5).
    pub(super) fn on_abandoned(&self, id: i32, messages: Vec<Undelivered>) {
        let state = &mut *self.lock();
        for message in messages {
            state.notify(id, &send_failed(message));
        }
        self.show(state);
    }

    /// Called when messages have arrived. Returns whether the program will read them.
    pub(super) fn on_readable(&self, id: i32) -> bool {
        let state = &mut *self.lock();
        let Some(link) = state.links.get_mut(&id) else { return true };
        // The program may have read them meanwhile.
        if !link.association.can_receive() {
            // Events about streams without messages become notifications immediately.
            state.pull(id, 0);
            self.show(state);
            return false;
        }
        link.wake.used.notify_one();
        if !std::mem::replace(&mut link.is_ready, true) {
            state.ready.push_back(id);
        }
        self.show(state);
        true
    }

    /// Called when a full send buffer has room again.
    pub(super) fn on_writable(&self, id: i32) {
        let state = &mut *self.lock();
        if let Some(link) = state.links.get_mut(&id) {
            link.full = false;
        }
        self.show(state);
    }

    /// Called when the peer has acknowledged everything sent.
    pub(super) fn on_dry(&self, id: i32) {
        let state = &mut *self.lock();
        let lives = |link: &Link| !link.ended && link.association.close_reason().is_none();
        if state.links.get(&id).is_some_and(lives) {
            state.notify(id, &Notification::SenderDry);
            self.show(state);
        }
    }

    /// Called when an association has been idle for too long.
    pub(super) fn on_idle(&self, id: i32) {
        let state = &mut *self.lock();
        if let Some(link) =
            state.links.get_mut(&id).filter(|link| !link.ended && !link.history.leaving)
        {
            link.leave();
        }
    }

    /// Called when the peer's SHUTDOWN has arrived: all of its data is here, and it accepts no more.
    pub(super) fn on_peer_shutdown(&self, id: i32) {
        let state = &mut *self.lock();
        if let Some(link) = state.links.get_mut(&id).filter(|link| !link.ended) {
            link.peer_shut = true;
            state.take_all(id);
            state.notify_shutdown(id);
            self.show(state);
        }
    }

    /// Called when an association has ended.
    pub(super) fn on_ended(&self, id: i32) {
        let state = &mut *self.lock();
        let Some(link) = state.links.get_mut(&id) else { return };
        (link.ended, link.full) = (true, false);
        let raw = link.association.close_reason();
        let reason = link.close_reason().unwrap_or(CloseReason::Shutdown);
        state.take_all(id);
        state.cut_all_short(id);
        state.notify_undelivered(id);
        if reason == CloseReason::Shutdown {
            state.notify_shutdown(id);
            state.notify_state(id, AssociationState::ShutdownComplete);
        } else {
            state.notify_failure(id, AssociationState::CommLost, reason);
        }
        match self.style {
            // As in Linux (`sctp_sf_t2_timer_expire`), SO_ERROR tells that the SHUTDOWN ACK was not answered.
            Style::OneToOne => state.error = raw.and_then(|reason| of_close(reason, true)),
            Style::OneToMany => {
                state.links.remove(&id);
                state.ready.retain(|other| *other != id);
            }
        }
        self.show(state);
    }

    /// Reports the start of an association that a peer has opened.
    pub(super) fn announce(self: &Arc<Self>, state: &mut State, id: i32) {
        state.notify_established(id);
        self.show(state);
    }
}

/// An ABORT chunk with one cause (RFC 9260, 3.3.7).
fn abort_chunk(code: u16, info: &[u8]) -> Vec<u8> {
    const ABORT: u8 = 6;
    let cause = (4 + info.len()) as u16;
    let mut chunk = vec![ABORT, 0];
    chunk.extend((4 + cause).to_be_bytes());
    chunk.extend(code.to_be_bytes());
    chunk.extend(cause.to_be_bytes());
    chunk.extend(info);
    chunk
}

fn send_failed(message: Undelivered) -> Notification {
    let info = SendInfo {
        stream: message.stream,
        flags: if message.unordered { message::UNORDERED } else { 0 },
        ppid: message.ppid.to_be(),
        context: message.context,
        ..SendInfo::default()
    };
    Notification::SendFailed { sent: message.sent, info, bytes: message.bytes.to_vec() }
}
