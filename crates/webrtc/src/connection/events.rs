//! Converts reports of the association to events of channels.

use ropewalk_base::Time;
use ropewalk_engine::sctp::Event as Reported;

use super::Connection;
use crate::channel::ChannelId;
use crate::event::{ChannelClosed, Event};

impl Connection {
    /// Takes the next event. Messages are taken out of the receive buffer individually, so the peer's window closes
    /// if the application does not take them.
    pub fn poll_event(&mut self, now: Time) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            while let Some(reported) = self.association.poll_event() {
                self.on_reported(now, reported);
            }
            self.follow_resets();
            if !self.events.is_empty() {
                continue;
            }
            if let Some(message) = self.association.read(now) {
                self.on_received(now, message);
                continue;
            }
            self.request_resets();
            self.report_low_amounts();
            // Messages sent before the association ended have been delivered now.
            if self.events.is_empty() && self.ended.is_some() {
                self.end();
            }
            if self.events.is_empty() {
                return None;
            }
        }
    }

    fn on_reported(&mut self, now: Time, reported: Reported) {
        match reported {
            Reported::Connected => {
                self.events.push_back(Event::Connected);
                self.announce_all(now);
            }
            Reported::Writable => self.events.push_back(Event::Writable),
            // RFC 9260, 5.2.4: the peer has lost its state, so its channels no longer exist.
            Reported::Restarted => self.close_all(),
            Reported::Closed(reason) => self.ended = Some(reason),
            // Resets are handled before each message. There is one path, whose addresses do not concern SCTP.
            Reported::Readable
            | Reported::PathChanged(..)
            | Reported::Reconfigured
            | Reported::AddressesChanged
            | Reported::PeerUsesKey(_) => {}
        }
    }

    fn close_all(&mut self) {
        for id in std::mem::take(&mut self.channels).into_keys() {
            let (channel, reason) = (ChannelId(id), ChannelClosed::Association);
            self.events.push_back(Event::Closed { channel, reason });
        }
        self.resets.clear();
        self.text_bytes = 0;
        self.unsent_dcep.clear();
        self.above_threshold.clear();
        self.assemblies.clear();
    }

    fn end(&mut self) {
        let Some(reason) = self.ended.take() else { return };
        self.close_all();
        self.events.push_back(Event::Disconnected(reason));
    }
}
