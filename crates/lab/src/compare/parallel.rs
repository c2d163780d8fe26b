//! Parallel map whose result does not depend on the number of threads.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Applies `work` to every item on at most `threads` threads. The results have the order of the items.
///
/// # Panics
/// If `work` panics, with the same payload.
pub fn map_in_parallel<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    // Each thread takes the next free item, which balances long and short ones.
    let next = AtomicUsize::new(0);
    let take = || {
        let mut made = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return made };
            made.push((index, work(item)));
        }
    };
    let mut made = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        let joined = workers.into_iter().map(|w| w.join().unwrap_or_else(|e| resume_unwind(e)));
        joined.flatten().collect::<Vec<_>>()
    });
    made.sort_unstable_by_key(|(index, _)| *index);
    made.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_in_the_order_of_the_items_on_any_number_of_threads() {
        let items: Vec<u64> = (0..100).collect();
        let expected: Vec<u64> = items.iter().map(|n| n * n).collect();
        for threads in [0, 1, 2, 7, 200] {
            assert_eq!(map_in_parallel(&items, threads, |n| n * n), expected, "{threads} threads");
        }
        assert_eq!(map_in_parallel(&[] as &[u64], 4, |n| *n), [0; 0]);
    }

    #[test]
    fn a_panic_of_the_work_comes_through() {
        let outcome = std::panic::catch_unwind(|| {
            map_in_parallel(&[1, 2, 3], 2, |n| assert!(*n != 2, "two is refused"))
        });
        assert!(outcome.is_err());
    }
}
