//! Sending messages, and the amount of data that waits on each channel.

use ropewalk_base::Time;
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::Association;
use ropewalk_engine::sctp::association::SendError as Refused;

use super::Connection;
use crate::channel::{Channel, ChannelId, ChannelState};
use crate::event::{Event, Message, SendError};
use crate::ppid;

impl Connection {
    /// Sends a message on a channel.
    ///
    /// # Errors
    /// [`SendError`]; nothing is sent then.
    pub fn send(
        &mut self,
        now: Time,
        channel: ChannelId,
        message: Message,
    ) -> Result<(), SendError> {
        let id = channel.0;
        let known = self.channels.get_mut(&id).ok_or(SendError::NoSuchChannel)?;
        match known.state {
            ChannelState::Connecting => return Err(SendError::NotConnected),
            ChannelState::Closing => return Err(SendError::Closing),
            ChannelState::Announced | ChannelState::Open => {}
        }
        let (length, limit) = (message.len(), self.config.peer_max_message_size);
        if length > limit {
            return Err(SendError::TooLong { length, limit });
        }
        let (ppid, bytes) = ppid::encode(message);
        let delivery = known.delivery();
        let queued = bytes.len() as u64;
        let payload = Payload::from(bytes);
        self.association.send_message(now, channel.stream(), ppid, payload, delivery).map_err(
            |refused| match refused {
                Refused::Full => SendError::Full,
                Refused::NoSuchStream => SendError::NoSuchChannel,
                Refused::Closing | Refused::Empty => SendError::Closing,
            },
        )?;
        known.queued_bytes += queued;
        known.counters.messages_sent += 1;
        known.counters.bytes_sent += length as u64;
        if known.unsent(&self.association, channel) > known.low_threshold {
            self.above_threshold.insert(id);
        }
        Ok(())
    }

    /// User data of a channel that has not been passed to the transport yet, bytes (`bufferedAmount`); 0 if there is
    /// no such channel.
    pub fn buffered_amount(&self, channel: ChannelId) -> u64 {
        let known = self.channels.get(&channel.0);
        known.map_or(0, |known| known.unsent(&self.association, channel))
    }

    /// Sets the threshold of [`Event::BufferedAmountLow`], bytes (`bufferedAmountLowThreshold`; 0). The event follows when
    /// the buffered amount falls from above the threshold to it or below.
    pub fn set_low_threshold(&mut self, channel: ChannelId, threshold: u64) {
        let buffered = self.buffered_amount(channel);
        let Some(known) = self.channels.get_mut(&channel.0) else { return };
        known.low_threshold = threshold;
        match buffered > threshold {
            true => self.above_threshold.insert(channel.0),
            false => self.above_threshold.remove(&channel.0),
        };
    }

    /// Room in the send buffer, bytes. The last message may exceed it.
    pub fn send_room(&self) -> u64 {
        self.association.send_room()
    }

    /// Whether the peer has acknowledged everything that was sent on all channels.
    pub fn is_flushed(&self) -> bool {
        self.unsent_dcep.is_empty() && self.association.is_flushed()
    }

    /// Reports the channels whose buffered amount has fallen to their thresholds.
    pub(super) fn report_low_amounts(&mut self) {
        let Self { above_threshold, channels, association, events, .. } = self;
        above_threshold.retain(|id| {
            let channel = ChannelId(*id);
            let Some(known) = channels.get(id) else { return false };
            let stays = known.unsent(association, channel) > known.low_threshold;
            if !stays {
                events.push_back(Event::BufferedAmountLow { channel });
            }
            stays
        });
    }
}

impl Channel {
    /// User data that has not been sent yet, bytes. Other data queued in the association belongs to the OPEN or the
    /// ACK, which is sent first.
    fn unsent(&self, association: &Association, channel: ChannelId) -> u64 {
        association.unsent_bytes_on(channel.stream()).min(self.queued_bytes)
    }
}
