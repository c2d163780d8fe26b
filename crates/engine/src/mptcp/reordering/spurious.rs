//! Selects the rule that detects spurious retransmissions.

use ropewalk_base::{Duration, Time};

use super::{DSack, Eifel, FRto, TcpDoor};

/// The contents of an acknowledgement that the rules use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Whether the cumulative acknowledgement advanced.
    pub advanced: bool,
    /// The oldest unacknowledged number after this acknowledgement.
    pub una: u64,
    /// The acknowledgement number.
    pub ack: u64,
    /// Whether it covers data that was given up and not retransmitted.
    pub late: bool,
    /// Whether more data waits for retransmission.
    pub pending: bool,
    /// The echoed value of this end's clock.
    pub echo: Option<u64>,
    /// Sequence numbers reported as duplicates (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
    /// Number of earlier acknowledgements with this number (TCP-DOOR).
    pub order: Option<u64>,
    /// Whether the peer saw reordered data (TCP-DOOR).
    pub disordered: bool,
    /// Smoothed round trip.
    pub srtt: Option<Duration>,
}

/// The rule of one sender.
#[derive(Clone, Debug, Default)]
pub enum SpuriousDetector {
    /// None.
    #[default]
    None,
    /// Duplicate reports.
    DSack(DSack),
    /// Timestamps.
    Eifel(Eifel),
    /// Order of transmissions.
    TcpDoor(TcpDoor),
    /// Acknowledgements after a timeout.
    FRto(FRto),
    /// Duplicate reports and timestamps, whichever comes first: common in stacks with loss detection by time.
    Usual(DSack, Eifel),
}

impl SpuriousDetector {
    /// Records a reduction of the window because of miss indications.
    pub fn on_reduction(&mut self, now: Time) {
        match self {
            Self::None => {}
            Self::DSack(rule) => rule.on_reduction(),
            Self::Eifel(rule) => rule.on_reduction(),
            Self::TcpDoor(rule) => rule.on_reduction(now),
            Self::FRto(rule) => rule.on_reduction(),
            Self::Usual(reports, stamps) => {
                reports.on_reduction();
                stamps.on_reduction();
            }
        }
    }

    /// Records a timeout; `una` is the oldest unacknowledged number, `next` the first one not sent yet.
    pub fn on_timeout(&mut self, now: Time, una: u64, next: u64) {
        match self {
            Self::FRto(rule) => rule.on_timeout(una, next),
            _ => self.on_reduction(now),
        }
    }

    /// Records a retransmission of the data that begins at `seq`.
    pub fn on_retransmission(&mut self, now: Time, seq: u64) {
        match self {
            Self::None | Self::TcpDoor(_) => {}
            Self::DSack(rule) => rule.on_retransmission(seq),
            Self::Eifel(rule) => rule.on_retransmission(now),
            Self::FRto(rule) => rule.on_retransmission(),
            Self::Usual(reports, stamps) => {
                reports.on_retransmission(seq);
                stamps.on_retransmission(now);
            }
        }
    }

    /// Processes an acknowledgement. Returns true if the last reduction is to be undone.
    pub fn on_ack(&mut self, now: Time, report: &Report) -> bool {
        match self {
            Self::None => false,
            Self::DSack(rule) => {
                report.duplicate.is_some_and(|block| rule.on_duplicate(block, report.pending))
            }
            Self::Eifel(rule) => report.advanced && rule.on_advance(report.echo),
            Self::TcpDoor(rule) => {
                rule.on_ack(now, report.srtt, (report.ack, report.order), report.disordered)
            }
            Self::FRto(rule) => rule.on_ack(report.advanced, report.una, report.late),
            Self::Usual(reports, stamps) => {
                let twice =
                    report.duplicate.is_some_and(|b| reports.on_duplicate(b, report.pending));
                let found = twice || (report.advanced && stamps.on_advance(report.echo));
                if found {
                    // The other rule would report the same reduction.
                    (*reports, *stamps) = (DSack::default(), Eifel::default());
                }
                found
            }
        }
    }

    /// Whether window and timeout stay unchanged despite apparent losses.
    pub fn keeps_window(&self, now: Time) -> bool {
        matches!(self, Self::TcpDoor(rule) if rule.keeps_window(now))
    }

    /// Whether data that was given up must wait, and new data is sent.
    pub const fn holds_back(&self) -> bool {
        matches!(self, Self::FRto(rule) if rule.holds_back())
    }

    /// There is no new data to send instead.
    pub const fn on_nothing_new(&mut self) {
        if let Self::FRto(rule) = self {
            rule.on_nothing_new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_reports_and_timestamps_together_take_a_reduction_back_once() {
        let late = Report { advanced: true, echo: Some(999_999), ..Report::default() };
        let twice = Report { duplicate: Some((1, 101)), ..Report::default() };
        for (first, second) in [(late, twice), (twice, late)] {
            let mut undo = SpuriousDetector::Usual(DSack::default(), Eifel::default());
            undo.on_reduction(Time::ZERO);
            undo.on_retransmission(Time::from_millis(1), 1);
            assert!(undo.on_ack(Time::from_millis(2), &first), "{first:?}");
            assert!(!undo.on_ack(Time::from_millis(3), &second), "{second:?}");
        }
    }
}
