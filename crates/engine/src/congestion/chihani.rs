//! The congestion control of a public ns-3 model of Multipath TCP (Chihani and Collange 2011), with the
//! model's actual behaviour, to repeat measurements made with it.

use ropewalk_base::{PathId, Time};

use super::{AckSample, CongestionControl, CongestionOptions};

/// How the model couples growth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChihaniCoupling {
    /// `1 / w` per acknowledgement.
    Uncoupled,
    /// `a / W`.
    Linked,
    /// The smaller of `a / W` and `1 / w`.
    Compensated,
    /// `1 / W`, and a loss reduces the window by half of W.
    Full,
}

impl ChihaniCoupling {
    /// The coupling of a named algorithm, if there is one.
    pub(super) fn from_name(name: &str, compensated: bool) -> Option<Self> {
        match (name, compensated) {
            ("newreno", _) => Some(Self::Uncoupled),
            ("lia", true) => Some(Self::Compensated),
            ("lia", false) => Some(Self::Linked),
            ("fully-coupled", _) => Some(Self::Full),
            _ => None,
        }
    }

    /// The name of the algorithm.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Uncoupled => "newreno",
            Self::Linked | Self::Compensated => "lia",
            Self::Full => "fully-coupled",
        }
    }
}

/// State of one path. Windows are counted in segments.
#[derive(Clone, Debug)]
struct Path {
    window: f64,
    threshold: f64,
    /// Moving average of the window with weight 1/8; 0 before the first acknowledgement of congestion
    /// avoidance, because slow start does not change it.
    smoothed: f64,
    srtt_s: Option<f64>,
    before: Option<(f64, f64)>,
}

/// Initial threshold, bytes.
const INITIAL_THRESHOLD: f64 = 65_535.0;
/// Threshold after the first reduction, segments.
const THRESHOLD: f64 = 2.0;
/// Maximum window, segments.
const LARGEST: f64 = 1e9;

/// A connection under the model's rules. The initial window is one segment. Windows grow with each
/// acknowledgement, regardless of what it covers and whether the window was full. The threshold does not
/// remember where a loss occurred: after the first reduction, slow start ends at two segments.
#[derive(Clone, Debug)]
pub struct Chihani2011 {
    unit: u64,
    coupling: ChihaniCoupling,
    paths: Vec<Path>,
}

impl Chihani2011 {
    /// Congestion control for `paths` new paths.
    pub fn new(options: CongestionOptions, paths: usize, coupling: ChihaniCoupling) -> Self {
        let path = Path {
            window: 1.0,
            threshold: INITIAL_THRESHOLD / options.unit as f64,
            smoothed: 0.0,
            srtt_s: None,
            before: None,
        };
        Self { unit: options.unit, coupling, paths: vec![path; paths] }
    }

    /// The coupling.
    pub const fn coupling(&self) -> ChihaniCoupling {
        self.coupling
    }

    /// Puts `path` into slow start, up to the window of `segments` segments before an unnecessary
    /// reduction. Slow start ends one segment below that.
    pub fn slow_start_to(&mut self, path: PathId, segments: f64) {
        let path = &mut self.paths[path.index()];
        path.threshold = path.threshold.max(segments - 1.0);
    }

    /// The window of `path` in segments, with its fraction.
    pub fn segments(&self, path: PathId) -> f64 {
        self.paths[path.index()].window
    }

    fn total(&self) -> f64 {
        self.paths.iter().map(|path| path.window).sum()
    }

    /// `a = V max(v / r^2) / (sum of v / r)^2` over smoothed windows, `None` before a round trip is
    /// known.
    fn aggressiveness(&self) -> Option<f64> {
        let known = || self.paths.iter().filter_map(|path| Some((path.smoothed, path.srtt_s?)));
        let best = known().map(|(v, r)| v / (r * r)).reduce(f64::max)?;
        let rate: f64 = known().map(|(v, r)| v / r).sum();
        let total: f64 = self.paths.iter().map(|path| path.smoothed).sum();
        Some(total * best / (rate * rate))
    }

    /// Grows the window of `path` by one acknowledgement.
    pub fn open(&mut self, path: PathId) {
        let i = path.index();
        let state = &mut self.paths[i];
        let growth = if state.window < state.threshold {
            1.0
        } else {
            let smoothed = if state.smoothed < 1.0 { state.window } else { state.smoothed };
            state.smoothed = smoothed + (state.window - smoothed) / 8.0;
            self.growth(i)
        };
        let state = &mut self.paths[i];
        state.window = (state.window + growth).min(LARGEST);
    }

    fn growth(&self, path: usize) -> f64 {
        let alone = 1.0 / self.paths[path].window;
        let linked = || self.aggressiveness().map_or(alone, |a| a / self.total());
        match self.coupling {
            ChihaniCoupling::Uncoupled => alone,
            ChihaniCoupling::Linked => linked(),
            ChihaniCoupling::Compensated => linked().min(alone),
            ChihaniCoupling::Full => 1.0 / self.total(),
        }
    }

    fn cut(&mut self, path: usize) {
        let taken = match self.coupling {
            ChihaniCoupling::Full => self.total() / 2.0,
            _ => self.paths[path].window / 2.0,
        };
        let path = &mut self.paths[path];
        path.before = Some((path.window, path.threshold));
        path.window = (path.window - taken).max(1.0);
        path.threshold = THRESHOLD;
    }
}

impl CongestionControl for Chihani2011 {
    fn grow(&mut self, fresh: Self) {
        self.paths.extend(fresh.paths.into_iter().skip(self.paths.len()));
    }

    fn renew(&mut self, path: PathId, mut fresh: Self) {
        self.paths[path.index()] = fresh.paths.swap_remove(path.index());
    }

    fn on_ack(&mut self, path: PathId, _now: Time, sample: &AckSample) {
        let i = path.index();
        let state = &mut self.paths[i];
        state.srtt_s = sample.srtt.map(|srtt| srtt.as_secs_f64().max(1e-9)).or(state.srtt_s);
        if sample.advanced {
            self.open(path);
        }
    }

    fn on_loss(&mut self, path: PathId, _now: Time) {
        self.cut(path.index());
    }

    /// The same reduction: the model does not treat a timeout as worse than three duplicates.
    fn on_timeout(&mut self, path: PathId, _now: Time) {
        self.cut(path.index());
    }

    fn on_spurious(&mut self, path: PathId, _now: Time) {
        let path = &mut self.paths[path.index()];
        if let Some((window, threshold)) = path.before.take() {
            path.window = path.window.max(window);
            path.threshold = path.threshold.max(threshold);
        }
    }

    fn on_ecn(&mut self, path: PathId, now: Time) {
        self.on_loss(path, now);
    }

    /// The model does not handle idle paths.
    fn on_idle(&mut self, _path: PathId, _now: Time) {}

    fn on_return(&mut self, path: PathId, _now: Time) {
        let path = &mut self.paths[path.index()];
        path.window = 1.0;
        path.before = None;
    }

    fn limit(&mut self, path: PathId, most: u64) {
        let path = &mut self.paths[path.index()];
        path.window = path.window.min(most as f64 / self.unit as f64).max(1.0);
    }

    fn set_unit(&mut self, unit: u64) {
        // Windows are counted in segments.
        let ratio = self.unit as f64 / unit as f64;
        for path in &mut self.paths {
            path.window = (path.window * ratio).max(1.0);
            path.threshold *= ratio;
        }
        self.unit = unit;
    }

    /// In full segments, because the model sends no partial ones.
    fn window(&self, path: PathId) -> u64 {
        self.paths[path.index()].window as u64 * self.unit
    }

    fn ssthresh(&self, path: PathId) -> u64 {
        (self.paths[path.index()].threshold * self.unit as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{UNIT, full_ack_on};
    use super::*;

    fn connection(coupling: ChihaniCoupling, windows: [f64; 2]) -> Chihani2011 {
        let mut control = Chihani2011::new(CongestionOptions::tcp(UNIT), 2, coupling);
        for (path, window) in control.paths.iter_mut().zip(windows) {
            path.window = window;
            path.smoothed = window;
            path.threshold = THRESHOLD;
            path.srtt_s = Some(0.1);
        }
        control
    }

    #[test]
    fn it_begins_with_one_segment_and_doubles_to_65535_bytes() {
        let mut control =
            Chihani2011::new(CongestionOptions::tcp(UNIT), 1, ChihaniCoupling::Uncoupled);
        assert_eq!(control.window(PathId(0)), UNIT);
        for acks in 1..=65 {
            let sample = full_ack_on(&control, PathId(0), 1);
            control.on_ack(PathId(0), Time::ZERO, &sample);
            assert_eq!(control.window(PathId(0)), (acks + 1) * UNIT);
        }
        let sample = full_ack_on(&control, PathId(0), UNIT);
        control.on_ack(PathId(0), Time::ZERO, &sample);
        assert_eq!(control.window(PathId(0)), 66 * UNIT, "in whole segments");
        assert!((control.paths[0].window - 66.0 - 1.0 / 66.0).abs() < 1e-9);
    }

    #[test]
    fn slow_start_leaves_the_smoothed_window_alone() {
        let mut control = connection(ChihaniCoupling::Compensated, [45.0, 1.0]);
        let path = PathId(0);
        (control.paths[0].smoothed, control.paths[0].threshold) = (0.0, 47.0);
        (0..2).for_each(|_| control.open(path));
        assert_eq!((control.segments(path), control.paths[0].smoothed), (47.0, 0.0));
        control.open(path);
        assert_eq!(control.paths[0].smoothed, 47.0, "the window of the first acknowledgement");
        control.paths[0].window = 55.0;
        control.open(path);
        assert_eq!(control.paths[0].smoothed, 48.0);
    }

    #[test]
    fn what_was_cut_for_nothing_is_grown_back_to_by_slow_start() {
        let mut control = connection(ChihaniCoupling::Uncoupled, [21.0, 1.0]);
        control.on_loss(PathId(0), Time::ZERO);
        control.slow_start_to(PathId(0), 21.0);
        for _ in 0..10 {
            let sample = full_ack_on(&control, PathId(0), UNIT);
            control.on_ack(PathId(0), Time::ZERO, &sample);
        }
        assert!((control.paths[0].window - 20.5).abs() < 1e-9, "{control:?}");
    }

    #[test]
    fn growth_and_cut_are_those_of_the_model() {
        use ChihaniCoupling::{Compensated, Full, Linked, Uncoupled};
        // Windows 30 and 10, equal round trips: a = 40 * 30 / 40^2 = 0.75.
        for (coupling, path, growth, left) in [
            (Uncoupled, 0, 1.0 / 30.0, 15.0),
            (Linked, 0, 0.75 / 40.0, 15.0),
            (Compensated, 1, 0.75 / 40.0, 5.0),
            (Full, 0, 1.0 / 40.0, 10.0),
            (Full, 1, 1.0 / 40.0, 1.0),
        ] {
            let control = connection(coupling, [30.0, 10.0]);
            let id = PathId::from_index(path);
            let mut grown = control.clone();
            grown.on_ack(id, Time::ZERO, &full_ack_on(&control, id, UNIT));
            let by = grown.paths[path].window - control.paths[path].window;
            assert!((by - growth).abs() < 1e-9, "{coupling:?}: {by}");
            for event in [Chihani2011::on_loss, Chihani2011::on_timeout] {
                let mut cut = control.clone();
                event(&mut cut, id, Time::ZERO);
                assert!((cut.paths[path].window - left).abs() < 1e-9, "{coupling:?}");
                assert_eq!(cut.ssthresh(id), 2 * UNIT);
            }
        }
    }
}
