//! Links that differ slightly from those of a scenario.

use ropewalk_base::{Duration, Rate};
use ropewalk_scenario::{Capacity, Jitter, JitterShape, LinkSide, Path};

/// Multiplies the rates of a path. `None` if its rate comes from a trace. A return direction with a trace keeps it.
pub(crate) fn scale_rate(path: &mut Path, factor: f64) -> Option<()> {
    scale_side(&mut path.up, factor)?;
    let _ = scale_side(&mut path.down, factor);
    Some(())
}

fn scale_side(side: &mut LinkSide, factor: f64) -> Option<()> {
    let scaled = |rate: Rate| Rate::from_bps(((rate.as_bps() as f64 * factor) as u64).max(1));
    let Capacity::Rate(rate) = &mut side.capacity else { return None };
    *rate = scaled(*rate);
    for step in &mut side.steps {
        step.rate = step.rate.map(scaled);
    }
    Some(())
}

/// Multiplies the propagation delays of a path.
pub(crate) fn scale_round_trip(path: &mut Path, factor: f64) {
    let scaled = |delay: Duration| Duration::from_nanos((delay.as_nanos() as f64 * factor) as u64);
    for side in [&mut path.up, &mut path.down] {
        side.delay = scaled(side.delay);
        for step in &mut side.steps {
            step.delay = step.delay.map(scaled);
        }
    }
}

/// Adds jitter up to `max` to the data direction of a path that has none. Packets keep their order.
pub(crate) fn add_jitter(path: &mut Path, max: Duration) {
    path.up.jitter.get_or_insert(Jitter { keep_order: true, shape: JitterShape::Uniform { max } });
}
