//! The windows of a session: the usual ones, or the model's.

use ropewalk_base::{PathId, Rate, Time};

use crate::congestion::{AckSample, CongestionControl, Rfc9260, Uncoupled};

/// A window of the model, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    window: f64,
    threshold: f64,
    before: Option<(f64, f64)>,
}

/// Uncoupled growth as the model has it: one segment to begin with; one more per acknowledgement up to the
/// threshold, 65 535 B and from the first cut on two segments for good; then 1/w. A cut, by
/// duplicates or by the timer, halves. Windows count in whole segments.
#[derive(Clone, Debug)]
pub struct Growth {
    unit: u64,
    lanes: Vec<Lane>,
}

/// Initial threshold, bytes.
const INITIAL_THRESHOLD: f64 = 65_535.0;
/// Threshold from the first cut on, segments.
const THRESHOLD: f64 = 2.0;

impl Growth {
    /// `paths` windows in segments of `unit` bytes.
    pub fn new(unit: u64, paths: usize) -> Self {
        let lane = Lane { window: 1.0, threshold: INITIAL_THRESHOLD / unit as f64, before: None };
        Self { unit, lanes: vec![lane; paths] }
    }

    /// `path` starts slowly up to `window` bytes.
    pub fn slow_start_to(&mut self, path: PathId, window: u64) {
        let lane = &mut self.lanes[path.index()];
        lane.threshold = lane.threshold.max(window as f64 / self.unit as f64);
    }

    fn cut(&mut self, path: PathId) {
        let lane = &mut self.lanes[path.index()];
        lane.before = Some((lane.window, lane.threshold));
        lane.window = (lane.window / 2.0).max(1.0);
        lane.threshold = THRESHOLD;
    }

    fn on_ack(&mut self, path: PathId, sample: &AckSample) {
        let lane = &mut self.lanes[path.index()];
        if sample.advanced {
            lane.window += if lane.window < lane.threshold { 1.0 } else { 1.0 / lane.window };
        }
    }

    fn restore(&mut self, path: PathId) {
        let lane = &mut self.lanes[path.index()];
        if let Some((window, threshold)) = lane.before.take() {
            lane.window = lane.window.max(window);
            lane.threshold = lane.threshold.max(threshold);
        }
    }

    fn limit(&mut self, path: PathId, most: u64) {
        let lane = &mut self.lanes[path.index()];
        lane.window = lane.window.min((most / self.unit) as f64).max(1.0);
    }
}

/// Whose windows a session has.
#[derive(Clone, Debug)]
pub enum Windows {
    /// The usual ones.
    Usual(Uncoupled<Rfc9260>),
    /// The model's.
    Model(Growth),
}

impl CongestionControl for Windows {
    #[inline]
    fn on_ack(&mut self, path: PathId, now: Time, sample: &AckSample) {
        match self {
            Self::Usual(windows) => windows.on_ack(path, now, sample),
            Self::Model(growth) => growth.on_ack(path, sample),
        }
    }
    fn on_loss(&mut self, path: PathId, now: Time) {
        match self {
            Self::Usual(windows) => windows.on_loss(path, now),
            Self::Model(growth) => growth.cut(path),
        }
    }
    fn on_timeout(&mut self, path: PathId, now: Time) {
        match self {
            Self::Usual(windows) => windows.on_timeout(path, now),
            // The timer is no worse a sign than three duplicates.
            Self::Model(growth) => growth.cut(path),
        }
    }
    fn on_spurious(&mut self, path: PathId, now: Time) {
        match self {
            Self::Usual(windows) => windows.on_spurious(path, now),
            Self::Model(growth) => growth.restore(path),
        }
    }
    fn on_ecn(&mut self, path: PathId, now: Time) {
        match self {
            Self::Usual(windows) => windows.on_ecn(path, now),
            Self::Model(growth) => growth.cut(path),
        }
    }
    fn on_idle(&mut self, path: PathId, now: Time) {
        if let Self::Usual(windows) = self {
            windows.on_idle(path, now);
        }
    }
    fn on_return(&mut self, path: PathId, now: Time) {
        if let Self::Usual(windows) = self {
            windows.on_return(path, now);
        }
    }
    fn limit(&mut self, path: PathId, most: u64) {
        match self {
            Self::Usual(windows) => windows.limit(path, most),
            Self::Model(growth) => growth.limit(path, most),
        }
    }
    #[inline]
    fn window(&self, path: PathId) -> u64 {
        match self {
            Self::Usual(windows) => windows.window(path),
            Self::Model(growth) => growth.lanes[path.index()].window as u64 * growth.unit,
        }
    }
    #[inline]
    fn ssthresh(&self, path: PathId) -> u64 {
        match self {
            Self::Usual(windows) => windows.ssthresh(path),
            Self::Model(growth) => {
                (growth.lanes[path.index()].threshold * growth.unit as f64) as u64
            }
        }
    }
    fn pacing_rate(&self, path: PathId) -> Option<Rate> {
        match self {
            Self::Usual(windows) => windows.pacing_rate(path),
            Self::Model(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 1000;
    const PATH: PathId = PathId(0);

    fn acked(growth: &mut Growth, times: u32) -> f64 {
        let sample = AckSample {
            acked_bytes: UNIT,
            in_flight_before: 0,
            advanced: true,
            in_recovery: false,
            flight_empty: false,
        };
        (0..times).for_each(|_| growth.on_ack(PATH, &sample));
        growth.lanes[0].window
    }

    #[test]
    fn growth_and_cuts_are_those_of_the_model() {
        let mut growth = Growth::new(UNIT, 1);
        assert_eq!(acked(&mut growth, 65), 66.0, "slow start up to 65535 B");
        assert_eq!(acked(&mut growth, 1), 66.0 + 1.0 / 66.0);
        growth.cut(PATH);
        let cut = growth.lanes[0].window;
        assert_eq!(cut, (66.0 + 1.0 / 66.0) / 2.0);
        assert_eq!(
            acked(&mut growth, 1),
            cut + 1.0 / cut,
            "the threshold is two segments for good"
        );
        (0..9).for_each(|_| growth.cut(PATH));
        assert_eq!(growth.lanes[0].window, 1.0, "never less");
        assert_eq!(acked(&mut growth, 1), 2.0);
    }

    #[test]
    fn a_cut_is_taken_back_once_or_grown_back_slowly() {
        let mut growth = Growth::new(UNIT, 1);
        acked(&mut growth, 20);
        growth.cut(PATH);
        growth.restore(PATH);
        assert_eq!(growth.lanes[0].window, 21.0);
        growth.cut(PATH);
        growth.slow_start_to(PATH, 21 * UNIT);
        assert_eq!(acked(&mut growth, 10), 20.5);
    }
}
