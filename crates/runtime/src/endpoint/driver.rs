//! The loop: what came, what is due, what may leave; then sleep.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep};

use super::core::Shared;
use super::socket::Rows;

/// Rounds before other tasks have their turn.
const ROUNDS: usize = 8;

/// Drives an endpoint until it is closed and its last association has ended.
pub struct Driver {
    shared: Arc<Shared>,
    rows: Rows,
    alarm: Pin<Box<Sleep>>,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let alarm = Box::pin(tokio::time::sleep(std::time::Duration::ZERO));
        Self { shared, rows: Rows::default(), alarm }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { shared, rows, alarm } = &mut *self;
        let mut core = shared.lock();
        for _ in 0..ROUNDS {
            let mut busy = false;
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
            core.drain(now, shared);
            if !busy {
                break;
            }
        }
        core.driver = Some(context.waker().clone());
        if core.closing && core.count() == 0 {
            return Poll::Ready(());
        }
        let blocked = core.sockets.iter().any(super::socket::Socket::is_blocked);
        if !core.dirty.is_empty() && !blocked {
            context.waker().wake_by_ref();
        }
        if let Some(at) = core.next_deadline() {
            let at = Instant::from_std(core.clock.instant(at));
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
