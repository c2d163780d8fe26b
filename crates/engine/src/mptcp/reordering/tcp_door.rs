//! TCP-DOOR: detection of out-of-order, and response (Wang and Zhang, 2002).
//!
//! Each data segment carries a number that increases with every transmission, including retransmissions,
//! and each acknowledgement carries the number of earlier acknowledgements of the same data. Either end
//! can thus detect reordering reliably. The sender then (1) keeps window and timeout unchanged for the
//! time T1, and (2) undoes a reduction of the window made within the time T2 before. The paper leaves T1
//! and T2 to the user. Here both are one smoothed round trip, after which acknowledged data was sent
//! after the reordered data.

use ropewalk_base::{Duration, Time};

use super::{Report, SpuriousRule};

/// State of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpDoor {
    /// The newest acknowledgement: its number, and the earlier acknowledgements of that number.
    newest: (u64, u64),
    disordered_at: Option<Time>,
    reduced_at: Option<Time>,
    span: Duration,
}

impl TcpDoor {
    /// Records a reduction of the window.
    pub const fn on_reduction(&mut self, now: Time) {
        self.reduced_at = Some(now);
    }

    /// Processes an acknowledgement of `ack`: its number and, if reported, the number of earlier
    /// acknowledgements of it. `disordered`: whether the peer saw reordered data. Returns true if a
    /// reduction must be undone.
    pub fn on_ack(
        &mut self,
        now: Time,
        span: Option<Duration>,
        ack: (u64, Option<u64>),
        disordered: bool,
    ) -> bool {
        self.span = span.unwrap_or(self.span);
        let (number, order) = ack;
        let overtaken = order.is_some_and(|order| (number, order) < self.newest);
        if let Some(order) = order {
            self.newest = self.newest.max((number, order));
        }
        if !(overtaken || disordered) {
            return false;
        }
        self.disordered_at = Some(now);
        let recent = self.reduced_at.take_if(|at| now.since(*at) <= self.span);
        recent.is_some()
    }

    /// Whether window and timeout stay unchanged.
    pub fn keeps_window(&self, now: Time) -> bool {
        self.disordered_at.is_some_and(|at| now.since(at) <= self.span)
    }
}

impl SpuriousRule for TcpDoor {
    const DUPLICATES_COUNT_IN_MODEL: bool = false;

    fn on_reduction(&mut self, now: Time) {
        self.on_reduction(now);
    }

    fn on_ack(&mut self, now: Time, report: &Report) -> bool {
        self.on_ack(now, report.srtt, (report.ack, report.order), report.disordered)
    }

    fn keeps_window(&self, now: Time) -> bool {
        self.keeps_window(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Option<Duration> = Some(Duration::from_millis(100));

    #[test]
    fn an_acknowledgement_is_out_of_order_if_its_number_or_its_repetition_is_the_lesser() {
        for (first, second, disordered) in [
            ((500, Some(0)), (400, Some(0)), true),
            ((500, Some(2)), (500, Some(1)), true),
            ((500, Some(1)), (500, Some(2)), false),
            ((500, Some(2)), (600, Some(0)), false),
            ((500, Some(0)), (400, None), false),
        ] {
            let mut rule = TcpDoor::default();
            rule.on_ack(Time::ZERO, T, first, false);
            rule.on_ack(Time::from_millis(1), T, second, false);
            assert_eq!(rule.keeps_window(Time::from_millis(2)), disordered, "{second:?}");
        }
    }

    #[test]
    fn after_disorder_the_window_is_kept_for_t1_and_what_was_cut_within_t2_is_restored() {
        for (cut_at, restored) in [(0, false), (49, false), (50, true), (149, true)] {
            let mut rule = TcpDoor::default();
            rule.on_reduction(Time::from_millis(cut_at));
            let now = Time::from_millis(150);
            assert_eq!(rule.on_ack(now, T, (1, Some(0)), true), restored, "cut at {cut_at} ms");
            assert!(!rule.on_ack(now, T, (1, Some(1)), true), "once");
            for (millis, kept) in [(150, true), (250, true), (251, false)] {
                assert_eq!(rule.keeps_window(Time::from_millis(millis)), kept, "{millis} ms");
            }
        }
    }
}
