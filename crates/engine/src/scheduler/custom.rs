//! Custom schedulers: schedulers that are not built in.

use core::fmt;

use super::{IllegalDecision, Schedule};

/// A user-defined scheduler, used through [`Scheduler::Custom`](super::Scheduler::Custom).
///
/// Implement [`Schedule`] for the decisions and this trait for the name and the copy. The engine checks each
/// decision with [`check`](super::check) before it acts, so a custom scheduler can be wrong but not harmful.
///
/// # Examples
/// A scheduler that prefers the least loaded path, by share of its window in use:
///
/// ```
/// use ropewalk_engine::scheduler::{
///     CustomScheduler, Decision, PathView, Reason, Schedule, Scheduler, SentReport, View,
/// };
///
/// #[derive(Clone, Debug, Default)]
/// struct LeastLoaded {
///     chunks: u64,
/// }
///
/// /// Window in use, in thousandths. Integers give the same result on every machine.
/// fn load(path: &PathView) -> u64 {
///     path.in_flight.saturating_mul(1000) / path.window.max(1)
/// }
///
/// impl Schedule for LeastLoaded {
///     fn decide(&mut self, view: &View<'_>) -> Decision {
///         match view.open_for_head().min_by_key(|p| load(p)) {
///             Some(path) => Decision::send(path.id, 0, Reason::Custom),
///             None => view.nobody(),
///         }
///     }
///
///     fn on_sent(&mut self, _sent: &SentReport) {
///         self.chunks += 1;
///     }
/// }
///
/// impl CustomScheduler for LeastLoaded {
///     fn name(&self) -> &str {
///         "least-loaded"
///     }
///
///     fn clone_box(&self) -> Box<dyn CustomScheduler> {
///         Box::new(self.clone())
///     }
/// }
///
/// let scheduler = Scheduler::Custom(Box::new(LeastLoaded::default()));
/// assert_eq!(scheduler.name(), "least-loaded");
/// ```
pub trait CustomScheduler: Schedule + Send {
    /// The name, for reports.
    fn name(&self) -> &str;

    /// A copy with the same state and behaviour, so that an engine can be forked for a what-if run.
    fn clone_box(&self) -> Box<dyn CustomScheduler>;

    /// Called once before the first decision by the driver of the engine, with the names of the paths in the
    /// order of their identifiers.
    fn on_paths(&mut self, _names: &[&str]) {}

    /// Called when the engine did not carry out the last decision, because it breaks a rule.
    fn on_refused(&mut self, _why: &IllegalDecision) {}

    /// The reason why the scheduler cannot continue, if there is one. From then on it returns `Blocked`,
    /// and a simulation ends with this text.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Whether the decision is still pending, because it is made outside the engine and may take long. While
    /// this holds after [`Schedule::decide`], the engine ignores the returned decision, stops, and continues
    /// from there when it is next polled for a packet. Time must not advance in between.
    fn is_thinking(&self) -> bool {
        false
    }
}

impl Clone for Box<dyn CustomScheduler> {
    fn clone(&self) -> Self {
        self.as_ref().clone_box()
    }
}

impl fmt::Debug for Box<dyn CustomScheduler> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{path_view, view};
    use super::super::{Decision, Reason, Scheduler, View};
    use super::*;

    /// Blocks after a number of decisions, so that a copy can be distinguished from its original.
    #[derive(Clone)]
    struct Countdown(u32);

    impl Schedule for Countdown {
        fn decide(&mut self, view: &View<'_>) -> Decision {
            match (self.0.checked_sub(1), view.open().next()) {
                (Some(left), Some(path)) => {
                    self.0 = left;
                    Decision::send(path.id, 0, Reason::Custom)
                }
                _ => view.nobody(),
            }
        }

        fn resends_when_blocked(&self) -> bool {
            true
        }
    }

    impl CustomScheduler for Countdown {
        fn name(&self) -> &str {
            "countdown"
        }

        fn clone_box(&self) -> Box<dyn CustomScheduler> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn a_custom_scheduler_decides_is_copied_and_is_named_like_a_built_in_one() {
        let paths = [path_view(0)];
        let mut custom = Scheduler::Custom(Box::new(Countdown(2)));
        let sent = Decision::send(ropewalk_base::PathId(0), 0, Reason::Custom);
        assert_eq!(custom.decide(&view(&paths)), sent);
        let mut fork = custom.clone();
        for scheduler in [&mut custom, &mut fork] {
            assert_eq!(scheduler.decide(&view(&paths)), sent);
            assert_ne!(scheduler.decide(&view(&paths)), sent, "the second was the last");
        }
        assert_eq!(custom.name(), "countdown");
        assert!(custom.resends_when_blocked());
        assert_eq!(format!("{custom:?}"), "Custom(\"countdown\")");
    }
}
