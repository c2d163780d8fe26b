//! Reduces the wake-ups of a tunnel's threads: they pause before they wait, while many packets pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use ropewalk_base::Duration;
use ropewalk_runtime::clock::Clock;
use ropewalk_tunnel::Moderation;

/// Factor by which a thread pauses longer while another one pauses: that one handles due work earlier.
const FURTHER_THREADS: u64 = 5;

/// Decides how long the threads of a runtime pause before they wait.
#[derive(Debug)]
pub struct ThreadModeration {
    clock: Clock,
    moderation: Mutex<Moderation>,
    /// Whether a thread pauses and will then poll sockets and timers.
    one_pauses: AtomicBool,
}

impl Default for ThreadModeration {
    fn default() -> Self {
        Self {
            clock: Clock::start(),
            moderation: Mutex::default(),
            one_pauses: AtomicBool::new(false),
        }
    }
}

impl ThreadModeration {
    /// Makes the threads of a runtime pause before they wait.
    pub fn moderate(self: Arc<Self>, runtime: &mut tokio::runtime::Builder) {
        runtime.on_thread_park(move || self.rest());
    }

    /// Pauses. One thread pauses briefly and then polls sockets and timers, so that nothing waits longer. If it were
    /// always the same thread, no thread would poll while that one waits for work from another one that polled last.
    fn rest(&self) {
        let pause = self.pause();
        if pause.is_zero() {
            return;
        }
        if self.one_pauses.swap(true, Ordering::AcqRel) {
            sleep(pause * FURTHER_THREADS);
        } else {
            sleep(pause);
            self.one_pauses.store(false, Ordering::Release);
        }
    }

    /// Records that an association has carried `packets` packets since the last call for it. `tolerable` is the
    /// longest pause that does not harm it.
    pub fn observe(&self, packets: u64, tolerable: Duration) {
        self.moderation.lock().observe(self.clock.now(), packets, tolerable);
    }

    /// How long a thread pauses now before it waits.
    pub fn pause(&self) -> Duration {
        self.moderation.lock().pause(self.clock.now())
    }
}

#[allow(clippy::disallowed_methods, reason = "the thread has nothing to do, and must not be woken")]
fn sleep(pause: Duration) {
    std::thread::sleep(std::time::Duration::from_nanos(pause.as_nanos()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_thread_pauses_longer_while_another_one_looks_soon_and_else_looks_soon_itself() {
        let moderation = ThreadModeration::default();
        let busy = || {
            while moderation.pause().is_zero() {
                moderation.observe(7, ms(2));
                sleep(ms(1));
            }
        };
        busy();
        moderation.one_pauses.store(true, Ordering::Relaxed);
        let begin = moderation.clock.now();
        moderation.rest();
        assert!(moderation.clock.now().since(begin) >= ms(2) * FURTHER_THREADS);
        assert!(moderation.one_pauses.load(Ordering::Relaxed), "the other one pauses still");
        moderation.one_pauses.store(false, Ordering::Relaxed);
        busy();
        let begin = moderation.clock.now();
        moderation.rest();
        assert!(moderation.clock.now().since(begin) >= ms(2));
        assert!(!moderation.one_pauses.load(Ordering::Relaxed), "the next one looks soon");
    }

    #[test]
    fn a_thread_that_has_nothing_to_do_is_woken_less_often() {
        let moderation = Arc::new(ThreadModeration::default());
        let mut builder = tokio::runtime::Builder::new_current_thread();
        moderation.clone().moderate(&mut builder);
        let runtime = builder.enable_time().build().unwrap();
        runtime.block_on(async {
            while moderation.pause().is_zero() {
                moderation.observe(7, ms(2));
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            let begin = moderation.clock.now();
            let mut woken = 0;
            while !moderation.pause().is_zero() {
                tokio::time::sleep(std::time::Duration::from_micros(100)).await;
                woken += 1;
            }
            let lasted = moderation.clock.now().since(begin);
            assert!(woken >= 1 && ms(2) * (woken - 1) <= lasted, "{woken} in {lasted}");
        });
    }
}
