//! One transfer of a capture: which data was sent when and over which path, and when it was acknowledged.
//!
//! Positions are unwrapped sequence numbers: bytes with TCP, chunks with SCTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ropewalk_base::RangeSet;

use super::chunks::{Chunk, chunks, tag};
use super::congestion::{Delays, Sample, UnitSent};
use super::flow::Flow;
use super::packets::{Content, Packet, Segment};
use super::{Overflow, RecordedPath, RecordedProtocol, RecordingError};
use crate::measure::estimate::loss;

/// Maximum number of units of data whose losses are evaluated.
const UNITS_LIMIT: u64 = 6_000_000;
/// Maximum number of paths of an association.
const PATHS_LIMIT: usize = 64;
/// Maximum number of round trips that are kept for each path.
const SAMPLES_LIMIT: usize = 1 << 20;
/// Length of an interval in which acknowledged bytes are counted, nanoseconds, and maximum number of intervals:
/// those of a day.
const BIN_NS: u64 = 100_000_000;
const BINS_LIMIT: u64 = 864_000;
/// Intervals of a second.
const PEAK_BINS: usize = 10;
/// Percentile of the acknowledged bytes per second that counts as the rate of the path. Delayed acknowledgements
/// arrive in groups, so the maximum would be too high.
const PEAK_SHARE: usize = 95;
/// A gap that is filled after this share of the round trip counts as a loss, otherwise as reordering.
const LATE_SHARE: f64 = 0.5;
/// The round-trip time assumed for this purpose before there is a sample, seconds.
const FIRST_RTT_S: f64 = 0.1;
/// Longest time between two records of one packet, seconds.
const COPY_S: f64 = 1e-3;
/// Maximum number of timestamps that wait for their echo.
const ECHOES_LIMIT: usize = 10_000;
/// TCP's segment size if the capture has no SYN: that of Ethernet with timestamps, bytes.
const SEGMENT_BYTES: u64 = 1448;
/// Positions start here, so that data before the first packet of the capture has positive ones.
const ORIGIN: u64 = 1 << 32;

pub(super) struct Transfer {
    flow: Flow,
    /// The first sequence number that was seen with data.
    first: Option<u32>,
    /// Size of a unit for counting losses, bytes.
    unit: u64,
    /// End of the highest data so far.
    high: u64,
    seen: RangeSet,
    /// Gaps in the seen data: start, and end with the time when the gap appeared.
    gaps: BTreeMap<u64, (u64, u64)>,
    /// Data that is not acknowledged, by its first position.
    outstanding: BTreeMap<u64, Sent>,
    /// Segments or chunks by their first position.
    units: BTreeMap<u64, Unit>,
    /// The smaller of the maximum segment sizes that both ends have announced.
    mss: Option<u16>,
    paths: Vec<Path>,
    /// Times of the packets that open the connection, and whether the sender of the data sent the first one.
    opening: [Option<u64>; 3],
    sender_opens: bool,
    /// Minimum time from the capture to the sender and back, nanoseconds.
    sender_part_ns: Option<u64>,
    /// The same for each packet that shows it.
    sender_parts: Vec<Sample>,
    /// TCP's timestamps that wait for their echo, by direction: of the sender, of the receiver.
    stamps: [BTreeMap<u32, Stamped>; 2],
    newest_stamps: [Option<u32>; 2],
    times: Option<(u64, u64)>,
}

/// A packet that brought a timestamp: its time, nanoseconds, and size, bytes.
type Stamped = (u64, u32);

#[derive(Clone, Copy)]
struct Sent {
    end: u64,
    at_ns: u64,
    path: usize,
    bytes: u32,
    again: bool,
}

/// A segment or chunk.
#[derive(Clone, Copy)]
struct Unit {
    end: u64,
    path: u8,
    /// Its place in the order of sending.
    place: u32,
    /// When it was last seen.
    at_ns: u64,
}

struct Path {
    from: SocketAddr,
    to: SocketAddr,
    packets: u64,
    largest: u32,
    /// Round trips, by the time of sending.
    rtts: Vec<Sample>,
    least_rtt_s: f64,
    /// Acknowledged bytes in each interval.
    bins: Vec<u64>,
    units: Vec<UnitSent>,
    reordered: u64,
}

impl Transfer {
    pub(super) fn new(flow: Flow) -> Self {
        Self {
            flow,
            first: None,
            unit: if flow.protocol() == RecordedProtocol::Tcp { SEGMENT_BYTES } else { 1 },
            high: ORIGIN,
            seen: RangeSet::new(),
            gaps: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            units: BTreeMap::new(),
            mss: None,
            paths: Vec::new(),
            opening: [None; 3],
            sender_opens: true,
            sender_part_ns: None,
            sender_parts: Vec::new(),
            stamps: [BTreeMap::new(), BTreeMap::new()],
            newest_stamps: [None; 2],
            times: None,
        }
    }

    /// Takes the next packet of the file; packets of other flows are ignored.
    pub(super) fn take(&mut self, packet: &Packet<'_>) -> Result<(), RecordingError> {
        match (&packet.content, self.flow) {
            (Content::Tcp(segment), Flow::Tcp(from, to)) => {
                if (packet.from, packet.to) == (from, to) {
                    self.segment(packet, *segment)?;
                } else if (packet.from, packet.to) == (to, from) {
                    self.acknowledgment(packet, *segment);
                }
                Ok(())
            }
            (Content::Sctp(bytes), Flow::Sctp { tag: own }) => {
                let chunks = chunks(bytes);
                if tag(bytes) == Some(own) {
                    self.data_chunks(packet, &chunks)
                } else {
                    self.returned_chunks(packet, &chunks);
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    fn segment(&mut self, packet: &Packet<'_>, segment: Segment) -> Result<(), RecordingError> {
        if segment.syn {
            self.note_mss(segment.mss);
            let step = usize::from(segment.acknowledgment.is_some());
            self.open(step, packet.at_ns, true);
        } else if segment.acknowledgment.is_some() {
            self.open(2, packet.at_ns, true);
        }
        if let Some((own, echoed)) = segment.timestamps {
            self.note_stamp(0, own, (packet.at_ns, packet.bytes));
            if let Some((at, _)) = self.take_stamp(1, echoed) {
                let part_ns = packet.at_ns.saturating_sub(at);
                self.note_sender_part(part_ns);
                if self.sender_parts.len() < SAMPLES_LIMIT {
                    self.sender_parts.push(Sample::new(packet.at_ns, part_ns, packet.bytes));
                }
            }
        }
        if segment.payload == 0 {
            return Ok(());
        }
        // A packet up to the maximum segment size is one segment. Larger ones, which the network card segments, have
        // several; the maximum counts their options (RFC 6691, 2).
        if let Some(mss) = self.mss {
            let own = u64::from(mss.saturating_sub(segment.options)).max(1);
            self.unit =
                if segment.payload <= u32::from(mss) { segment.payload.into() } else { own };
        }
        let start = self.unwrap(segment.sequence);
        let path = self.path(packet)?;
        self.data(packet, path, start, start + u64::from(segment.payload))
    }

    fn acknowledgment(&mut self, packet: &Packet<'_>, segment: Segment) {
        if segment.syn {
            self.note_mss(segment.mss);
            self.open(usize::from(segment.acknowledgment.is_some()), packet.at_ns, false);
        } else if segment.acknowledgment.is_some() {
            self.open(2, packet.at_ns, false);
        }
        let mut timed = false;
        if let Some((own, echoed)) = segment.timestamps {
            self.note_stamp(1, own, (packet.at_ns, packet.bytes));
            timed = true;
            if let Some(stamped) = self.take_stamp(0, echoed) {
                self.sample(0, stamped, packet.at_ns);
            }
        }
        let (Some(number), true) = (segment.acknowledgment, self.first.is_some()) else { return };
        let end = self.unwrap(number);
        self.acknowledge(packet.at_ns, ORIGIN - (1 << 31), end, !timed);
        for (first, end) in segment.received.into_iter().flatten() {
            let (start, end) = (self.unwrap(first), self.unwrap(end));
            // Echoed timestamps show no round trip while data is missing; these blocks do.
            self.acknowledge(packet.at_ns, start, end, true);
        }
    }

    fn data_chunks(&mut self, packet: &Packet<'_>, all: &[Chunk]) -> Result<(), RecordingError> {
        let tsns: Vec<u32> = all
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::Data { tsn } => Some(*tsn),
                _ => None,
            })
            .collect();
        for chunk in all {
            match chunk {
                Chunk::InitAck => self.open(1, packet.at_ns, true),
                Chunk::CookieEcho => self.open(2, packet.at_ns, true),
                _ => {}
            }
        }
        // The packet's bytes belong to its first chunk.
        let mut bytes = packet.bytes;
        for tsn in tsns {
            let start = self.unwrap(tsn);
            let path = self.path(packet)?;
            self.data(
                &Packet { bytes, content: Content::Sctp(&[]), ..*packet },
                path,
                start,
                start + 1,
            )?;
            bytes = 0;
        }
        Ok(())
    }

    fn returned_chunks(&mut self, packet: &Packet<'_>, all: &[Chunk]) {
        for chunk in all {
            match chunk {
                // The tag of an INIT is 0, so it may belong to any association; the first INIT counts.
                Chunk::Init if self.first.is_none() => self.open(0, packet.at_ns, false),
                Chunk::InitAck if self.is_reverse(packet) => self.open(1, packet.at_ns, false),
                Chunk::CookieEcho if self.is_reverse(packet) => self.open(2, packet.at_ns, false),
                Chunk::Sack { cumulative, received }
                    if self.is_reverse(packet) && !self.paths.is_empty() =>
                {
                    let least = ORIGIN - (1 << 31);
                    let end = self.unwrap(*cumulative) + 1;
                    self.acknowledge(packet.at_ns, least, end, true);
                    for (first, last) in received {
                        let (start, end) = (self.unwrap(*first), self.unwrap(*last) + 1);
                        self.acknowledge(packet.at_ns, start, end, true);
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether a packet comes back over one of the paths. Before there is a path, every packet may.
    fn is_reverse(&self, packet: &Packet<'_>) -> bool {
        self.paths.is_empty()
            || self.paths.iter().any(|path| (path.to, path.from) == (packet.from, packet.to))
    }

    /// Notes the steps that open the connection: request, answer, and what follows the answer.
    fn open(&mut self, step: usize, at_ns: u64, by_sender: bool) {
        match step {
            // The answer may belong to any of several requests: the last one counts.
            0 => self.opening = [Some(at_ns), None, None],
            1 if self.opening[0].is_some() && self.opening[1].is_none() => {
                (self.opening[1], self.sender_opens) = (Some(at_ns), !by_sender);
            }
            2 if self.opening[1].is_some() && by_sender == self.sender_opens => {
                self.opening[2] = Some(at_ns);
            }
            _ => {}
        }
        if let [Some(first), Some(second), Some(third)] = self.opening {
            let part = if self.sender_opens { (second, third) } else { (first, second) };
            self.note_sender_part(part.1.saturating_sub(part.0));
            self.opening = [None; 3];
        }
    }

    fn note_mss(&mut self, mss: Option<u16>) {
        self.mss = [self.mss, mss].into_iter().flatten().min();
    }

    fn note_sender_part(&mut self, part_ns: u64) {
        let least = self.sender_part_ns.map_or(part_ns, |known| known.min(part_ns));
        self.sender_part_ns = Some(least);
    }

    fn note_stamp(&mut self, direction: usize, value: u32, stamped: Stamped) {
        let newest = &mut self.newest_stamps[direction];
        // The first of several packets with one value counts: the echo may be that of any of them.
        if newest.is_some_and(|newest| value.wrapping_sub(newest).wrapping_sub(1) >= 1 << 31) {
            return;
        }
        *newest = Some(value);
        let stamps = &mut self.stamps[direction];
        stamps.insert(value, stamped);
        if stamps.len() > ECHOES_LIMIT {
            stamps.pop_first();
        }
    }

    /// The packet that brought this value first. Each value gives one sample: later echoes waited for something else.
    fn take_stamp(&mut self, direction: usize, value: u32) -> Option<Stamped> {
        let stamped = self.stamps[direction].remove(&value)?;
        self.stamps[direction].retain(|other, _| other.wrapping_sub(value) < 1 << 31);
        Some(stamped)
    }

    /// The position of a sequence number: the one nearest to the highest data.
    fn unwrap(&mut self, number: u32) -> u64 {
        let first = *self.first.get_or_insert(number);
        let expected = self.high;
        let low = ORIGIN.wrapping_add(u64::from(number.wrapping_sub(first)));
        let turns = (expected.wrapping_sub(low).wrapping_add(1 << 31)) >> 32;
        low.wrapping_add(turns << 32)
    }

    /// The path of a data packet.
    fn path(&mut self, packet: &Packet<'_>) -> Result<usize, RecordingError> {
        let known = |path: &Path| (path.from, path.to) == (packet.from, packet.to);
        if let Some(place) = self.paths.iter().position(known) {
            return Ok(place);
        }
        if self.paths.len() == PATHS_LIMIT {
            return Err(RecordingError::TooLong);
        }
        self.paths.push(Path {
            from: packet.from,
            to: packet.to,
            packets: 0,
            largest: 0,
            rtts: Vec::new(),
            least_rtt_s: FIRST_RTT_S,
            bins: Vec::new(),
            units: Vec::new(),
            reordered: 0,
        });
        Ok(self.paths.len() - 1)
    }

    /// Notes data that was sent.
    fn data(
        &mut self,
        packet: &Packet<'_>,
        path: usize,
        start: u64,
        end: u64,
    ) -> Result<(), RecordingError> {
        let at_ns = packet.at_ns;
        if self.is_copy(at_ns, start, end) {
            return Ok(());
        }
        let first = self.times.map_or(at_ns, |(first, _)| first);
        self.times = Some((first, at_ns));
        if packet.bytes > 0 {
            self.paths[path].packets += 1;
            self.paths[path].largest = self.paths[path].largest.max(packet.bytes);
        }
        let again = self.seen.contains(start) || self.seen.contains(end - 1);
        // Over several paths, data of the slower one fills gaps late although nothing was lost.
        let one_path = self.paths.len() == 1;
        let missing_since = self.missing_since(start, end).filter(|_| !again && one_path);
        let late =
            missing_since.is_some_and(|since| self.is_late(at_ns.saturating_sub(since), path));
        if start > self.high {
            self.gaps.insert(self.high, (start, at_ns));
        }
        self.assign(at_ns, start, end, path)?;
        if again || late {
            self.mark_lost(start, end, missing_since);
        } else if start < self.high {
            self.paths[path].reordered += 1;
        }
        self.seen.insert_range(start..end);
        self.high = self.high.max(end);
        let sent = Sent { end, at_ns, path, bytes: packet.bytes, again: again || late };
        self.outstanding.insert(start, sent);
        Ok(())
    }

    /// Since when data before the highest position has been missing. `None` if it was not missing, or was sent before
    /// the capture started.
    fn missing_since(&mut self, start: u64, end: u64) -> Option<u64> {
        if start >= self.high {
            return None;
        }
        let (gap, (until, since)) = self.gaps.range(..=start).next_back().map(|(a, b)| (*a, *b))?;
        if start >= until {
            return None;
        }
        if start == gap {
            self.gaps.remove(&gap);
        }
        if end < until {
            self.gaps.insert(end, (until, since));
        }
        Some(since)
    }

    /// Whether data was missing for so long that it was lost.
    fn is_late(&self, missing_ns: u64, path: usize) -> bool {
        missing_ns as f64 * 1e-9 > LATE_SHARE * self.least_round_trip_s(path)
    }

    fn least_round_trip_s(&self, path: usize) -> f64 {
        self.paths[path].least_rtt_s + self.sender_part_ns.unwrap_or(0) as f64 * 1e-9
    }

    /// Whether this is another record of data that was seen just before, as captures of several interfaces have: data
    /// is not sent again before half of a round trip.
    fn is_copy(&self, at_ns: u64, start: u64, end: u64) -> bool {
        let Some((_, known)) = self.units.range(..=start).next_back() else { return false };
        if known.end <= start || end > self.high {
            return false;
        }
        let paths = 0..self.paths.len();
        let rtt_s = paths.map(|path| self.least_round_trip_s(path)).fold(FIRST_RTT_S, f64::min);
        let limit_s = COPY_S.min(LATE_SHARE * rtt_s);
        (at_ns.saturating_sub(known.at_ns) as f64 * 1e-9) < limit_s
    }

    /// Divides new data into units, in the order of sending. Units that were seen before are noted as seen now.
    fn assign(
        &mut self,
        at_ns: u64,
        start: u64,
        end: u64,
        path: usize,
    ) -> Result<(), RecordingError> {
        let mut next = start;
        while next < end {
            if let Some((_, unit)) = self.units.range_mut(..=next).next_back()
                && unit.end > next
            {
                (unit.at_ns, next) = (at_ns, unit.end);
                continue;
            }
            if self.units.len() as u64 == UNITS_LIMIT {
                return Err(RecordingError::TooLong);
            }
            let following = self.units.range(next..).next().map_or(end, |(start, _)| *start);
            let until = end.min(next + self.unit).min(following);
            let units = &mut self.paths[path].units;
            let unit = Unit { end: until, path: path as u8, place: units.len() as u32, at_ns };
            units.push(UnitSent { at_ns, lost: false });
            self.units.insert(next, unit);
            next = until;
        }
        Ok(())
    }

    /// Marks the units that begin in a range. Those that were never seen before were missing since some time.
    fn mark_lost(&mut self, start: u64, end: u64, since: Option<u64>) {
        for unit in self.units.range(start..end).map(|(_, unit)| unit) {
            let sent = &mut self.paths[usize::from(unit.path)].units[unit.place as usize];
            *sent = UnitSent { at_ns: since.unwrap_or(sent.at_ns), lost: true };
        }
    }

    /// Removes data that is acknowledged. With `timed`, the newest data gives each path a round-trip
    /// time sample.
    fn acknowledge(&mut self, at_ns: u64, start: u64, end: u64, timed: bool) {
        if start >= end {
            return;
        }
        let mut newest: BTreeMap<usize, Sent> = BTreeMap::new();
        while let Some((first, sent)) =
            self.outstanding.range(start..end).next().map(|(a, b)| (*a, *b))
        {
            if sent.end > end {
                break;
            }
            self.outstanding.remove(&first);
            self.count(at_ns, sent);
            let later = newest.get(&sent.path).is_none_or(|known| known.at_ns <= sent.at_ns);
            if later {
                newest.insert(sent.path, sent);
            }
        }
        for (path, sent) in newest {
            // Karn: no round trip from data that was sent twice.
            if timed && !sent.again {
                self.sample(path, (sent.at_ns, sent.bytes), at_ns);
            }
        }
    }

    fn count(&mut self, at_ns: u64, sent: Sent) {
        let Some((first, _)) = self.times else { return };
        let bin = at_ns.saturating_sub(first) / BIN_NS;
        let bins = &mut self.paths[sent.path].bins;
        if bin < BINS_LIMIT {
            if bins.len() <= bin as usize {
                bins.resize(bin as usize + 1, 0);
            }
            bins[bin as usize] += u64::from(sent.bytes);
        }
    }

    fn sample(&mut self, path: usize, (sent_ns, bytes): Stamped, at_ns: u64) {
        let Some(path) = self.paths.get_mut(path) else { return };
        let sample = Sample::new(sent_ns, at_ns.saturating_sub(sent_ns), bytes);
        let rtt_s = sample.delay_s;
        path.least_rtt_s = if path.rtts.is_empty() { rtt_s } else { path.least_rtt_s.min(rtt_s) };
        if path.rtts.len() < SAMPLES_LIMIT {
            path.rtts.push(sample);
        }
    }

    /// The figures.
    pub(super) fn finish(
        self,
    ) -> Result<(RecordedProtocol, f64, Vec<RecordedPath>), RecordingError> {
        let (first, last) = self.times.ok_or(RecordingError::NoData)?;
        let seconds = last.saturating_sub(first) as f64 * 1e-9;
        let part = self.sender_part_ns.map(|part| part as f64 * 1e-9);
        // Only for TCP, which has one path.
        let before = Delays::new(&self.sender_parts);
        let acknowledged = |path: &Path| path.bins.iter().any(|bytes| *bytes > 0);
        let paths: Vec<_> = self
            .paths
            .into_iter()
            .filter(acknowledged)
            .filter_map(|path| path.figures(part, &before))
            .collect();
        if paths.is_empty() {
            return Err(RecordingError::NotAcknowledged);
        }
        Ok((self.flow.protocol(), seconds, paths))
    }
}

impl Path {
    /// Computes the figures. `before` contains the delays between the sender and the capture.
    fn figures(self, sender_part_s: Option<f64>, before: &Delays) -> Option<RecordedPath> {
        let bins = &self.bins;
        let bits = |bytes: u64, bins: usize| {
            bytes as f64 * 8.0 / (bins.max(1) as f64 * BIN_NS as f64 * 1e-9)
        };
        let window = PEAK_BINS.min(bins.len());
        let seconds = bins.windows(window.max(1)).map(|some| some.iter().sum::<u64>());
        let mut seconds: Vec<u64> = seconds.collect();
        seconds.sort_unstable();
        let peak =
            *seconds.get((seconds.len() * PEAK_SHARE / 100).min(seconds.len().max(1) - 1))?;
        let rtts_s = self.rtts.iter().map(|one| one.delay_s + sender_part_s.unwrap_or(0.0));
        let rtts_s: Vec<f64> = rtts_s.collect();
        let peak_bps = bits(peak, window);
        // The queue is on that side of the capture where the delay varies more.
        let behind = Delays::new(&self.rtts);
        // A packet takes time to enter the link, which is on the side with the longer delay.
        let parts = [before, &behind].map(|part| [part.least_s(0.0), part.least_s(peak_bps)]);
        let [[near, near_alone], [far, far_alone]] = parts;
        let empty_rtt_s = if near > far { near_alone + far } else { near + far_alone };
        let delays = if before.range_s() > behind.range_s() { before } else { &behind };
        let full = delays.full_queue(&self.units);
        let all = || self.units.iter().map(|unit| unit.lost).collect();
        let overflow =
            full.as_ref().map(|full| Overflow { delay_s: full.delay_s, drops: full.drops });
        let others = full.map_or_else(all, |full| full.others);
        Some(RecordedPath {
            from: self.from,
            to: self.to,
            packets: self.packets,
            largest_bytes: self.largest,
            rtts_s,
            sender_part_s,
            empty_rtt_s: empty_rtt_s.max(0.0),
            peak_bps,
            mean_bps: bits(bins.iter().sum(), bins.len()),
            rise_s: delays.range_s(),
            overflow,
            loss: loss::fit(&others).or_else(|| loss::fit(&[false]))?,
            reordered: self.reordered,
        })
    }
}
