//! Resets of streams and of TSNs (RFC 6525): their numbers start over.

use ropewalk_base::{StreamId, Time};

use super::{Part, ReceiveBuffer};
use crate::sctp::extensions::stream_reconfiguration::Streams;

impl ReceiveBuffer {
    /// Starts these streams over: the next message of each is the first one. All TSNs of earlier messages
    /// have arrived. Complete messages that still wait are delivered.
    #[cold]
    pub fn restart_streams(&mut self, now: Time, streams: &Streams) {
        match streams {
            Streams::Listed(each) => each.iter().for_each(|one| self.restart_stream(now, *one)),
            // The work is proportional to the waiting messages, not to the number of streams.
            Streams::All => {
                let interleaved = self.messages.iter().flat_map(|all| all.waiting_streams());
                let waiting: Vec<StreamId> =
                    interleaved.chain(self.streams.waiting_streams()).collect();
                waiting.into_iter().for_each(|one| self.restart_stream(now, one));
                self.streams.restart_idle();
                self.messages.iter_mut().for_each(|messages| messages.restart_idle());
            }
        }
        self.settle_message_cost();
        self.slots.drop_released(self.gaps.cumulative());
        self.stats.held_changed(now, self.held_bytes);
    }

    fn restart_stream(&mut self, now: Time, stream: StreamId) {
        if self.begun.as_ref().is_some_and(|begun| begun.is_on(stream)) {
            self.cut_part_off(self.slots.base());
        }
        for tsns in self.streams.restart(stream) {
            self.release_message(now, *tsns.start(), *tsns.end(), Part::Whole);
        }
        let passed = self.messages.as_mut().map(|messages| messages.restart(stream.0));
        for (way, one) in passed.into_iter().flatten() {
            self.pass_over(now, way, one);
        }
    }

    /// Expects `first` (unwrapped) as the next TSN, and the first message of every stream (RFC 6525,
    /// 5.2.4 G4, G5). Complete waiting messages are delivered, and others dropped.
    #[cold]
    pub fn restart_tsns(&mut self, now: Time, first: u64) {
        self.cut_part_off(u64::MAX);
        self.restart_streams(now, &Streams::All);
        self.forget(now);
        let interleaves = self.messages.as_ref().map(|messages| messages.takes_datagrams);
        self.start_over(first);
        if let Some(takes_datagrams) = interleaves {
            self.interleave(takes_datagrams);
        }
    }
}
