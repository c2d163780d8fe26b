//! Closing channels (RFC 8831, 6.7): each end resets its outgoing stream, and the number is free once both have.
//!
//! ```text
//!   close() or a fault of the peer --> wanted --> asked --> outgoing stream is reset --+
//!                                                                                      +--> closed, number is free
//!   the peer resets its stream  ------------------------> incoming stream is reset ----+
//!       (closes the channel here as well)
//! ```

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_base::StreamId;
use ropewalk_engine::sctp::association::ResetDirection;
use ropewalk_engine::sctp::{Outcome, ReconfigurationError, Reconfigured, Streams};

use super::Connection;
use crate::channel::{ChannelId, ChannelState};
use crate::event::{ChannelClosed, Event, Violation};

/// Maximum number of outstanding requests of this end. A request that waits for the last messages of its streams does
/// not delay the next ones, and a peer that violates rules on many streams causes only few requests.
const REQUESTS_LIMIT: usize = 16;

/// The resets of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The stream was reset by this end, or by the peer.
    outgoing: bool,
    incoming: bool,
    /// The stream cannot be reset, so its number is not reused.
    is_stuck: bool,
}

impl Progress {
    const fn is_over(self) -> bool {
        self.outgoing && self.incoming && !self.is_stuck
    }
}

/// Streams that are being reset, or cannot be. A peer can make this end store each number once.
#[derive(Clone, Debug, Default)]
pub(super) struct Resets {
    streams: BTreeMap<u16, Progress>,
    /// Streams whose reset must be requested.
    wanted: BTreeSet<u16>,
    /// Streams of each outstanding request.
    asked: Vec<Vec<u16>>,
}

impl Resets {
    /// Whether the number of a stream cannot be used.
    pub fn holds(&self, id: u16) -> bool {
        self.streams.contains_key(&id)
    }

    /// Starts the reset of a stream.
    fn begin(&mut self, id: u16) {
        self.streams.insert(id, Progress::default());
        self.wanted.insert(id);
    }

    fn take_asked(&mut self, ended: &Streams) {
        self.asked.retain(|request| !request.iter().any(|id| ended.has(StreamId(*id))));
    }

    /// Whether the peer, which has reset this stream, may open a new channel on it before this end knows that its own
    /// reset was performed: the answer may be lost or overtaken.
    fn may_be_reopened(&self, id: u16) -> bool {
        self.streams.get(&id).is_some_and(|progress| progress.incoming && !progress.is_stuck)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Connection {
    /// Closes a channel. Messages sent before are still delivered; messages that arrive from now on are dropped.
    /// [`Event::Closed`] follows once the peer has closed it as well. Does nothing if there is no such channel.
    pub fn close(&mut self, channel: ChannelId) {
        self.close_with(channel.0, ChannelClosed::Here);
        self.request_resets();
    }

    /// Closes a channel or, if there is none, the stream, because the peer violated a rule (RFC 8832, 6; RFC 8831,
    /// 6.6).
    pub(super) fn refuse(&mut self, id: u16, violation: Violation) {
        self.count(violation);
        if self.channels.contains_key(&id) {
            self.close_with(id, ChannelClosed::Violation(violation));
        } else if !self.resets.holds(id) {
            self.resets.begin(id);
        }
    }

    fn close_with(&mut self, id: u16, reason: ChannelClosed) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        match channel.state {
            ChannelState::Closing => {}
            // Nothing was sent on the stream.
            ChannelState::Connecting => self.forget(id, reason),
            ChannelState::Announced | ChannelState::Open => {
                channel.state = ChannelState::Closing;
                channel.closed = Some(reason);
                self.unsent_dcep.remove(&id);
                self.above_threshold.remove(&id);
                self.assemblies.forget_stream(id);
                self.resets.begin(id);
            }
        }
    }

    /// Removes a channel and reports it.
    fn forget(&mut self, id: u16, reason: ChannelClosed) {
        let reason = self.remove(id).and_then(|channel| channel.closed).unwrap_or(reason);
        self.events.push_back(Event::Closed { channel: ChannelId(id), reason });
    }

    /// Ends the previous channel of a stream on which the peer opens a new one, if the peer may. The association
    /// holds back messages of this end until its reset has ended.
    pub(super) fn make_way(&mut self, id: u16) {
        if self.resets.may_be_reopened(id) {
            self.resets.streams.remove(&id);
            self.resets.wanted.remove(&id);
            if self.channels.contains_key(&id) {
                self.forget(id, ChannelClosed::ByPeer);
            }
        }
    }

    /// Handles the resets that have ended, before each message is read: all messages before them have been read, and
    /// none after them.
    pub(super) fn follow_resets(&mut self) {
        while let Some(reconfigured) = self.association.poll_reconfiguration() {
            match reconfigured {
                Reconfigured::ResetByPeer(streams) => self.on_reset_by_peer(&streams),
                Reconfigured::Reset(streams, outcome) => self.on_own_reset(&streams, outcome),
                // This end makes no other requests, and accepts none.
                Reconfigured::PeerResetRefused(..)
                | Reconfigured::Association { .. }
                | Reconfigured::StreamsAdded { .. } => {}
            }
        }
    }

    /// The known streams among these.
    fn known(&self, streams: &Streams) -> Vec<u16> {
        let all: BTreeSet<u16> =
            self.channels.keys().chain(self.resets.streams.keys()).copied().collect();
        all.into_iter().filter(|id| streams.has(StreamId(*id))).collect()
    }

    fn on_reset_by_peer(&mut self, streams: &Streams) {
        for id in self.known(streams) {
            // RFC 8831, 6.7: an end whose incoming stream was reset resets its outgoing one.
            self.close_with(id, ChannelClosed::ByPeer);
            self.advance(id, |progress| progress.incoming = true);
        }
    }

    fn on_own_reset(&mut self, streams: &Streams, outcome: Outcome) {
        self.resets.take_asked(streams);
        for id in self.known(streams) {
            self.advance(id, |progress| match outcome {
                Outcome::Performed => progress.outgoing = true,
                Outcome::Denied | Outcome::Failed => progress.is_stuck = true,
            });
        }
    }

    /// Records a step of a stream's resets, and ends its channel after the last one.
    fn advance(&mut self, id: u16, step: impl FnOnce(&mut Progress)) {
        let Some(progress) = self.resets.streams.get_mut(&id) else { return };
        step(progress);
        let progress = *progress;
        if progress.is_over() {
            self.resets.streams.remove(&id);
        }
        if (progress.is_over() || progress.is_stuck) && self.channels.contains_key(&id) {
            self.forget(id, ChannelClosed::Here);
        }
    }

    /// Requests the resets that are wanted.
    pub(super) fn request_resets(&mut self) {
        if self.resets.wanted.is_empty() || self.resets.asked.len() >= REQUESTS_LIMIT {
            return;
        }
        let exists = |id: &u16| *id < self.association.outbound_streams();
        let (wanted, beyond): (Vec<u16>, Vec<u16>) =
            std::mem::take(&mut self.resets.wanted).into_iter().partition(exists);
        self.give_up(beyond);
        if wanted.is_empty() {
            return;
        }
        let streams: Vec<StreamId> = wanted.iter().map(|id| StreamId(*id)).collect();
        match self.association.reset_streams(&streams, ResetDirection::Outgoing) {
            Ok(()) => self.resets.asked.push(wanted),
            // Retried later, if the association still exists.
            Err(ReconfigurationError::InProgress) => self.resets.wanted.extend(wanted),
            // The end of the association ends all channels.
            Err(ReconfigurationError::Closing) => {}
            // The peer cannot reset streams, and cannot be notified.
            Err(_) => self.give_up(wanted),
        }
    }

    fn give_up(&mut self, streams: Vec<u16>) {
        streams.into_iter().for_each(|id| self.advance(id, |progress| progress.is_stuck = true));
    }
}
