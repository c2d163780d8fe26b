//! Stream scheduler: streams with data take turns, one packet's worth at a time.
//!
//! Streams that were idle go first, once (like queues in FQ-CoDel, RFC 8290, 4.1), so a request that follows an
//! answer need not wait for all downloads. Such a stream must then join the round before it counts as idle again, so
//! that many of them cannot starve the others.

use std::collections::VecDeque;

use super::machine::StreamKey;

/// Place of a stream in the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SchedulerList {
    /// The stream has nothing to send.
    #[default]
    Idle,
    /// Among the streams that go first.
    New,
    /// In the round.
    Old,
}

/// The streams that wait for their turn.
#[derive(Debug, Default)]
pub struct StreamScheduler {
    new_streams: VecDeque<StreamKey>,
    old_streams: VecDeque<StreamKey>,
}

impl StreamScheduler {
    /// Adds a stream that has something to send.
    pub fn enqueue(&mut self, key: StreamKey, list: &mut SchedulerList) {
        if *list == SchedulerList::Idle {
            *list = SchedulerList::New;
            self.new_streams.push_back(key);
        }
    }

    /// Removes and returns the next stream.
    pub fn next(&mut self) -> Option<(StreamKey, SchedulerList)> {
        let new_streams = self.new_streams.pop_front().map(|key| (key, SchedulerList::New));
        new_streams.or_else(|| self.old_streams.pop_front().map(|key| (key, SchedulerList::Old)))
    }

    /// After a stream's turn, puts it back into the round or removes it.
    pub fn put_back(
        &mut self,
        key: StreamKey,
        list: &mut SchedulerList,
        list_before: SchedulerList,
        has_more: bool,
    ) {
        if has_more || list_before == SchedulerList::New {
            *list = SchedulerList::Old;
            self.old_streams.push_back(key);
        } else {
            *list = SchedulerList::Idle;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.new_streams.is_empty() && self.old_streams.is_empty()
    }
}
