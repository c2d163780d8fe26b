//! Out-of-order data of a receiver whose subflows acknowledge only data that is in order at data level.

use std::collections::BTreeMap;

use ropewalk_base::{PathId, RangeSet};

/// A segment that is out of order at data level.
#[derive(Clone, Copy, Debug)]
struct Held {
    path: PathId,
    /// End of its sequence numbers on the subflow (exclusive).
    seq_end: u64,
}

/// All held segments. Data that is in order at data level is also in order on its subflow, because a
/// subflow carries data in ascending order. The model nevertheless checks both.
#[derive(Clone, Debug, Default)]
pub struct DataReorderBuffer {
    held: BTreeMap<u64, Held>,
    runs: RangeSet,
}

impl DataReorderBuffer {
    /// Holds a segment with the data from `dsn` to before `dsn_end`, which ends before `seq_end` on
    /// `path`. Returns false if it is already held.
    pub fn hold(&mut self, dsn: u64, dsn_end: u64, path: PathId, seq_end: u64) -> bool {
        self.runs.insert_range(dsn..dsn_end);
        self.held.insert(dsn, Held { path, seq_end }).is_none()
    }

    /// Number of held segments.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether a segment that begins at `dsn` is held.
    pub fn has(&self, dsn: u64) -> bool {
        self.held.contains_key(&dsn)
    }

    /// The next held segment that is in order once all data before `next` has arrived: its subflow, and the
    /// end of the sequence numbers to acknowledge there.
    pub fn release(&mut self, next: u64) -> Option<(PathId, u64)> {
        let first = self.held.first_entry().filter(|first| *first.key() < next)?;
        let held = first.remove();
        self.runs.remove_below(next);
        Some((held.path, held.seq_end))
    }

    /// The lowest run of held data, as first number and end (exclusive).
    pub fn lowest_run(&self) -> Option<(u64, u64)> {
        self.runs.first_range().map(|run| (run.start, run.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_released_in_data_order_on_the_subflow_it_came_by() {
        let mut reorder_buffer = DataReorderBuffer::default();
        assert!(reorder_buffer.hold(300, 400, PathId(1), 201));
        assert!(reorder_buffer.hold(100, 200, PathId(0), 101));
        assert!(reorder_buffer.hold(200, 300, PathId(0), 201));
        assert!(!reorder_buffer.hold(200, 300, PathId(0), 201), "it came twice");
        assert!(reorder_buffer.hold(500, 600, PathId(0), 301));
        assert_eq!(reorder_buffer.lowest_run(), Some((100, 400)));
        assert_eq!(reorder_buffer.release(100), None);
        let released: Vec<_> = core::iter::from_fn(|| reorder_buffer.release(400)).collect();
        assert_eq!(released, [(PathId(0), 101), (PathId(0), 201), (PathId(1), 201)]);
        assert_eq!(reorder_buffer.lowest_run(), Some((500, 600)));
    }
}
