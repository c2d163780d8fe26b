//! Closing channels (RFC 8831, 6.7).

use std::collections::BTreeSet;

use ropewalk_base::Time;

use super::Connection;
use crate::channel::{ChannelId, ChannelState};
use crate::event::{ChannelClosed, Event, Violation};

/// Streams that no channel uses and that cannot be used: they are not reset in both directions. A peer can make this end
/// hold each number once.
#[derive(Clone, Debug, Default)]
pub(super) struct Resets {
    held: BTreeSet<u16>,
}

impl Resets {
    /// Whether a stream cannot be used.
    pub fn holds(&self, id: u16) -> bool {
        self.held.contains(&id)
    }

    pub fn clear(&mut self) {
        self.held.clear();
    }
}

impl Connection {
    /// Closes a channel. What was sent before is still delivered; what arrives from now on is dropped. [`Event::Closed`]
    /// follows. Does nothing if there is no such channel.
    pub fn close(&mut self, channel: ChannelId) {
        self.close_with(channel.0, ChannelClosed::Here);
    }

    /// Closes a channel or, if there is none, the stream, because the peer broke a rule (RFC 8832, 6; RFC 8831, 6.6).
    pub(super) fn refuse(&mut self, _now: Time, id: u16, violation: Violation) {
        self.count(violation);
        if self.channels.contains_key(&id) {
            self.close_with(id, ChannelClosed::Violation(violation));
        } else {
            self.resets.held.insert(id);
        }
    }

    fn close_with(&mut self, id: u16, reason: ChannelClosed) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if channel.state == ChannelState::Closing {
            return;
        }
        let announced = channel.state != ChannelState::Connecting;
        self.remove(id);
        if announced {
            self.resets.held.insert(id);
        }
        self.events.push_back(Event::Closed { channel: ChannelId(id), reason });
    }

    pub(super) fn follow_resets(&mut self, _now: Time) {}
}
