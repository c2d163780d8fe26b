//! Memory of an idle association: a server holds thousands of them.

use crate::association::{live, pair};
use crate::{Measuring, allocated};

/// Number of pairs. Large enough that concurrent allocations of the test runner's threads do not matter.
const PAIRS: usize = 500;

/// Memory of the engine's part of an idle association, bytes, out of the 20 KiB of a sealed one.
const IDLE_LIMIT: usize = 10 << 10;

#[test]
fn an_idle_live_association_takes_little() {
    let _measuring = Measuring::begin();
    let config = live(16 << 20);
    // The first pair creates the thread's own data.
    drop(pair(&config));
    let before = allocated();
    let ends: Vec<_> =
        (0..PAIRS).map(|_| pair(&config)).map(|(left, right, _)| [left, right]).collect();
    let each = (allocated() - before) / (2 * ends.len());
    assert!(each <= IDLE_LIMIT, "{each} B each");
}
