//! Transmissions of one path in the order of transmission.

use std::collections::VecDeque;

use ropewalk_base::{RangeSet, Time};

use crate::path::RateSnapshot;

/// One transmission of one chunk.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// The chunk, as an unwrapped TSN.
    pub tsn: u64,
    /// Its size on the wire, bytes.
    pub bytes: u32,
    /// When it was sent.
    pub sent_at: Time,
    /// State of the rate estimator at that time.
    pub snapshot: RateSnapshot,
    /// Whether it is a retransmission, which gives no round-trip sample (Karn).
    pub again: bool,
    /// Miss indications.
    pub misses: u8,
    live: bool,
}

impl Flight {
    /// Creates a transmission that is sent now.
    pub const fn new(tsn: u64, bytes: u32, now: Time, snapshot: RateSnapshot, again: bool) -> Self {
        Self { tsn, bytes, sent_at: now, snapshot, again, misses: 0, live: true }
    }
}

/// The transmissions of a path, numbered from 0 in the order of transmission. A later arrival reveals
/// losses by the order of transmission, not by the order of TSNs: packets of one path arrive in the order
/// in which they were sent, regardless of the queue positions from which a scheduler took them.
#[derive(Clone, Debug, Default)]
pub struct Flights {
    queue: VecDeque<Flight>,
    first: u64,
    bytes: u64,
    live: u64,
    /// TSNs of the retransmissions in flight, `None` before the first.
    again: Option<Box<RangeSet>>,
}

impl Flights {
    /// Bytes in flight.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether nothing is in flight.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The number of the next transmission.
    #[inline]
    pub fn next_number(&self) -> u64 {
        self.first + self.queue.len() as u64
    }

    /// Number and transmission of the oldest one in flight.
    #[inline]
    pub fn oldest(&self) -> Option<(u64, &Flight)> {
        self.queue.front().map(|f| (self.first, f))
    }

    /// The lowest TSN in flight, if chunks are first sent in the order of their TSNs.
    pub fn lowest_tsn(&self) -> Option<u64> {
        let fresh = self.queue.iter().find(|f| f.live && !f.again).map(|f| f.tsn);
        let again = self.again.as_ref().and_then(|again| again.first());
        fresh.into_iter().chain(again).min()
    }

    /// Number of transmissions in flight.
    #[inline]
    pub const fn count(&self) -> u64 {
        self.live
    }

    /// Number and transmission of the newest one in flight.
    pub fn newest(&self) -> Option<(u64, &Flight)> {
        let at = self.queue.iter().rposition(|f| f.live)?;
        Some((self.first + at as u64, &self.queue[at]))
    }

    /// Number of transmissions from the oldest one in flight up to `number` that have ended, if none
    /// beyond it has ended.
    #[inline]
    pub fn ended_up_to(&self, number: u64) -> u64 {
        let beyond = self.next_number().saturating_sub(number + 1);
        let live = self.live.saturating_sub(beyond);
        (number + 1).saturating_sub(self.first + live)
    }

    /// Number and transmission of the oldest one in flight from `number` on, and whether others in flight
    /// follow it.
    #[inline]
    pub fn first_from(&self, number: u64) -> Option<(u64, &Flight, bool)> {
        let at = number.saturating_sub(self.first) as usize;
        let mut live = self.queue.iter().enumerate().skip(at).filter(|(_, f)| f.live);
        let (place, first) = live.next()?;
        Some((self.first + place as u64, first, live.next().is_some()))
    }

    /// When a transmission in flight was sent.
    pub fn sent_at(&self, number: u64) -> Option<Time> {
        let at = number.checked_sub(self.first)? as usize;
        self.queue.get(at).filter(|f| f.live).map(|f| f.sent_at)
    }

    /// Adds a transmission and returns its number.
    #[inline]
    pub fn push(&mut self, flight: Flight) -> u64 {
        debug_assert!(flight.live, "only what leaves now is in flight");
        let number = self.next_number();
        self.bytes += flight.bytes as u64;
        self.live += 1;
        if flight.again {
            self.again.get_or_insert_default().insert(flight.tsn);
        }
        self.queue.push_back(flight);
        number
    }

    /// Ends a transmission, acknowledged or given up; `None` if it had already ended.
    #[inline]
    pub fn end(&mut self, number: u64) -> Option<Flight> {
        let ended = *self.end_in_place(number)?;
        self.drop_ended();
        Some(ended)
    }

    /// Like [`Self::end`], but the transmission stays in the queue until [`Self::drop_ended`], which must
    /// follow.
    #[inline]
    pub fn end_in_place(&mut self, number: u64) -> Option<&Flight> {
        let at = number.checked_sub(self.first)? as usize;
        let flight = self.queue.get_mut(at).filter(|f| f.live)?;
        flight.live = false;
        self.bytes -= flight.bytes as u64;
        self.live -= 1;
        if let Some(again) = self.again.as_mut().filter(|_| flight.again) {
            again.remove(flight.tsn);
        }
        Some(flight)
    }

    /// Removes ended transmissions before the oldest in flight: the first of the queue is always live.
    #[inline]
    pub fn drop_ended(&mut self) {
        while self.queue.front().is_some_and(|f| !f.live) {
            self.queue.pop_front();
            self.first += 1;
        }
    }

    /// The live transmissions with a number below `number`, oldest first.
    #[inline]
    pub fn live_below(&mut self, number: u64) -> impl Iterator<Item = (u64, &mut Flight)> {
        let first = self.first;
        let count = number.saturating_sub(first) as usize;
        let numbered = self.queue.iter_mut().take(count).enumerate();
        numbered.filter(|(_, f)| f.live).map(move |(i, f)| (first + i as u64, f))
    }

    /// Every live transmission, oldest first.
    pub fn live(&self) -> impl Iterator<Item = (u64, &Flight)> {
        let numbered = self.queue.iter().enumerate();
        numbered.filter(|(_, f)| f.live).map(|(i, f)| (self.first + i as u64, f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(tsn: u64) -> Flight {
        Flight::new(tsn, 100, Time::ZERO, RateSnapshot::default(), false)
    }

    #[test]
    fn the_oldest_is_always_in_flight_and_bytes_add_up() {
        let mut flights = Flights::default();
        let numbers: Vec<u64> = (10..14).map(|t| flights.push(flight(t))).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert!(flights.end(1).is_some());
        assert!(flights.end(1).is_none(), "ended twice");
        assert_eq!(flights.oldest().map(|(n, f)| (n, f.tsn)), Some((0, 10)));
        flights.end(0);
        assert_eq!(flights.oldest().map(|(n, f)| (n, f.tsn)), Some((2, 12)));
        assert_eq!(flights.bytes(), 200);
        assert_eq!(flights.live_below(3).map(|(_, f)| f.tsn).collect::<Vec<_>>(), [12]);
        flights.end(3);
        flights.end(2);
        assert!(flights.is_empty() && flights.oldest().is_none());
        assert_eq!(flights.push(flight(20)), 4);
    }

    #[test]
    fn the_lowest_tsn_may_be_one_that_was_sent_again() {
        let again = |tsn| Flight { again: true, ..flight(tsn) };
        let mut flights = Flights::default();
        assert_eq!(flights.lowest_tsn(), None);
        for flight in [flight(11), flight(12), again(10), flight(13), again(9)] {
            flights.push(flight);
        }
        for (ended, lowest) in
            [(4, Some(10)), (0, Some(10)), (2, Some(12)), (1, Some(13)), (3, None)]
        {
            flights.end(ended);
            assert_eq!(flights.lowest_tsn(), lowest);
        }
    }
}
