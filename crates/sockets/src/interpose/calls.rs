//! Calls on sockets: attempts in critical sections, and waits between them.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use libc::c_int;

use crate::critical::Section;
use crate::errno::{Errno, Result};
use crate::inherited;
use crate::pair::Await;
use crate::process::{Found, current, note_use};
use crate::socket::{Attempted, Resumed, Socket, Stop, Wait};

/// Converts a panic into `EIO`: a defect of this library must not end the program's process.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Errno(libc::EIO)))
}

/// Runs work that never waits in a critical section.
pub fn protected<T: Copy>(work: impl FnOnce() -> Result<T> + Copy) -> Result<T> {
    let section = Section::enter();
    let result = guarded(work);
    section.leave();
    result
}

/// The result of one attempt.
#[derive(Clone, Copy)]
enum Step {
    Done(Result<isize>),
    /// The descriptor belongs to the C library.
    Other,
    Wait(Ticket),
}

/// Calls `attempt` with the socket of a descriptor until it has a result, and waits between attempts. Sets errno
/// and returns the result of the C function, or nothing if the descriptor belongs to the C library.
///
/// While it waits, the thread may be unwound: neither this frame nor those of its callers have destructors. Values
/// that the call owns meanwhile belong to the thread ([`PARKED`]).
pub fn call<T, E>(
    fd: c_int,
    attempt: impl Fn(&Arc<Socket>) -> std::result::Result<T, E> + Copy,
) -> Option<isize>
where
    T: TryInto<isize>,
    E: Into<Stop>,
{
    note_use();
    let before = Errno::last();
    let section = Section::enter();
    let mut step = first_step(fd, attempt);
    section.leave();
    loop {
        match step {
            Step::Other => return None,
            Step::Done(result) => return Some(super::returned(result)),
            Step::Wait(ticket) => {
                let waited = ticket.event.wait();
                before.set();
                let section = Section::enter();
                step = next_step(ticket, waited, attempt);
                section.leave();
            }
        }
    }
}

/// Waits for an outcome and ignores it.
pub fn wait_once(ticket: Option<Ticket>) {
    let Some(ticket) = ticket else { return };
    let _ = ticket.event.wait();
    let _ = protected(|| {
        drop(ticket.unpark());
        Ok(())
    });
}

fn first_step<T, E>(fd: c_int, attempt: impl Fn(&Arc<Socket>) -> std::result::Result<T, E>) -> Step
where
    T: TryInto<isize>,
    E: Into<Stop>,
{
    let found = guarded(|| {
        Ok(match current().find(fd) {
            Found::Other => Step::Other,
            Found::Inherited => return Err(inherited::refuse()),
            Found::Socket(socket) => outcome(attempt(&socket).map_err(E::into)),
        })
    });
    found.unwrap_or_else(|errno| Step::Done(Err(errno)))
}

fn next_step<T, E>(
    ticket: Ticket,
    waited: Result<()>,
    attempt: impl Fn(&Arc<Socket>) -> std::result::Result<T, E>,
) -> Step
where
    T: TryInto<isize>,
    E: Into<Stop>,
{
    let next = guarded(|| {
        Ok(match ticket.unpark().resume(waited)? {
            Resumed::Done => Step::Done(Ok(0)),
            Resumed::Wait(wait) => Step::Wait(Ticket::park(wait)),
            Resumed::Again(socket) => outcome(attempt(&socket).map_err(E::into)),
        })
    });
    next.unwrap_or_else(|errno| Step::Done(Err(errno)))
}

fn outcome<T: TryInto<isize>>(attempted: Attempted<T>) -> Step {
    match attempted {
        Ok(value) => Step::Done(Ok(value.try_into().unwrap_or(isize::MAX))),
        Err(Stop::Error(errno)) => Step::Done(Err(errno)),
        Err(Stop::Wait(wait)) => Step::Wait(Ticket::park(wait)),
    }
}

/// A waiting call and its event. It has no destructor.
#[derive(Clone, Copy)]
pub struct Ticket {
    event: Await,
    parked: *mut Wait,
}

/// Values owned by the waiting calls of a thread. If the thread ends during the wait, they are dropped with the
/// thread. There may be several, because a signal handler may wait too. Those that a handler leaves by `longjmp`
/// remain until the thread ends.
#[derive(Default)]
struct Parked(Vec<*mut Wait>);

thread_local! {
    static PARKED: RefCell<Parked> = RefCell::default();
}

impl Drop for Parked {
    fn drop(&mut self) {
        for parked in self.0.drain(..) {
            // SAFETY: `Ticket::park` has made the pointer, and no call of this thread uses it any longer.
            unsafe { Box::from_raw(parked) }.abandon();
        }
    }
}

impl Ticket {
    /// Transfers the values of a call to its thread.
    pub fn park(wait: Wait) -> Self {
        let event = wait.event();
        let parked = Box::into_raw(Box::new(wait));
        // At the end of the thread, its variables are gone, and it can no longer be cancelled.
        let _ = PARKED.try_with(|all| all.borrow_mut().0.push(parked));
        Self { event, parked }
    }

    /// Takes the values back.
    fn unpark(self) -> Wait {
        let _ = PARKED.try_with(|all| all.borrow_mut().0.retain(|other| *other != self.parked));
        // SAFETY: `park` has made the pointer, and each ticket is used once.
        *unsafe { Box::from_raw(self.parked) }
    }
}
