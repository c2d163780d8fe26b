//! Prague, a scalable congestion control for L4S (RFC 9331; draft-briscoe-iccrg-prague-congestion-control-04).
//!
//! The window shrinks in proportion to the share of marked data, instead of by half for each round trip
//! with a mark. The queue can therefore mark often and early: a flow gets about two marks per round trip
//! whatever its rate. A loss, or a mark reported without an amount of data, halves the window as in TCP
//! (RFC 5681).

use ropewalk_base::{Duration, Rate, Time};

use super::path_window::{Growth, PathWindow};
use super::round::Round;
use super::{AckSample, CongestionOptions, PathCongestion, SentPacket};
use crate::path::Pace;

/// Gain of the moving average of the share of marked data.
const GAIN: f64 = 1.0 / 16.0;
/// Minimum round trip for reduced RTT dependence (draft, 2.4.4). Paths with shorter ones grow as if they
/// had this one.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// Rounds in congestion avoidance after which RTT dependence is reduced. Before that, short flows converge faster.
const ROUNDS_BEFORE_VIRTUAL: u32 = 500;
/// Windows per smoothed round trip at which packets are paced. A little more than 1, because otherwise
/// the window would never be full.
const PACING_GAIN: f64 = 1.03;
/// The same in slow start: the window doubles per round trip.
const PACING_GAIN_IN_SLOW_START: f64 = 2.0;
/// Time whose amount of data at the paced rate may be sent together: a fraction of the delay at which queues mark.
const BURST_S: f64 = 250e-6;

/// Prague congestion control of one path.
#[derive(Clone, Debug)]
pub struct Prague {
    window: PathWindow,
    /// Moving average of the share of marked data (alpha), `None` before the first mark.
    share: Option<f64>,
    /// Acknowledged bytes, and the marked ones among them, since the last update of the average.
    acked: u64,
    marked: u64,
    /// Time of the next update of the average.
    update_at: Time,
    /// End of the round trip after a reduction for marks, during which further marks have no effect.
    reduced_until: Time,
    /// The window before that reduction, bytes.
    before_marks: f64,
    round: Round,
    /// Rounds in congestion avoidance.
    rounds: u32,
    /// This path's part of the growth of one flow.
    flow_share: f64,
}

impl Prague {
    /// Congestion control for a new path.
    pub fn new(options: CongestionOptions) -> Self {
        Self {
            window: PathWindow::new(options),
            share: None,
            acked: 0,
            marked: 0,
            update_at: Time::ZERO,
            reduced_until: Time::ZERO,
            before_marks: 0.0,
            round: Round::default(),
            rounds: 0,
            flow_share: 1.0,
        }
    }

    /// The round trip, at least the virtual one: the interval of updates and reductions.
    fn interval(&self) -> Duration {
        self.window.srtt().map_or(VIRTUAL_RTT, |srtt| srtt.max(VIRTUAL_RTT))
    }

    /// Updates the moving average, once per interval.
    fn average(&mut self, now: Time, sample: &AckSample) {
        if self.update_at == Time::ZERO {
            self.update_at = now + self.interval();
        }
        self.acked += sample.acked_bytes;
        self.marked += sample.marked_bytes;
        if now < self.update_at || self.acked == 0 {
            return;
        }
        if let Some(share) = &mut self.share {
            let recent = (self.marked as f64 / self.acked as f64).min(1.0);
            *share += GAIN * (recent - *share);
        }
        (self.acked, self.marked) = (0, 0);
        self.update_at = now + self.interval();
    }

    /// Reduces the window by half the share of marked data, once per interval (draft, 2.4.2).
    fn on_marks(&mut self, now: Time) {
        if now < self.reduced_until {
            return;
        }
        // The average starts at 1, so that the first mark ends slow start.
        let share = *self.share.get_or_insert(1.0);
        self.before_marks = self.window.cwnd();
        self.window.reduce(self.before_marks * (1.0 - share / 2.0), self.window.floor_units());
        self.reduced_until = now + self.interval();
    }

    /// Grows by a segment per round trip of unmarked data, also while the window is being reduced. Below
    /// the virtual round trip, growth per second is that of a path with the virtual one.
    fn grow(&mut self, unmarked: f64) {
        let slower = if self.rounds > ROUNDS_BEFORE_VIRTUAL {
            let srtt = self.window.srtt_s().unwrap_or(1.0);
            (srtt / VIRTUAL_RTT.as_secs_f64()).min(1.0).powi(2)
        } else {
            1.0
        };
        let segments = slower * self.flow_share * unmarked / self.window.cwnd();
        self.window.grow(segments * self.window.unit());
    }

    /// Half of the window, or of its size before marks reduced it in this round trip: loss and marks of
    /// one round trip are one event.
    fn half(&self, now: Time) -> f64 {
        let cwnd = self.window.cwnd();
        let before = if now < self.reduced_until { self.before_marks.max(cwnd) } else { cwnd };
        cwnd.min(before / 2.0)
    }
}

impl PathCongestion for Prague {
    const SCALABLE: bool = true;

    fn on_sent(&mut self, _now: Time, packet: &SentPacket) {
        self.window.on_sent(packet);
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        let growth = self.window.on_ack(sample);
        self.average(now, sample);
        if self.round.on_ack(sample) && !self.window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        if sample.marked_bytes > 0 && !sample.in_recovery {
            self.on_marks(now);
        }
        if let Growth::Avoid(acked) = growth {
            self.grow((acked - sample.marked_bytes as f64).max(0.0));
        }
    }

    fn on_loss(&mut self, now: Time) {
        self.window.cut(self.half(now), self.window.floor_units());
    }

    fn on_timeout(&mut self, now: Time) {
        self.rounds = 0;
        self.window.time_out(self.half(now));
    }

    fn on_spurious(&mut self, _now: Time) {
        self.window.undo();
    }

    fn on_idle(&mut self, _now: Time) {
        self.window.idle();
    }

    fn on_return(&mut self, _now: Time) {
        self.rounds = 0;
        self.window.restart();
    }

    fn limit(&mut self, most: u64) {
        self.window.limit(most);
    }

    fn set_unit(&mut self, unit: u64) {
        self.window.set_unit(unit);
    }

    // Reductions for marks need no sharing: each path reduces its window in proportion, so the sum
    // shrinks like that of one flow.
    fn set_flow_share(&mut self, share: f64) {
        self.flow_share = share;
    }

    fn window(&self) -> u64 {
        self.window.window()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn pace(&self) -> Option<Pace> {
        let gain =
            if self.window.in_slow_start() { PACING_GAIN_IN_SLOW_START } else { PACING_GAIN };
        let bytes_per_s = gain * self.window.cwnd() / self.window.srtt_s()?;
        let burst = (bytes_per_s * BURST_S).max(self.window.unit());
        Some(Pace { rate: Rate::from_bps((bytes_per_s * 8.0) as u64), burst: burst as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{UNIT, full_ack, settled};
    use super::*;

    fn path(units: u64) -> Prague {
        let initial_window = Some(units * UNIT);
        Prague::new(CongestionOptions { initial_window, ..settled() })
    }

    /// Acknowledges windows over round trips of the same length, with one of `of` segments marked.
    struct Peer {
        now: Time,
        rtt: Duration,
        of: u64,
        count: u64,
    }

    impl Peer {
        fn new(rtt: Duration, of: u64) -> Self {
            Self { now: Time::ZERO, rtt, of, count: 0 }
        }

        fn round(&mut self, path: &mut Prague) {
            let segments = (path.window() / UNIT).max(1);
            for k in 0..segments {
                self.count += 1;
                let marked_bytes = if self.count.is_multiple_of(self.of) { UNIT } else { 0 };
                let srtt = Some(self.rtt);
                let sample = AckSample { srtt, marked_bytes, ..full_ack(path, UNIT) };
                path.on_ack(self.now + self.rtt * (k + 1) / segments, &sample);
            }
            self.now += self.rtt;
        }
    }

    /// One round trip without marks.
    fn clear_round(path: &mut Prague, rtt: Duration) {
        Peer::new(rtt, u64::MAX).round(path);
    }

    const RTT: Duration = Duration::from_millis(50);

    #[test]
    fn the_average_follows_the_share_of_marks_and_the_window_shrinks_by_half_of_it() {
        let mut path = path(1000);
        let mut peer = Peer::new(RTT, 10);
        for _ in 0..200 {
            path.window.grow(1000.0 * UNIT as f64 - path.window.cwnd());
            peer.round(&mut path);
        }
        let share = path.share.expect("marks");
        assert!((share - 0.1).abs() < 0.005, "{share}");
        let before = path.window();
        peer.round(&mut path);
        // 5 % less, and growth by less than a segment for the unmarked data.
        let shrunk = 1.0 - path.window() as f64 / before as f64;
        assert!((shrunk - 0.05).abs() < 0.003, "{shrunk}");
    }

    #[test]
    fn the_first_mark_ends_slow_start_with_half_of_the_window() {
        let mut path = Prague::new(CongestionOptions::tcp(UNIT));
        clear_round(&mut path, RTT);
        let now = Time::ZERO + RTT;
        let (window, open) = (path.window(), path.ssthresh());
        assert!(window >= 2 * 10 * UNIT && open == CongestionOptions::UNLIMITED);
        let sample = AckSample { marked_bytes: UNIT, srtt: Some(RTT), ..full_ack(&path, UNIT) };
        path.on_ack(now, &sample);
        assert_eq!((path.window(), path.ssthresh()), ((window + UNIT) / 2, (window + UNIT) / 2));
        path.on_ack(now + Duration::from_millis(1), &sample);
        assert_eq!(path.window(), (window + UNIT) / 2, "once per round trip");
    }

    #[test]
    fn the_window_is_inversely_proportional_to_the_share_of_marks() {
        // Growth by 1 - p segments per round trip balances a reduction by p W / 2. The next mark arrives
        // up to half a round trip after a mark may reduce the window again, so the window is a little
        // larger.
        for (of, start) in [(20, 20), (20, 80), (50, 50), (50, 200)] {
            let share = 1.0 / of as f64;
            let expected = 2.0 * (1.0 - share) / share;
            let mut path = path(start);
            path.share = Some(share);
            let mut peer = Peer::new(RTT, of);
            (0..600).for_each(|_| peer.round(&mut path));
            let ratio = path.window() as f64 / UNIT as f64 / expected;
            assert!((0.9..1.4).contains(&ratio), "1 of {of} from {start}: {ratio}");
        }
    }

    #[test]
    fn short_round_trips_grow_as_slowly_as_the_virtual_one_after_a_while() {
        let short = Duration::from_millis(5);
        let grown = |rounds: u32| {
            let mut path = path(100);
            path.rounds = rounds;
            clear_round(&mut path, short);
            path.window() as f64 / UNIT as f64 - 100.0
        };
        assert!((grown(0) - 1.0).abs() < 0.02, "{}", grown(0));
        let later = grown(ROUNDS_BEFORE_VIRTUAL + 1);
        assert!((later - 0.04).abs() < 0.002, "{later}");
    }

    #[test]
    fn a_path_that_acts_as_a_part_of_a_flow_has_a_part_of_its_growth() {
        let mut path = path(100);
        path.set_flow_share(0.25);
        clear_round(&mut path, RTT);
        let grown = path.window() as f64 / UNIT as f64 - 100.0;
        assert!((grown - 0.25).abs() < 0.01, "{grown}");
    }

    #[test]
    fn a_loss_halves_once_together_with_the_marks_of_its_round_trip() {
        let mut alone = path(100);
        alone.on_loss(Time::ZERO);
        assert_eq!(alone.window(), 50 * UNIT);
        let mut both = path(100);
        both.share = Some(0.2);
        let sample = AckSample { marked_bytes: UNIT, srtt: Some(RTT), ..full_ack(&both, UNIT) };
        both.on_ack(Time::ZERO, &sample);
        assert_eq!(both.window(), 90 * UNIT);
        both.on_loss(Time::from_millis(10));
        assert_eq!(both.window(), 50 * UNIT, "not 45");
    }

    #[test]
    fn packets_are_paced_a_little_faster_than_the_window_per_round_trip() {
        let mut path = path(100);
        assert!(path.pace().is_none(), "the round trip is unknown");
        clear_round(&mut path, RTT);
        let pace = path.pace().expect("known");
        let exact = path.window.cwnd() * 8.0 / RTT.as_secs_f64();
        assert!((pace.rate.as_bps() as f64 / exact - 1.03).abs() < 1e-3);
        assert_eq!(pace.burst, UNIT);
    }
}
