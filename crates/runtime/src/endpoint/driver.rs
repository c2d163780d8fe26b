//! The driver task: receives, handles timers, sends, then sleeps.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::socket::RecvBatch;
use super::state::{EndpointState, Shared};

/// Interval between two polls of the interfaces.
const LOOK: Duration = Duration::from_millis(500);
/// Delay of the next poll after the system refused to send.
const SOON: Duration = Duration::from_millis(50);

/// Longest wait for a woken reader. A safety bound: readers usually run within microseconds.
const READING: Duration = Duration::from_millis(1);

/// Rounds of receiving and sending before the task yields.
const ROUNDS: usize = 8;

/// Drives an endpoint until it is closed and its last association has ended.
pub struct Driver {
    shared: Arc<Shared>,
    rows: RecvBatch,
    alarm: Pin<Box<Sleep>>,
    /// When to poll the interfaces next.
    watch: Pin<Box<Sleep>>,
    /// Readers were woken, and nothing has been sent since.
    waits: bool,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let alarm = Box::pin(tokio::time::sleep(Duration::ZERO));
        let watch = Box::pin(tokio::time::sleep(LOOK));
        Self { shared, rows: RecvBatch::default(), alarm, watch, waits: false }
    }
}

/// Polls the interfaces when it is time to.
fn look_around(core: &mut EndpointState, watch: &mut Pin<Box<Sleep>>, context: &mut Context<'_>) {
    if !core.is_watching() {
        return;
    }
    if std::mem::take(&mut core.suspicious) {
        let soon = Instant::now() + SOON;
        if watch.deadline() > soon {
            watch.as_mut().reset(soon);
        }
    }
    while watch.as_mut().poll(context).is_ready() {
        let now = core.clock.now();
        core.look_around(now);
        watch.as_mut().reset(Instant::now() + LOOK);
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { shared, rows, alarm, watch, waits } = &mut *self;
        let mut core = shared.lock();
        look_around(&mut core, watch, context);
        let (mut busy, mut pausing) = (false, false);
        for _ in 0..ROUNDS {
            busy = false;
            for i in 0..core.sockets.len() {
                if core.sockets[i].receive(context, rows).is_ready() {
                    busy = true;
                    let now = core.clock.now();
                    core.take_rows(now, i, rows);
                }
                let _ = core.sockets[i].flush(context);
            }
            let now = core.clock.now();
            core.expire(now);
            // Readers wake the driver once they have read.
            pausing |= !*waits && core.let_read();
            if !pausing {
                core.drain(now, shared);
                *waits = false;
            }
            if !busy {
                break;
            }
        }
        *waits |= pausing;
        // Flush every socket: only a flush registers this task to be woken when a full socket takes data again. A new
        // socket has not been registered yet.
        for socket in &mut core.sockets {
            let _ = socket.flush(context);
        }
        if let Some(tap) = &mut core.tap {
            tap.rest();
        }
        core.driver = Some(context.waker().clone());
        if core.closing && core.count() == 0 {
            return Poll::Ready(());
        }
        if core.suspicious {
            // The poll is due earlier than the timer above.
            look_around(&mut core, watch, context);
        }
        let blocked = core.sockets.iter().any(super::socket::Socket::is_blocked);
        // A socket that still has datagrams was not asked to wake this task: that happens only when it is empty.
        if busy || core.eager || !pausing && !core.dirty.is_empty() && !blocked {
            context.waker().wake_by_ref();
        }
        let due = core.next_deadline().map(|at| Instant::from_std(core.clock.instant(at)));
        let latest = pausing.then(|| Instant::now() + READING);
        if let Some(at) = due.into_iter().chain(latest).min() {
            if alarm.deadline() != at || alarm.is_elapsed() {
                alarm.as_mut().reset(at);
            }
            if alarm.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}
