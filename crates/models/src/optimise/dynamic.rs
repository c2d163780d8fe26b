//! Exact allocation by dynamic programming.
//!
//! The best allocation of s packets to k paths is the best split of s between path k and the other paths. Each
//! further path takes r times its largest limit steps. The last path requires only one size, so that two paths
//! take a single pass.

use super::{Allocation, Members, Method, PathTable};

/// The best throughput of the first paths, for every size of the buffer.
pub(super) struct Layers<'a> {
    tables: &'a [PathTable],
    least: usize,
    /// Entry k: best throughput of paths 0 to k by buffer size in packets; minus infinity where they do not
    /// fit.
    best: Vec<Vec<f64>>,
}

impl<'a> Layers<'a> {
    /// All paths but the last, for buffers of up to `packets`.
    pub(super) fn new(tables: &'a [PathTable], packets: u32, members: Members) -> Self {
        let least = members.least() as usize;
        let mut layers = Self { tables, least, best: Vec::new() };
        for path in 0..tables.len() - 1 {
            let layer = if path == 0 {
                layers.first(packets as usize)
            } else {
                (0..=packets as usize).map(|size| layers.best_of(path, size)).collect()
            };
            layers.best.push(layer);
        }
        layers
    }

    /// The maximum throughput of all paths within `packets`, packets/s.
    pub(super) fn best_within(&self, packets: u32) -> f64 {
        self.best_of(self.tables.len() - 1, packets as usize)
    }

    /// Throughput of a single path: the best of all limits up to each size.
    fn first(&self, packets: usize) -> Vec<f64> {
        let mut best = f64::NEG_INFINITY;
        let entries = self.tables[0].entries();
        let layer = (0..=packets).map(|size| {
            if size >= self.least && size < entries.len() {
                best = best.max(entries[size]);
            }
            best
        });
        layer.collect()
    }

    /// The maximum throughput of paths 0 to `path` within `size` packets.
    fn best_of(&self, path: usize, size: usize) -> f64 {
        // A plain loop over two slices, because it takes nearly all of the time.
        let (own, others) = self.choices(path, size);
        let mut best = f64::NEG_INFINITY;
        match others {
            None => own.iter().for_each(|own| best = best.max(*own)),
            Some(others) => {
                for (own, others) in own.iter().zip(others.iter().rev()) {
                    let both = own + others;
                    best = if both > best { both } else { best };
                }
            }
        }
        best
    }

    /// Throughput of `path` for each limit that fits, and of the paths before it for the remaining packets; the
    /// latter must be read backwards.
    fn choices(&self, path: usize, size: usize) -> (&[f64], Option<&[f64]>) {
        let entries = self.tables[path].entries();
        let end = entries.len().min(size + 1);
        let own = &entries[self.least.min(end)..end];
        let left = size.saturating_sub(self.least);
        (own, path.checked_sub(1).map(|before| &self.best[before][..=left]))
    }

    /// Limits that are best within `packets`.
    pub(super) fn limits(&self, packets: u32) -> Vec<u32> {
        let mut size = packets as usize;
        let mut limits = vec![0; self.tables.len()];
        for path in (0..self.tables.len()).rev() {
            let best = self.best_of(path, size);
            let (own, others) = self.choices(path, size);
            let total = |at: usize| own[at] + others.map_or(0.0, |best| best[best.len() - 1 - at]);
            // The sums are computed as before, so that one of them equals the best.
            let at = (0..own.len()).position(|at| total(at) >= best).unwrap_or(0) + self.least;
            // At most the limit of a table.
            limits[path] = at as u32;
            size -= at;
        }
        limits
    }
}

/// The best allocation; the caller has checked that one exists.
pub fn limits(tables: &[PathTable], packets: u32, members: Members) -> Allocation {
    // More packets than all paths can use make no difference.
    let useful: u64 = tables.iter().map(|table| u64::from(table.limit_packets())).sum();
    let packets = u64::from(packets).min(useful) as u32;
    let layers = Layers::new(tables, packets, members);
    Allocation::of(tables, layers.limits(packets), Method::Dynamic)
}
