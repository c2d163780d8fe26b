//! Schedules when an endpoint polls the interfaces of the machine.
//!
//! ```text
//!   the system reports a change          after 50 ms: changes come in groups
//!   the system refuses to send           after 50 ms
//!   an association starts following      after 50 ms
//!   an action must be retried            after 0.5 s, then with a doubled delay each time, at most 30 s
//!   otherwise                            every 30 s; without notifications of the system every 0.5 s
//! ```
//!
//! Notifications are used on Linux only. They arrive on a socket for each shard of an endpoint, which a system can
//! forbid. The socket costs a descriptor, and nothing else until something changes.

use std::io;
use std::task::{Context, Poll};

use ropewalk_base::{Duration, Time};

/// Interval of polls without notifications, and the delay of the first poll: an interface may have changed after the
/// sockets were opened and before notifications were enabled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of polls with notifications. It limits the effect of a missed notification.
const SAFETY_INTERVAL: Duration = Duration::from_secs(30);
/// Delay of a poll after a change or a refusal.
const DELAY: Duration = Duration::from_millis(50);

/// The schedule of polls.
#[derive(Debug)]
struct Schedule {
    due: Time,
    interval: Duration,
    /// Delay of the next retry.
    retry: Duration,
}

impl Schedule {
    fn new(now: Time, notified: bool) -> Self {
        let interval = if notified { SAFETY_INTERVAL } else { POLL_INTERVAL };
        Self { due: now + POLL_INTERVAL, interval, retry: POLL_INTERVAL }
    }

    /// Schedules a poll soon.
    fn hurry(&mut self, now: Time) {
        self.due = self.due.min(now + DELAY);
    }

    /// Handles a reported change.
    fn on_notice(&mut self, now: Time) {
        self.hurry(now);
        self.retry = POLL_INTERVAL;
    }

    /// Handles the loss of notifications.
    fn on_lost(&mut self, now: Time) {
        self.interval = POLL_INTERVAL;
        self.due = self.due.min(now + POLL_INTERVAL);
    }

    /// Schedules the next poll after one.
    fn on_polled(&mut self, now: Time, outcome: PollOutcome) {
        let mut due = now + self.interval;
        if outcome.retry {
            due = due.min(now + self.retry);
            self.retry = (self.retry * 2).min(SAFETY_INTERVAL);
        } else {
            self.retry = POLL_INTERVAL;
        }
        self.due = outcome.again.map_or(due, |again| due.min(again.max(now + DELAY)));
    }
}

/// What remains to be done after a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollOutcome {
    /// An action failed and may succeed later.
    pub retry: bool,
    /// When the next action is due even without a change.
    pub again: Option<Time>,
}

/// Decides when the interfaces are polled.
#[derive(Debug, Default)]
pub struct InterfaceWatch(Option<Running>);

#[derive(Debug)]
struct Running {
    schedule: Schedule,
    notices: Option<Notices>,
}

impl InterfaceWatch {
    /// Starts to watch the interfaces in the network namespace of this thread, unless already started.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(&mut self, now: Time) {
        self.0.get_or_insert_with(|| {
            let notices = Notices::open().ok();
            Running { schedule: Schedule::new(now, notices.is_some()), notices }
        });
    }

    /// Schedules a poll soon.
    pub fn hurry(&mut self, now: Time) {
        if let Some(Running { schedule, .. }) = &mut self.0 {
            schedule.hurry(now);
        }
    }

    /// Whether a poll is due. Registers the task to be woken when the system reports a change.
    pub fn poll(&mut self, now: Time, context: &mut Context<'_>) -> bool {
        let Some(Running { schedule, notices }) = &mut self.0 else { return false };
        // If a poll is imminent, further changes need not wake the task.
        if schedule.due > now + DELAY || schedule.due <= now {
            match notices.as_ref().map(|notices| notices.poll(context)) {
                None | Some(Poll::Pending) => {}
                Some(Poll::Ready(Ok(()))) => schedule.on_notice(now),
                Some(Poll::Ready(Err(_))) => {
                    *notices = None;
                    schedule.on_lost(now);
                }
            }
        }
        schedule.due <= now
    }

    /// Schedules the next poll after one.
    pub fn on_polled(&mut self, now: Time, outcome: PollOutcome) {
        if let Some(Running { schedule, .. }) = &mut self.0 {
            schedule.on_polled(now, outcome);
        }
    }

    /// When the next poll is due. `None` before the watch has started.
    pub fn due(&self) -> Option<Time> {
        self.0.as_ref().map(|running| running.schedule.due)
    }
}

/// Notifications of the system.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Notices(crate::system::NetworkMonitor);

#[cfg(target_os = "linux")]
impl Notices {
    fn open() -> io::Result<Self> {
        crate::system::NetworkMonitor::open(crate::system::Changes::Interfaces).map(Self)
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_changed(context)
    }
}

/// Not supported on this system.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
enum Notices {}

#[cfg(not(target_os = "linux"))]
impl Notices {
    fn open() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn poll(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_group_of_changes_is_followed_by_one_poll_soon_after_the_first() {
        let mut schedule = Schedule::new(at(0), true);
        assert_eq!(
            schedule.due,
            at(500),
            "the first poll finds what changed before the notifications began"
        );
        schedule.on_polled(at(500), PollOutcome::default());
        assert_eq!(schedule.due, at(30_500));
        for now in [1000, 1020, 1040] {
            schedule.on_notice(at(now));
            assert_eq!(schedule.due, at(1050));
        }
        schedule.on_polled(at(1050), PollOutcome::default());
        schedule.hurry(at(31_040));
        assert_eq!(schedule.due, at(31_050), "a request does not postpone the poll that is due");
    }

    #[test]
    fn without_notifications_the_interfaces_are_polled_twice_a_second() {
        for lost in [false, true] {
            let mut schedule = Schedule::new(at(0), lost);
            schedule.on_polled(at(500), PollOutcome::default());
            if lost {
                schedule.on_lost(at(700));
                assert_eq!(schedule.due, at(1200));
                schedule.on_polled(at(1200), PollOutcome::default());
            }
            assert_eq!(schedule.due, at(if lost { 1700 } else { 1000 }));
        }
    }

    #[test]
    fn what_did_not_succeed_is_tried_again_less_and_less_often_until_something_changes() {
        let failed = PollOutcome { retry: true, again: None };
        let mut schedule = Schedule::new(at(0), true);
        let mut delays = Vec::new();
        for _ in 0..9 {
            let now = schedule.due;
            schedule.on_polled(now, failed);
            delays.push(schedule.due.since(now).as_nanos() / 1_000_000);
        }
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        let now = schedule.due;
        schedule.on_notice(now);
        schedule.on_polled(now, failed);
        assert_eq!(schedule.due.since(now), POLL_INTERVAL);
    }

    #[test]
    fn a_poll_that_is_due_at_a_certain_time_comes_then() {
        let mut schedule = Schedule::new(at(0), true);
        for (again, due) in [(at(1500), 1500), (at(501), 550), (at(60_000), 30_500)] {
            schedule.on_polled(at(500), PollOutcome { retry: false, again: Some(again) });
            assert_eq!(schedule.due, at(due));
        }
    }
}
