//! TCP's congestion control (RFC 5681) with appropriate byte counting (RFC 3465). The engine implements loss
//! recovery (RFC 6582, RFC 6675); here the window is reduced once per window of data.

use ropewalk_base::Time;

use super::path_window::{Growth, PathWindow};
use super::{AckSample, CongestionOptions, PathCongestion, SentPacket};

/// NewReno congestion control of one path.
///
/// RFC 5681, Equation 4, halves the data in flight. Here the window is halved, which is equivalent as
/// long as windows grow only when they are full.
#[derive(Clone, Debug)]
pub struct NewReno {
    window: PathWindow,
    /// Bytes acknowledged towards the next segment of growth.
    credit: f64,
    /// This path's part of the growth of one flow.
    share: f64,
}

impl NewReno {
    /// Congestion control for a new path.
    pub fn new(options: CongestionOptions) -> Self {
        Self { window: PathWindow::new(options), credit: 0.0, share: 1.0 }
    }
}

impl PathCongestion for NewReno {
    fn on_sent(&mut self, _now: Time, packet: &SentPacket) {
        self.window.on_sent(packet);
    }

    fn on_ack(&mut self, _now: Time, sample: &AckSample) {
        let Growth::Avoid(acked) = self.window.on_ack(sample) else { return };
        // RFC 3465, 2.1: grow by one segment per window of bytes acknowledged.
        self.credit += acked;
        if self.credit >= self.window.cwnd() {
            self.credit -= self.window.cwnd();
            self.window.grow(self.window.unit() * self.share);
        }
    }

    fn on_loss(&mut self, _now: Time) {
        self.credit = 0.0;
        self.window.cut(self.window.cwnd() / 2.0, self.window.floor_units());
    }

    fn on_timeout(&mut self, _now: Time) {
        self.credit = 0.0;
        self.window.time_out(self.window.cwnd() / 2.0);
    }

    fn on_spurious(&mut self, _now: Time) {
        self.window.undo();
    }

    fn on_idle(&mut self, _now: Time) {
        self.credit = 0.0;
        self.window.idle();
    }

    fn on_return(&mut self, _now: Time) {
        self.credit = 0.0;
        self.window.restart();
    }

    fn limit(&mut self, most: u64) {
        self.window.limit(most);
        // The credit towards the next segment is limited to the smaller window.
        self.credit = self.credit.min(self.window.cwnd());
    }

    fn set_unit(&mut self, unit: u64) {
        self.window.set_unit(unit);
    }

    fn set_flow_share(&mut self, share: f64) {
        self.share = share;
    }

    fn window(&self) -> u64 {
        self.window.window()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{ack, full_ack};
    use super::*;

    const UNIT: u64 = 1000;

    fn path(initial_window: u64, initial_ssthresh: u64) -> NewReno {
        NewReno::new(CongestionOptions {
            initial_window: Some(initial_window),
            initial_ssthresh,
            ..CongestionOptions::tcp(UNIT)
        })
    }

    #[test]
    fn slow_start_counts_bytes_up_to_two_segments_per_acknowledgement() {
        for (acked, grown) in [(1, 1), (999, 999), (1000, 1000), (2000, 2000), (9000, 2000)] {
            let mut path = path(10 * UNIT, CongestionOptions::UNLIMITED);
            path.on_ack(Time::ZERO, &ack(acked, 10 * UNIT));
            assert_eq!(path.window(), 10 * UNIT + grown, "{acked} B acknowledged");
        }
    }

    #[test]
    fn avoidance_adds_one_segment_per_window_of_bytes_however_they_are_acknowledged() {
        for segments_per_ack in [1, 2, 5] {
            let mut path = path(10 * UNIT, 0);
            (0..10 / segments_per_ack)
                .for_each(|_| path.on_ack(Time::ZERO, &ack(segments_per_ack * UNIT, 10 * UNIT)));
            assert_eq!(path.window(), 11 * UNIT, "{segments_per_ack} per acknowledgement");
        }
    }

    #[test]
    fn what_is_acknowledged_beyond_a_hole_counts_once_the_hole_is_filled() {
        let mut path = path(10 * UNIT, 0);
        for _ in 0..9 {
            let beyond = AckSample { advanced: false, ..full_ack(&path, UNIT) };
            path.on_ack(Time::ZERO, &beyond);
        }
        assert_eq!(path.window(), 10 * UNIT);
        path.on_ack(Time::ZERO, &full_ack(&path, UNIT));
        assert_eq!(path.window(), 11 * UNIT);
    }

    #[test]
    fn a_timeout_that_repeats_keeps_the_threshold() {
        let mut path = path(40 * UNIT, 0);
        for _ in 0..3 {
            path.on_timeout(Time::ZERO);
            assert_eq!((path.window(), path.ssthresh()), (UNIT, 20 * UNIT));
        }
        path.on_ack(Time::ZERO, &full_ack(&path, UNIT));
        path.on_timeout(Time::ZERO);
        assert_eq!((path.window(), path.ssthresh()), (UNIT, 2 * UNIT), "the floor is two segments");
    }
}
