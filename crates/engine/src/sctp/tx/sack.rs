//! Processing of received SACKs (RFC 9260, 6.2.1), with the per-path rules of CMT (CUC and SFR).

use std::ops::Range;

use ropewalk_base::{Duration, PathId, Rate, Time};
use smallvec::SmallVec;

use super::{GapDiff, Path, RecordState, Sender};
use crate::congestion::{AckSample, CongestionControl};
use crate::meter;
use crate::path::explained_queueing;
use crate::recovery::{Flight, LossDetection};
use crate::sctp::chunk::{DelayEcho, Echoed, Sack};
use crate::sctp::config::CwndUpdate;
use crate::sctp::extension_chunk::NrSack;
use crate::sctp::extensions::non_renegable::union;
use crate::sctp::gaps::GapList;

/// Age of the last RTT sample after which timestamps supply the next one.
const UNTIMED: Duration = Duration::from_secs(1);

/// The transmissions that one SACK acknowledges on one path.
///
/// Fields named `*_end` hold the highest transmission number of their kind plus 1, or 0 if there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathAck {
    bytes: u64,
    in_flight_before: u64,
    oldest_before: Option<u64>,
    /// Among all newly acknowledged transmissions.
    newest_end: u64,
    /// Lowest newly acknowledged transmission number; [`u64::MAX`] if none.
    lowest: u64,
    newest_flight: Option<Flight>,
    /// Whether `newest_flight` itself arrived, and not a copy of its chunk on another path.
    newest_sure: bool,
    /// Whether at least one transmission certainly arrived on this path.
    heard: bool,
    /// Among the transmissions that caused this acknowledgement.
    witness_end: u64,
    /// Like `witness_end`, among transmissions without copies on other paths; and when that transmission
    /// was sent.
    sure_witness_end: u64,
    sure_witness_sent: Time,
    /// Lowest number of a first transmission that arrived; [`u64::MAX`] if none did.
    first_arrival: u64,
    payload: u64,
    chunks: u32,
    /// Whether the pseudo-cumulative TSN of the path advanced (CUC).
    pseudo_moved: bool,
}

impl PathAck {
    /// Nothing is acknowledged on `path` yet.
    #[inline]
    fn nothing(path: &Path) -> Self {
        Self {
            bytes: 0,
            in_flight_before: path.tx.flights.bytes(),
            oldest_before: path.tx.flights.oldest().map(|(number, _)| number),
            newest_end: 0,
            lowest: u64::MAX,
            newest_flight: None,
            newest_sure: false,
            heard: false,
            witness_end: 0,
            sure_witness_end: 0,
            sure_witness_sent: Time::ZERO,
            first_arrival: u64::MAX,
            payload: 0,
            chunks: 0,
            pseudo_moved: false,
        }
    }
}

/// Why a SACK ends the association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidSack {
    /// It acknowledges a TSN that was never sent (RFC 9260, 12.4).
    NeverSent,
    /// Its cumulative TSN ends before a chunk that the peer has reported as non-renegable. The chunk was
    /// freed and cannot be retransmitted.
    Withdrawn,
}

/// One [`PathAck`] per path. Built for each SACK: with thousands of associations, a stored list would
/// have to be fetched from memory.
pub(super) type PathAcks = SmallVec<[PathAck; 2]>;

/// Buffers of SACK processing, kept to save allocations.
#[derive(Clone, Debug)]
pub(super) struct AckScratch {
    pub fresh: Vec<Range<u64>>,
    pub memory: GapDiff,
    /// Highest TSN newly acknowledged.
    pub highest: u64,
    pub lost: Vec<u64>,
    /// Whether the SACK reports duplicate TSNs.
    duplicates: bool,
}

impl AckScratch {
    pub fn new() -> Self {
        Self {
            fresh: Vec::new(),
            memory: GapDiff::default(),
            highest: 0,
            lost: Vec::new(),
            duplicates: false,
        }
    }
}

impl Path {
    /// Updates RTT and delivery rate from the newest acknowledged transmission. Returns whether it gave an
    /// RTT sample.
    fn measure(&mut self, now: Time, ack: &PathAck, flight: &Flight) -> (bool, Option<Rate>) {
        // RFC 9260, 6.3.1 C5 (Karn): no RTT sample from a retransmitted chunk. Chunks that a copy on
        // another path may have delivered are used only while there is no RTT yet, and if the round trip
        // is at least half of the handshake's: the copy may have taken a much faster path.
        let trip = now.since(flight.sent_at);
        let unknown = self.tx.rtt.srtt().is_none();
        let plausible = || self.handshake_trip.is_none_or(|handshake| trip >= handshake / 2);
        let timed = !flight.again && (ack.newest_sure || unknown && plausible());
        if timed {
            self.tx.rtt.sample(now, trip);
        }
        let mut sample = None;
        if ack.newest_sure || self.tx.rate.rate().is_none() {
            sample = self.tx.rate.sample(now, flight.sent_at, &flight.snapshot);
        }
        let (least, rate) = (self.tx.rtt.base(), self.tx.rate.rate());
        if ack.newest_sure {
            self.tx.note_ack(now, flight.sent_at);
        }
        let explained = || Some(explained_queueing(least?, rate?, flight.bytes as u64));
        self.tx.rtt.floor_mut().reconsider(now, explained);
        self.tx.forward.floor_mut().reconsider(now, explained);
        (timed, sample)
    }

    /// Records how long the acknowledgement queued on its way back: the part of the round trip's queueing
    /// delay that did not occur on the way to the peer.
    fn note_return_queueing(&mut self, sample: &AckSample) {
        if let (Some(rtt), Some(forward), Some(base)) =
            (sample.rtt, sample.forward_queueing, sample.least_rtt)
        {
            let queueing = rtt.saturating_sub(base).saturating_sub(forward);
            self.tx.requests.on_return_queueing(queueing, base, self.tx.round);
        }
    }
}

impl Sender {
    /// Processes a SACK. Returns whether it is newer than all previous ones.
    ///
    /// # Errors
    /// [`InvalidSack`]. RFC 9260, 12.4: such a SACK MUST end the association.
    pub fn on_sack(&mut self, now: Time, sack: Sack) -> Result<bool, InvalidSack> {
        self.take_sack(now, sack, None)
    }

    /// Processes a SACK, or an NR-SACK whose non-renegable gap ack blocks are `kept`; those of `sack` include them.
    #[inline(always)]
    fn take_sack(
        &mut self,
        now: Time,
        mut sack: Sack,
        kept: Option<GapList>,
    ) -> Result<bool, InvalidSack> {
        let before = self.outstanding.board.cumulative();
        let cumulative = sack.cumulative.unwrap_near(before);
        let newest = self.outstanding.note_number(sack.number);
        if cumulative < before && sack.number.is_none() {
            // RFC 9260, 6.2.1 D (i): a SACK with a lower cumulative TSN than known is out of date; drop
            // it. A requested SACK lists blocks that other SACKs may not repeat, so its gap ack blocks
            // are always processed.
            return Ok(false);
        }
        if cumulative >= self.outstanding.board.next_tsn() {
            return Err(InvalidSack::NeverSent);
        }
        self.measurements.stats.sacks += 1;
        self.outstanding.last_sack_at = now;
        let mut acks = PathAcks::new();
        self.begin_acks(&mut acks);
        self.outstanding.scratch.duplicates =
            !sack.duplicates.is_empty() && self.outstanding.are_spurious(&sack.duplicates);
        if self.outstanding.scratch.duplicates {
            self.paths.iter_mut().for_each(|path| path.tx.tail.on_duplicate());
        }
        self.take_cumulative(now, cumulative, &mut acks)?;
        if let Some(delays) = &mut self.outstanding.delivery_delays {
            delays.on_sack_end();
        }
        let covered = match sack.number {
            None => self.take_gaps(now, cumulative, &mut sack.gaps, &mut acks)?,
            Some(_) => {
                self.take_recent_gaps(now, cumulative, &sack.gaps, &mut acks)?;
                0
            }
        };
        self.outstanding.spare_gaps = sack.gaps;
        if let Some(kept) = kept {
            self.take_kept(kept);
        }
        if newest {
            self.take_window(cumulative > before, sack.window, covered);
        }
        self.check_reneging()?;
        self.settle_acks(now, cumulative > before, sack.data_packets, &acks);
        self.update_window_probe(now);
        Ok(true)
    }

    /// Processes an NR-SACK. Returns whether it is newer than all previous ones.
    ///
    /// # Errors
    /// Like [`Sender::on_sack`].
    #[cold]
    pub fn on_nr_sack(&mut self, now: Time, sack: &NrSack) -> Result<bool, InvalidSack> {
        let plain = Sack {
            cumulative: sack.cumulative,
            window: sack.window,
            gaps: union(sack.cumulative, &sack.gaps, &sack.kept),
            duplicates: sack.duplicates.clone(),
            data_packets: sack.data_packets,
            number: None,
        };
        self.take_sack(now, plain, Some(sack.kept.clone()))
    }

    /// Frees the chunks in non-renegable gap ack blocks, and their share of the send buffer. They have
    /// already been acknowledged. A report of the chunk after the cumulative TSN contradicts that TSN and
    /// is ignored.
    fn take_kept(&mut self, kept: GapList) {
        let board = &mut self.outstanding.board;
        let cumulative = board.cumulative();
        let fresh = &mut self.outstanding.scratch.fresh;
        fresh.clear();
        board.find_kept(kept, fresh);
        for tsn in fresh.iter().cloned().flatten().filter(|tsn| *tsn > cumulative + 1) {
            meter::count(1);
            board.keep(tsn);
        }
    }

    #[inline]
    fn begin_acks(&mut self, acks: &mut PathAcks) {
        self.outstanding.scratch.highest = 0;
        for path in &mut self.paths {
            let oldest = path.tx.flights.oldest().map(|(_, flight)| flight.tsn);
            path.pseudo_cumack = path.pseudo_cumack.or(oldest);
            acks.push(PathAck::nothing(path));
        }
    }

    /// Processes the cumulative TSN.
    #[inline]
    fn take_cumulative(
        &mut self,
        now: Time,
        cumulative: u64,
        acks: &mut PathAcks,
    ) -> Result<(), InvalidSack> {
        while self.outstanding.board.cumulative() < cumulative {
            let Some(popped) = self.outstanding.board.pop_cumulative() else { break };
            let tsn = popped.tsn;
            if let Some(delays) = &mut self.outstanding.delivery_delays
                && !matches!(popped.state, RecordState::Abandoned { .. })
            {
                delays.on_delivered(now, popped.first_sent);
            }
            match popped.state {
                RecordState::Unsent => return Err(InvalidSack::NeverSent),
                RecordState::InFlight { path, number } if self.outstanding.was_skipped(tsn) => {
                    self.on_skipped(now, path, number);
                }
                RecordState::InFlight { path, number } => {
                    let sure = self.outstanding.board.is_only_on(tsn, path);
                    let ack = &mut acks[path.index()];
                    self.end_flight(now, path, number, popped.payload, sure, ack);
                    self.paths[path.index()].pseudo_cumack = None;
                    ack.pseudo_moved = true;
                }
                RecordState::Lost { on, .. } => self.on_late_arrival(on, popped.payload),
                RecordState::Acked { by } => {
                    self.paths[by.index()].tx.held -= popped.bytes as u64;
                }
                // The FORWARD-TSN has arrived. It is unknown whether the chunk did.
                RecordState::Abandoned { .. } => {}
            }
            self.end_copies(now, tsn, acks);
        }
        self.follow_cumulative(now);
        Ok(())
    }

    /// A chunk that counted as lost on path `on` has arrived before it was retransmitted.
    pub(super) fn on_late_arrival(&mut self, on: PathId, payload: u32) {
        let path = &mut self.paths[on.index()];
        path.tx.counters.delivered_bytes += payload as u64;
        path.tx.rack.on_late_arrival();
        // RFC 9260, 8.1: the acknowledgement of a DATA chunk resets the association's error counter.
        self.outstanding.reports.acknowledged = true;
    }

    /// Ends all copies of an acknowledged chunk. It is unknown which of them arrived.
    #[inline(always)]
    pub(super) fn end_copies(&mut self, now: Time, tsn: u64, acks: &mut PathAcks) {
        if self.outstanding.board.has_copies() {
            self.end_copies_of(now, tsn, acks);
        }
    }

    #[cold]
    fn end_copies_of(&mut self, now: Time, tsn: u64, acks: &mut PathAcks) {
        for (path, number) in self.outstanding.board.take_copies(tsn) {
            self.end_flight(now, path, number, 0, false, &mut acks[path.index()]);
        }
    }

    /// Ends transmission `number`, which was acknowledged. `sure`: no copy on another path can have arrived
    /// instead.
    #[inline]
    pub(super) fn end_flight(
        &mut self,
        now: Time,
        path: PathId,
        number: u64,
        payload: u32,
        sure: bool,
        ack: &mut PathAck,
    ) {
        let state = &mut self.paths[path.index()];
        let Some(flight) = state.tx.flights.end_in_place(number) else { return };
        state.tx.rate.on_delivered(now, flight.bytes as u64);
        ack.heard |= sure;
        ack.bytes += flight.bytes as u64;
        ack.payload += payload as u64;
        ack.chunks += 1;
        if state.pseudo_cumack == Some(flight.tsn) {
            state.pseudo_cumack = None;
            ack.pseudo_moved = true;
        }
        ack.lowest = ack.lowest.min(number);
        self.outstanding.scratch.highest = self.outstanding.scratch.highest.max(flight.tsn);
        // A retransmission sent less than half an RTT ago did not cause this acknowledgement; an earlier
        // transmission did. So nothing sent between the two is late.
        let since = now.since(flight.sent_at);
        if sure && !flight.again {
            ack.first_arrival = ack.first_arrival.min(number);
        }
        let caused = !flight.again || state.tx.rtt.srtt().is_none_or(|srtt| since > srtt / 2);
        let end = number + 1;
        if caused {
            ack.witness_end = ack.witness_end.max(end);
        }
        if sure && caused && end > ack.sure_witness_end {
            (ack.sure_witness_end, ack.sure_witness_sent) = (end, flight.sent_at);
        }
        if end > ack.newest_end {
            ack.newest_end = end;
            ack.newest_flight = Some(*flight);
            ack.newest_sure = sure;
        }
        state.tx.flights.drop_ended();
    }

    /// Updates the peer's receive window, unless the SACK is older than one already processed: SACKs on
    /// different paths overtake each other. With the cumulative TSN unchanged, the SACK that covers fewer
    /// chunks beyond it is the older one.
    fn take_window(&mut self, moved: bool, window: u32, covered: u64) {
        if !moved && covered < u64::from(self.outstanding.offered_gaps) {
            return;
        }
        // Limited to the reach of 16-bit offsets.
        self.outstanding.offered_gaps = covered as u32;
        // The advertised window excludes all chunks that the peer holds beyond the hole, including those
        // that did not fit into the SACK.
        let offered = window as u64 + self.outstanding.board.held_bytes();
        self.outstanding.peer_rwnd = self.outstanding.config.used_buffer(offered);
    }

    fn settle_acks(
        &mut self,
        now: Time,
        cumulative_moved: bool,
        data_packets: u8,
        acks: &PathAcks,
    ) {
        let acked_paths = acks.iter().filter(|a| a.newest_end > 0).count();
        // DAC: a SACK that acknowledges several packets counts twice for transmissions sent before all of
        // them. RFC 9260, 3.3.4: without CMT the chunk flags are ignored.
        let told = self.outstanding.config.cmt.delayed_ack && data_packets > 1;
        let several = acked_paths == 1 && told;
        for (i, ack) in acks.iter().enumerate().filter(|(_, ack)| ack.newest_end > 0) {
            self.settle_path(now, PathId::from_index(i), ack, cumulative_moved, several);
            self.rescue_from_growing_queue(now, PathId::from_index(i));
        }
        if acked_paths > 0 {
            self.outstanding.reports.acknowledged = true;
            self.count_unsplit_misses(now, cumulative_moved);
        }
    }

    fn settle_path(
        &mut self,
        now: Time,
        id: PathId,
        ack: &PathAck,
        cumulative_moved: bool,
        several: bool,
    ) {
        let Some(flight) = &ack.newest_flight else { return };
        let path = &mut self.paths[id.index()];
        path.tx.one_packet = false;
        path.tx.counters.delivered_bytes += ack.payload;
        path.tx.loss.note_arrivals(ack.chunks.min(64));
        path.tx.acked_to = path.tx.acked_to.max(ack.witness_end);
        if path.tx.acked_to > path.tx.round_ends {
            path.tx.begin_round();
        }
        let (timed, rate) = path.measure(now, ack, flight);
        // A copy that another path delivered does not show that this path works.
        let returned = ack.heard && path.tx.state.on_success();
        let own_advance = ack.oldest_before
            != path.tx.flights.oldest().map(|(n, _)| n).or(Some(path.tx.flights.next_number()));
        let advanced = match self.outstanding.config.cmt.cwnd_update {
            CwndUpdate::Off => cumulative_moved,
            CwndUpdate::Cuc => ack.pseudo_moved,
            CwndUpdate::CucV2 => own_advance || cumulative_moved,
        };
        let (in_recovery, source) = (self.recovers(id), self.config.delay_source);
        self.settle_t3(now, id, own_advance, ack.heard);
        let path = &mut self.paths[id.index()];
        let sample = AckSample {
            acked_bytes: ack.bytes,
            in_flight_before: ack.in_flight_before,
            advanced,
            in_recovery,
            flight_empty: path.tx.flights.is_empty(),
            rtt: timed.then(|| now.since(flight.sent_at)),
            srtt: path.tx.rtt.srtt(),
            least_rtt: path.tx.rtt.base(),
            forward_queueing: path.as_ref().estimates(source).last_forward_queueing(),
            app_limited: flight.snapshot.is_limited(),
            delivery: path.tx.delivery((ack.newest_end - 1, flight), ack.newest_sure, rate),
            marked_bytes: path.ecn.as_mut().map_or(0, |ecn| ecn.take_marked_bytes()),
        };
        path.note_return_queueing(&sample);
        if returned {
            self.on_path_returned(now, id);
        }
        if ack.heard {
            self.on_heard(now, id, flight.bytes);
        }
        let losses = self.paths[id.index()].tx.losses;
        self.congestion.on_ack(id, now, &sample);
        self.manage_windows(now, id);
        if self.outstanding.config.recovery == LossDetection::RackTlp {
            self.settle_by_time(now, id, ack);
        } else if self.outstanding.config.cmt.split_fast_retransmit {
            let newest = if in_recovery && own_advance {
                self.paths[id.index()].tx.acked_to.saturating_sub(1)
            } else {
                ack.witness_end.saturating_sub(1)
            };
            let twice = if several { ack.lowest } else { 0 };
            self.count_split_misses(now, id, newest, twice);
        }
        self.reduce_in_proportion(id, sample.acked_bytes, advanced, losses);
    }

    /// A packet of `bytes` bytes has certainly arrived on `id`.
    fn on_heard(&mut self, now: Time, id: PathId, bytes: u32) {
        let reports = &mut self.outstanding.reports;
        reports.heard = reports.heard.with(id);
        self.confirm_mtu(now, id, bytes);
        self.paths[id.index()].ecn.iter_mut().for_each(|ecn| ecn.on_arrival());
    }

    /// Time-based loss detection (RFC 8985), after an acknowledgement.
    fn settle_by_time(&mut self, now: Time, id: PathId, ack: &PathAck) {
        let duplicates = self.outstanding.scratch.duplicates;
        let path = &mut self.paths[id.index()];
        path.tx.tail.on_activity(now);
        let repaired = path.tx.tail.on_acked(path.tx.acked_to);
        if duplicates {
            path.tx.rack.on_spurious(path.tx.round);
        }
        if ack.first_arrival < u64::MAX {
            path.tx.rack.on_first_arrival(ack.first_arrival);
        }
        if let Some(number) = ack.sure_witness_end.checked_sub(1) {
            path.tx.rack.on_arrival(number, now.since(ack.sure_witness_sent));
        }
        self.find_lost_by_time(now, id);
        if repaired {
            self.on_tail_lost(now, id);
        }
    }

    /// Samples the forward delay from a timestamp echo. It also shows that the path works when SACKs cannot,
    /// as on a path that carries only copies of chunks in flight elsewhere.
    pub fn on_delay_echo(&mut self, now: Time, echo: &DelayEcho) {
        let id = PathId(echo.path);
        if id.index() >= self.paths.len() {
            return;
        }
        let sent = match echo.of {
            // The peer chooses the number, so it is limited to the past.
            Echoed::Time(sent) => Time::from_nanos(sent.min(now.as_nanos())),
            Echoed::Tsn(tsn) => match self.take_time(id, tsn) {
                Some(sent) => sent,
                None => return,
            },
        };
        self.sample_forward_delay(now, id, sent.as_nanos(), echo.received);
        if let Some(delays) = &mut self.outstanding.delivery_delays {
            delays.on_arrival(now, echo.received);
        }
        let took = now.since(sent);
        let path = &mut self.paths[id.index()];
        if now.since(path.tx.rtt.sampled_at()) >= UNTIMED && took < UNTIMED {
            path.tx.rtt.sample(now, took);
            // The tail loss probe depends on the RTT.
            self.outstanding.deadline.invalidate();
        }
    }

    /// Whether the buffer is so small that one full chunk is a considerable part of it and a delayed SACK
    /// costs a large part of a round trip.
    #[inline]
    pub const fn is_small(&self, buffer: u64) -> bool {
        const CHUNKS: u64 = 64;
        buffer <= CHUNKS * self.outstanding.full_chunk()
    }
}
