//! The family *access*: bundles of ordinary access links.

mod changes;
mod kind;
#[cfg(test)]
mod tests;

use ropewalk_base::{Rng, Seed};

use super::{WARMUP_ROUND_TRIPS, log_uniform};
use kind::{KINDS, Kind, Loss, Range};

/// Measured time of a run, s: at least one satellite handover.
const MEASURED_S: f64 = 16.0;
/// Minimum length of the warm-up, s.
const WARMUP_MIN_S: f64 = 8.0;
/// Receive buffer, bytes.
const BUFFER: Range = [256e3, 32e6];
/// Share of the bundles whose receive buffer does not limit them.
const AMPLE_SHARE: f64 = 0.3;
/// Such a buffer divided by the sum of the bandwidth-delay products.
const AMPLE: f64 = 4.0;
/// Minimum size of such a buffer, bytes.
const AMPLE_MIN: f64 = 16e6;
/// Smallest queue, bytes: two full packets.
const QUEUE_MIN: f64 = 3000.0;

/// One drawn link.
struct Link {
    kind: &'static Kind,
    rate_bps: f64,
    return_bps: f64,
    rtt_s: f64,
}

/// Text of the scenario file.
pub fn text(seed: Seed, paths: usize) -> String {
    let rng = |i: usize| seed.child("link").child(&i.to_string()).rng();
    let mut links: Vec<(Link, Rng)> = Vec::with_capacity(paths);
    for mut rng in (0..paths).map(rng) {
        links.push((Link::draw(&mut rng), rng));
    }
    let longest_s = links.iter().map(|(link, _)| link.rtt_s).fold(0.0, f64::max);
    let warmup_s = (WARMUP_ROUND_TRIPS * longest_s).max(WARMUP_MIN_S).ceil();
    let duration_s = warmup_s + MEASURED_S;
    let buffer = receive_buffer(seed, links.iter().map(|(link, _)| link));
    let run = seed.child("run").number() >> 1;
    let mut text = format!(
        "[transfer]\nduration = \"{duration_s} s\"\nwarmup = \"{warmup_s} s\"\nseed = {run}\n\
         receive_buffer = \"{buffer} B\"\n"
    );
    for (i, (link, rng)) in links.iter_mut().enumerate() {
        text += &link.text(i, rng);
        text += &changes::text(link, (warmup_s, duration_s), rng);
    }
    text
}

/// The receive buffer in bytes.
fn receive_buffer<'a>(seed: Seed, links: impl Iterator<Item = &'a Link>) -> u64 {
    let mut rng = seed.child("receive buffer").rng();
    let limited = within(&mut rng, BUFFER);
    let products: f64 = links.map(|link| link.rate_bps * link.rtt_s / 8.0).sum();
    let ample = (AMPLE * products).max(AMPLE_MIN);
    (if rng.chance(AMPLE_SHARE) { ample } else { limited }) as u64
}

impl Link {
    fn draw(rng: &mut Rng) -> Self {
        let mut ticket = rng.below(KINDS.iter().map(|kind| kind.weight).sum());
        let kind = KINDS.iter().find(|kind| {
            let drawn = ticket < kind.weight;
            ticket = ticket.saturating_sub(kind.weight);
            drawn
        });
        let kind = kind.expect("the ticket is below the sum of the weights");
        let rate_bps = within(rng, kind.rate_mbps) * 1e6;
        let return_bps = rate_bps * within(rng, kind.return_share);
        Self { kind, rate_bps, return_bps, rtt_s: within(rng, kind.rtt_ms) / 1e3 }
    }

    /// The `[[path]]` table without its changes.
    fn text(&self, number: usize, rng: &mut Rng) -> String {
        let Self { kind, rate_bps, return_bps, rtt_s } = self;
        let mut queue = |bps: &f64| (within(rng, kind::QUEUE_S) * bps / 8.0).max(QUEUE_MIN) as u64;
        let (queue, queue_down) = (queue(rate_bps), queue(return_bps));
        let mut text = format!(
            "[[path]]\nname = \"{}{number}\"\nrate = \"{} bit/s\"\nrate_down = \"{} bit/s\"\nrtt = \"{} us\"\n\
             queue = \"{queue} B\"\nqueue_down = \"{queue_down} B\"\n",
            kind.name,
            *rate_bps as u64,
            *return_bps as u64,
            (rtt_s * 1e6) as u64,
        );
        text += &match kind.loss {
            Loss::Single => format!("loss = {:.9}\n", within(rng, kind::SINGLE_LOSS)),
            Loss::Bursts(share) => {
                let share = within(rng, share);
                let r = 1.0 / within(rng, kind::BURST_PACKETS);
                let p = r * share / (1.0 - share);
                format!("loss = {{ model = \"gilbert-elliott\", p = {p:.9}, r = {r:.7} }}\n")
            }
        };
        if let Some(mean_ms) = kind.jitter_ms {
            let mean_us = (within(rng, mean_ms) * 1e3) as u64;
            text += &format!(
                "jitter = {{ distribution = \"exponential\", mean = \"{mean_us} us\" }}\n"
            );
        }
        text
    }
}

/// A value of the range.
fn within(rng: &mut Rng, [low, high]: Range) -> f64 {
    log_uniform(rng, low, high)
}
