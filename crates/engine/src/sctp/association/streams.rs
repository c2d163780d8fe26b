//! Streams: interleaving of their messages, and the order in which they are sent (RFC 8260).

use ropewalk_base::{Serial32, StreamId};

use super::{Association, SendError};
use crate::sctp::extensions::Extensions;
use crate::sctp::extensions::interleaving::StreamScheduler;
use crate::sctp::packet::PacketForm;

impl Association {
    /// Uses I-DATA if both ends have listed it (RFC 8260, 2.2.1). Called before any data is sent.
    pub(super) fn settle_interleaving(&mut self) {
        self.sender.settle_interleaving();
        if self.interleaves() {
            let compact = self.config.packet_form == PacketForm::Compact;
            self.receiver.buffer.interleave(compact);
        }
    }

    /// Whether messages of different streams are interleaved: both ends have listed I-DATA (RFC 8260, 2.2.1). False
    /// before the handshake.
    pub const fn interleaves(&self) -> bool {
        self.handshake.peer.agreed.has(Extensions::I_DATA)
    }

    /// The stream scheduler: that of [`Config::stream_scheduler`](crate::sctp::Config::stream_scheduler) unless it was
    /// changed.
    pub fn stream_scheduler(&self) -> StreamScheduler {
        self.sender.outstanding.queue.stream_scheduler()
    }

    /// Changes the order in which messages of different streams are sent (RFC 8260, 4.3.2). Values of
    /// streams are kept. Queued messages are reordered, except that messages of one stream keep their
    /// order.
    pub fn set_stream_scheduler(&mut self, scheduler: StreamScheduler) {
        self.sender.outstanding.queue.set_stream_scheduler(scheduler);
        self.sender.epoch += 1;
    }

    /// Sets the priority of a stream (the lowest value is sent first) or its weight (RFC 8260, 4.3.3),
    /// depending on the stream scheduler. Other schedulers ignore it.
    ///
    /// # Errors
    /// [`SendError::NoSuchStream`] if there is no such outbound stream.
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), SendError> {
        if stream.0 >= self.sender.outstanding.streams {
            return Err(SendError::NoSuchStream);
        }
        self.sender.outstanding.queue.set_stream_value(stream, value);
        self.sender.epoch += 1;
        Ok(())
    }

    /// Queued user data of a stream that has not been sent yet, bytes. Messages outside the order of
    /// submission ([`Urgency`](crate::sctp::Urgency) other than bulk) are not counted. Takes constant
    /// time with a stream scheduler other than [`StreamScheduler::FirstCome`].
    pub fn unsent_bytes_on(&self, stream: StreamId) -> u64 {
        self.sender.outstanding.queue.bytes_of(stream)
    }

    /// The message identifier of the next ordered message that is expected on a stream, `None` without
    /// interleaving. For tests that forge valid I-DATA.
    #[doc(hidden)]
    pub fn expected_message(&self, stream: StreamId) -> Option<Serial32> {
        self.receiver.buffer.next_message_on(stream.0)
    }
}
