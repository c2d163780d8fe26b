//! Memory and work that a peer can cause: for any input, an end uses at most twice its receive buffer and
//! 64 KiB, and its work is proportional to the received bytes.
//!
//! Memory is measured by the allocator, bookkeeping included. Work is counted in steps by the engine
//! itself, in builds with debug assertions. For each bound, a defect that breaks it shows that it is
//! tested.

mod association;
mod attacks;
mod idle;
mod session;

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cap::Cap;
use ropewalk_engine::meter::{self, Defect};
use ropewalk_engine::sctp::{GapBlock, GapList};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Number of bytes currently allocated.
pub fn allocated() -> usize {
    ALLOCATOR.allocated()
}

/// Held by each test while it measures, because the allocator counts for all threads.
pub struct Measuring(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Measuring {
    /// Waits for all other tests.
    pub fn begin() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Lists of gap blocks are kept by the thread for reuse, and do not belong to an association.
        let block = GapBlock { start: 2, end: 2 };
        let lists = vec![GapList::from_offsets(ropewalk_base::Serial32(0), vec![block; 512]); 64];
        drop(lists);
        meter::take();
        Self(guard)
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        meter::set_defect(None);
    }
}

/// A bound that was broken.
#[derive(Clone, Debug, PartialEq)]
pub enum Broken {
    /// Bytes allocated, and the limit.
    Memory(usize, usize),
    /// Steps, and the limit.
    Work(u64, u64),
}

/// Limits of the memory and the work of an end.
#[derive(Clone, Copy)]
pub struct Bound {
    /// Bytes.
    pub receive_buffer: u64,
    /// Steps per received byte.
    pub steps_per_byte: u64,
}

impl Bound {
    /// Allowance in addition to twice the receive buffer, bytes.
    const FIXED: usize = 64 << 10;
    /// Allowance in addition to the steps for the received bytes.
    const FIXED_STEPS: u64 = 10_000;

    /// Checks this amount of memory, after this number of bytes and steps.
    pub fn check(self, memory: usize, came: u64, steps: u64) -> Result<(), Broken> {
        let most = 2 * self.receive_buffer as usize + Self::FIXED;
        if memory > most {
            return Err(Broken::Memory(memory, most));
        }
        let most = self.steps_per_byte * came + Self::FIXED_STEPS;
        if steps > most { Err(Broken::Work(steps, most)) } else { Ok(()) }
    }
}

/// Asserts that `play` breaks a bound of the kind `broken` with the defect, and no bound without it.
pub fn assert_caught(
    defect: Defect,
    broken: fn(&Broken) -> bool,
    play: impl Fn() -> Result<(), Broken>,
) {
    let _measuring = Measuring::begin();
    assert_eq!(play(), Ok(()), "without {defect:?}");
    meter::set_defect(Some(defect));
    let found = play();
    meter::set_defect(None);
    assert!(found.as_ref().is_err_and(broken), "{defect:?} was not noticed: {found:?}");
}
