//! Graceful shutdown (RFC 9260, 9.2).

use ropewalk_base::{PathId, Serial32, Time};
use smallvec::SmallVec;

use super::super::chunk::Chunk;
use super::super::gaps::GapList;
use super::state::Retry;
use super::{Association, CloseReason, State};
use crate::path::PathStatus;

impl Association {
    /// Starts a graceful shutdown: no more messages are accepted, and the association ends when all data
    /// is acknowledged.
    pub fn shutdown(&mut self, now: Time) {
        match self.state {
            State::Established => {
                self.state = State::ShutdownPending;
                self.sender.outstanding.shutting = true;
                self.cancel_requests();
            }
            State::Closed | State::CookieWait { .. } | State::CookieEchoed { .. } => {
                self.abort();
            }
            _ => {}
        }
        self.after_flush(now);
    }

    /// Continues the shutdown once nothing is outstanding.
    pub(super) fn after_flush(&mut self, now: Time) {
        if !self.is_flushed() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                let guard = now + self.config.rto.max * 5;
                self.state = State::ShutdownSent { t2: self.t2(now, 0), guard };
                self.push_shutdown(self.shutdown_path(0));
            }
            State::ShutdownReceived { path } => self.acknowledge_shutdown(now, path, 0),
            _ => {}
        }
    }

    fn t2(&self, now: Time, count: u32) -> Retry {
        let path = self.shutdown_path(count);
        Retry { at: now + self.sender.paths[path.index()].tx.rtt.rto(), count }
    }

    /// The path for transmission number `count` of SHUTDOWN or SHUTDOWN ACK. The first uses the path on
    /// which the peer's SHUTDOWN arrived (RFC 9260, 6.4), and each further one goes to the next active
    /// address (6.4.1): the peer may have lost an address that is still active here.
    fn shutdown_path(&self, count: u32) -> PathId {
        let first = match self.state {
            State::ShutdownReceived { path } | State::ShutdownAckSent { path, .. } => {
                self.sender.reply_path(path)
            }
            _ => self.sender.best_path(),
        };
        let active = |i: &usize| self.sender.paths[*i].tx.state.status() == PathStatus::Active;
        let others = (0..self.sender.paths.len()).filter(|i| *i != first.index()).filter(active);
        let all: SmallVec<[usize; 4]> = std::iter::once(first.index()).chain(others).collect();
        PathId::from_index(all[count as usize % all.len()])
    }

    fn push_shutdown(&mut self, path: PathId) {
        let cumulative = Serial32::wrap(self.receiver.buffer.cumulative());
        self.send_control(path, Chunk::Shutdown(cumulative));
    }

    /// RFC 9260, 9.2: DATA received in SHUTDOWN-SENT is answered with a SHUTDOWN immediately. The SACK,
    /// which is due as well, is sent in the same packet.
    pub(super) fn answer_with_shutdown(&mut self) {
        self.push_shutdown(self.sack_destination());
    }

    /// Processes the arrival of any packet of the peer. RFC 9260, 9.2: in SHUTDOWN-SENT the reception of
    /// any packet SHOULD clear the retransmission count and restart T2, so that the peer has time for all
    /// its queued data.
    #[inline]
    pub(super) fn on_packet_from_peer(&mut self, now: Time) {
        if matches!(self.state, State::ShutdownSent { .. }) {
            self.restart_t2(now);
        }
    }

    #[cold]
    fn restart_t2(&mut self, now: Time) {
        let fresh = self.t2(now, 0);
        self.control.errors = 0;
        if let State::ShutdownSent { t2, .. } = &mut self.state {
            *t2 = fresh;
        }
    }

    fn acknowledge_shutdown(&mut self, now: Time, from: PathId, count: u32) {
        self.state =
            State::ShutdownAckSent { t2: Retry { at: Time::FAR_FUTURE, count }, path: from };
        let fresh = self.t2(now, count);
        if let State::ShutdownAckSent { t2, .. } = &mut self.state {
            *t2 = fresh;
        }
        let path = self.shutdown_path(count);
        self.send_control(path, Chunk::ShutdownAck);
    }

    /// Processes a SHUTDOWN. Its cumulative TSN acknowledges data like that of a SACK.
    pub(super) fn on_shutdown(&mut self, now: Time, path: PathId, cumulative: Serial32) {
        match self.state {
            State::Established | State::ShutdownPending | State::ShutdownReceived { .. } => {
                self.state = State::ShutdownReceived { path };
                self.cancel_requests();
            }
            // Both ends have sent a SHUTDOWN: each acknowledges the other's.
            State::ShutdownSent { .. } => {
                self.acknowledge_shutdown(now, path, 0);
                return;
            }
            // The SHUTDOWN ACK was lost: send it again, on the path of the repeated SHUTDOWN.
            State::ShutdownAckSent { .. } => {
                let path = self.sender.reply_path(path);
                self.control.queue.push_once(path, self.handshake.peer_tag, Chunk::ShutdownAck);
                return;
            }
            _ => return,
        }
        let known = self.sender.outstanding.board.cumulative();
        let told = cumulative.unwrap_near(known);
        if told > known && told < self.sender.outstanding.board.next_tsn() {
            self.on_shutdown_cumulative(now, cumulative, told);
        }
        self.after_flush(now);
    }

    fn on_shutdown_cumulative(&mut self, now: Time, cumulative: Serial32, told: u64) {
        // A SHUTDOWN carries no window: the right edge of the last one stays.
        let left = self
            .sender
            .outstanding
            .peer_rwnd
            .saturating_sub(self.sender.outstanding.board.span_of(told));
        let window = left.min(u32::MAX as u64) as u32;
        let sack = super::super::chunk::Sack {
            cumulative,
            window,
            gaps: GapList::default(),
            duplicates: Vec::new(),
            data_packets: 0,
            number: None,
        };
        self.on_sack(now, sack);
    }

    pub(super) fn on_shutdown_ack(&mut self, path: PathId) {
        match self.state {
            State::ShutdownSent { .. } | State::ShutdownAckSent { .. } => {
                // RFC 9260, 6.10: a SHUTDOWN COMPLETE is alone in its packet. Nothing else is sent to a peer
                // that has finished (12.4).
                self.control.queue.clear();
                self.send_control(path, Chunk::SHUTDOWN_COMPLETE);
                self.close(CloseReason::Shutdown);
            }
            // RFC 9260, 8.4 (5): our SHUTDOWN COMPLETE was lost. The peer must not wait for it forever.
            State::Ended(_) => self.control.queue.push_once(
                path,
                self.handshake.peer_tag,
                Chunk::SHUTDOWN_COMPLETE,
            ),
            // RFC 9260, 8.5.1 E: before the association is established, a SHUTDOWN ACK is treated as out of
            // the blue (8.4 (5)).
            State::CookieWait { .. } | State::CookieEchoed { .. } => {
                let complete = Chunk::ShutdownComplete { reflected: true };
                self.control.queue.push_once(path, self.handshake.local_tag, complete);
            }
            _ => {}
        }
    }

    pub(super) fn on_shutdown_complete(&mut self) {
        // RFC 9260, 8.5.1 C: ignored in all states but SHUTDOWN-ACK-SENT.
        if matches!(self.state, State::ShutdownAckSent { .. }) {
            self.close(CloseReason::Shutdown);
        }
    }

    /// Handles the expiry of T2-shutdown or T5-shutdown-guard.
    pub(super) fn on_t2(&mut self, now: Time) {
        let count = match &self.state {
            State::ShutdownSent { guard, .. } if *guard <= now => {
                self.abort_with(super::super::cause::ErrorCause::USER);
                return;
            }
            State::ShutdownSent { t2, .. } | State::ShutdownAckSent { t2, .. } if t2.at <= now => {
                t2.count + 1
            }
            _ => return,
        };
        let path = self.shutdown_path(count - 1);
        self.sender.paths[path.index()].tx.rtt.back_off();
        self.note_path_error(now, path, true);
        let again = self.t2(now, count);
        match &mut self.state {
            State::ShutdownSent { t2, .. } => {
                *t2 = again;
                self.push_shutdown(self.shutdown_path(count));
            }
            State::ShutdownAckSent { path, .. } => {
                let from = *path;
                self.acknowledge_shutdown(now, from, count);
            }
            _ => {}
        }
    }
}
