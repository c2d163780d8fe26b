//! Memory and work that a peer can cause: whatever comes, an end takes at most twice its receive buffer and 64 KiB,
//! and its work is in proportion to the bytes that came.
//!
//! Memory is what the allocator counts, bookkeeping included; work is counted in steps by the engine itself, in
//! builds with debug assertions. Each bound is shown to be tested by a defect that breaks it.

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

/// Bytes that are allocated now.
pub fn allocated() -> usize {
    ALLOCATOR.allocated()
}

/// Held by each test while it measures: the allocator counts for all threads.
pub struct Measuring(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Measuring {
    /// Waits for all others.
    pub fn begin() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Lists of gap blocks are kept by the thread to be used again, and belong to no association.
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
    /// Bytes allocated, and how many there may be.
    Memory(usize, usize),
    /// Steps, and how many there may be.
    Work(u64, u64),
}

/// What an end may take, and how much work it may be.
#[derive(Clone, Copy)]
pub struct Bound {
    /// Bytes.
    pub receive_buffer: u64,
    /// Steps per byte that came.
    pub steps_per_byte: u64,
}

impl Bound {
    /// Allowance in addition to twice the receive buffer, bytes.
    const FIXED: usize = 64 << 10;
    /// Allowance in addition to the steps for the received bytes.
    const FIXED_STEPS: u64 = 10_000;

    /// Whether so much memory, after so many bytes and steps, is too much.
    pub fn check(self, memory: usize, came: u64, steps: u64) -> Result<(), Broken> {
        let most = 2 * self.receive_buffer as usize + Self::FIXED;
        if memory > most {
            return Err(Broken::Memory(memory, most));
        }
        let most = self.steps_per_byte * came + Self::FIXED_STEPS;
        if steps > most { Err(Broken::Work(steps, most)) } else { Ok(()) }
    }
}

/// With the defect `play` breaks a bound of the kind that `broken` tells, and without it none.
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
