//! Changes of a link during a run: steps and outages.

use ropewalk_base::Rng;

use super::kind::{
    Changes, HANDOVER_DELAY, HANDOVER_GAP_S, HANDOVER_RATE, HANDOVER_S, OUTAGE_S, OUTAGE_SHARE,
    RADIO_INTERVAL_S, RADIO_RATE,
};
use super::{Link, within};

/// The keys `steps` and `outages` of a link, if it has any, for a run of `duration_s` with this warm-up.
pub fn text(link: &Link, (warmup_s, duration_s): (f64, f64), rng: &mut Rng) -> String {
    let outage_s = rng.chance(OUTAGE_SHARE).then(|| within(rng, OUTAGE_S));
    match link.kind.changes {
        Changes::None => String::new(),
        Changes::Radio => {
            let steps = radio_steps(link, duration_s, rng);
            let outages = outage_s.map(|length_s| {
                let latest_s = duration_s - 2.0 * length_s;
                outage(warmup_s + (latest_s - warmup_s) * rng.unit(), length_s)
            });
            list("steps", &steps) + &list("outages", outages.as_slice())
        }
        Changes::Orbit => {
            let (steps, outages) = handovers(link, duration_s, outage_s, rng);
            list("steps", &steps) + &list("outages", &outages)
        }
    }
}

fn radio_steps(link: &Link, duration_s: f64, rng: &mut Rng) -> Vec<String> {
    let interval_s = within(rng, RADIO_INTERVAL_S);
    let [low, high] = RADIO_RATE;
    let times = (1..).map(|i| f64::from(i) * interval_s).take_while(|at| *at < duration_s);
    let step = |at_s: f64| {
        let rate = (link.rate_bps * (low + (high - low) * rng.unit())) as u64;
        format!("{{ at = \"{} ms\", rate = \"{rate} bit/s\" }}", milliseconds(at_s))
    };
    times.map(step).collect()
}

/// Steps and gaps of the handovers, the first at a random time. The second, which is after the warm-up, takes
/// `outage_s` if the link has an outage.
fn handovers(
    link: &Link,
    duration_s: f64,
    outage_s: Option<f64>,
    rng: &mut Rng,
) -> (Vec<String>, Vec<String>) {
    let first_s = HANDOVER_S * rng.unit().max(0.01);
    let times = (0..).map(|i| first_s + f64::from(i) * HANDOVER_S);
    let handover = |(i, at_s): (usize, f64)| {
        let rate = (link.rate_bps * within(rng, HANDOVER_RATE)) as u64;
        let [low_ms, high_ms] = link.kind.rtt_ms;
        let rtt_ms = (link.rtt_s * 1e3 * within(rng, HANDOVER_DELAY)).clamp(low_ms, high_ms);
        let (at_ms, delay_us) = (milliseconds(at_s), (rtt_ms / 2.0 * 1e3) as u64);
        let step = format!(
            "{{ at = \"{at_ms} ms\", rate = \"{rate} bit/s\", delay = \"{delay_us} us\" }}"
        );
        let gap_s = within(rng, HANDOVER_GAP_S);
        (step, outage(at_s, outage_s.filter(|_| i == 1).unwrap_or(gap_s)))
    };
    times.take_while(|at_s| *at_s < duration_s).enumerate().map(handover).unzip()
}

fn outage(from_s: f64, length_s: f64) -> String {
    let from_ms = milliseconds(from_s);
    format!("{{ from = \"{from_ms} ms\", to = \"{} ms\" }}", from_ms + milliseconds(length_s))
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}

fn list(key: &str, items: &[String]) -> String {
    match items {
        [] => String::new(),
        items => format!("{key} = [{}]\n", items.join(", ")),
    }
}
