//! The same work for many things, on all cores.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `work` of each job, in the order of the jobs. What comes out does not depend on the threads.
pub fn map<J: Sync, R: Send>(name: &str, jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<R>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    let result = work(job);
                    *results[index].lock().unwrap_or_else(|e| e.into_inner()) = Some(result);
                    progress(name, ended.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
                }
            });
        }
    });
    let results = results.into_iter().map(|slot| slot.into_inner());
    results.map(|slot| slot.unwrap_or_else(|e| e.into_inner()).expect("each job ran")).collect()
}

/// A line that is written over on a terminal; in a file, a line each tenth.
pub fn progress(name: &str, done: usize, all: usize) {
    let mut err = std::io::stderr().lock();
    let text = format!("  {name}: {done} of {all}");
    // Nobody is helped by a run that stops because its progress could not be shown.
    let _ = if err.is_terminal() {
        let end = if done == all { "\n" } else { "" };
        write!(err, "\r{text}{end}")
    } else if is_tenth(done, all) {
        writeln!(err, "{text}")
    } else {
        Ok(())
    };
}

const fn is_tenth(done: usize, all: usize) -> bool {
    done * 10 / all != (done - 1) * 10 / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        assert_eq!(
            map("squares", &jobs, |n| n * n),
            jobs.iter().map(|n| n * n).collect::<Vec<_>>()
        );
        assert!(map("nothing", &[] as &[u64], |n| *n).is_empty());
    }

    #[test]
    fn a_file_gets_ten_lines_or_fewer() {
        for (all, expected) in [(1, 1), (7, 7), (10, 10), (200, 10), (203, 10)] {
            assert_eq!((1..=all).filter(|done| is_tenth(*done, all)).count(), expected, "{all}");
        }
    }
}
