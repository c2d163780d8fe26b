//! Handles messages of the peer.

use bytes::Bytes;
use ropewalk_base::Time;
use ropewalk_engine::sctp::Message as Received;

use super::Connection;
use crate::assembly::Assembled;
use crate::channel::{ChannelId, ChannelState};
use crate::event::{Event, Violation};
use crate::ppid::{self, BadMessage};

impl Connection {
    /// Handles a message, or a part of one, that the association has received.
    pub(super) fn on_received(&mut self, now: Time, message: Received) {
        let id = message.stream.0;
        match self.assemblies.take(message) {
            Assembled::Partly => {}
            Assembled::TooLong => self.refuse(id, Violation::TooLong),
            Assembled::Whole(ppid::DCEP, payload) => self.on_dcep(now, id, &payload),
            Assembled::Whole(ppid, payload) => self.on_user_message(id, ppid, payload),
        }
    }

    fn on_user_message(&mut self, id: u16, ppid: u32, payload: Bytes) {
        let Some(channel) = self.channels.get_mut(&id) else {
            // The channel was closed, and the peer does not know it yet.
            if self.resets.holds(id) {
                self.counters.messages_dropped += 1;
                return;
            }
            // RFC 8832, 6: user data on an unused stream is an error, and the channel is closed.
            return self.refuse(id, Violation::Unopened);
        };
        if channel.state == ChannelState::Closing {
            self.counters.messages_dropped += 1;
            return;
        }
        match ppid::decode(ppid, payload) {
            Ok(message) => {
                channel.counters.messages_received += 1;
                channel.counters.bytes_received += message.len() as u64;
                self.on_answer(id);
                self.events.push_back(Event::Message { channel: ChannelId(id), message });
            }
            // RFC 8831, 6.6: a channel with a message of unknown kind, or with another error, should be closed.
            Err(BadMessage::Kind) => self.refuse(id, Violation::Kind),
            Err(BadMessage::Text) => self.refuse(id, Violation::Text),
        }
    }
}
