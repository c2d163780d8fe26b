//! wVegas, weighted Vegas (Cao, Xu and Fu 2012): coupled by delays instead of losses.

use ropewalk_base::{Duration, PathId, Time};

use super::path_window::{Growth, PathWindow};
use super::round::Round;
use super::{AckSample, CongestionControl, CongestionOptions, SentPacket};

/// Packets that all paths together keep in queues of the network.
const TOTAL_ALPHA: f64 = 10.0;
/// Minimum number of queued packets per path: below it Vegas cannot detect its own queue.
const LEAST_ALPHA: f64 = 2.0;
/// Queued packets that end slow start.
const GAMMA: f64 = 1.0;
/// Minimum number of delay samples per round for a decision.
const LEAST_SAMPLES: u64 = 3;

/// State of one path, without its window.
#[derive(Clone, Copy, Debug)]
struct Delay {
    round: Round,
    /// Round trip without queueing: provided by the engine, or else the minimum sample.
    base: Option<Duration>,
    /// Sum and number of this round's samples.
    sum: Duration,
    samples: u64,
    /// Number of packets that this path should keep queued.
    alpha: f64,
    /// Last rate with that number of packets queued, segments per second.
    rate: f64,
    /// Minimum queueing delay since the last window reduction.
    least_queueing: Option<Duration>,
}

impl Delay {
    const fn new() -> Self {
        Self {
            round: Round { left: 0 },
            base: None,
            sum: Duration::ZERO,
            samples: 0,
            alpha: LEAST_ALPHA,
            rate: 0.0,
            least_queueing: None,
        }
    }

    fn take(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.sum += rtt;
            self.samples += 1;
            self.base = sample.least_rtt.or(Some(self.base.map_or(rtt, |base| base.min(rtt))));
        }
    }

    /// Mean and minimum round trip of the round that ends.
    fn end_round(&mut self) -> Option<(Duration, Duration)> {
        let (sum, samples) = (self.sum, self.samples);
        self.sum = Duration::ZERO;
        self.samples = 0;
        let base = self.base.filter(|_| samples >= LEAST_SAMPLES)?;
        Some(((sum / samples).max(base), base))
    }
}

/// A connection under weighted Vegas. Once per round each path compares its number of queued packets, `w
/// (rtt - base) / rtt`, with its share of `TOTAL_ALPHA`. The shares are proportional to rates: a
/// congested path delivers less, and thus may queue less. A loss halves the window as in TCP.
#[derive(Clone, Debug)]
pub struct WVegas {
    paths: Vec<PathWindow>,
    delays: Vec<Delay>,
}

impl WVegas {
    /// Congestion control for `paths` new paths.
    pub fn new(options: CongestionOptions, paths: usize) -> Self {
        let window = PathWindow::new(options);
        Self { paths: vec![window; paths], delays: vec![Delay::new(); paths] }
    }

    fn end_round(&mut self, i: usize, rtt: Duration, base: Duration) {
        let path = &mut self.paths[i];
        let unit = path.unit();
        let segments = path.cwnd() / unit;
        let part = base.as_secs_f64() / rtt.as_secs_f64();
        let queued = segments * (1.0 - part);
        if path.in_slow_start() {
            if queued > GAMMA {
                // Reduce to the window without a queue, plus one segment.
                let target = (segments * part + 1.0).min(segments);
                path.grow((target - segments) * unit);
                path.leave_slow_start();
            }
            return;
        }
        if queued >= self.delays[i].alpha {
            self.delays[i].rate = segments / rtt.as_secs_f64();
            let all: f64 = self.delays.iter().map(|delay| delay.rate).sum();
            let weight = self.delays[i].rate / all;
            self.delays[i].alpha = (weight * TOTAL_ALPHA).max(LEAST_ALPHA);
        }
        let (path, delay) = (&mut self.paths[i], &mut self.delays[i]);
        if queued > delay.alpha {
            path.grow(-unit);
            path.leave_slow_start();
        } else if queued < delay.alpha {
            path.grow(unit);
        }
        // With a standing queue, the round trip without queueing cannot be measured: let the queue drain.
        let queueing = rtt - base;
        let least = delay.least_queueing.map_or(queueing, |least| least.min(queueing));
        delay.least_queueing = Some(least);
        if !least.is_zero() && queueing >= least * 2 {
            path.grow(path.cwnd() * (part / 2.0 - 1.0));
            path.leave_slow_start();
            delay.least_queueing = None;
        }
        let floor = 2.0 * unit;
        path.grow((floor - path.cwnd()).max(0.0));
    }
}

impl CongestionControl for WVegas {
    fn grow(&mut self, fresh: Self) {
        let here = self.paths.len();
        self.paths.extend(fresh.paths.into_iter().skip(here));
        self.delays.extend(fresh.delays.into_iter().skip(here));
    }

    fn renew(&mut self, path: PathId, mut fresh: Self) {
        self.paths[path.index()] = fresh.paths.swap_remove(path.index());
        self.delays[path.index()] = fresh.delays.swap_remove(path.index());
    }

    fn on_sent(&mut self, path: PathId, _now: Time, packet: &SentPacket) {
        self.paths[path.index()].on_sent(packet);
    }

    fn on_ack(&mut self, path: PathId, _now: Time, sample: &AckSample) {
        let i = path.index();
        let growth = self.paths[i].on_ack(sample);
        let delay = &mut self.delays[i];
        delay.take(sample);
        if !delay.round.on_ack(sample) {
            return;
        }
        let avoids = matches!(growth, Growth::Avoid(_));
        match delay.end_round() {
            Some((rtt, base)) if avoids || self.paths[i].in_slow_start() => {
                self.end_round(i, rtt, base);
            }
            // The window is too small for a decision: grow like TCP, or it would stay small forever.
            None if avoids => {
                let path = &mut self.paths[i];
                path.grow(path.unit());
            }
            _ => {}
        }
    }

    fn on_loss(&mut self, path: PathId, _now: Time) {
        let path = &mut self.paths[path.index()];
        path.cut(path.cwnd() / 2.0, path.floor_units());
    }

    fn on_timeout(&mut self, path: PathId, _now: Time) {
        self.delays[path.index()].rate = 0.0;
        let path = &mut self.paths[path.index()];
        path.time_out(path.cwnd() / 2.0);
    }

    fn on_spurious(&mut self, path: PathId, _now: Time) {
        self.paths[path.index()].undo();
    }

    fn on_ecn(&mut self, path: PathId, now: Time) {
        self.on_loss(path, now);
    }

    fn on_idle(&mut self, path: PathId, _now: Time) {
        self.paths[path.index()].idle();
    }

    fn on_return(&mut self, path: PathId, _now: Time) {
        self.delays[path.index()] = Delay::new();
        self.paths[path.index()].restart();
    }

    fn limit(&mut self, path: PathId, most: u64) {
        self.paths[path.index()].limit(most);
    }

    fn set_unit(&mut self, unit: u64) {
        self.paths.iter_mut().for_each(|path| path.set_unit(unit));
    }

    fn window(&self, path: PathId) -> u64 {
        self.paths[path.index()].window()
    }

    fn ssthresh(&self, path: PathId) -> u64 {
        self.paths[path.index()].ssthresh()
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{UNIT, full_ack_on};
    use super::*;

    /// Rounds over a bottleneck with a rate of `rate` segments per second and a base delay. The round trip
    /// follows from the window.
    fn drive(control: &mut WVegas, rates: &[f64], base_s: f64, rounds: u32) {
        for _ in 0..rounds {
            for (i, rate) in rates.iter().enumerate() {
                let path = PathId::from_index(i);
                let segments = control.window(path) / UNIT;
                let rtt = Duration::from_secs_f64((segments as f64 / rate).max(base_s));
                for _ in 0..segments {
                    let sample = AckSample {
                        rtt: Some(rtt),
                        srtt: Some(rtt),
                        least_rtt: Some(Duration::from_secs_f64(base_s)),
                        ..full_ack_on(control, path, UNIT)
                    };
                    control.on_ack(path, Time::ZERO, &sample);
                }
            }
        }
    }

    fn queued(control: &WVegas, path: u8, rate: f64, base_s: f64) -> f64 {
        control.window(PathId(path)) as f64 / UNIT as f64 - rate * base_s
    }

    #[test]
    fn a_lone_path_keeps_at_most_ten_packets_queued_and_the_link_full() {
        let mut control = WVegas::new(CongestionOptions::tcp(UNIT), 1);
        drive(&mut control, &[1000.0], 0.1, 300);
        let found = queued(&control, 0, 1000.0, 0.1);
        // One full and one partial step of growth, before the round that detects the queue.
        assert!((1.0..=TOTAL_ALPHA + 2.0).contains(&found), "{found} packets queued");
    }

    #[test]
    fn a_window_too_small_to_measure_by_grows() {
        let mut control = WVegas::new(CongestionOptions::tcp(UNIT), 2);
        drive(&mut control, &[1000.0, 1000.0], 0.1, 30);
        (0..4).for_each(|_| control.on_loss(PathId(1), Time::ZERO));
        control.limit(PathId(1), 2 * UNIT);
        drive(&mut control, &[1000.0, 1000.0], 0.1, 40);
        assert!(control.window(PathId(1)) > 10 * UNIT, "{}", control.window(PathId(1)));
    }

    #[test]
    fn two_paths_share_ten_packets_by_their_rates() {
        let mut control = WVegas::new(CongestionOptions::tcp(UNIT), 2);
        drive(&mut control, &[1000.0, 250.0], 0.1, 600);
        let found = [queued(&control, 0, 1000.0, 0.1), queued(&control, 1, 250.0, 0.1)];
        assert!(found.iter().sum::<f64>() <= TOTAL_ALPHA + 2.0, "{found:?}");
        assert!(found[0] > found[1], "{found:?}");
    }
}
