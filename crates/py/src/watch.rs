//! Long-running work: it runs on another thread with the interpreter released, while the calling thread reports
//! progress and handles Ctrl-C.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::scope;
use std::time::Duration;

use pyo3::prelude::*;

/// Longest delay until Ctrl-C is honoured, and the interval of progress reports.
const INTERVAL: Duration = Duration::from_millis(50);

/// The payload by which work unwinds that is to stop.
struct Stopped;

/// What the calling thread and the work know of each other.
#[derive(Default)]
pub(crate) struct Watch {
    stop: AtomicBool,
    /// Bits of the completed share. The bits of floats that are not negative have the order of the floats.
    share: AtomicU64,
}

impl Watch {
    /// Whether the work is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Takes note of the completed share, 0 to 1; the share never decreases.
    pub(crate) fn set(&self, share: f64) {
        self.share.fetch_max(share.max(0.0).to_bits(), Ordering::Relaxed);
    }

    /// The same for work that cannot return early: it unwinds if it is to stop. No panic hook is called.
    pub(crate) fn set_or_stop(&self, share: f64) {
        if self.is_stopped() {
            resume_unwind(Box::new(Stopped));
        }
        self.set(share);
    }

    fn share(&self) -> f64 {
        f64::from_bits(self.share.load(Ordering::Relaxed))
    }
}

/// Runs `work`, and calls `progress` from time to time with the completed share, 0 to 1, and at the end with 1.
///
/// # Errors
/// The exception of a signal or of `progress`, which stops the work.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send,
) -> PyResult<T> {
    let report = |py: Python<'_>, share: f64| match &progress {
        Some(progress) => progress.call1(py, (share,)).map(|_| ()),
        None => Ok(()),
    };
    let watch = Watch::default();
    let (result, raised) = py.detach(|| {
        scope(|scope| {
            let (over, wait) = channel::<()>();
            let watch = &watch;
            let worker = scope.spawn(move || {
                // Ends with this thread, also after a panic.
                let _over = over;
                work(watch)
            });
            let mut raised = None;
            let mut reported = 0.0;
            while matches!(wait.recv_timeout(INTERVAL), Err(RecvTimeoutError::Timeout)) {
                let share = watch.share();
                let outcome = Python::attach(|py| {
                    py.check_signals()?;
                    if share > reported && raised.is_none() { report(py, share) } else { Ok(()) }
                });
                reported = share;
                if let Err(error) = outcome {
                    watch.stop.store(true, Ordering::Relaxed);
                    raised.get_or_insert(error);
                }
            }
            (worker.join(), raised)
        })
    });
    match (result, raised) {
        (Ok(_), Some(raised)) => Err(raised),
        (Err(payload), Some(raised)) if has_stopped(&payload) => Err(raised),
        (Err(panic), _) => resume_unwind(panic),
        (Ok(done), None) => report(py, 1.0).map(|()| done),
    }
}

fn has_stopped(payload: &Box<dyn Any + Send>) -> bool {
    payload.is::<Stopped>()
}
