//! The channel: carrier sense, contention, collisions, and the acknowledgement of frames.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ropewalk_base::{Seed, Time};

use super::FRAME_OVERHEAD;
use super::backoff::Verdict;
use super::phy::Standard;
use super::radio::{Radio, RadioConfig};
use super::station::{Frame, Station, StationConfig, StationStats};
use super::timing::{Timing, cw_min};
use crate::link::{Admission, DropCause, LinkStats};
use crate::packet::Packet;

/// A channel with its stations. The times of successive calls must not decrease.
#[derive(Clone, Debug)]
pub struct Channel<P> {
    stations: Vec<Station<P>>,
    radios: Vec<Radio>,
    timing: Timing,
    medium: Medium,
    clock: SlotClock,
    /// Stations with a frame to send, by the slot of their transmission; equal slots in order of station.
    contenders: BinaryHeap<Reverse<(u64, u32)>>,
    head_start: Option<HeadStart>,
}

/// Head start of some stations after a collision of frames of unequal length.
///
/// EIFS follows the reception of a frame with an error (IEEE 802.11-2012, 9.3.2.3.7). The sender of a shorter
/// frame was transmitting when the longest began and receives no frame, so its backoff resumes a DIFS after the
/// end of the longest. Stations that received the collision wait for EIFS. The sender of the longest waits for
/// an acknowledgement, which takes about as long; the model lets it wait for EIFS as well.
#[derive(Clone, Debug)]
struct HeadStart {
    /// Slot in which the backoff of the other stations resumes.
    until: u64,
    /// Senders of shorter frames.
    ahead: Vec<u32>,
}

/// State of the medium.
#[derive(Clone, Debug)]
enum Medium {
    Quiet,
    /// One station transmits; its frame ends at `ends`.
    Alone {
        station: u32,
        ends: Time,
    },
    /// Several stations began in the same slot; the longest frame ends at `ends`.
    Collision {
        /// Each station with the end of its frame.
        stations: Vec<(u32, Time)>,
        ends: Time,
    },
}

/// Counts the slots in which backoffs run. The clock stops from the start of a transmission until an interframe
/// space after it (9.3.4.3).
#[derive(Clone, Copy, Debug)]
struct SlotClock {
    /// Time at which the clock last resumed.
    from: Time,
    /// Slot count at that time.
    slots: u64,
    /// End of the busy period, which is the end of the exchange including the acknowledgement.
    busy_until: Time,
}

impl<P> Channel<P> {
    /// A channel without stations that has been idle for a long time.
    pub fn new() -> Self {
        Self {
            stations: Vec::new(),
            radios: Vec::new(),
            timing: Timing::of([]),
            medium: Medium::Quiet,
            clock: SlotClock { from: Time::ZERO, slots: 0, busy_until: Time::ZERO },
            contenders: BinaryHeap::new(),
            head_start: None,
        }
    }

    /// Adds a station, which draws its randomness from the children of `seed`; returns its position.
    pub fn add_station(&mut self, config: StationConfig, seed: Seed) -> u32 {
        // The station has no physical layer before its first link, which may lower the window.
        let old = cw_min(Standard::Dot11b(super::Preamble::Long));
        self.stations.push(Station::new(config, old, seed));
        crate::ids::index(self.stations.len() - 1)
    }

    /// Adds a link from a station to one receiver; returns its position. All links must be added before the
    /// first packet.
    ///
    /// # Panics
    /// If the station is not on the channel, a packet was offered before, or `config` is invalid.
    pub fn add_radio(&mut self, station: u32, config: RadioConfig) -> u32 {
        let used = self.radios.iter().any(|radio| radio.stats(Time::ZERO).offered > 0);
        assert!(!used, "the links of a channel are there before the first packet");
        config.check().expect("checked by the caller");
        self.stations[station as usize].backoff.lower(cw_min(config.phy.standard()));
        self.radios.push(Radio::new(station, config));
        self.timing = Timing::of(self.radios.iter().map(|radio| radio.config.phy.standard()));
        crate::ids::index(self.radios.len() - 1)
    }

    /// Offers a packet to a link.
    pub fn offer(&mut self, now: Time, radio: u32, packet: Packet<P>) -> Admission {
        let size = packet.size;
        let link = &mut self.radios[radio as usize];
        link.offer(size);
        let position = link.station;
        let station = &mut self.stations[position as usize];
        if station.current.is_none() {
            station.current = Some(Frame { radio, packet });
            self.begin(now, position);
            return Admission::Admitted;
        }
        if !station.has_room(size) {
            link.drop(DropCause::Full);
            return Admission::Dropped(DropCause::Full);
        }
        station.push(Frame { radio, packet });
        link.enqueue(now, size);
        Admission::Admitted
    }

    /// Time of the channel's next event, if any.
    pub fn next_wake(&self) -> Option<Time> {
        match &self.medium {
            Medium::Quiet => {
                let Reverse((slot, _)) = self.contenders.peek()?;
                Some(self.clock.time_of(*slot, &self.timing))
            }
            Medium::Alone { ends, .. } | Medium::Collision { ends, .. } => Some(*ends),
        }
    }

    /// Handles the next event due at `now`; returns the packet that arrives by it, if any.
    pub fn take(&mut self, now: Time) -> Option<Packet<P>> {
        if self.next_wake().is_none_or(|due| due > now) {
            return None;
        }
        match core::mem::replace(&mut self.medium, Medium::Quiet) {
            Medium::Quiet => self.transmit(now),
            Medium::Alone { station, .. } => return self.end_alone(now, station),
            Medium::Collision { stations, .. } => self.end_collision(now, stations),
        }
        None
    }

    /// Counters of a link at `now`.
    pub fn stats(&self, now: Time, radio: u32) -> LinkStats {
        self.radios[radio as usize].stats(now)
    }

    /// The packets of all stations, in no particular order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet<P>> {
        self.stations.iter().flat_map(Station::packets)
    }

    /// Counters of a station.
    pub fn station_stats(&self, station: u32) -> StationStats {
        self.stations[station as usize].stats
    }

    /// Interframe spaces and slot time.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Starts contention of a station that had nothing to send. It may transmit immediately on an idle medium,
    /// unless the backoff after its last frame still runs (9.3.4.2, 9.3.4.3).
    fn begin(&mut self, now: Time, position: u32) {
        let station = &mut self.stations[position as usize];
        let sending = !matches!(self.medium, Medium::Quiet);
        if sending || now < self.clock.busy_until {
            if station.expires <= self.clock.slots {
                station.expires = self.clock.slots + station.backoff.draw();
            }
        } else {
            station.expires = station.expires.max(self.clock.slot_at(now, &self.timing));
        }
        self.contenders.push(Reverse((station.expires, position)));
    }

    /// Starts the transmissions of all stations whose backoff expires in this slot.
    fn transmit(&mut self, now: Time) {
        let Some(Reverse((slot, first))) = self.contenders.pop() else { return };
        self.clock.slots = slot;
        let mut stations = vec![(first, now + self.put_on_air(first))];
        while let Some(Reverse((same, station))) = self.contenders.peek().copied()
            && same == slot
        {
            self.contenders.pop();
            stations.push((station, now + self.put_on_air(station)));
        }
        self.end_head_start(slot);
        let ends = stations.iter().map(|(_, ends)| *ends).max().unwrap_or(now);
        self.medium = match stations[..] {
            [(station, ends)] => Medium::Alone { station, ends },
            _ => Medium::Collision { stations, ends },
        };
    }

    /// Ends the head start at a transmission in `slot`: afterwards, all backoffs resume at the same time again.
    fn end_head_start(&mut self, slot: u64) {
        let Some(HeadStart { until, ahead }) = self.head_start.take() else { return };
        let left = until.saturating_sub(slot);
        if left > 0 {
            self.shift(&ahead, |expires| expires.saturating_sub(left).max(slot));
        }
    }

    /// Moves the backoffs of all stations except these.
    fn shift(&mut self, but: &[u32], moved: impl Fn(u64) -> u64) {
        for (position, station) in (0..).zip(&mut self.stations) {
            if !but.contains(&position) {
                station.expires = moved(station.expires);
            }
        }
        let contenders = core::mem::take(&mut self.contenders);
        let expires = |position: u32| self.stations[position as usize].expires;
        let again = contenders.into_iter().map(|Reverse((_, i))| Reverse((expires(i), i)));
        self.contenders = again.collect();
    }

    /// Counts a transmission of a station; returns its duration.
    fn put_on_air(&mut self, position: u32) -> ropewalk_base::Duration {
        let station = &mut self.stations[position as usize];
        let frame = station.current.as_ref().expect("who contends has a frame");
        let radio = &mut self.radios[frame.radio as usize];
        let airtime = radio.config.phy.airtime(frame.packet.size + FRAME_OVERHEAD);
        radio.occupy(airtime);
        station.stats.attempts += 1;
        airtime
    }

    fn end_alone(&mut self, now: Time, position: u32) -> Option<Packet<P>> {
        let station = &mut self.stations[position as usize];
        let frame = station.current.as_ref().expect("who sends has a frame");
        let radio = &mut self.radios[frame.radio as usize];
        if station.errors.chance(radio.config.frame_error) {
            station.stats.frame_errors += 1;
            self.pause(now, now, self.timing.eifs);
            self.fail(now, position);
            return None;
        }
        let answered = now + self.timing.sifs + radio.config.phy.ack_airtime();
        radio.deliver(frame.packet.size);
        station.stats.acknowledged += 1;
        station.backoff.succeeded();
        let frame = station.current.take();
        self.pause(now, answered, self.timing.difs);
        self.contend(now, position);
        frame.map(|frame| frame.packet)
    }

    fn end_collision(&mut self, now: Time, stations: Vec<(u32, Time)>) {
        let ahead: Vec<u32> = stations
            .iter()
            .filter(|(_, ends)| *ends < now)
            .map(|(position, _)| *position)
            .collect();
        let unequal = !ahead.is_empty();
        self.pause(now, now, if unequal { self.timing.difs } else { self.timing.eifs });
        for (position, _) in &stations {
            self.stations[*position as usize].stats.collisions += 1;
            self.fail(now, *position);
        }
        if unequal {
            let later = (self.timing.eifs - self.timing.difs).as_nanos();
            let later = later.div_ceil(self.timing.slot.as_nanos());
            let now = self.clock.slots;
            // A backoff that expired while there was no frame to send stays in the past.
            self.shift(&ahead, |expires| if expires >= now { expires + later } else { expires });
            self.head_start = Some(HeadStart { until: now + later, ahead });
        }
    }

    /// Resumes the slot clock after `space` of silence from `end`.
    fn pause(&mut self, now: Time, end: Time, space: ropewalk_base::Duration) {
        debug_assert!(end >= now);
        self.clock.busy_until = end;
        self.clock.from = end + space;
    }

    /// Handles a missing acknowledgement: retries with a larger window, or gives up.
    fn fail(&mut self, now: Time, position: u32) {
        let station = &mut self.stations[position as usize];
        if station.backoff.failed() == Verdict::GiveUp {
            station.stats.given_up += 1;
            let frame = station.current.take().expect("what failed is the present frame");
            self.radios[frame.radio as usize].drop(DropCause::Retries);
        }
        self.contend(now, position);
    }

    /// Draws the backoff that follows every transmission (9.3.4.3); contends if there is a frame to send.
    fn contend(&mut self, now: Time, position: u32) {
        let station = &mut self.stations[position as usize];
        station.expires = self.clock.slots + station.backoff.draw();
        if station.current.is_none() {
            let Some((radio, size)) = station.advance() else { return };
            self.radios[radio as usize].dequeue(now, size);
        }
        self.contenders.push(Reverse((station.expires, position)));
    }
}

impl<P> Default for Channel<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl SlotClock {
    /// The first slot that begins at or after `now`.
    fn slot_at(&self, now: Time, timing: &Timing) -> u64 {
        self.slots + now.since(self.from).as_nanos().div_ceil(timing.slot.as_nanos())
    }

    /// Start time of `slot`, provided that no station transmits before.
    fn time_of(&self, slot: u64, timing: &Timing) -> Time {
        self.from + timing.slot * (slot - self.slots)
    }
}
