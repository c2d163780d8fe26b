//! Explicit congestion notification (RFC 3168): the network marks packets instead of dropping them. RFC 4960,
//! Appendix A, defines ECN for SCTP; RFC 9260 omits it without deprecating it.
//!
//! The receiver of a marked packet reports it along with its SACKs (ECNE, with the lowest TSN of that
//! packet) until the sender confirms it (CWR). The sender reduces the window of the path that carried
//! that TSN, once per window. This is the sender's part.

use ropewalk_base::{Duration, Ecn as Codepoint, PathId, Serial32, Time};

use super::{RecordState, Sender};
use crate::congestion::CongestionControl;
use crate::sctp::extension_chunk::MarkCount;

/// Consecutive timeouts after which ECN is disabled on a path that has never delivered an ECT packet: a
/// middlebox drops such packets.
const FAILURES: u8 = 2;
/// Minimum time between two answers to the same ECNE while the RTT is unknown.
const AGAIN: Duration = Duration::from_millis(100);

/// Whether a path delivers ECT packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trial {
    /// No ECT packet has been acknowledged yet; number of timeouts so far.
    Open(u8),
    /// ECT packets arrive.
    Passed,
    /// ECT packets do not arrive: none are sent from now on.
    Failed,
}

/// ECN on one path.
#[derive(Clone, Debug)]
pub struct Ecn {
    trial: Trial,
    /// First TSN sent after the last reduction. Marks of earlier TSNs cause no further one.
    reduced_to: u64,
    feedback: Feedback,
}

/// How the peer reports marks.
#[derive(Clone, Copy, Debug)]
enum Feedback {
    /// By ECNE, none of them answered yet.
    Echoes,
    /// By ECNE: the last one that was answered, and when.
    Answered { tsn: Serial32, at: Time },
    /// By MARK COUNT, because accurate ECN was negotiated: the peer's total of marked bytes, modulo 2^32,
    /// and those that have not been reported to congestion control yet.
    Counts { total: u32, untold: u64 },
}

impl Feedback {
    /// Whether to answer an ECNE; if so, records it. An ECNE is answered once per round trip. A peer that
    /// counts marks needs no answer.
    fn answers(&mut self, now: Time, echo: Serial32, srtt: Duration) -> bool {
        let answers = match *self {
            Self::Echoes => true,
            Self::Answered { tsn, at } => tsn != echo || now.since(at) >= srtt,
            Self::Counts { .. } => false,
        };
        if answers {
            *self = Self::Answered { tsn: echo, at: now };
        }
        answers
    }

    /// Processes the peer's total, and returns its increase in bytes. A smaller total is from an older
    /// packet.
    fn advance(&mut self, to: u32) -> u32 {
        let Self::Counts { total, untold } = self else { return 0 };
        let more = to.wrapping_sub(*total);
        if more > u32::MAX / 2 {
            return 0;
        }
        *total = to;
        *untold += u64::from(more);
        more
    }

    /// Marked bytes since the last call.
    const fn take_untold(&mut self) -> u64 {
        match self {
            Self::Counts { untold, .. } => std::mem::replace(untold, 0),
            Self::Echoes | Self::Answered { .. } => 0,
        }
    }
}

impl Ecn {
    /// ECN state of an unused path. `accurate`: the peer counts marked bytes.
    pub fn new(accurate: bool) -> Self {
        let feedback = match accurate {
            true => Feedback::Counts { total: 0, untold: 0 },
            false => Feedback::Echoes,
        };
        Self { trial: Trial::Open(0), reduced_to: 0, feedback }
    }

    /// The ECN field of packets with data. RFC 9331, 4.2: a sender without accurate feedback MUST NOT send ECT(1).
    pub fn codepoint(&self, scalable: bool) -> Codepoint {
        match self.trial {
            Trial::Failed => Codepoint::NotEct,
            _ if scalable && matches!(self.feedback, Feedback::Counts { .. }) => Codepoint::Ect1,
            _ => Codepoint::Ect0,
        }
    }

    /// Marked bytes since the last call.
    pub const fn take_marked_bytes(&mut self) -> u64 {
        self.feedback.take_untold()
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
    /// Processes an ECNE that arrived on `from`, and returns whether to confirm it with a CWR. A TSN that
    /// was never sent is ignored. For a TSN that is already acknowledged no window is reduced: either an
    /// earlier ECNE has reported it, or its path is no longer known.
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
        let ecn = self.paths[from.index()].ecn.as_mut();
        ecn.is_some_and(|ecn| ecn.feedback.answers(now, wire_tsn, srtt))
    }

    /// Processes the peer's count of marked bytes of one path. Scalable congestion control receives them
    /// with the next acknowledgement; any other algorithm gets one mark.
    #[cold]
    pub fn on_mark_count(&mut self, now: Time, count: MarkCount) {
        let (tsn, next) = (
            count.tsn.unwrap_near(self.outstanding.board.cumulative()),
            self.outstanding.board.next_tsn(),
        );
        let Some(path) = self.paths.get_mut(count.path as usize) else { return };
        let Some(ecn) = path.ecn.as_mut() else { return };
        if tsn >= next || ecn.feedback.advance(count.bytes) == 0 || self.congestion.is_scalable() {
            return;
        }
        ecn.take_marked_bytes();
        self.reduce_for_mark(now, PathId(count.path), tsn);
    }

    /// Reduces the window of a path once per window of data. A loss in the same window has already
    /// reduced it.
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
