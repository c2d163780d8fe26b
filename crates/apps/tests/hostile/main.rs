//! Resource usage caused by a hostile peer: a counting allocator under the message handlers of the
//! applications.
//!
//! Each class of defect is also tested by removing the limit that prevents it: the test must then detect it.

mod files;
mod mux;
#[cfg(target_os = "linux")]
mod tunnel;

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cap::Cap;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// One test measures at a time: the allocator counts for all threads.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that are currently allocated.
fn allocated() -> u64 {
    ALLOCATOR.allocated() as u64
}

/// Bytes that were allocated since the program started, including freed ones: this shows copying.
fn allocated_in_all() -> u64 {
    ALLOCATOR.total_allocated() as u64
}

/// A deterministic sequence of pseudo-random numbers.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}
