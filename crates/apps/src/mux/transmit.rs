//! Creates the messages to the peer.

use bytes::Bytes;

use super::entry::{Inbound, Outbound, Phase};
use super::machine::{Event, Key, Mux};
use super::message::Message;

/// Messages other than data. Their contents are determined when they are sent.
#[derive(Debug)]
pub enum Control {
    Open(Bytes),
    Opened,
    Refused,
    Credit,
    Reset,
}

impl Mux {
    /// The next message, and the association's stream for it. Data is limited to `most` bytes per message.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn poll_transmit(&mut self, most: usize) -> Option<(u16, Message)> {
        assert!(most > 0, "no message without a byte");
        while let Some((key, control)) = self.control.pop_front() {
            if let Some(message) = self.control_message(key, control) {
                return Some(message);
            }
        }
        while let Some((key, had)) = self.ring.next() {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let message = entry.has_turn().then(|| entry.outbound.cut(most)).flatten();
            let more = entry.has_turn();
            let id = entry.id;
            self.ring.put_back(key, &mut entry.turn, had, more);
            if let Some(message) = message {
                self.after_data(key);
                return Some((id, message));
            }
        }
        None
    }

    /// Whether there is a message to send.
    pub fn has_messages(&self) -> bool {
        !self.control.is_empty() || !self.ring.is_empty()
    }

    /// The message for `control`, unless it has become unnecessary.
    fn control_message(&mut self, key: Key, control: Control) -> Option<(u16, Message)> {
        let entry = self.entries.get_mut(&key)?;
        let id = entry.id;
        let message = match control {
            Control::Open(target) => {
                // With no reader, no credit is granted; the peer will receive a RESET next.
                let mut credit = 0;
                if let Inbound::Open { window, .. } = &entry.inbound {
                    credit = window.granted();
                }
                Message::Open { credit, target }
            }
            Control::Opened => {
                let mut credit = 0;
                if let Inbound::Open { window, .. } = &mut entry.inbound {
                    credit = window.granted();
                }
                Message::Opened { credit }
            }
            Control::Credit => {
                // After the peer's end it needs no credit.
                let Inbound::Open { window, .. } = &mut entry.inbound else { return None };
                Message::Credit(window.tell())
            }
            Control::Refused => {
                let Phase::Refused(refusal) = &entry.phase else { return None };
                let message = Message::Refused(refusal.clone());
                entry.outbound = Outbound::Ended;
                message
            }
            Control::Reset => {
                if matches!(entry.outbound, Outbound::Closing) {
                    entry.outbound = Outbound::Ended;
                }
                Message::Reset
            }
        };
        self.settle(key);
        Some((id, message))
    }

    /// Updates a stream after its bytes, and possibly its end, were sent.
    fn after_data(&mut self, key: Key) {
        self.events.push_back(Event::Changed(key));
        if let Some(entry) = self.entries.get(&key)
            && matches!(entry.outbound, Outbound::Ended)
            && matches!(entry.inbound, Inbound::Discarding)
        {
            // The stream was released before its end was sent: nobody reads what the peer may still send.
            self.control.push_back((key, Control::Reset));
        }
        self.settle(key);
    }
}

impl Outbound {
    /// The next bytes that may be sent, or the end.
    fn cut(&mut self, most: usize) -> Option<Message> {
        let (sending, finishes) = match self {
            Self::Open(sending) => (sending, false),
            Self::Finishing(sending) => (sending, true),
            Self::Closing | Self::Ended => return None,
        };
        let n = sending.ready().min(most as u64) as usize;
        let bytes = sending.queue.take(n);
        sending.sent += n as u64;
        let last = finishes && sending.queue.is_empty();
        if last {
            *self = Self::Ended;
        }
        match (bytes.is_empty(), last) {
            (false, false) => Some(Message::Data(bytes)),
            (false, true) => Some(Message::Last(bytes)),
            (true, true) => Some(Message::Fin),
            (true, false) => None,
        }
    }
}
