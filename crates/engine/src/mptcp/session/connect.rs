//! Opening a session: the first subflow with MP_CAPABLE, the others with MP_JOIN (RFC 8684, 3.1, 3.2), and
//! plain TCP if the peer does not support Multipath TCP (3.7).

use ropewalk_base::{PathId, Time};

use super::super::segment::{MpOption, Segment};
use super::super::subflow::{Opening, Phase};
use super::{CloseReason, Event, Session, State};

/// Unanswered SYNs after which the next path is tried.
const SYNS_PER_PATH: u32 = 2;

impl Session {
    /// Opens the session.
    pub(super) fn begin(&mut self, now: Time) {
        self.state = State::Opening;
        self.open_subflow(now, PathId(0), 0);
    }

    /// The token that identifies this end's session.
    const fn token_of(key: u64) -> u64 {
        key >> 32
    }

    fn opening(&self, now: Time, again: u32) -> Opening {
        let wait = self.config.rto.initial.saturating_mul(1 << again.min(10));
        Opening { due: now + wait.min(self.config.rto.max), again, since: now }
    }

    fn syn_option(&self, path: PathId) -> MpOption {
        match (self.handshake.multipath, self.state) {
            (false, _) => MpOption::None,
            (true, State::Established) => MpOption::Join {
                token: Self::token_of(self.handshake.peer_key),
                backup: self.sender.paths[path.index()].tx.config.cost > 1,
            },
            (true, _) => MpOption::Capable { key: self.handshake.local_key },
        }
    }

    fn open_subflow(&mut self, now: Time, path: PathId, again: u32) {
        let option = self.syn_option(path);
        let opening = self.opening(now, again);
        self.sender.paths[path.index()].phase = Phase::SynSent(opening);
        let syn = Segment { syn: true, acks: false, option, ..self.plain_ack(now, path) };
        self.control.queue.push_back((path, syn));
    }

    /// Opens the other subflows, after the first one is established.
    fn join_others(&mut self, now: Time) {
        if !(self.handshake.multipath && self.handshake.opens) {
            return;
        }
        for path in self.ids() {
            if self.sender.paths[path.index()].phase == Phase::Closed {
                self.open_subflow(now, path, 0);
            }
        }
    }

    /// Handles a segment with SYN.
    pub(super) fn on_syn(&mut self, now: Time, path: PathId, segment: &Segment) {
        let stamp = segment.stamps.map_or(0, |stamps| stamps.value);
        self.take_window(segment.data_ack.unwrap_or(0) + segment.window);
        match self.sender.paths[path.index()].phase {
            Phase::SynSent(opening) if segment.acks => {
                self.sender.paths[path.index()].received.on_syn(stamp);
                self.on_syn_ack(now, path, segment, opening);
            }
            Phase::Closed | Phase::SynReceived(_) if !segment.acks && !self.handshake.opens => {
                self.sender.paths[path.index()].received.on_syn(stamp);
                self.answer_syn(now, path, segment);
            }
            // The ACK that completed our part of the handshake was lost, so it is sent again.
            Phase::Open | Phase::SynReceived(_) if segment.acks => self.confirm(now, path),
            _ => {}
        }
    }

    fn answer_syn(&mut self, now: Time, path: PathId, segment: &Segment) {
        let option = match (segment.option, self.state) {
            (MpOption::Capable { key }, State::Closed | State::Opening)
                if self.config.multipath =>
            {
                self.handshake.peer_key = key;
                self.handshake.multipath = true;
                MpOption::Capable { key: self.handshake.local_key }
            }
            // On a faster path it may arrive before the third step of the first subflow.
            (MpOption::Join { token, .. }, State::Established | State::Opening)
                if self.handshake.multipath
                    && token == Self::token_of(self.handshake.local_key) =>
            {
                MpOption::Join { token, backup: false }
            }
            (MpOption::Join { .. }, _) => {
                // RFC 8684, 3.2: an unknown token is answered with a reset.
                let reset = Segment { rst: true, ..self.plain_ack(now, path) };
                self.control.queue.push_back((path, reset));
                return;
            }
            (_, State::Closed | State::Opening) => {
                self.handshake.multipath = false;
                MpOption::None
            }
            _ => return,
        };
        if self.state == State::Closed {
            self.state = State::Opening;
        }
        let opening = self.opening(now, 0);
        self.sender.paths[path.index()].phase = Phase::SynReceived(opening);
        self.send_syn_ack(now, path, option);
    }

    fn send_syn_ack(&mut self, now: Time, path: PathId, option: MpOption) {
        let answer = Segment { syn: true, option, ..self.plain_ack(now, path) };
        self.control.queue.push_back((path, answer));
    }

    fn on_syn_ack(&mut self, now: Time, path: PathId, segment: &Segment, opening: Opening) {
        let joins = self.state == State::Established;
        match segment.option {
            MpOption::Capable { key } if !joins => self.handshake.peer_key = key,
            MpOption::Join { .. } if joins => {}
            // RFC 8684, 3.2: without the option a subflow cannot join.
            _ if joins => {
                self.sender.paths[path.index()].end();
                return;
            }
            _ => self.handshake.multipath = false,
        }
        if opening.again == 0 {
            let round_trip = now.since(opening.since);
            self.sender.paths[path.index()].tx.rtt.sample(now, round_trip);
        }
        if joins {
            // RFC 8684, 3.2: no data before the peer has acknowledged the third step.
            let opening = self.opening(now, 0);
            self.sender.paths[path.index()].phase = Phase::SynReceived(opening);
        } else {
            self.on_open(now, path);
        }
        self.confirm(now, path);
    }

    /// Sends the third step of the handshake.
    fn confirm(&mut self, now: Time, path: PathId) {
        let option = match (self.handshake.multipath, self.sender.paths[path.index()].phase) {
            (false, _) => MpOption::None,
            (true, Phase::Open) => MpOption::Capable { key: self.handshake.local_key },
            (true, _) => {
                MpOption::Join { token: Self::token_of(self.handshake.peer_key), backup: false }
            }
        };
        let ack = Segment { option, ..self.plain_ack(now, path) };
        self.control.queue.push_back((path, ack));
    }

    /// Handles a segment with ACK and without SYN while the subflow is being opened.
    pub(super) fn on_third_step(&mut self, now: Time, path: PathId, segment: &Segment) {
        let Phase::SynReceived(opening) = self.sender.paths[path.index()].phase else { return };
        if opening.again == 0 && !self.handshake.opens {
            let round_trip = now.since(opening.since);
            self.sender.paths[path.index()].tx.rtt.sample(now, round_trip);
        }
        self.on_open(now, path);
        if matches!(segment.option, MpOption::Join { .. }) {
            // The fourth step.
            self.sender.paths[path.index()].received.make_due();
        }
    }

    fn on_open(&mut self, now: Time, path: PathId) {
        let subflow = &mut self.sender.paths[path.index()];
        subflow.phase = Phase::Open;
        subflow.tx.state.on_confirmed();
        subflow.tx.last_sent_at = now;
        self.sender.epoch += 1;
        if let Some(linux) = &mut self.receiver.linux {
            linux.on_open(path);
        }
        if self.state == State::Established {
            self.push_event(Event::Joined(path));
            return;
        }
        self.state = State::Established;
        self.push_event(Event::Connected { multipath: self.handshake.multipath });
        self.join_others(now);
    }

    /// Handles the expiry of a handshake timer.
    pub(super) fn on_opening_timer(&mut self, now: Time, path: PathId) {
        let subflow = &mut self.sender.paths[path.index()];
        let opening = match subflow.phase {
            Phase::SynSent(opening) | Phase::SynReceived(opening) => opening,
            _ => return,
        };
        let again = opening.again + 1;
        let joins = self.state == State::Established;
        if again > self.config.max_syn_retransmissions {
            subflow.end();
            if !joins {
                self.end(CloseReason::NoAnswer);
            }
            return;
        }
        match subflow.phase {
            Phase::SynSent(_)
                if !joins && self.handshake.multipath && again.is_multiple_of(SYNS_PER_PATH) =>
            {
                subflow.phase = Phase::Closed;
                let next = PathId::from_index((path.index() + 1) % self.sender.paths.len());
                self.open_subflow(now, next, again);
            }
            Phase::SynSent(_) => self.open_subflow(now, path, again),
            _ => {
                let since = opening.since;
                let next = Opening { since, ..self.opening(now, again) };
                self.sender.paths[path.index()].phase = Phase::SynReceived(next);
                if self.handshake.opens {
                    self.confirm(now, path);
                } else if joins {
                    let token = Self::token_of(self.handshake.local_key);
                    self.send_syn_ack(now, path, MpOption::Join { token, backup: false });
                } else {
                    let capable = MpOption::Capable { key: self.handshake.local_key };
                    let option = if self.handshake.multipath { capable } else { MpOption::None };
                    self.send_syn_ack(now, path, option);
                }
            }
        }
    }
}
