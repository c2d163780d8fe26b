//! Received DATA: the actions of the association other than storing it.

use ropewalk_base::{PathId, StreamId, Time};

use super::{Association, Event, State};
use crate::sctp::cause::ErrorCause;
use crate::sctp::chunk::{Chunk, Data, DelayStamp, Echoed};
use crate::sctp::extension_chunk::DataFragment;
use crate::sctp::packet::PacketForm;
use crate::sctp::rx::{DataOutcome, DataSummary};

/// Number of ERROR chunks that one packet has caused.
#[derive(Clone, Copy, Default)]
pub(super) struct Reports(u8);

/// Maximum number of ERROR chunks in response to one packet.
const REPORTS_LIMIT: u8 = 4;

impl Reports {
    /// Whether another ERROR may answer the packet; if so, counts it.
    pub const fn may_report(&mut self) -> bool {
        let may = self.0 < REPORTS_LIMIT;
        self.0 += may as u8;
        may
    }
}

impl Association {
    #[inline]
    pub(super) fn on_data(
        &mut self,
        now: Time,
        data: Data,
        summary: &mut DataSummary,
        reports: &mut Reports,
    ) {
        if !self.state.receives_data() {
            return;
        }
        if data.payload.is_empty() {
            self.abort_with(ErrorCause::NoUserData(data.tsn));
            return;
        }
        if !summary.any && self.receiver.must_keep_sack() {
            self.queue_sack();
        }
        summary.first.get_or_insert(data.tsn);
        match self.receiver.on_data(now, data, summary) {
            DataOutcome::Processed => {}
            DataOutcome::InvalidStream(stream) => self.report_stream(stream, reports),
            DataOutcome::Violation => self.abort_with(ErrorCause::VIOLATION),
        }
    }

    /// Processes a piece of a DATA chunk.
    #[cold]
    pub(super) fn on_fragment(
        &mut self,
        now: Time,
        piece: &DataFragment,
        summary: &mut DataSummary,
        reports: &mut Reports,
    ) {
        if self.state.receives_data()
            && let Some(whole) = self.receiver.on_fragment(piece)
        {
            self.on_data(now, whole, summary, reports);
        }
    }

    /// Builds the SACK that is due before more DATA is processed.
    #[cold]
    fn queue_sack(&mut self) {
        let path = self.sack_destination();
        let room = self.sack_room(path);
        self.receiver.queue_sack(path, room, self.sender.outstanding.chunk_limit());
    }

    /// RFC 9260, 6.5: DATA with an invalid stream identifier is reported immediately with an ERROR.
    #[cold]
    fn report_stream(&mut self, stream: StreamId, reports: &mut Reports) {
        if reports.may_report() {
            let error = Chunk::error(ErrorCause::InvalidStream(stream));
            let path = self.sender.reply_path(self.control.queue.answers_to);
            self.reply_to_peer(path, error);
        }
    }

    /// How a SACK identifies a packet with DATA to its sender.
    #[inline]
    fn echoed(&self, stamp: Option<DelayStamp>, summary: DataSummary) -> Option<Echoed> {
        match (stamp, self.config.packet_form) {
            (Some(stamp), _) => Some(Echoed::Time(stamp.sent)),
            (None, PacketForm::Compact) => summary.first.map(Echoed::Tsn),
            (None, PacketForm::Standard) => None,
        }
    }

    /// Completes the processing of a packet.
    #[inline]
    pub(super) fn after_data(
        &mut self,
        now: Time,
        path: PathId,
        stamp: Option<DelayStamp>,
        summary: DataSummary,
    ) {
        if !summary.any {
            return;
        }
        if self.handshake.peer.takes_stamps
            && let Some(echoed) = self.echoed(stamp, summary)
        {
            self.receiver.acks.on_echoed(now, path, echoed);
        }
        // RFC 9260, 9.2: in SHUTDOWN-SENT every packet with DATA is acknowledged immediately.
        let shutting = matches!(self.state, State::ShutdownSent { .. });
        let summary = DataSummary { urgent: summary.urgent || shutting, ..summary };
        self.receiver.acks.after_packet(now, path, summary);
        if shutting {
            self.answer_with_shutdown();
        }
        if self.control.events.back() != Some(&Event::Readable) {
            self.push_event(Event::Readable);
        }
    }
}
