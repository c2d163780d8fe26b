//! Stream reconfiguration (RFC 6525): the requests of this end, and the effects of their results.

mod peer_requests;

use ropewalk_base::{Duration, PathId, Serial32, StreamId, Time};

use super::data::Reports;
use super::{Association, Event, State};
use crate::path::PathStatus;
use crate::sctp::cause::ErrorCause;
use crate::sctp::chunk::Chunk;
use crate::sctp::extension_chunk::RawParameter;
use crate::sctp::extensions::Extensions;
use crate::sctp::extensions::stream_reconfiguration::parameters::{
    Code, Parameter, Request, Response, read_all,
};
use crate::sctp::extensions::stream_reconfiguration::requester::{Wish, chunk_of};
use crate::sctp::extensions::stream_reconfiguration::{
    AcceptedRequests, LISTED_LIMIT, Outcome, Reconfiguration, ReconfigurationError, Reconfigured,
    Streams,
};

/// Which streams [`Association::reset_streams`] resets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResetDirection {
    /// Streams on which this end sends.
    Outgoing,
    /// Streams on which the peer sends. This end requests the reset from the peer.
    Incoming,
    /// Both.
    Both,
}

/// The outcome of a request that was not performed although the peer reports no error.
const fn not_done(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Performed => Outcome::Failed,
        other => other,
    }
}

const fn outcome_of(code: Code) -> Outcome {
    match code {
        Code::NothingToDo | Code::Performed => Outcome::Performed,
        Code::Denied => Outcome::Denied,
        _ => Outcome::Failed,
    }
}

impl Association {
    /// Whether streams can be reset and added: both ends have listed RE-CONFIG. False before the handshake.
    pub const fn reconfigures(&self) -> bool {
        self.handshake.peer.agreed.has(Extensions::RE_CONFIG)
    }

    /// Requests that streams start over: their next message is the first one again, with stream sequence
    /// number 0. An empty list means all streams. Each stream gets [`Event::Reconfigured`] when its reset
    /// has ended.
    ///
    /// Messages sent earlier are delivered before the reset, which waits until the peer has acknowledged
    /// them. Messages sent later on an outgoing stream wait until the reset has ended, and count as
    /// queued.
    ///
    /// # Errors
    /// [`ReconfigurationError`]; nothing is requested then.
    pub fn reset_streams(
        &mut self,
        streams: &[StreamId],
        direction: ResetDirection,
    ) -> Result<(), ReconfigurationError> {
        let (outgoing, incoming) = match direction {
            ResetDirection::Outgoing => (true, false),
            ResetDirection::Incoming => (false, true),
            ResetDirection::Both => (true, true),
        };
        let streams = Streams::of(streams);
        let known = (!outgoing || streams.exist(self.outbound_streams()))
            && (!incoming || streams.exist(self.inbound_streams()));
        if !known {
            return Err(ReconfigurationError::NoSuchStream);
        }
        self.request(Wish::Reset { outgoing, incoming, streams, answers: None })
    }

    /// Requests further streams: `outgoing` ones on which this end sends, and `incoming` ones on which
    /// the peer sends. [`Event::Reconfigured`] follows for each direction.
    ///
    /// # Errors
    /// [`ReconfigurationError`]; nothing is requested then.
    pub fn add_streams(
        &mut self,
        outgoing: u16,
        incoming: u16,
    ) -> Result<(), ReconfigurationError> {
        if outgoing == 0 && incoming == 0 {
            return Err(ReconfigurationError::Empty);
        }
        let sums = [(self.outbound_streams(), outgoing), (self.inbound_streams(), incoming)];
        if sums.iter().any(|(known, more)| known.checked_add(*more).is_none()) {
            return Err(ReconfigurationError::TooManyStreams);
        }
        self.request(Wish::Add { outgoing, incoming })
    }

    /// Requests a reset of the association: TSNs and the sequence numbers of all streams of both
    /// directions start over, without a loss of messages. [`Event::Reconfigured`] follows.
    ///
    /// All messages sent earlier are delivered before the reset. Messages sent later wait until it has
    /// ended.
    ///
    /// # Errors
    /// [`ReconfigurationError`]; nothing is requested then.
    pub fn reset_association(&mut self) -> Result<(), ReconfigurationError> {
        self.request(Wish::Association)
    }

    /// Which requests of the peer are performed.
    pub const fn accepted_requests(&self) -> AcceptedRequests {
        self.config.accepted_requests
    }

    /// Changes which requests of the peer are performed from now on.
    pub const fn set_accepted_requests(&mut self, accepted: AcceptedRequests) {
        self.config.accepted_requests = accepted;
    }

    /// The result that [`Event::Reconfigured`] announced, `None` if all have been taken.
    ///
    /// A reset by the peer is returned only after the messages that were sent before it have been read. A
    /// user that polls before each [`Association::read`] gets it before the first message that was sent
    /// after it.
    pub fn poll_reconfiguration(&mut self) -> Option<Reconfigured> {
        self.control.reconfiguration.as_mut()?.take_event()
    }

    /// Whether [`Self::poll_reconfiguration`] returns something.
    pub fn has_reconfiguration(&self) -> bool {
        self.control.reconfiguration.as_ref().is_some_and(|one| one.has_event())
    }

    fn request(&mut self, wish: Wish) -> Result<(), ReconfigurationError> {
        if !matches!(self.state, State::Established) {
            return Err(ReconfigurationError::Closing);
        }
        if !self.reconfigures() {
            return Err(ReconfigurationError::NotSupported);
        }
        if self.reconfiguration().requester.conflicts(&wish) {
            return Err(ReconfigurationError::InProgress);
        }
        self.add_wish(wish);
        Ok(())
    }

    /// Adds a request that does not conflict with another one.
    fn add_wish(&mut self, wish: Wish) {
        if let Some(streams) = wish.held_streams() {
            self.sender.outstanding.hold_streams(streams);
        }
        self.reconfiguration().requester.add(wish);
        self.sender.refill_bursts();
    }

    fn reconfiguration(&mut self) -> &mut Reconfiguration {
        let numbers = (self.handshake.local_tsn, self.receiver.first().unwrap_or_default());
        self.control
            .reconfiguration
            .get_or_insert_with(|| Box::new(Reconfiguration::new(Serial32(numbers.0), numbers.1)))
    }

    /// Performs deferred requests, and sends the next request, if their conditions are met now.
    #[cold]
    pub(super) fn follow_reconfiguration(&mut self, now: Time) {
        if self.state.reconfigures() {
            self.perform_deferred(now);
            self.send_request(now);
        }
    }

    /// Sends the requests that are no longer blocked. RFC 6525, 5.1.1: at most one chunk with requests is
    /// outstanding.
    fn send_request(&mut self, now: Time) {
        if !matches!(self.state, State::Established) {
            return;
        }
        let Some(reconfiguration) = &mut self.control.reconfiguration else { return };
        let chunks = &self.sender.outstanding;
        let (mut ready, mut listed) = (Vec::new(), 0);
        for (at, waiting) in reconfiguration.requester.sendable(now) {
            let streams = waiting.wish.held_streams();
            if let Some(streams) = streams {
                // The peer must not be able to cause long searches.
                let search = !matches!(waiting.wish, Wish::Reset { answers: Some(_), .. });
                waiting.last_tsn = waiting.last_tsn.or_else(|| chunks.last_tsn_of(streams, search));
                // A FORWARD-TSN with an old stream sequence number must not arrive after the reset. So
                // the reset waits for the acknowledgement of the data, not only for its TSNs.
                if waiting.last_tsn.is_none_or(|last| chunks.board.cumulative() < last) {
                    continue;
                }
            }
            // Several resets of listed outgoing streams share a request.
            let count = match &waiting.wish {
                Wish::Reset { outgoing: true, incoming: false, streams, answers: None } => {
                    streams.listed().len()
                }
                _ => 0,
            };
            if count == 0 && ready.is_empty() {
                ready.push(at);
                break;
            }
            if count > 0 && listed + count <= LISTED_LIMIT {
                listed += count;
                ready.push(at);
            }
        }
        if ready.is_empty() {
            return;
        }
        let path = self.sender.best_path();
        let timer = (path, now + self.sender.paths[path.index()].tx.rtt.rto());
        let last_of_peer = reconfiguration.responder.last_number();
        // RFC 6525, 5.1.2 A3: the next TSN minus 1.
        let last_tsn = Serial32::wrap(self.sender.outstanding.board.next_tsn() - 1);
        let chunk = reconfiguration.requester.ask(&ready, last_tsn, last_of_peer, timer);
        self.send_control(path, chunk);
    }

    /// Handles the timer of the outstanding request: it is retransmitted, to another address if there is
    /// one, and the timeout counts as an error (RFC 6525, 5.1.1; RFC 9260, 8.1 and 8.2).
    #[cold]
    pub(super) fn on_reconfiguration_timer(&mut self, now: Time) {
        let reconfiguration = self.control.reconfiguration.as_ref();
        let Some(expired) = reconfiguration.and_then(|one| one.requester.expired(now)) else {
            return;
        };
        let mut path = expired.path;
        if expired.is_error {
            self.sender.paths[path.index()].tx.rtt.back_off();
            self.note_path_error(now, path, true);
            path = self.next_path(path);
        }
        if !self.state.reconfigures() {
            self.stop_requests();
            return;
        }
        let path = self.sender.reply_path(path);
        let timer = now + self.sender.paths[path.index()].tx.rtt.rto();
        let reconfiguration = self.control.reconfiguration.as_mut();
        if let Some(chunk) = reconfiguration.and_then(|one| one.requester.repeat(path, timer)) {
            self.send_control(path, chunk);
        }
    }

    /// The active path after `path`, or `path` if there is no other one.
    pub(super) fn next_path(&self, path: PathId) -> PathId {
        let count = self.sender.paths.len();
        let others = (1..count).map(|step| PathId::from_index((path.index() + step) % count));
        others.into_iter().find(|one| self.path_status(*one) == PathStatus::Active).unwrap_or(path)
    }

    /// Processes a RE-CONFIG chunk. RFC 6525, 5.2.1: all answers go into one chunk.
    #[cold]
    pub(super) fn on_re_config(
        &mut self,
        now: Time,
        path: PathId,
        list: &[RawParameter],
        reports: &mut Reports,
    ) {
        if !self.state.reconfigures() {
            return;
        }
        let to = self.sender.reply_path(path);
        let Some(parameters) = read_all(list) else {
            // RFC 6525, 3.1: a combination that is not allowed is reported as a protocol violation.
            if reports.may_report() {
                self.reply_to_peer(to, Chunk::error(ErrorCause::VIOLATION));
            }
            return;
        };
        self.sender.outstanding.deadline.invalidate();
        let mut answers = Vec::new();
        for parameter in parameters {
            match parameter {
                Parameter::Response(response) => self.on_response(now, response),
                Parameter::Request(number, request) => {
                    answers.extend(self.on_request(now, to, number, request));
                    // 5.2.1: a SACK SHOULD accompany the answer. It shows why a reset is deferred.
                    self.receiver.acknowledge_now();
                }
            }
        }
        if !answers.is_empty() {
            let raw = answers.into_iter().map(|answer| Parameter::Response(answer).raw()).collect();
            self.reply_to_peer(to, chunk_of(raw));
        }
    }

    /// Processes a response (RFC 6525, 5.2.7).
    fn on_response(&mut self, now: Time, response: Response) {
        let requester = &mut self.reconfiguration().requester;
        let Some(path) = requester.path() else { return };
        let rto = self.sender.paths[path.index()].tx.rtt.rto();
        // Both ends may have to try again, and must not collide each time.
        let wait = rto + Duration::from_nanos(self.random.rng.below(rto.as_nanos().max(1)));
        let requester = &mut self.reconfiguration().requester;
        let Some(request) = requester.on_response(response, now + rto, now + wait) else { return };
        self.control.errors = 0;
        let outcome = outcome_of(response.code);
        if outcome != Outcome::Performed {
            self.reconfiguration().requester.uninvite(&request);
        }
        self.finish_request(now, request, response, outcome);
    }

    /// Applies the result of a request of this end.
    fn finish_request(
        &mut self,
        now: Time,
        request: Request,
        response: Response,
        outcome: Outcome,
    ) {
        let performed = outcome == Outcome::Performed;
        match request {
            Request::ResetOutgoing { streams, answers, .. } => {
                let code = if performed { Code::Performed } else { Code::Denied };
                self.reconfiguration().responder.end_answered(answers, code);
                // 5.2.7 H4: the numbers start over only now.
                self.sender.release_streams(&streams, performed);
                self.announce(Reconfigured::Reset(streams, outcome));
            }
            // The streams are reset by a request of the peer, which follows.
            Request::ResetIncoming(_) | Request::AddIncoming(_) if performed => {}
            Request::ResetIncoming(streams) => {
                self.announce(Reconfigured::PeerResetRefused(streams, outcome));
            }
            Request::ResetAssociation => self.finish_association_reset(now, response, outcome),
            Request::AddOutgoing(outgoing) => {
                if performed {
                    let streams = self.sender.outstanding.streams.saturating_add(outgoing);
                    self.sender.outstanding.streams = streams;
                    self.sender.outstanding.queue.add_streams(streams);
                }
                self.announce(Reconfigured::StreamsAdded { outgoing, incoming: 0, outcome });
            }
            Request::AddIncoming(incoming) => {
                self.announce(Reconfigured::StreamsAdded { outgoing: 0, incoming, outcome });
            }
        }
    }

    /// Applies the result of the reset of the association (RFC 6525, 5.2.7 H5).
    fn finish_association_reset(&mut self, now: Time, response: Response, outcome: Outcome) {
        let performed = response.code == Code::Performed;
        match response.next_tsns {
            Some((peer_tsn, local_tsn)) if performed => {
                self.take_next_tsns(now, peer_tsn, local_tsn)
            }
            // The peer has other TSNs now that this end cannot know.
            None if performed => {
                self.abort_with(ErrorCause::VIOLATION);
                return;
            }
            _ => {}
        }
        self.sender.release_streams(&Streams::All, performed);
        self.announce_association_reset(false, if performed { outcome } else { not_done(outcome) });
    }

    fn take_next_tsns(&mut self, now: Time, peer_tsn: Serial32, local_tsn: Serial32) {
        // Unwrapped TSNs are strictly increasing.
        let expected = self.receiver.buffer.cumulative() + 1;
        let step = u64::from(peer_tsn.0.wrapping_sub(expected as u32));
        let readable = self.receiver.buffer.ready_count();
        self.receiver.restart_tsns(now, expected + step);
        self.note_readable(self.receiver.buffer.ready_count() > readable);
        let old_next = Serial32::wrap(self.sender.outstanding.board.next_tsn());
        self.reconfiguration().old_next_tsn = Some(old_next);
        self.sender.outstanding.jump_to(local_tsn);
        self.sender.outstanding.deadline.invalidate();
    }

    /// Whether a SACK of TSNs that were never sent was sent before or after a reset of the TSNs.
    #[cold]
    pub(super) fn is_of_other_tsns(&self, cumulative: Serial32) -> bool {
        self.control.reconfiguration.as_ref().is_some_and(|one| one.excuses(cumulative))
    }

    /// Ends the requests that were not sent, because the association shuts down. Held messages are sent
    /// with the old numbers.
    #[cold]
    pub(super) fn cancel_requests(&mut self) {
        let Some(reconfiguration) = &mut self.control.reconfiguration else { return };
        for wish in reconfiguration.requester.cancel_waiting() {
            if let Some(streams) = wish.held_streams() {
                self.sender.release_streams(streams, false);
            }
            let outcome = Outcome::Failed;
            match wish {
                Wish::Reset { outgoing, incoming, streams, .. } => {
                    if outgoing {
                        self.announce(Reconfigured::Reset(streams.clone(), outcome));
                    }
                    if incoming {
                        self.announce(Reconfigured::PeerResetRefused(streams, outcome));
                    }
                }
                Wish::Association => self.announce_association_reset(false, outcome),
                Wish::Add { outgoing, incoming } => {
                    self.announce(Reconfigured::StreamsAdded { outgoing, incoming, outcome });
                }
            }
        }
    }

    /// Stops sending requests, because the association ends.
    pub(super) fn stop_requests(&mut self) {
        if let Some(reconfiguration) = &mut self.control.reconfiguration {
            reconfiguration.requester.stop();
        }
    }

    fn announce_association_reset(&mut self, by_peer: bool, outcome: Outcome) {
        let local_tsn = Serial32::wrap(self.sender.outstanding.board.next_tsn());
        let peer_tsn = Serial32::wrap(self.receiver.buffer.cumulative() + 1);
        self.announce(Reconfigured::Association { by_peer, outcome, local_tsn, peer_tsn });
    }

    fn announce(&mut self, event: Reconfigured) {
        let unread = self.receiver.buffer.ready_count();
        self.reconfiguration().push_event(event, unread);
        if self.control.events.back() != Some(&Event::Reconfigured) {
            self.push_event(Event::Reconfigured);
        }
    }
}
