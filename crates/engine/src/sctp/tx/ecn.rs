//! Explicit congestion notification (RFC 3168): the network marks packets instead of dropping them. RFC 4960,
//! Appendix A, defines ECN for SCTP; RFC 9260 omits it without deprecating it.
//!
//! The receiver of a marked packet reports it beside its SACKs (ECNE, with the lowest TSN of that packet)
//! until the sender confirms it (CWR). The sender reduces the window of the path that carried that TSN, once
//! per window. This is the sender's part.

use ropewalk_base::{Duration, PathId, Serial32, Time};

use super::{RecordState, Sender};
use crate::congestion::CongestionControl;

/// Consecutive timeouts after which ECN is disabled on a path that has never delivered an ECT packet: a
/// middlebox drops such packets.
const FAILURES: u8 = 2;
/// Minimum time between two answers to the same ECNE while the RTT is unknown.
const AGAIN: Duration = Duration::from_millis(100);

/// Whether a path delivers ECT packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trial {
    /// None has been acknowledged yet; number of timeouts so far.
    Open(u8),
    /// ECT packets arrive.
    Passed,
    /// ECT packets do not arrive: none are sent any more.
    Failed,
}

/// ECN on one path.
#[derive(Clone, Debug)]
pub struct Ecn {
    trial: Trial,
    /// First TSN sent after the last reduction. Marks of earlier TSNs cause no further one.
    reduced_to: u64,
    /// The last ECNE that was answered, and when.
    answered: Option<(Serial32, Time)>,
}

impl Ecn {
    /// ECN of a path that has not been used.
    pub const fn new() -> Self {
        Self { trial: Trial::Open(0), reduced_to: 0, answered: None }
    }

    /// Whether packets with data are sent as ECT.
    pub fn is_on(&self) -> bool {
        self.trial != Trial::Failed
    }

    /// An ECT packet was delivered.
    pub const fn on_arrival(&mut self) {
        if let Trial::Open(_) = self.trial {
            self.trial = Trial::Passed;
        }
    }

    /// T3 of the path expired.
    pub const fn on_timeout(&mut self) {
        if let Trial::Open(failures) = self.trial {
            self.trial =
                if failures + 1 >= FAILURES { Trial::Failed } else { Trial::Open(failures + 1) };
        }
    }
}

impl Sender {
    /// Processes an ECNE that arrived on `from`, and returns whether to confirm it with a CWR. A TSN that was
    /// never sent is ignored. For a TSN that is already acknowledged no window is reduced: either an earlier
    /// ECNE has reported it, or its path is no longer known.
    #[cold]
    pub fn on_ecne(&mut self, now: Time, from: PathId, wire_tsn: Serial32) -> bool {
        let tsn = wire_tsn.unwrap_near(self.outstanding.board.cumulative());
        if tsn >= self.outstanding.board.next_tsn() {
            return false;
        }
        let on = match self.outstanding.board.get(tsn).map(|record| record.state) {
            Some(RecordState::Unsent) => return false,
            Some(RecordState::InFlight { path, .. }) => Some(path),
            Some(RecordState::Acked { by }) => Some(by),
            Some(RecordState::Lost { on, .. } | RecordState::Abandoned { on }) => Some(on),
            None => None,
        };
        if let Some(on) = on {
            self.reduce_for_mark(now, on, tsn);
        }
        let srtt = self.paths[from.index()].tx.rtt.srtt().unwrap_or(AGAIN);
        let Some(ecn) = &mut self.paths[from.index()].ecn else { return false };
        let fresh = |(tsn, at): (Serial32, Time)| tsn != wire_tsn || now.since(at) >= srtt;
        let confirms = ecn.answered.is_none_or(fresh);
        if confirms {
            ecn.answered = Some((wire_tsn, now));
        }
        confirms
    }

    /// Reduces the window of a path once per window of data. A loss in the same window has reduced it
    /// already.
    fn reduce_for_mark(&mut self, now: Time, on: PathId, tsn: u64) {
        let next = self.outstanding.board.next_tsn();
        let path = &mut self.paths[on.index()];
        let recovers = path.in_recovery();
        let Some(ecn) = &mut path.ecn else { return };
        if recovers || tsn < ecn.reduced_to {
            return;
        }
        ecn.reduced_to = next;
        path.tx.counters.marked += 1;
        self.congestion.on_ecn(on, now);
    }
}
