//! Undo of spurious reductions (RFC 4015).

use ropewalk_base::{Duration, PathId, Time};

use super::super::segment::Segment;
use super::super::subflow::Subflow;
use super::Session;
use super::acks::SubflowAckd;
use crate::congestion::CongestionControl;
use crate::mptcp::reordering::{Report, SpuriousDetector, SpuriousRule};
use crate::recovery::Flight;

impl Session {
    /// Checks by the rule of `path` whether a segment with acknowledgements shows that the last reduction
    /// was spurious.
    pub(super) fn reconsider(
        &mut self,
        now: Time,
        path: PathId,
        segment: &Segment,
        ackd: &SubflowAckd,
    ) {
        let subflow = &mut self.sender.paths[path.index()];
        if matches!(subflow.undo, SpuriousDetector::None(_)) {
            return;
        }
        let report = Report {
            advanced: ackd.advanced,
            una: subflow.sent.una(),
            ack: segment.ack,
            late: ackd.late,
            pending: !subflow.sent.lost().is_empty(),
            echo: segment.stamps.map(|stamps| stamps.echo),
            duplicate: segment.sacks.first().copied().filter(|_| segment.duplicate),
            // In data segments the number belongs to the data.
            order: segment.order.filter(|_| segment.payload.is_empty()),
            disordered: segment.disordered,
            srtt: subflow.tx.rtt.srtt(),
        };
        if subflow.undo.on_ack(now, &report) {
            self.take_back(now, path, report.echo);
        }
    }

    /// Undoes the last reduction.
    fn take_back(&mut self, now: Time, path: PathId, echo: Option<u64>) {
        let subflow = &mut self.sender.paths[path.index()];
        subflow.tx.counters.undone += 1;
        subflow.tx.recovery_exit = None;
        subflow.tx.inflation = 0;
        if core::mem::take(&mut subflow.by_timer) {
            // RFC 4015, 3.2, steps 6 and 8: data that was given up is in flight again, and the timeout is
            // adapted.
            refloat(now, subflow);
            if let Some(sent_at) = echo.filter(|echo| *echo != 0) {
                let since = Duration::from_nanos(now.as_nanos().saturating_sub(sent_at));
                subflow.tx.rtt.after_spurious_timeout(now, since);
            }
        }
        self.sender.epoch += 1;
        self.sender.congestion.on_spurious(path, now);
    }

    /// Ends the F-RTO test of subflows without new data to send. Returns true if there was one.
    pub(super) fn end_tests(&mut self) -> bool {
        let mut any = false;
        for subflow in &mut self.sender.paths {
            if subflow.undo.holds_back() && subflow.tx.flights.is_empty() {
                subflow.undo.on_nothing_new();
                any = true;
            }
        }
        any
    }
}

/// Counts all data that was given up as in flight again. It gives no measurements, because its transmission
/// time is no longer known.
fn refloat(now: Time, subflow: &mut Subflow) {
    while let Some(piece) = subflow.sent.lost().first() {
        let Some(bytes) = subflow.sent.get(piece).map(|mapped| mapped.payload.len()) else {
            return;
        };
        let idle = subflow.tx.flights.is_empty();
        let snapshot = subflow.tx.rate.on_sent(now, idle, true);
        let number = subflow.tx.flights.push(Flight::new(piece, bytes, now, snapshot, true));
        subflow.sent.on_found(piece, number);
    }
}
