//! Resets of streams and of TSNs (RFC 6525): their numbers start over.

use ropewalk_base::{StreamId, Time};

use super::{Part, ReceiveBuffer};
use crate::sctp::extensions::stream_reconfiguration::Streams;

impl ReceiveBuffer {
    /// Starts these streams over: the next message of each is the first one. All TSNs that carried earlier messages have
    /// arrived. Complete messages that still wait are delivered.
    #[cold]
    pub fn restart_streams(&mut self, now: Time, streams: &Streams) {
        match streams {
            Streams::Listed(each) => each.iter().for_each(|one| self.restart_stream(now, *one)),
            Streams::All => {
                let interleaved = self.messages.iter().flat_map(|messages| messages.used());
                let all: Vec<StreamId> =
                    interleaved.map(StreamId).chain(self.streams.used()).collect();
                all.into_iter().for_each(|one| self.restart_stream(now, one));
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
}
