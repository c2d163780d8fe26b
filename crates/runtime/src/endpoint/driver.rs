//! The driver task: receives, handles timers, sends, then sleeps.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::observer::Publisher;
use super::responder::HandshakeResponder;
use super::shards::Misdeliveries;
use super::socket::RecvBatch;
use super::state::{EndpointState, Shared};

/// Longest wait for a woken reader. A safety bound: readers usually run within microseconds.
const READER_WAIT_MAX: Duration = Duration::from_millis(1);

/// Rounds of receiving and sending before the task yields.
const ROUNDS_BEFORE_YIELD: usize = 8;

/// Drives an endpoint until it is closed and its last association has ended.
pub struct Driver {
    shared: Arc<Shared>,
    batch: RecvBatch,
    /// Datagrams from other shards. `None` without shards.
    misdeliveries: Option<Misdeliveries>,
    deadline_timer: Pin<Box<Sleep>>,
    /// Readers were woken, and nothing has been sent since.
    awaits_readers: bool,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, misdeliveries: Option<Misdeliveries>) -> Self {
        let deadline_timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        let batch = RecvBatch::default();
        Self { shared, batch, misdeliveries, deadline_timer, awaits_readers: false }
    }
}

/// Polls the interfaces if a poll is due.
fn poll_interfaces(state: &mut EndpointState, context: &mut Context<'_>) {
    if !state.monitors_interfaces() {
        return;
    }
    let now = state.clock.now();
    state.interface_watch.start(now);
    if std::mem::take(&mut state.interface_poll_due) {
        state.interface_watch.hurry(now);
    }
    while state.interface_watch.poll(now, context) {
        let outcome = state.poll_interfaces(now);
        state.interface_watch.on_polled(now, outcome);
    }
}

/// Handles ICMP messages about INITs that a socket has sent. Returns whether there were any.
fn take_refusals(state: &mut EndpointState, socket: usize, context: &mut Context<'_>) -> bool {
    let Poll::Ready(refusals) = state.sockets[socket].poll_refusals(context) else { return false };
    let now = state.clock.now();
    refusals.into_iter().for_each(|refusal| state.on_refusal(now, refusal));
    true
}

/// Schedules a wake-up at the next deadline, or soon if the task waits for readers.
fn wake_at_deadline(
    state: &EndpointState,
    awaits_readers: bool,
    timer: &mut Pin<Box<Sleep>>,
    context: &mut Context<'_>,
) {
    let snapshot = state.publisher.as_ref().and_then(Publisher::due);
    let interfaces = state.interface_watch.due();
    let deadline = state.next_deadline().into_iter().chain(snapshot).chain(interfaces).min();
    let due = deadline.map(|at| Instant::from_std(state.clock.instant(at)));
    let latest = awaits_readers.then(|| Instant::now() + READER_WAIT_MAX);
    let Some(at) = due.into_iter().chain(latest).min() else { return };
    if timer.deadline() != at || timer.is_elapsed() {
        timer.as_mut().reset(at);
    }
    if timer.as_mut().poll(context).is_ready() {
        context.waker().wake_by_ref();
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { shared, batch, misdeliveries, deadline_timer, awaits_readers } = &mut *self;
        let mut state = shared.lock();
        if state.ports_changed {
            state.update_ports();
        }
        poll_interfaces(&mut state, context);
        let (mut busy, mut pausing) = (false, false);
        for _ in 0..ROUNDS_BEFORE_YIELD {
            busy = false;
            state.watch_refusals();
            for i in 0..state.sockets.len() {
                busy |= take_refusals(&mut state, i, context);
                if state.sockets[i].receive(context, batch).is_ready() {
                    busy = true;
                    let now = state.clock.now();
                    state.receive_batch(now, i, batch);
                }
                let _ = state.sockets[i].flush(context);
            }
            let now = state.clock.now();
            if let Some(queue) = misdeliveries {
                busy |= state.take_misdelivered(now, queue, context);
            }
            state.expire(now);
            // Readers wake the driver once they have read.
            pausing |= !*awaits_readers && state.wake_readers();
            if !pausing {
                state.drain(now, shared);
                *awaits_readers = false;
            }
            if !busy {
                break;
            }
        }
        *awaits_readers |= pausing;
        // Flush every socket: only a flush registers this task to be woken when a full socket accepts data again. A
        // new socket has not been registered yet.
        for socket in &mut state.sockets {
            let _ = socket.flush(context);
        }
        if let Some(capture) = &mut state.capture {
            capture.flush();
        }
        let now = state.clock.now();
        state.publish_if_due(now);
        if state.responder.as_ref().is_some_and(HandshakeResponder::has_refused) {
            shared.signals.refused.notify_one();
        }
        state.driver = Some(context.waker().clone());
        if let Some(publisher) = &state.publisher {
            publisher.on_sleep(context.waker());
        }
        if state.closing && state.count() == 0 {
            return Poll::Ready(());
        }
        if state.interface_poll_due {
            poll_interfaces(&mut state, context);
        }
        let blocked = state.sockets.iter().any(super::socket::Socket::is_blocked);
        // A socket that still has datagrams has not registered this task: registration happens only when the
        // socket is empty.
        if busy || state.has_more_to_send || !pausing && !state.ready.is_empty() && !blocked {
            context.waker().wake_by_ref();
        }
        wake_at_deadline(&state, pausing, deadline_timer, context);
        Poll::Pending
    }
}
