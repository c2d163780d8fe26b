//! Opening channels (RFC 8832, 6; RFC 8831, 6.5): by this end, by the peer, and negotiated.

use bytes::Bytes;
use ropewalk_base::Time;
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::Delivery;

use super::Connection;
use crate::channel::{Channel, ChannelId, ChannelOptions, ChannelState};
use crate::dcep::Dcep;
use crate::event::{ChannelClosed, Event, OpenError, Violation};
use crate::ppid;

impl Connection {
    /// Opens a channel, before or after the association is established. [`Event::Opened`] follows when the peer has
    /// answered. Messages may be sent as soon as the association is established.
    ///
    /// # Errors
    /// [`OpenError`]; nothing is changed then.
    pub fn open(&mut self, now: Time, options: ChannelOptions) -> Result<ChannelId, OpenError> {
        if !self.association.state().takes_data() {
            return Err(OpenError::Closing);
        }
        if options.label.len().max(options.protocol.len()) > usize::from(u16::MAX) {
            return Err(OpenError::TextTooLong);
        }
        if self.channels.len() >= self.config.max_channels {
            return Err(OpenError::TooMany);
        }
        let id = self.number_for(&options)?;
        self.insert(id, options, ChannelState::Connecting);
        if self.is_connected() {
            self.announce(id);
            self.flush_dcep(now);
        }
        Ok(ChannelId(id))
    }

    /// The number of a new channel.
    fn number_for(&self, options: &ChannelOptions) -> Result<u16, OpenError> {
        let last = match self.is_connected() {
            true => self.association.outbound_streams().saturating_sub(1).min(ChannelId::LAST.0),
            false => ChannelId::LAST.0,
        };
        let is_free = |id: &u16| !self.channels.contains_key(id) && !self.resets.holds(*id);
        match options.negotiated {
            Some(ChannelId(id)) if id > last => Err(OpenError::NoSuchStream),
            Some(ChannelId(id)) if !is_free(&id) => Err(OpenError::InUse),
            Some(ChannelId(id)) => Ok(id),
            // RFC 8832, 6: the DTLS client chooses even numbers, the server odd ones.
            None => {
                (self.config.role.first()..=last).step_by(2).find(is_free).ok_or(OpenError::TooMany)
            }
        }
    }

    fn insert(&mut self, id: u16, options: ChannelOptions, state: ChannelState) {
        self.text_bytes += options.text_bytes();
        self.channels.insert(id, Channel::new(options, state));
    }

    /// Announces the channels that were opened before the association was established.
    pub(super) fn announce_all(&mut self, now: Time) {
        let waiting: Vec<u16> = self.channels.keys().copied().collect();
        for id in waiting {
            if id >= self.association.outbound_streams() {
                self.remove(id);
                let (channel, reason) = (ChannelId(id), ChannelClosed::NoSuchStream);
                self.events.push_back(Event::Closed { channel, reason });
            } else {
                self.announce(id);
            }
        }
        self.flush_dcep(now);
    }

    /// Announces a channel of this end; a negotiated one is open immediately (RFC 8831, 6.5).
    fn announce(&mut self, id: u16) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let weight = channel.options.priority.max(1);
        if channel.options.negotiated.is_some() {
            channel.state = ChannelState::Open;
            self.events.push_back(Event::Opened { channel: ChannelId(id), by_peer: false });
        } else {
            self.unsent_dcep.insert(id);
        }
        self.set_weight(id, weight);
    }

    fn set_weight(&mut self, id: u16, weight: u16) {
        // The stream exists: callers check its number.
        let _ = self.association.set_stream_value(ChannelId(id).stream(), weight);
    }

    /// Sends the pending OPENs and ACKs, until the send buffer is full.
    pub(super) fn flush_dcep(&mut self, now: Time) {
        while let Some(id) = self.unsent_dcep.first().copied() {
            if !self.send_dcep(now, id) {
                return;
            }
            self.unsent_dcep.pop_first();
        }
    }

    /// Sends the OPEN of a channel of this end, or the ACK of one of the peer. Returns false if there is no room.
    fn send_dcep(&mut self, now: Time, id: u16) -> bool {
        let Some(channel) = self.channels.get_mut(&id) else { return true };
        let own = channel.state == ChannelState::Connecting;
        let message = if own { Dcep::Open(channel.options.clone()) } else { Dcep::Ack };
        let payload = Payload::from(Bytes::from(message.encode()));
        let stream = ChannelId(id).stream();
        // RFC 8832, 6: messages of the protocol are sent ordered and reliably, on the stream of their channel.
        let sent =
            self.association.send_message(now, stream, ppid::DCEP, payload, Delivery::RELIABLE);
        if sent.is_ok() && own {
            channel.state = ChannelState::Announced;
            channel.awaits_ack = true;
        }
        // Other errors mean that the association is closing, and that no peer waits for the message.
        sent != Err(ropewalk_engine::sctp::association::SendError::Full)
    }

    /// Handles a message of the establishment protocol.
    pub(super) fn on_dcep(&mut self, now: Time, id: u16, payload: &[u8]) {
        match Dcep::decode(payload) {
            Ok(Dcep::Open(options)) => {
                self.make_way(id);
                match self.objection(id, &options) {
                    None => self.accept(now, id, options),
                    Some(violation) => self.refuse(id, violation),
                }
            }
            Ok(Dcep::Ack) => self.on_ack(id),
            Err(_) => self.refuse(id, Violation::Malformed),
        }
    }

    /// Why the peer may not open this channel (RFC 8832, 6).
    fn objection(&self, id: u16, options: &ChannelOptions) -> Option<Violation> {
        let text = self.text_bytes + options.text_bytes();
        if self.channels.contains_key(&id) || self.resets.holds(id) {
            Some(Violation::InUse)
        } else if self.config.role.owns(id) {
            Some(Violation::Parity)
        } else if self.channels.len() >= self.config.max_channels || text > self.config.text_limit {
            Some(Violation::TooMany)
        } else if id >= self.association.outbound_streams() {
            Some(Violation::Malformed)
        } else {
            None
        }
    }

    /// RFC 8832, 6: a valid OPEN is answered with an ACK on the stream of the same number.
    fn accept(&mut self, now: Time, id: u16, options: ChannelOptions) {
        let weight = options.priority.max(1);
        self.insert(id, options, ChannelState::Open);
        self.set_weight(id, weight);
        self.unsent_dcep.insert(id);
        self.flush_dcep(now);
        self.events.push_back(Event::Opened { channel: ChannelId(id), by_peer: true });
    }

    fn on_ack(&mut self, id: u16) {
        match self.channels.get_mut(&id) {
            Some(channel) if channel.awaits_ack => {
                channel.awaits_ack = false;
                self.on_answer(id);
            }
            _ => self.refuse(id, Violation::UnexpectedAck),
        }
    }

    /// Handles any message of the peer on a channel, which shows that the peer knows the channel (RFC 8832, 6).
    pub(super) fn on_answer(&mut self, id: u16) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if channel.state == ChannelState::Announced {
            channel.state = ChannelState::Open;
            self.events.push_back(Event::Opened { channel: ChannelId(id), by_peer: false });
        }
    }
}
