//! Creates the messages to the peer.

use bytes::Bytes;

use super::machine::{Event, Mux, StreamKey};
use super::message::Message;
use super::stream_state::{Inbound, OpenState, Outbound};

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
        while let Some((key, list_before)) = self.scheduler.next() {
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            let message = stream.has_data_to_send().then(|| stream.outbound.cut(most)).flatten();
            let more = stream.has_data_to_send();
            let id = stream.id;
            self.scheduler.put_back(key, &mut stream.scheduler_list, list_before, more);
            if let Some(message) = message {
                self.after_data(key);
                return Some((id, message));
            }
        }
        None
    }

    /// Whether there is a message to send.
    pub fn has_messages(&self) -> bool {
        !self.control.is_empty() || !self.scheduler.is_empty()
    }

    /// The message for `control`, unless it has become unnecessary.
    fn control_message(&mut self, key: StreamKey, control: Control) -> Option<(u16, Message)> {
        let stream = self.streams.get_mut(&key)?;
        let id = stream.id;
        let message = match control {
            Control::Open(target) => {
                // With no reader, no credit is granted; the peer will receive a RESET next.
                let mut credit = 0;
                if let Inbound::Open { window, .. } = &stream.inbound {
                    credit = window.granted();
                }
                Message::Open { credit, target }
            }
            Control::Opened => {
                let mut credit = 0;
                if let Inbound::Open { window, .. } = &mut stream.inbound {
                    credit = window.granted();
                }
                Message::Opened { credit }
            }
            Control::Credit => {
                // After the peer's end, no credit is needed.
                let Inbound::Open { window, .. } = &mut stream.inbound else { return None };
                Message::Credit(window.take_update())
            }
            Control::Refused => {
                let OpenState::Refused(refusal) = &stream.open_state else { return None };
                let message = Message::Refused(refusal.clone());
                stream.outbound = Outbound::Ended;
                message
            }
            Control::Reset => {
                if matches!(stream.outbound, Outbound::Closing) {
                    stream.outbound = Outbound::Ended;
                }
                Message::Reset
            }
        };
        self.remove_if_ended(key);
        Some((id, message))
    }

    /// Updates a stream after its bytes, and possibly its end, were sent.
    fn after_data(&mut self, key: StreamKey) {
        self.events.push_back(Event::Changed(key));
        if let Some(stream) = self.streams.get(&key)
            && matches!(stream.outbound, Outbound::Ended)
            && matches!(stream.inbound, Inbound::Discarding)
        {
            // The stream was released before its end was sent: there is no reader for what the peer may
            // still send.
            self.control.push_back((key, Control::Reset));
        }
        self.remove_if_ended(key);
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
