//! CPU time of the programs on each side: how much they used, and how long they waited for a CPU.
//!
//! A figure that was measured while the programs waited for a CPU describes the machine and not the transport. The
//! kernel counts both times for each thread (`/proc/PID/task/TID/schedstat`). The count ends with the thread, so a
//! monitor reads it ten times per second.

#![allow(clippy::disallowed_methods, reason = "samples the programs in real time")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};

use ropewalk_base::Duration;

use super::error::EmulateError;
use super::namespace::Namespace;
use super::namespace_init::NamespaceInit;

/// Interval of samples. A thread that ends loses at most this much of its count.
const INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);
/// Maximum number of threads per sample, so that a sample stays short.
const THREADS_LIMIT: usize = 2000;
/// Position of the stolen time in the first line of `/proc/stat`, after the word `cpu` (proc_stat(5)).
const STEAL_FIELD: usize = 7;
/// Unit of `/proc/stat`: USER_HZ is 100 on x86 and ARM (time(7)).
const TICK_MS: u64 = 10;

/// CPU time of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time on a CPU.
    pub used: Duration,
    /// Time in which a thread was ready to run and waited for a CPU, summed over the threads.
    pub waited: Duration,
}

impl CpuTime {
    /// Reads a `schedstat` file: time on a CPU and time in a run queue, both in nanoseconds, and the number of time
    /// slices (sched-stats in the kernel's documentation).
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_whitespace().map(str::parse::<u64>);
        let mut next = || fields.next()?.ok().map(Duration::from_nanos);
        Some(Self { used: next()?, waited: next()? })
    }

    /// CPU time of the calling thread. `None` if the kernel does not count it: the file is missing, or holds zeros.
    pub fn of_this_thread() -> Option<Self> {
        let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Self::parse(&text).filter(|time| time.used > Duration::ZERO)
    }

    fn add(&mut self, other: Self) {
        self.used += other.used;
        self.waited += other.waited;
    }

    /// Growth since `before`. A smaller count belongs to a new thread with the same number.
    fn since(self, before: Self) -> Self {
        if self.used < before.used || self.waited < before.waited {
            return self;
        }
        Self {
            used: self.used.saturating_sub(before.used),
            waited: self.waited.saturating_sub(before.waited),
        }
    }
}

/// CPU time of the programs during an emulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramsCpu {
    /// CPU time of the sender's programs. `None` if the kernel does not count it.
    pub sender: Option<CpuTime>,
    /// CPU time of the receiver's programs. `None` if the kernel does not count it.
    pub receiver: Option<CpuTime>,
    /// Time that the hypervisor gave to other machines while a CPU of this one had work, summed over the CPUs. `None`
    /// if the system does not count it.
    pub stolen: Option<Duration>,
}

/// The counts of one side.
#[derive(Debug, Default)]
struct Count {
    total: CpuTime,
    /// The threads of the latest sample, by number.
    threads: BTreeMap<u32, CpuTime>,
}

impl Count {
    /// Adds what the threads used since the previous sample.
    fn add(&mut self, threads: BTreeMap<u32, CpuTime>) {
        for (number, time) in &threads {
            let before = self.threads.get(number).copied().unwrap_or_default();
            self.total.add(time.since(before));
        }
        self.threads = threads;
    }

    fn total(&self) -> Option<CpuTime> {
        Some(self.total).filter(|total| total.used > Duration::ZERO)
    }
}

/// Where the programs of both sides are found.
#[derive(Debug)]
struct Programs {
    /// The `/proc` that lists them.
    proc: PathBuf,
    /// Inode numbers of the network namespaces of sender and receiver.
    networks: [u64; 2],
}

impl Programs {
    /// Samples all threads, by side.
    fn sample(&self, counts: &mut [Count; 2]) {
        let mut threads = [BTreeMap::new(), BTreeMap::new()];
        let mut left = THREADS_LIMIT;
        for (_, process) in numbered(&self.proc) {
            let network = fs::metadata(process.join("ns/net")).map(|file| file.ino());
            let Ok(network) = network else { continue };
            let Some(side) = self.networks.iter().position(|one| *one == network) else { continue };
            for (number, thread) in numbered(&process.join("task")).take(left) {
                left -= 1;
                let text = fs::read_to_string(thread.join("schedstat"));
                if let Some(time) = text.ok().as_deref().and_then(CpuTime::parse) {
                    threads[side].insert(number, time);
                }
            }
        }
        for (count, threads) in counts.iter_mut().zip(threads) {
            count.add(threads);
        }
    }
}

/// The entries of a folder whose names are numbers.
fn numbered(folder: &Path) -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

/// Samples the programs of both sides on its own thread.
#[derive(Debug)]
pub struct CpuMonitor {
    thread: JoinHandle<ProgramsCpu>,
    /// Dropping this ends the thread.
    line: Sender<()>,
}

impl CpuMonitor {
    /// Starts to sample. Processes belong to the side whose network namespace they are in.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn start(
        init: &NamespaceInit,
        sender: &Namespace,
        receiver: &Namespace,
    ) -> Result<Self, EmulateError> {
        let broken = |e| EmulateError::system("cannot count the CPU time of programs", e);
        let inode = |of: &Namespace| fs::metadata(of.file()).map(|file| file.ino());
        let networks = [inode(sender).map_err(broken)?, inode(receiver).map_err(broken)?];
        // The first process mounts a `/proc` that lists only the processes of its namespace, if that is permitted.
        let proc = PathBuf::from(format!("/proc/{}/root/proc", init.id()));
        let programs = Programs { proc, networks };
        let (line, stop) = mpsc::channel::<()>();
        let builder = thread::Builder::new().name("ropewalk-cpu".to_owned());
        let thread = builder.spawn(move || {
            let before = stolen();
            let mut counts = [Count::default(), Count::default()];
            while stop.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                programs.sample(&mut counts);
            }
            let grown = |before| stolen().map(|now| now.saturating_sub(before));
            let [sender, receiver] = counts.map(|count| count.total());
            ProgramsCpu { sender, receiver, stolen: before.and_then(grown) }
        });
        Ok(Self { thread: thread.map_err(broken)?, line })
    }

    /// Ends the thread.
    ///
    /// # Panics
    /// If the thread panicked.
    pub fn stop(self) -> ProgramsCpu {
        drop(self.line);
        match self.thread.join() {
            Ok(cpu) => cpu,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Time that the hypervisor has withheld since the system started, summed over the CPUs.
fn stolen() -> Option<Duration> {
    let ticks = parse_stolen_ticks(&fs::read_to_string("/proc/stat").ok()?)?;
    Some(Duration::from_millis(ticks.saturating_mul(TICK_MS)))
}

fn parse_stolen_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    line.split_whitespace().nth(STEAL_FIELD)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn time(used: u64, waited: u64) -> CpuTime {
        CpuTime { used: Duration::from_nanos(used), waited: Duration::from_nanos(waited) }
    }

    #[test]
    fn the_times_of_a_thread_are_the_first_two_numbers() {
        for (text, expected) in [
            ("81 9 3\n", Some(time(81, 9))),
            ("0 0 0\n", Some(time(0, 0))),
            ("81 x 3\n", None),
            ("81\n", None),
            ("", None),
        ] {
            assert_eq!(CpuTime::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_stolen_time_is_the_eighth_number_of_the_first_line() {
        for (text, expected) in [
            ("cpu  22402 0 2932 15458 325 0 49 31 0 0\ncpu0 1 0 0 0 0 0 0 9 0 0\n", Some(31)),
            ("cpu  22402 0 2932 15458 325 0 49\n", None),
            ("cpu0 1 0 0 0 0 0 0 9 0 0\n", None),
            ("", None),
        ] {
            assert_eq!(parse_stolen_ticks(text), expected, "{text:?}");
        }
    }

    #[test]
    fn threads_that_end_keep_what_they_used_and_reused_numbers_start_from_zero() {
        let mut count = Count::default();
        assert_eq!(count.total(), None);
        for (threads, total) in [
            (vec![(1, time(10, 2))], time(10, 2)),
            (vec![(1, time(15, 2)), (2, time(1, 1))], time(16, 3)),
            (vec![(2, time(3, 1))], time(18, 3)),
            (vec![(2, time(1, 0)), (1, time(15, 2))], time(34, 5)),
        ] {
            count.add(threads.into_iter().collect());
            assert_eq!(count.total(), Some(total));
        }
    }

    #[test]
    fn a_sample_contains_the_threads_of_the_own_network_namespace() {
        let own = fs::metadata("/proc/self/ns/net").expect("Linux has it").ino();
        let programs = Programs { proc: PathBuf::from("/proc"), networks: [own, 0] };
        let mut counts = [Count::default(), Count::default()];
        programs.sample(&mut counts);
        let this_thread = nix::unistd::gettid().as_raw() as u32;
        assert!(counts[0].threads.contains_key(&this_thread));
        assert!(counts[1].threads.is_empty());
    }
}
