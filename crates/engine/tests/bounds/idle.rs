//! What an association takes while nothing happens: a server holds thousands of them.

use crate::association::{live, pair};
use crate::{Measuring, allocated};

/// Number of pairs. Large enough that concurrent allocations of the test runner's threads do not matter.
const PAIRS: usize = 500;

/// Bytes of the engine's part of an idle association, of the 20 KiB that a sealed one may take in all.
const IDLE_LIMIT: usize = 10 << 10;

#[test]
fn an_idle_live_association_takes_little() {
    let _measuring = Measuring::begin();
    let config = live(16 << 20);
    // What a thread keeps for itself is made by the first.
    drop(pair(&config));
    let before = allocated();
    let ends: Vec<_> =
        (0..PAIRS).map(|_| pair(&config)).map(|(left, right, _)| [left, right]).collect();
    let each = (allocated() - before) / (2 * ends.len());
    assert!(each <= IDLE_LIMIT, "{each} B each");
}
