//! Sends messages.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use libc::c_int;
use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::{
    CloseReason, Delivery, SendError, State as AssociationState, TrySendError,
};

use super::wait::{Attempted, Until, Wait};
use super::{Link, Phase, Socket, State, Stop, Style};
use crate::abi::control::{Controls, SendInfo, names_one};
use crate::abi::notification::Notification;
use crate::abi::number::{message, notification};
use crate::errno::{Errno, Result, of_close};

/// Maximum length of a message, bytes.
pub const MESSAGE_LIMIT: usize = 16 << 20;

/// A message that the program sends.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Bytes.
    pub bytes: Bytes,
    /// The peer, with its SCTP port. `None` selects the association that is named or connected.
    pub to: Option<SocketAddr>,
    /// Control messages of `sendmsg`.
    pub controls: Controls,
    /// Flags of `send`.
    pub flags: c_int,
}

/// How to continue after one attempt to send.
#[derive(Clone, Copy)]
enum Try {
    Sent,
    /// The send buffer is full.
    Full,
}

/// Whether a message still needs room in the send buffer, or all associations that it goes to were
/// seen to have room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Needed,
    Seen,
}

impl Link {
    /// Whether messages may be sent on it: it has not ended, and no shutdown has started.
    fn takes_messages(&self) -> bool {
        let status = self.association.status();
        !self.ended && status.is_some_and(|status| takes_data(&status.state))
    }

    /// Parameters of a message: its own, otherwise the defaults of the association.
    fn info(&self, outgoing: &Outgoing) -> SendInfo {
        let (controls, defaults) = (&outgoing.controls, &self.messages.send);
        let mut info = controls.info.unwrap_or(*defaults);
        if info.policy == 0 {
            (info.policy, info.value) = (defaults.policy, defaults.value);
        }
        if let Some((policy, value)) = controls.reliability {
            (info.policy, info.value) = (policy, value);
        }
        info
    }

    /// Makes the descriptor unwritable until the send buffer has room. `connecting`: it is not writable yet for
    /// another reason.
    fn await_room(&mut self, connecting: bool) {
        if !std::mem::replace(&mut self.full, true) || connecting {
            self.wake.full.notify_one();
        }
    }
}

impl State {
    /// Checks that a message can be sent on an association.
    ///
    /// # Errors
    /// `EINVAL` if the message is empty, its stream does not exist, or it must be authenticated with another key than
    /// the active one, which authenticates all messages; `EMSGSIZE` if it is too long and must not be fragmented.
    fn check(&self, link: &Link, outgoing: &Outgoing) -> Result<()> {
        let info = link.info(outgoing);
        if ends_only(&info, outgoing) {
            return Ok(());
        }
        if outgoing.bytes.is_empty() || info.stream >= link.streams() {
            return Err(Errno(libc::EINVAL));
        }
        let is_active = |key: u16| key == self.settings.shared_keys.active();
        if link.association.authenticates() && !outgoing.controls.key.is_none_or(is_active) {
            return Err(Errno(libc::EINVAL));
        }
        let largest = link.association.message_size();
        let maxseg = link.messages.maxseg as usize;
        let largest = if maxseg > 0 { largest.min(maxseg) } else { largest };
        if self.settings.disable_fragments && outgoing.bytes.len() > largest {
            return Err(Errno(libc::EMSGSIZE));
        }
        Ok(())
    }
}

const fn takes_data(state: &AssociationState) -> bool {
    matches!(
        state,
        AssociationState::CookieWait { .. }
            | AssociationState::CookieEchoed { .. }
            | AssociationState::Established
    )
}

/// Whether a message only ends the association: it aborts, or is empty and shuts it down.
fn ends_only(info: &SendInfo, outgoing: &Outgoing) -> bool {
    info.flags & message::ABORT != 0 || info.flags & message::EOF != 0 && outgoing.bytes.is_empty()
}

impl Socket {
    /// Sends a message. Returns its length.
    ///
    /// # Errors
    /// `EAGAIN` if the send buffer is full and the call must not wait, `EPIPE` if the association has ended, `ENOTCONN`,
    /// `EINVAL`, `EMSGSIZE`, and as [`Socket::connect`] if the message opens an association.
    pub fn send(self: &Arc<Self>, outgoing: &Outgoing) -> Attempted<usize> {
        if outgoing.bytes.len() > MESSAGE_LIMIT {
            return Err(Errno(libc::EMSGSIZE).into());
        }
        if outgoing.to.is_some() && self.lock().error.is_none() {
            self.forget_refusal()?;
        }
        if let Try::Sent = self.try_send(outgoing)? {
            return Ok(outgoing.bytes.len());
        }
        if self.is_nonblocking() || outgoing.flags & libc::MSG_DONTWAIT != 0 {
            return Err(Errno(libc::EAGAIN).into());
        }
        Err(Stop::Wait(Wait::new(self, Until::Writable)))
    }

    fn try_send(self: &Arc<Self>, outgoing: &Outgoing) -> Result<Try> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closed {
            return Err(Errno(libc::EBADF));
        }
        self.check_flags(state, outgoing)?;
        if state.write_shut && self.style == Style::OneToOne {
            return Err(Errno(libc::EPIPE));
        }
        let info = outgoing.controls.info.unwrap_or(state.settings.messages.send);
        if info.flags & message::SENDALL != 0 && self.style == Style::OneToMany {
            let result = self.send_to_all(state, outgoing);
            self.show(state);
            return result;
        }
        let id = self.association_for(state, &info, outgoing)?;
        let result = self.send_on(state, id, outgoing, Room::Needed);
        self.show(state);
        let opens = state.links.get(&id).is_some_and(|link| !link.up);
        drop(guard);
        if info.flags & message::EOF != 0 && self.style == Style::OneToMany {
            self.await_own_peer(id, |_| false);
        } else if opens {
            self.await_own_peer(id, |link| link.up);
        }
        result
    }

    /// Checks the flags of a message as Linux does (`sctp_sendmsg_parse`).
    ///
    /// # Errors
    /// `EPIPE` on a one-to-one socket that listens. `EINVAL` if the message ends the association of a one-to-one socket,
    /// where `shutdown` and SO_LINGER do that, or if a message that shuts an association down has data.
    fn check_flags(&self, state: &State, outgoing: &Outgoing) -> Result<()> {
        let is_connection = self.style == Style::OneToOne && !state.is_peeled_off;
        if is_connection && state.listening.is_some() {
            return Err(Errno(libc::EPIPE));
        }
        let flags = outgoing.controls.info.map_or(0, |info| info.flags);
        let ends = flags & (message::EOF | message::ABORT) != 0;
        if ends && is_connection || flags & message::EOF != 0 && !outgoing.bytes.is_empty() {
            return Err(Errno(libc::EINVAL));
        }
        Ok(())
    }

    /// Sends a message to each association that accepts messages (SCTP_SENDALL). The message is sent to all of them
    /// or to none: the call waits until all of them have room, and fails if one of them refuses the message.
    /// Associations that end meanwhile are ignored, because their end is reported.
    fn send_to_all(&self, state: &mut State, outgoing: &Outgoing) -> Result<Try> {
        let takes = state.links.iter().filter(|(_, link)| link.takes_messages());
        let all: Vec<i32> = takes.map(|(id, _)| *id).collect();
        for id in &all {
            state.check(&state.links[id], outgoing)?;
        }
        let mut full = false;
        for (_, link) in state.links.iter_mut().filter(|(id, _)| all.contains(id)) {
            if !ends_only(&link.info(outgoing), outgoing) && link.association.is_full() {
                full = true;
                link.await_room(false);
            }
        }
        if full {
            return Ok(Try::Full);
        }
        let mut result = Err(Errno(libc::EPIPE));
        for id in all {
            result = result.or(self.send_on(state, id, outgoing, Room::Seen));
        }
        result
    }

    /// The association of a message. Opens one if the message names a new peer (RFC 6458, 3.1.2).
    fn association_for(
        self: &Arc<Self>,
        state: &mut State,
        info: &SendInfo,
        outgoing: &Outgoing,
    ) -> Result<i32> {
        if self.style == Style::OneToOne {
            if let Some(error) = state.error.take() {
                self.show(state);
                return Err(error);
            }
            if let Some(id) = state.links.keys().next() {
                return Ok(*id);
            }
        } else if let Some(to) = outgoing.to
            && let Some((id, _)) = state.links.iter().find(|(_, link)| link.has_peer(&to))
        {
            return Ok(*id);
        } else if outgoing.to.is_none() {
            let named = info.association;
            let known = names_one(named) && state.links.contains_key(&named);
            return if known { Ok(named) } else { Err(Errno(libc::EPIPE)) };
        }
        // As in Linux (`sctp_sendmsg`) and with TCP.
        let to = outgoing.to.ok_or(Errno(libc::EPIPE))?;
        if state.listening.is_some() && self.style == Style::OneToOne {
            return Err(Errno(libc::EPIPE));
        }
        if info.flags & (message::EOF | message::ABORT) != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let mut peers = vec![to];
        let more = outgoing.controls.addresses.iter().map(|ip| SocketAddr::new(*ip, to.port()));
        peers.extend(more);
        let streams = outgoing.controls.streams.filter(|streams| *streams > 0);
        let streams = streams.unwrap_or(state.settings.init[0]);
        let id = self.open(state, &peers, streams)?;
        if self.style == Style::OneToOne {
            state.phase = Phase::Connecting;
        }
        Ok(id)
    }

    fn send_on(&self, state: &mut State, id: i32, outgoing: &Outgoing, room: Room) -> Result<Try> {
        let connecting = self.style == Style::OneToOne && state.phase == Phase::Connecting;
        let link = state.links.get(&id).ok_or(Errno(libc::ENOTCONN))?;
        state.check(link, outgoing)?;
        let Some(link) = state.links.get_mut(&id) else { return Err(Errno(libc::ENOTCONN)) };
        let info = link.info(outgoing);
        if info.flags & message::ABORT != 0 {
            link.association.abort_because_bytes(&outgoing.bytes);
            return Ok(Try::Sent);
        }
        if ends_only(&info, outgoing) {
            link.leave();
            return Ok(Try::Sent);
        }
        let ppid = u32::from_be(info.ppid);
        let delivery = Delivery { exceeds_buffer: room == Room::Seen, ..delivery(&info) };
        match link.association.try_send(info.stream, ppid, outgoing.bytes.clone(), delivery) {
            Ok(room) => {
                if info.flags & message::EOF != 0 {
                    link.leave();
                }
                link.wake.used.notify_one();
                if link.messages.wants(notification::SENDER_DRY) {
                    link.wake.dry.notify_one();
                }
                if room == 0 {
                    link.full = true;
                    link.wake.full.notify_one();
                }
                Ok(Try::Sent)
            }
            Err(TrySendError::Full) => {
                link.await_room(connecting);
                Ok(Try::Full)
            }
            Err(TrySendError::Refused(SendError::Misuse(_))) => Err(Errno(libc::EINVAL)),
            Err(TrySendError::Refused(SendError::Closed(reason))) => {
                self.on_closed(state, id, &info, outgoing, reason)
            }
        }
    }

    /// Reports when an association has no unsent or unacknowledged data.
    ///
    /// RFC 6458, 6.1.9: if there is no such data when the program subscribes, the notification is sent
    /// immediately.
    pub fn watch_for_dry(&self, state: &mut State, id: i32) {
        let Some(link) = state.links.get(&id).filter(|link| !link.ended) else { return };
        if !link.association.is_flushed() {
            link.wake.dry.notify_one();
        } else if link.up && link.association.close_reason().is_none() {
            state.notify(id, &Notification::SenderDry);
            self.show(state);
        }
    }

    /// The result of sending on an association that has ended.
    fn on_closed(
        &self,
        state: &mut State,
        id: i32,
        info: &SendInfo,
        outgoing: &Outgoing,
        reason: Option<CloseReason>,
    ) -> Result<Try> {
        let up = state.links.get(&id).is_some_and(|link| link.up);
        if self.style == Style::OneToMany && !up {
            // The peer has refused the association that this message was to open.
            let bytes = outgoing.bytes.to_vec();
            state.notify(id, &Notification::SendFailed { sent: false, info: *info, bytes });
            return Ok(Try::Sent);
        }
        match reason.and_then(|reason| of_close(reason, up)) {
            Some(error) if self.style == Style::OneToOne && state.error == Some(error) => {
                state.error = None;
                Err(error)
            }
            _ => Err(Errno(libc::EPIPE)),
        }
    }
}

fn delivery(info: &SendInfo) -> Delivery {
    let mut delivery = Delivery { context: info.context, ..Delivery::RELIABLE };
    delivery.ordered = info.flags & message::UNORDERED == 0;
    delivery.immediate = info.flags & message::SACK_IMMEDIATELY != 0;
    match info.policy {
        message::PR_TTL if info.value > 0 => {
            delivery.lifetime = Some(Duration::from_millis(u64::from(info.value)));
        }
        message::PR_RTX => {
            delivery.retransmissions = Some(u8::try_from(info.value).unwrap_or(u8::MAX));
        }
        message::PR_PRIO => delivery.priority = Some(info.value),
        _ => {}
    }
    delivery
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_of_a_message_is_one_of_rfc_7496() {
        for (policy, lifetime_ms, retransmissions, priority) in [
            (0, None, None, None),
            (message::PR_TTL, Some(7), None, None),
            (message::PR_RTX, None, Some(7), None),
            (message::PR_PRIO, None, None, Some(7)),
        ] {
            let found = delivery(&SendInfo { policy, value: 7, ..SendInfo::default() });
            let lifetime = lifetime_ms.map(Duration::from_millis);
            assert_eq!(
                (found.lifetime, found.retransmissions, found.priority),
                (lifetime, retransmissions, priority),
                "{policy:#x}"
            );
        }
    }

    #[test]
    fn the_flags_of_a_message_say_how_it_is_delivered() {
        let all = [(message::UNORDERED, true, false), (message::SACK_IMMEDIATELY, false, true)];
        for (flags, unordered, immediate) in all {
            let found = delivery(&SendInfo { flags, ..SendInfo::default() });
            assert_eq!((!found.ordered, found.immediate), (unordered, immediate), "{flags}");
        }
    }
}
