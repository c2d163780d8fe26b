//! Transmission times of packets with DATA on a path, for a peer that echoes TSNs instead of timestamps.
//!
//! The records of chunks do not suffice: a SACK on a faster path may acknowledge a chunk before the echo
//! of its packet arrives.

use std::collections::VecDeque;

use ropewalk_base::{PathId, Serial32, Time};

use super::{RecordState, Sender};
use crate::sctp::chunk::Chunk;

/// Maximum number of remembered packets: a second at 200 Mbit/s. Older ones are forgotten first.
const PACKETS_LIMIT: usize = 1 << 14;
/// Maximum number of packets searched for one echo. The next one is usually among the first few.
const SEARCH_LIMIT: usize = 256;
/// Number of packets whose memory is kept while nothing is in flight.
const KEPT: usize = 64;

/// A packet with DATA.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    /// TSN of its first DATA chunk.
    tsn: Serial32,
    /// Number of transmissions of that chunk on any path, this one included.
    transmissions: u32,
    sent_at: Time,
}

/// The packets with DATA of one path, in the order of transmission, from the newest one that was echoed.
#[derive(Clone, Debug, Default)]
pub struct SendTimes {
    packets: VecDeque<SentPacket>,
}

impl SendTimes {
    fn push(&mut self, packet: SentPacket) {
        if self.packets.len() >= PACKETS_LIMIT {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
    }

    /// Removes the packet with this TSN and all packets before it. Packets that a long search has skipped
    /// without success are older than any that will be echoed.
    fn take(&mut self, tsn: Serial32) -> Option<SentPacket> {
        let found = self.packets.iter().take(SEARCH_LIMIT).position(|packet| packet.tsn == tsn);
        match found {
            Some(at) => self.packets.drain(..=at).next_back(),
            None if self.packets.len() > SEARCH_LIMIT => {
                self.packets.drain(..SEARCH_LIMIT);
                None
            }
            None => None,
        }
    }

    /// Keeps only the packets that may still arrive.
    fn retain(&mut self, may_arrive: impl Fn(Serial32) -> bool) {
        self.packets.retain(|packet| may_arrive(packet.tsn));
        if self.packets.len() < KEPT {
            self.packets.shrink_to(KEPT);
        }
    }
}

impl Sender {
    /// Records when a packet with these chunks is sent on `path`, if the peer echoes TSNs. `was_idle`:
    /// nothing was in flight before it. In this case an echo can only refer to a packet that was
    /// considered lost and still arrives, for example after an outage. Without the record, the echo would
    /// be attributed to a later transmission.
    #[inline]
    pub(super) fn record_time(
        &mut self,
        now: Time,
        path: PathId,
        was_idle: bool,
        chunks: &[Chunk],
    ) {
        if !self.outstanding.config.records_times {
            return;
        }
        let first = chunks.iter().find_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            _ => None,
        });
        let Some(tsn) = first else { return };
        let board = &self.outstanding.board;
        let record = |tsn: Serial32| board.get(tsn.unwrap_near(board.next_tsn()));
        let transmissions = record(tsn).map_or(1, |record| record.transmissions);
        let state = &mut self.paths[path.index()];
        let times = &mut state.records.get_or_insert_default().times;
        if was_idle {
            let is_open =
                |tsn| record(tsn).is_some_and(|it| !matches!(it.state, RecordState::Acked { .. }));
            times.retain(is_open);
        }
        times.push(SentPacket { tsn, transmissions, sent_at: now });
    }

    /// When the packet whose first DATA chunk has this TSN was sent on `path`. `None` if it is unknown,
    /// or if the chunk was sent again on this path, so that either transmission may have arrived (Karn's
    /// rule).
    pub(super) fn take_time(&mut self, path: PathId, tsn: Serial32) -> Option<Time> {
        let packet = self.paths[path.index()].records.as_mut()?.times.take(tsn)?;
        let record = self.outstanding.board.get(tsn.unwrap_near(self.outstanding.board.next_tsn()));
        let again = record.is_some_and(|record| {
            let here = match record.state {
                RecordState::InFlight { path: on, .. } | RecordState::Lost { on, .. } => on == path,
                RecordState::Acked { by } => by == path,
                RecordState::Unsent | RecordState::Abandoned { .. } => false,
            };
            here && record.transmissions > packet.transmissions
        });
        (!again).then_some(packet.sent_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(tsn: u32) -> SentPacket {
        SentPacket { tsn: Serial32(tsn), transmissions: 1, sent_at: Time::from_nanos(tsn.into()) }
    }

    fn take(times: &mut SendTimes, tsn: u32) -> Option<u64> {
        times.take(Serial32(tsn)).map(|packet| packet.sent_at.as_nanos())
    }

    #[test]
    fn each_packet_is_found_once_and_those_before_it_are_forgotten() {
        let mut times = SendTimes::default();
        for tsn in [3, 4, 9, 5, 12] {
            times.push(sent(tsn));
        }
        assert_eq!(take(&mut times, 4), Some(4));
        assert_eq!(take(&mut times, 3), None);
        assert_eq!(take(&mut times, 4), None);
        assert_eq!(take(&mut times, 5), Some(5));
        assert_eq!(take(&mut times, 9), None);
        assert_eq!(take(&mut times, 12), Some(12));
        assert_eq!(times.packets.len(), 0);
    }

    #[test]
    fn a_peer_that_echoes_nothing_or_nonsense_bounds_neither_memory_nor_later_samples() {
        let mut times = SendTimes::default();
        for tsn in 0..3 * PACKETS_LIMIT as u32 {
            times.push(sent(tsn));
        }
        assert_eq!(times.packets.len(), PACKETS_LIMIT);
        let last = 3 * PACKETS_LIMIT as u32 - 1;
        let found = (0..=PACKETS_LIMIT / SEARCH_LIMIT).find_map(|_| take(&mut times, last));
        assert_eq!(found, Some(last.into()));
    }
}
