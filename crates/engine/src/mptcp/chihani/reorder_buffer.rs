//! What waits at a receiver whose subflows acknowledge only what is in order at data level.

use std::collections::BTreeMap;

use ropewalk_base::{PathId, RangeSet};

/// A segment that came before its turn at data level.
#[derive(Clone, Copy, Debug)]
struct Held {
    path: PathId,
    /// The subflow's number behind its last byte.
    seq_end: u64,
}

/// All of them. What is in order at data level is in order on its subflow too, for a subflow carries
/// data in rising order; the gate asks for both all the same.
#[derive(Clone, Debug, Default)]
pub struct DataReorderBuffer {
    held: BTreeMap<u64, Held>,
    runs: RangeSet,
}

impl DataReorderBuffer {
    /// A segment with the data from `dsn` to before `dsn_end` waits; on `path` it ends before `seq_end`.
    /// False if it is there already.
    pub fn hold(&mut self, dsn: u64, dsn_end: u64, path: PathId, seq_end: u64) -> bool {
        self.runs.insert_range(dsn..dsn_end);
        self.held.insert(dsn, Held { path, seq_end }).is_none()
    }

    /// How many segments wait.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether one that begins there waits.
    pub fn has(&self, dsn: u64) -> bool {
        self.held.contains_key(&dsn)
    }

    /// The next in data order that need not wait once all data before `next` is there: its subflow, and
    /// up to where that is acknowledged now.
    pub fn release(&mut self, next: u64) -> Option<(PathId, u64)> {
        let first = self.held.first_entry().filter(|first| *first.key() < next)?;
        let held = first.remove();
        self.runs.remove_below(next);
        Some((held.path, held.seq_end))
    }

    /// The lowest run of data that waits, first number and the one behind the last.
    pub fn lowest_run(&self) -> Option<(u64, u64)> {
        self.runs.first_range().map(|run| (run.start, run.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_released_in_data_order_on_the_subflow_it_came_by() {
        let mut gate = DataReorderBuffer::default();
        assert!(gate.hold(300, 400, PathId(1), 201));
        assert!(gate.hold(100, 200, PathId(0), 101));
        assert!(gate.hold(200, 300, PathId(0), 201));
        assert!(!gate.hold(200, 300, PathId(0), 201), "it came twice");
        assert!(gate.hold(500, 600, PathId(0), 301));
        assert_eq!(gate.lowest_run(), Some((100, 400)));
        assert_eq!(gate.release(100), None);
        let released: Vec<_> = core::iter::from_fn(|| gate.release(400)).collect();
        assert_eq!(released, [(PathId(0), 101), (PathId(0), 201), (PathId(1), 201)]);
        assert_eq!(gate.lowest_run(), Some((500, 600)));
    }
}
