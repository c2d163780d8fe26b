//! The receive-window guard: a bundle is never slower than its best single path.
//!
//! Two rules, both idle while the buffer is ample:
//! 1. No path holds more of the shared window than fills its pipe, fastest round trip first: that
//!    is how the flow-control bound is reached.
//! 2. No path is given data that it would deliver too late: before it arrives, faster paths would
//!    have run into the end of the window behind it. Such a path may take data from further back
//!    in the queue, which is due when it arrives, or none.

use ropewalk_base::Duration;

use crate::scheduler::PathView;

/// Share of a pipe by which its window may exceed it, so that a rate that grows is noticed.
const PROBE_GAIN: f64 = 1.25;
/// And so many chunks, for pipes of a few packets.
const PROBE_CHUNKS: f64 = 2.0;

/// The receive window as the guard needs it.
#[derive(Clone, Copy, Debug)]
pub struct SharedWindow {
    /// The peer's whole buffer, bytes.
    pub buffer: u64,
    /// Size of a full chunk, bytes.
    pub chunk: u64,
}

/// The guard.
#[derive(Clone, Debug)]
pub struct Guard {
    on: bool,
    /// Estimated rate of each path, bytes per nanosecond; scratch.
    rates: Vec<f64>,
}

impl Guard {
    /// A guard that is on or off.
    pub const fn new(on: bool) -> Self {
        Self { on, rates: Vec::new() }
    }

    /// Whether it is on.
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Sets `window` and `earliest_position` of each path.
    pub fn apply(&mut self, shared: SharedWindow, views: &mut [PathView]) {
        if !self.on {
            return;
        }
        self.rates.clear();
        self.rates.extend(views.iter().map(potential_rate));
        let windows: u64 = views.iter().filter(|p| p.usable).map(|p| p.cwnd).sum();
        if windows <= shared.buffer && self.is_ample(shared, views) {
            return;
        }
        if windows > shared.buffer {
            limit_to_pipes(shared, views);
        }
        self.set_positions(shared, views);
    }

    /// Whether the buffer holds all that the paths can have outstanding over the longest round
    /// trip (Kuhn et al., 2014, Eq 3): then order does not matter.
    fn is_ample(&self, shared: SharedWindow, views: &[PathView]) -> bool {
        let longest = usable(views).filter_map(|(_, p)| p.srtt).max().unwrap_or(Duration::ZERO);
        let rates: f64 = usable(views).map(|(i, _)| self.rates[i]).sum();
        rates * longest.as_nanos() as f64 <= shared.buffer as f64
    }

    fn set_positions(&self, shared: SharedWindow, views: &mut [PathView]) {
        let quickest_back = usable(views).filter_map(|(_, p)| way_back(p)).fold(f64::MAX, f64::min);
        for i in 0..views.len() {
            let Some(arrives) = views[i].forward_delay.filter(|_| views[i].usable) else {
                continue;
            };
            let arrives = arrives.as_nanos() as f64;
            let (mut before, mut meanwhile) = (0.0, 0.0);
            for (j, other) in usable(views) {
                let Some(delay) = other.forward_delay else { continue };
                let lead = arrives - delay.as_nanos() as f64;
                if j != i && lead > 0.0 {
                    before += self.rates[j] * lead;
                }
                meanwhile += self.rates[j] * (arrives + quickest_back);
            }
            // What the buffer can spare beyond data that arrives in order may be out of order.
            let spare = (shared.buffer as f64 - meanwhile).max(0.0);
            let earliest = (before - spare).max(0.0) / shared.chunk as f64;
            views[i].earliest_position = earliest as u64;
        }
    }
}

fn usable(views: &[PathView]) -> impl Iterator<Item = (usize, &PathView)> {
    views.iter().enumerate().filter(|(_, p)| p.usable)
}

/// The way of an acknowledgement, nanoseconds.
fn way_back(path: &PathView) -> Option<f64> {
    let there = path.forward_delay?.as_nanos() as f64;
    Some((path.srtt?.as_nanos() as f64 - there).max(0.0))
}

/// What a path would carry if the peer's window allowed, bytes per nanosecond: what it was seen to
/// deliver, or what its window gives where it was never seen full.
fn potential_rate(path: &PathView) -> f64 {
    let by_window = match path.srtt {
        Some(srtt) => path.cwnd as f64 / srtt.as_nanos().max(1) as f64,
        None => 0.0,
    };
    match path.rate {
        Some(rate) => {
            let seen = rate.as_bps() as f64 / 8e9;
            let queueing = match (path.srtt, path.min_rtt) {
                (Some(srtt), Some(least)) => srtt > least + least / 8,
                _ => false,
            };
            // Queueing shows that what was seen is all there is.
            if queueing { seen } else { seen.max(by_window) }
        }
        None => by_window,
    }
}

/// Rule 1.
fn limit_to_pipes(shared: SharedWindow, views: &mut [PathView]) {
    for path in views.iter_mut().filter(|p| p.usable) {
        let (Some(rate), Some(least)) = (path.rate, path.min_rtt) else { continue };
        let pipe = rate.as_bps() as f64 / 8e9 * least.as_nanos() as f64;
        let limit = PROBE_GAIN * pipe + PROBE_CHUNKS * shared.chunk as f64;
        path.window = path.window.min(limit as u64);
    }
}
