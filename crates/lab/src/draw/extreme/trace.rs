//! Random traces of links that change during a transfer.

use ropewalk_base::{Duration, Rng};
use ropewalk_scenario::Trace;

use super::super::log_uniform;

/// Length of a trace, s. It then repeats.
const TRACE_S: f64 = 60.0;
/// Interval at which the rate of a cellular link changes, s.
const STEP_S: f64 = 0.02;
/// Volatility of that rate, in mean rates per square root of a second.
const VOLATILITY: f64 = 0.5;
/// Highest rate before scaling, as a multiple of the initial rate.
const MOST: f64 = 3.0;
/// Mean length of the outage after the rate reaches zero, s.
const OUTAGE_S: f64 = 0.5;

/// Time between handovers of satellites, s.
const HANDOVER_S: f64 = 15.0;

/// A cellular link after the model of Winstein, Sivaraman and Balakrishnan (Sprout, NSDI 2013). Packets leave as
/// a Poisson process whose rate is a Brownian motion. When the rate reaches zero, it stays there for a while.
/// The motion is reflected at three times its initial value and scaled to the mean rate.
pub fn cellular(name: &str, mean_bps: f64, mut rng: Rng) -> Trace {
    let mean = mean_bps / 8.0 / Trace::OPPORTUNITY_BYTES as f64;
    let steps = (TRACE_S / STEP_S) as usize;
    let mut level = 1.0;
    let mut levels = Vec::with_capacity(steps);
    let mut dark_s = 0.0;
    for _ in 0..steps {
        if dark_s > 0.0 {
            dark_s -= STEP_S;
            levels.push(0.0);
            continue;
        }
        level += VOLATILITY * STEP_S.sqrt() * rng.normal();
        if level <= 0.0 {
            dark_s = rng.exponential(OUTAGE_S);
            level = VOLATILITY * STEP_S.sqrt();
        }
        level = if level > MOST { 2.0 * MOST - level } else { level };
        levels.push(level);
    }
    // The mean of the random motion is arbitrary; scaling gives the path its intended mean rate.
    let scale = steps as f64 / levels.iter().sum::<f64>().max(1.0);
    let mut opportunities = Vec::new();
    let mut due = rng.exponential(1.0);
    for (i, level) in levels.iter().enumerate() {
        let (began, expected) = (i as f64 * STEP_S, level * scale * mean * STEP_S);
        let mut passed = 0.0;
        while expected - passed >= due {
            passed += due;
            let at = began + STEP_S * passed / expected;
            opportunities.push(Duration::from_millis((at * 1e3) as u64));
            due = rng.exponential(1.0);
        }
        due -= expected - passed;
    }
    opportunities.push(Duration::from_millis((TRACE_S * 1e3) as u64));
    Trace { file: name.to_owned(), opportunities }
}

/// The keys of a path over low-orbit satellites: every 15 s a short interruption, then another delay and rate,
/// as measured on Starlink (Mohan et al., WWW 2024).
pub fn low_orbit(rate_bps: f64, rtt_s: f64, duration_s: f64, rng: &mut Rng) -> String {
    let (mut steps, mut outages) = (Vec::new(), Vec::new());
    let mut at = HANDOVER_S * rng.unit().max(0.01);
    while at < duration_s {
        let rate = (rate_bps * log_uniform(rng, 0.5, 1.5)) as u64;
        let delay_us = (rtt_s / 2.0 * log_uniform(rng, 0.7, 1.6) * 1e6) as u64;
        let at_ms = (at * 1e3) as u64;
        let dark_ms = log_uniform(rng, 10.0, 300.0) as u64;
        steps.push(format!(
            "{{ at = \"{at_ms} ms\", rate = \"{rate} bit/s\", delay = \"{delay_us} us\" }}"
        ));
        outages.push(format!("{{ from = \"{at_ms} ms\", to = \"{} ms\" }}", at_ms + dark_ms));
        at += HANDOVER_S;
    }
    format!("steps = [{}]\noutages = [{}]\n", steps.join(", "), outages.join(", "))
}
