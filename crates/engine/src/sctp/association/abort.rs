//! End of an association without a shutdown: aborts by this end, and the reason of aborts by the peer (RFC
//! 9260, 9.1).

use bytes::Bytes;
use ropewalk_base::Time;

use super::super::cause::{AbortCause, ErrorCause};
use super::super::chunk::Chunk;
use super::{Association, CloseReason, Event, State};

impl Association {
    /// Ends the association immediately with an ABORT to the peer (RFC 9260, 9.1).
    pub fn abort(&mut self) {
        self.abort_with(ErrorCause::USER);
    }

    /// Like [`Association::abort`], with a reason for the peer's user (RFC 9260, 3.3.10.12 and 11.1.4),
    /// truncated to [`Association::ABORT_REASON_LIMIT`] bytes.
    pub fn abort_because(&mut self, reason: &[u8]) {
        let reason = &reason[..reason.len().min(Self::ABORT_REASON_LIMIT)];
        self.abort_with(ErrorCause::UserAbort(Bytes::copy_from_slice(reason)));
    }

    /// Aborts the association for lack of memory (RFC 9260, 3.3.10.4) and drops all received data, including
    /// messages that could be read.
    pub fn abort_out_of_resource(&mut self, now: Time) {
        self.abort_with(ErrorCause::OutOfResource);
        self.receiver.discard(now);
        if let Some(reconfiguration) = &mut self.control.reconfiguration {
            reconfiguration.on_discard();
        }
    }

    /// Maximum length of the reason of a user-initiated abort, bytes: it fits into one packet on any
    /// path.
    pub const ABORT_REASON_LIMIT: usize = 400;

    /// The reason that the peer's user gave for aborting the association, if any.
    pub fn peer_abort_reason(&self) -> Option<&Bytes> {
        self.handshake.peer.abort_reason.as_deref()
    }

    #[cold]
    pub(super) fn abort_with(&mut self, cause: ErrorCause) {
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        let told = AbortCause::from(&cause);
        self.send_only(Chunk::abort(cause));
        self.close(CloseReason::Aborted(told));
    }

    /// Sends this chunk in place of all queued control chunks, if the peer's tag is known.
    fn send_only(&mut self, last: Chunk) {
        if self.handshake.peer_tag != 0 {
            self.control.queue.clear();
            let path = self.sender.best_path();
            self.send_control(path, last);
        }
    }

    /// Ends the association because the peer does not answer. Unless the association is still being set
    /// up, an ABORT is sent in case the peer still receives.
    #[cold]
    pub(super) fn give_up(&mut self) {
        let begins = matches!(self.state, State::CookieWait { .. } | State::CookieEchoed { .. });
        if !begins && !matches!(self.state, State::Ended(_)) {
            self.send_only(Chunk::Abort { reflected: false, causes: Vec::new() });
        }
        self.close(CloseReason::Unreachable);
    }

    #[cold]
    pub(super) fn close(&mut self, reason: CloseReason) {
        if !matches!(self.state, State::Ended(_)) {
            self.state = State::Ended(reason);
            self.sender.stop();
            self.receiver.acks.stop();
            self.control.heartbeats.stop();
            self.stop_requests();
            self.push_event(Event::Closed(reason));
        }
    }
}
