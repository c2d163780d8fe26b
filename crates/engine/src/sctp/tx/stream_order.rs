//! Selects the stream whose message is cut next: the stream schedulers of RFC 8260, 3.
//!
//! ```text
//!   lane of stream 0   [ message, message, ... ]
//!   lane of stream 7   [ message, ... ]            --> the lane with the lowest rank is cut next
//!   lane of stream 9   [ message, ... ]
//! ```
//!
//! A lane moves back by an increase of its rank. The schedulers differ only in the rank.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ropewalk_base::StreamId;

use super::queue::Waiting;
use crate::sctp::extensions::interleaving::StreamScheduler;

/// Virtual time per byte with weight 1. A weight is at most 65,535, so that a byte always takes some.
const PER_BYTE: u64 = 1 << 16;
/// Default value of a stream: weight 1, or the middle of the priorities.
const DEFAULT_WEIGHT: u16 = 1;
const DEFAULT_PRIORITY: u16 = 1 << 15;

/// Order of the lanes: the lowest is served next. The second part makes equals take turns.
type Rank = (u64, u64);

/// The queued messages of one stream.
#[derive(Clone, Debug, Default)]
struct Lane {
    messages: VecDeque<Waiting>,
    /// Whether the stream has queued messages, here or in front of the queue.
    active: bool,
    rank: Rank,
    /// The user's priority or weight. `None`: the default.
    value: Option<u16>,
    /// Virtual time at which the stream has used its share.
    finish: u64,
    /// User data of `messages` that has not been cut yet, bytes.
    bytes: u64,
}

/// The lanes, and their order.
#[derive(Clone, Debug)]
pub(super) struct StreamOrder {
    scheduler: StreamScheduler,
    lanes: BTreeMap<u16, Lane>,
    active: BTreeSet<(Rank, u16)>,
    /// Number of turns so far.
    turns: u64,
    /// Virtual time of the stream served last.
    now: u64,
    /// The stream of the packet that is being filled, if packets hold chunks of one stream only.
    of_packet: Option<StreamId>,
}

impl StreamOrder {
    pub const fn new(scheduler: StreamScheduler) -> Self {
        Self {
            scheduler,
            lanes: BTreeMap::new(),
            active: BTreeSet::new(),
            turns: 0,
            now: 0,
            of_packet: None,
        }
    }

    pub const fn scheduler(&self) -> StreamScheduler {
        self.scheduler
    }

    /// Sets priority or weight of a stream.
    pub fn set_value(&mut self, stream: StreamId, value: u16) {
        self.lanes.entry(stream.0).or_default().value = Some(value);
        self.rank_again(stream);
    }

    /// The values that were set.
    pub fn values(&self) -> impl Iterator<Item = (StreamId, u16)> {
        self.lanes.iter().filter_map(|(stream, lane)| Some((StreamId(*stream), lane.value?)))
    }

    /// Number of messages in the lanes, with runs of equal ones counted once.
    pub fn len(&self) -> usize {
        self.lanes.values().map(|lane| lane.messages.len()).sum()
    }

    /// All messages in the lanes.
    pub fn messages(&self) -> impl Iterator<Item = &Waiting> {
        self.lanes.values().flat_map(|lane| &lane.messages)
    }

    /// Takes all messages out of the lanes.
    pub fn drain(&mut self) -> Vec<Waiting> {
        self.active.clear();
        let lanes = self.lanes.values_mut();
        lanes
            .flat_map(|lane| {
                lane.active = false;
                lane.bytes = 0;
                std::mem::take(&mut lane.messages)
            })
            .collect()
    }

    /// Adds a message at the end of its lane. `stays`: it stays in front of the queue and is returned.
    pub fn push(&mut self, message: Waiting, stays: bool) -> Option<Waiting> {
        let stream = message.stream;
        let lane = self.lanes.entry(stream.0).or_default();
        if !stays {
            lane.bytes += message.bytes_left();
        }
        let front = match lane.messages.back_mut() {
            _ if stays => Some(message),
            Some(last) if last.is_like(&message) => {
                last.more += message.more + 1;
                None
            }
            _ => {
                lane.messages.push_back(message);
                None
            }
        };
        self.activate(stream);
        front
    }

    /// Puts back a message taken by [`Self::take`], at the head of its lane.
    pub fn put_back(&mut self, message: Waiting) {
        let stream = message.stream;
        let lane = self.lanes.entry(stream.0).or_default();
        lane.bytes += message.bytes_left();
        lane.messages.push_front(message);
        self.activate(stream);
    }

    /// The stream to serve next.
    pub fn next(&self) -> Option<StreamId> {
        self.active.first().map(|(_, stream)| StreamId(*stream))
    }

    /// Takes the first message of a stream. The stream stays active.
    pub fn take(&mut self, stream: StreamId) -> Option<Waiting> {
        let lane = self.lanes.get_mut(&stream.0)?;
        let message = lane.messages.pop_front()?;
        lane.bytes -= message.bytes_left();
        Some(message)
    }

    /// User data in the lane of a stream, bytes.
    pub fn bytes_of(&self, stream: StreamId) -> u64 {
        self.lanes.get(&stream.0).map_or(0, |lane| lane.bytes)
    }

    /// Records that a chunk of `bytes` bytes of a stream was cut. `ends`: whether it ends a turn of the
    /// stream. `left`: whether the message in front of the queue still belongs to the stream.
    pub fn served(&mut self, stream: StreamId, bytes: u32, ends: bool, left: bool) {
        let per_packet = self.scheduler == StreamScheduler::RoundRobinPerPacket;
        if per_packet {
            self.of_packet.get_or_insert(stream);
        }
        let Some(lane) = self.lanes.get_mut(&stream.0) else { return };
        let weight = match self.scheduler {
            StreamScheduler::WeightedFair => lane.value.unwrap_or(DEFAULT_WEIGHT).max(1),
            _ => 1,
        };
        self.now = self.now.max(lane.finish);
        lane.finish = self.now.saturating_add(u64::from(bytes) * PER_BYTE / u64::from(weight));
        if lane.messages.is_empty() && !left {
            lane.active = false;
            self.active.remove(&(lane.rank, stream.0));
        } else if ends && !per_packet {
            self.move_to_end(stream);
        }
    }

    /// Ends a packet: the next one may hold chunks of another stream.
    pub fn end_packet(&mut self) {
        if let Some(stream) = self.of_packet.take()
            && self.lanes.get(&stream.0).is_some_and(|lane| lane.active)
        {
            self.move_to_end(stream);
        }
    }

    /// Whether a chunk of this stream may be added to the packet that is being filled.
    pub fn may_join(&self, stream: StreamId) -> bool {
        self.of_packet.is_none_or(|one| one == stream)
    }

    /// Activates a stream that has messages.
    fn activate(&mut self, stream: StreamId) {
        let Some(lane) = self.lanes.get_mut(&stream.0).filter(|lane| !lane.active) else { return };
        lane.active = true;
        self.move_to_end(stream);
    }

    /// Assigns a stream its next rank, after its equals.
    fn move_to_end(&mut self, stream: StreamId) {
        self.turns += 1;
        self.rank_again(stream);
    }

    fn rank_again(&mut self, stream: StreamId) {
        let Some(lane) = self.lanes.get_mut(&stream.0).filter(|lane| lane.active) else { return };
        self.active.remove(&(lane.rank, stream.0));
        let first = match self.scheduler {
            StreamScheduler::FirstCome
            | StreamScheduler::RoundRobin
            | StreamScheduler::RoundRobinPerPacket => 0,
            StreamScheduler::Priority => lane.value.unwrap_or(DEFAULT_PRIORITY).into(),
            StreamScheduler::FairCapacity | StreamScheduler::WeightedFair => {
                // A stream gets no credit for idle time.
                lane.finish.max(self.now)
            }
        };
        lane.rank = (first, self.turns);
        self.active.insert((lane.rank, stream.0));
    }
}
