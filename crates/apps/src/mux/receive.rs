//! Handles messages from the peer.

use bytes::Bytes;

use super::buffer::Buffer;
use super::flow_control::Window;
use super::limits::MIN_WINDOW;
use super::machine::{Event, Mux, StreamKey};
use super::message::{Message, Refusal, Violation};
use super::stream_scheduler::SchedulerList;
use super::stream_state::{Inbound, OpenState, Outbound, SendQueue, StreamState};
use super::transmit::Control;

impl Mux {
    /// Handles a message that arrived on the association's stream `id`.
    ///
    /// # Errors
    /// [`Violation`]: end the association, because further messages cannot be trusted.
    pub fn handle(&mut self, id: u16, ppid: u32, bytes: Bytes) -> Result<(), Violation> {
        let message = Message::decode(ppid, bytes)?;
        let Some(place) = self.by_id.get(usize::from(id)) else {
            return Err(Violation::Number(id));
        };
        match (*place, message) {
            (None, Message::Open { credit, target }) => self.on_open(id, credit, target),
            (Some(_), Message::Open { .. }) => Err(Violation::Number(id)),
            // A message about a stream that has ended here, which the peer did not know yet.
            (None, _) => Ok(()),
            (Some(key), message) => self.on_message(id, key, message),
        }
    }

    fn on_message(&mut self, id: u16, key: StreamKey, message: Message) -> Result<(), Violation> {
        let Some(stream) = self.streams.get(&key) else { return Ok(()) };
        let opening = matches!(stream.open_state, OpenState::Opening);
        let in_order = match message {
            Message::Opened { credit } if opening => self.on_opened(key, credit),
            Message::Refused(refusal) if opening => self.on_refused(key, refusal),
            Message::Opened { .. } | Message::Refused(_) | Message::Open { .. } => false,
            // Before the answer, it belongs to the previous stream with this number.
            _ if opening => true,
            Message::Data(bytes) => return self.on_data(id, key, &bytes),
            Message::Last(bytes) => {
                self.on_data(id, key, &bytes)?;
                self.on_fin(key)
            }
            Message::Fin => self.on_fin(key),
            Message::Credit(credit) => self.on_credit(key, credit),
            Message::Reset => self.on_reset(key),
        };
        if in_order { Ok(()) } else { Err(Violation::Order(id)) }
    }

    fn on_open(&mut self, id: u16, credit: u64, target: Bytes) -> Result<(), Violation> {
        if self.role.owns(id) {
            return Err(Violation::Number(id));
        }
        // Numbers limit the open streams. This check also limits closed streams with unread bytes.
        if self.peers >= self.limits.peer_streams {
            self.refuse_at_once(id);
            return Ok(());
        }
        let size = self.window_memory.initial_window(self.limits.first_window);
        let key = self.insert(StreamState {
            id,
            is_local: false,
            has_handle: true,
            open_state: OpenState::Offered(target),
            outbound: Outbound::Open(SendQueue { credit, ..SendQueue::default() }),
            inbound: Inbound::Open {
                buffer: Buffer::default(),
                window: Window::new(size, MIN_WINDOW),
            },
            scheduler_list: SchedulerList::Idle,
        });
        self.events.push_back(Event::Offered(key));
        Ok(())
    }

    /// The number remains in use until the refusal was sent. A peer that opens many streams without reading therefore
    /// cannot fill the memory with answers.
    fn refuse_at_once(&mut self, id: u16) {
        let busy = Refusal::new(Refusal::BUSY, "too many connections");
        let key = self.insert(StreamState {
            id,
            is_local: false,
            has_handle: false,
            open_state: OpenState::Refused(busy),
            outbound: Outbound::Closing,
            inbound: Inbound::Ended,
            scheduler_list: SchedulerList::Idle,
        });
        self.control.push_back((key, Control::Refused));
    }

    fn on_opened(&mut self, key: StreamKey, credit: u64) -> bool {
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.open_state = OpenState::Open;
        }
        self.events.push_back(Event::Changed(key));
        self.on_credit(key, credit)
    }

    fn on_refused(&mut self, key: StreamKey, refusal: Refusal) -> bool {
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.open_state = OpenState::Refused(refusal);
            stream.outbound = Outbound::Ended;
            stream.stop_reading(Inbound::Ended, &mut self.window_memory);
        }
        self.events.push_back(Event::Changed(key));
        self.remove_if_ended(key);
        true
    }

    fn on_data(&mut self, id: u16, key: StreamKey, bytes: &[u8]) -> Result<(), Violation> {
        let Some(stream) = self.streams.get_mut(&key) else { return Ok(()) };
        match &mut stream.inbound {
            Inbound::Open { buffer, window } => {
                if !window.receive(bytes.len() as u64) {
                    return Err(Violation::Credit(id));
                }
                buffer.push(bytes);
                self.events.push_back(Event::Changed(key));
                Ok(())
            }
            Inbound::Discarding => Ok(()),
            // A refused stream whose refusal was not sent yet.
            Inbound::Ended if matches!(stream.outbound, Outbound::Closing) => Ok(()),
            Inbound::Finished { .. } | Inbound::Ended => Err(Violation::Order(id)),
        }
    }

    fn on_fin(&mut self, key: StreamKey) -> bool {
        let Some(stream) = self.streams.get_mut(&key) else { return true };
        let refused = matches!(stream.open_state, OpenState::Refused(_));
        let in_order = stream.finish_reading(&mut self.window_memory) || refused;
        self.events.push_back(Event::Changed(key));
        self.remove_if_ended(key);
        in_order
    }

    fn on_credit(&mut self, key: StreamKey, credit: u64) -> bool {
        let Some(stream) = self.streams.get_mut(&key) else { return true };
        if let Outbound::Open(sending) | Outbound::Finishing(sending) = &mut stream.outbound {
            sending.credit = sending.credit.max(credit);
            if stream.has_data_to_send() {
                self.scheduler.enqueue(key, &mut stream.scheduler_list);
            }
        }
        true
    }

    /// Handles a RESET: the peer no longer sends or reads.
    fn on_reset(&mut self, key: StreamKey) -> bool {
        let Some(stream) = self.streams.get_mut(&key) else { return true };
        if matches!(stream.open_state, OpenState::Offered(_)) {
            let gone = Refusal::new(Refusal::CANCELLED, "you gave it up");
            stream.open_state = OpenState::Refused(gone);
            stream.stop_writing();
            self.control.push_back((key, Control::Refused));
        } else {
            if stream.stop_writing() {
                self.control.push_back((key, Control::Reset));
            }
            if matches!(stream.open_state, OpenState::Open) {
                stream.open_state = OpenState::Reset;
            }
        }
        // Bytes before a FIN are complete and are kept; bytes of a reset stream are not.
        if !matches!(stream.inbound, Inbound::Finished { .. }) {
            stream.stop_reading(Inbound::Ended, &mut self.window_memory);
        }
        self.events.push_back(Event::Changed(key));
        self.remove_if_ended(key);
        true
    }
}
