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

/// A channel and its stations. Times given to it must never go back.
#[derive(Clone, Debug)]
pub struct Channel<P> {
    stations: Vec<Station<P>>,
    radios: Vec<Radio>,
    timing: Timing,
    medium: Medium,
    clock: SlotClock,
    /// Stations with a frame to send, by the slot in which they do; the lower station first among equals.
    contenders: BinaryHeap<Reverse<(u64, u32)>>,
    head_start: Option<HeadStart>,
}

/// After a collision of frames of unequal length.
///
/// EIFS follows the reception of a frame with an error (IEEE 802.11-2012, 9.3.2.3.7). The sender of a shorter
/// frame was sending when the longest began, and receives no frame: its backoff goes on a DIFS after the end
/// of the longest. Stations that received the collision wait for EIFS. The sender of the longest first waits
/// for an acknowledgement, which takes about as long, and is taken to wait for EIFS, too.
#[derive(Clone, Debug)]
struct HeadStart {
    /// The slot in which the backoff of the other stations goes on.
    until: u64,
    /// Senders of shorter frames.
    ahead: Vec<u32>,
}

/// Who is sending.
#[derive(Clone, Debug)]
enum Medium {
    Quiet,
    /// One station; its frame ends at `ends`.
    Alone {
        station: u32,
        ends: Time,
    },
    /// Several that began in the same slot; the longest frame ends at `ends`.
    Collision {
        /// Each with the end of its frame.
        stations: Vec<(u32, Time)>,
        ends: Time,
    },
}

/// Counts the slots in which a backoff may run: it stands still from the beginning of a transmission until an
/// interframe space after it (9.3.4.3).
#[derive(Clone, Copy, Debug)]
struct SlotClock {
    /// When it began to run again.
    from: Time,
    /// What it showed then.
    slots: u64,
    /// Until when the medium counts as busy: the end of the exchange, acknowledgement included.
    busy_until: Time,
}

impl<P> Channel<P> {
    /// A channel without stations, idle since long.
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

    /// Adds a station, which draws its luck from the children of `seed`, and gives its position.
    pub fn add_station(&mut self, config: StationConfig, seed: Seed) -> u32 {
        // Without a link it has no layer yet; the first one brings the smaller window if it may have it.
        let old = cw_min(Standard::Dot11b(super::Preamble::Long));
        self.stations.push(Station::new(config, old, seed));
        crate::network::index(self.stations.len() - 1)
    }

    /// Adds a link from a station to whoever its frames are for, and gives its position. All links are there before the
    /// first packet is.
    ///
    /// # Panics
    /// If the station is not on the channel, a packet was offered before, or `config` cannot be.
    pub fn add_radio(&mut self, station: u32, config: RadioConfig) -> u32 {
        let used = self.radios.iter().any(|radio| radio.stats(Time::ZERO).offered > 0);
        assert!(!used, "the links of a channel are there before the first packet");
        config.check().expect("checked by the caller");
        self.stations[station as usize].backoff.lower(cw_min(config.phy.standard()));
        self.radios.push(Radio::new(station, config));
        self.timing = Timing::of(self.radios.iter().map(|radio| radio.config.phy.standard()));
        crate::network::index(self.radios.len() - 1)
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

    /// When the channel next has something to do, if ever.
    pub fn next_wake(&self) -> Option<Time> {
        match &self.medium {
            Medium::Quiet => {
                let Reverse((slot, _)) = self.contenders.peek()?;
                Some(self.clock.time_of(*slot, &self.timing))
            }
            Medium::Alone { ends, .. } | Medium::Collision { ends, .. } => Some(*ends),
        }
    }

    /// Does the one thing that is due at `now`, if any, and returns the packet that has arrived by it, if any.
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

    /// What a link has counted until `now`.
    pub fn stats(&self, now: Time, radio: u32) -> LinkStats {
        self.radios[radio as usize].stats(now)
    }

    /// What a station has counted.
    pub fn station_stats(&self, station: u32) -> StationStats {
        self.stations[station as usize].stats
    }

    /// The spaces and the slot.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// A station that had nothing to send has something: it may send at once on an idle medium, unless the backoff after
    /// its last frame still runs (9.3.4.2, 9.3.4.3).
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

    /// Everybody whose backoff has run out in this slot sends.
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

    /// A transmission in `slot` ends the head start: after it, the backoffs of all stations go on at the same
    /// time again.
    fn end_head_start(&mut self, slot: u64) {
        let Some(HeadStart { until, ahead }) = self.head_start.take() else { return };
        let left = until.saturating_sub(slot);
        if left > 0 {
            self.shift(&ahead, |expires| expires.saturating_sub(left).max(slot));
        }
    }

    /// Moves the backoffs of all stations but these.
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

    /// Counts a transmission of a station, and says how long it takes.
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
            // A backoff that has run out with nothing to send stays so: it is before the present slot.
            self.shift(&ahead, |expires| if expires >= now { expires + later } else { expires });
            self.head_start = Some(HeadStart { until: now + later, ahead });
        }
    }

    /// Lets the clock of slots run on after `space` of silence from `end`.
    fn pause(&mut self, now: Time, end: Time, space: ropewalk_base::Duration) {
        debug_assert!(end >= now);
        self.clock.busy_until = end;
        self.clock.from = end + space;
    }

    /// No acknowledgement has come: again with a larger window, or never more.
    fn fail(&mut self, now: Time, position: u32) {
        let station = &mut self.stations[position as usize];
        if station.backoff.failed() == Verdict::GiveUp {
            station.stats.given_up += 1;
            let frame = station.current.take().expect("what failed is the present frame");
            self.radios[frame.radio as usize].drop(DropCause::Retries);
        }
        self.contend(now, position);
    }

    /// Draws the backoff that follows every transmission (9.3.4.3), and contends if there is a frame to send.
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
    /// The first slot that begins at `now` or later.
    fn slot_at(&self, now: Time, timing: &Timing) -> u64 {
        self.slots + now.since(self.from).as_nanos().div_ceil(timing.slot.as_nanos())
    }

    /// When `slot` begins, if nobody sends before.
    fn time_of(&self, slot: u64, timing: &Timing) -> Time {
        self.from + timing.slot * (slot - self.slots)
    }
}
