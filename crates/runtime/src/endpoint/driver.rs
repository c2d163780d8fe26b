//! The loop: what came, what is due, what may leave; then sleep.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::socket::RecvBatch;
use super::state::{EndpointState, Shared};

/// How often the interfaces are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How soon after the system refused to send.
const SOON: Duration = Duration::from_millis(50);

/// Longest wait for a reader who has been woken: a safety, they come in microseconds.
const READING: Duration = Duration::from_millis(1);

/// Rounds before other tasks have their turn.
const ROUNDS: usize = 8;

/// Drives an endpoint until it is closed and its last association has ended.
pub struct Driver {
    shared: Arc<Shared>,
    rows: RecvBatch,
    alarm: Pin<Box<Sleep>>,
    /// When to look at the interfaces.
    watch: Pin<Box<Sleep>>,
    /// Readers were woken, and nothing has left since.
    waits: bool,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let alarm = Box::pin(tokio::time::sleep(Duration::ZERO));
        let watch = Box::pin(tokio::time::sleep(LOOK));
        Self { shared, rows: RecvBatch::default(), alarm, watch, waits: false }
    }
}

/// Looks at the interfaces when it is time to.
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
            // They have us go on once they have read.
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
        // What a socket has not taken (a new one is not known to take anything yet) waits until it
        // does: only a flush registers us for that.
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
            // Sooner than what was asked for above.
            look_around(&mut core, watch, context);
        }
        let blocked = core.sockets.iter().any(super::socket::Socket::is_blocked);
        // A socket that still had something has not been asked to wake us: it does so only when it has nothing.
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
