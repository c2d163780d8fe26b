//! What the descriptor shows: whether the socket is readable and writable, and whether its association was lost.

use ropewalk_runtime::endpoint::CloseReason;

use super::{Link, Phase, Socket, State, Style};
use crate::errno::{Result, of_close};
use crate::process::current;

/// How a descriptor shows the loss of its association, or that none could be established: POLLHUP, and POLLERR
/// until the program has received the error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Nothing was lost.
    None,
    /// The program has not received the error.
    Error,
    /// The program has received the error.
    Told,
}

impl Socket {
    /// Makes the descriptor readable again if another process has consumed the byte that makes it readable.
    pub(super) fn show_again(&self) {
        let state = &*self.lock();
        if state.shows_readable && !state.finished && !self.pair.is_readable() {
            self.pair.set_readable();
        }
    }

    /// Makes the descriptor readable and writable as the state requires.
    pub(super) fn show(&self, state: &mut State) {
        // First, so that a program that wakes up sees all of it.
        self.show_loss(state);
        let over = state.is_over(self.style);
        let readable = over
            || state.error.is_some()
            || !state.accept_queue.is_empty()
            || !state.ready.is_empty()
            || state.next_item().is_some();
        if readable != state.shows_readable {
            state.shows_readable = readable;
            if readable { self.pair.set_readable() } else { self.pair.clear_readable() }
        }
        if state.is_shut_for_reading(self.style) && !std::mem::replace(&mut state.finished, true) {
            self.pair.finish();
        }
        // As in Linux (`sctp_poll`), a socket without an association is not writable. One that could not connect
        // reports its error.
        let connected =
            state.phase == Phase::Connected || state.phase == Phase::Idle && state.error.is_some();
        let unconnected = self.style == Style::OneToOne && !connected;
        let full = unconnected || state.links.values().any(|link| link.full);
        if full != state.shows_full {
            state.shows_full = full;
            if full { self.pair.fill() } else { self.pair.drain() }
        }
    }

    /// Makes the descriptor show that the association was lost.
    fn show_loss(&self, state: &mut State) {
        let pending = state.error.is_some();
        match state.loss {
            Loss::None
                if state.is_lost(self.style)
                    || state.is_shut(self.style)
                    || state.is_refused(self.style) =>
            {
                self.pair.hang_up(pending);
                state.finished = true;
                state.loss = if pending { Loss::Error } else { Loss::Told };
            }
            Loss::Error if !pending => {
                self.pair.clear_error();
                state.loss = Loss::Told;
            }
            _ => {}
        }
    }

    /// Prepares a one-to-one socket that could not connect for its next use. Its descriptor has shown the refusal as a
    /// descriptor of TCP does, until now.
    ///
    /// # Errors
    /// Errors of the system, for example if there are no more descriptors.
    pub(super) fn forget_refusal(&self) -> Result<()> {
        let shows_refusal = |state: &State| state.phase == Phase::Idle && state.loss != Loss::None;
        if self.style == Style::OneToMany || !shows_refusal(&self.lock()) {
            return Ok(());
        }
        current().with_descriptors(self, |fds| {
            let state = &mut *self.lock();
            if shows_refusal(state) && !state.closed {
                self.pair.renew(fds)?;
                (state.error, state.loss, state.finished) = (None, Loss::None, false);
                (state.shows_readable, state.shows_full) = (false, false);
                self.show(state);
            }
            Ok(())
        })
    }
}

impl State {
    /// Whether nothing more arrives. There may still be unread data.
    pub(super) fn is_shut_for_reading(&self, style: Style) -> bool {
        let is_connection = style == Style::OneToOne && self.phase == Phase::Connected;
        let is_shut = || self.links.values().all(|link| link.peer_shut || link.ended);
        self.read_shut || is_connection && is_shut()
    }

    /// Whether nothing more arrives and everything has been read.
    pub(super) fn is_over(&self, style: Style) -> bool {
        let has_more = |link: &Link| link.association.can_receive();
        self.is_shut_for_reading(style)
            && self.inbox.is_empty()
            && (self.read_shut || !self.links.values().any(has_more))
    }

    /// Whether the association of a one-to-one socket has ended after a SHUTDOWN of this end alone. As in Linux
    /// (`sctp_wait_for_packet`), a call that would wait then fails, because the end of stream is the peer's SHUTDOWN.
    pub(super) fn has_shut_down_alone(&self) -> bool {
        let is_alone = |link: &Link| link.ended && !link.peer_shut;
        self.write_shut && !self.read_shut && self.links.values().all(is_alone)
    }

    /// Whether everything from the peer has arrived, and everything for it, when the association ended.
    pub(super) fn has_clean_end(&self) -> bool {
        let is_clean = |link: &Link| link.close_reason() == Some(CloseReason::Shutdown);
        self.links.values().any(|link| link.ended && is_clean(link))
    }

    /// Whether the connection is shut for reading and writing.
    fn is_shut(&self, style: Style) -> bool {
        self.write_shut && self.is_shut_for_reading(style)
    }

    /// Whether the association of a one-to-one socket has ended without a shutdown.
    fn is_lost(&self, style: Style) -> bool {
        let lost = |link: &Link| {
            link.ended && link.close_reason().and_then(|r| of_close(r, true)).is_some()
        };
        style == Style::OneToOne && self.links.values().any(lost)
    }

    /// Whether a one-to-one socket could not connect, and no call returns the error.
    fn is_refused(&self, style: Style) -> bool {
        let is_idle = style == Style::OneToOne && self.phase == Phase::Idle;
        is_idle && self.error.is_some() && !self.awaits_outcome
    }
}
