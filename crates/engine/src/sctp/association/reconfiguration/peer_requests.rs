//! Stream reconfiguration (RFC 6525): the requests of the peer.

use ropewalk_base::{PathId, Serial32, Time};

use super::super::{Association, State};
use crate::sctp::cause::ErrorCause;
use crate::sctp::extensions::stream_reconfiguration::parameters::{
    Code, Parameter, Request, Response,
};
use crate::sctp::extensions::stream_reconfiguration::requester::{Wish, chunk_of};
use crate::sctp::extensions::stream_reconfiguration::responder::{Answer, Deferred, Turn};
use crate::sctp::extensions::stream_reconfiguration::{Outcome, Reconfigured, Streams};

/// Maximum number of queued messages, with runs of equal ones counted once, up to which the peer may
/// request a reset of streams of this end.
const QUEUE_LIMIT: usize = 4096;

/// How a new request is handled.
enum Decision {
    /// Answer it immediately.
    Answer(Code),
    /// Perform it later.
    Defer(Deferred),
    /// A request of this end, which has been added, is the answer.
    Request,
}

impl Association {
    /// Processes a request that arrived on a path whose answers are sent to `to`. Returns the response,
    /// unless a request of this end is the answer.
    pub(super) fn on_request(
        &mut self,
        now: Time,
        to: PathId,
        number: Serial32,
        request: Request,
    ) -> Option<Response> {
        let response = |code, next_tsns| Some(Response { number, code, next_tsns });
        match self.reconfiguration().responder.turn(number) {
            Turn::Wrong => return response(Code::BadSequenceNumber, None),
            // RFC 6525, 5.2.1: a repeated request gets the same answer.
            Turn::Repeated(Answer::Known(code, next_tsns)) => {
                self.stay_quiet(now);
                return response(code, next_tsns);
            }
            Turn::Repeated(Answer::Deferred) => return response(Code::InProgress, None),
            Turn::Repeated(Answer::Request) => return self.repeat_request(to, number),
            Turn::New => {}
        }
        if self.reconfiguration().is_full() || self.is_too_busy_for(&request) {
            // The number is not used up, so that a repetition of the request counts as new.
            return response(Code::InProgress, None);
        }
        match self.decide(now, number, request) {
            Decision::Answer(code) => {
                self.reconfiguration().responder.answer(Answer::Known(code, None));
                response(code, None)
            }
            Decision::Defer(deferred) => {
                self.reconfiguration().responder.defer(deferred);
                response(Code::InProgress, None)
            }
            Decision::Request => {
                self.reconfiguration().responder.answer(Answer::Request);
                self.send_request(now);
                let was_sent = self.reconfiguration().requester.path().is_some();
                if was_sent { None } else { response(Code::InProgress, None) }
            }
        }
    }

    /// Answers a repeated request with the corresponding request of this end.
    fn repeat_request(&mut self, to: PathId, number: Serial32) -> Option<Response> {
        let requester = &self.reconfiguration().requester;
        let code = match requester.chunk() {
            Some(chunk) => {
                self.reply_to_peer(to, chunk);
                return None;
            }
            None if requester.is_busy() => Code::InProgress,
            None => Code::Performed,
        };
        Some(Response { number, code, next_tsns: None })
    }

    /// Whether a request would make this end search a long queue. A peer can send many requests.
    fn is_too_busy_for(&self, request: &Request) -> bool {
        let queued = self.sender.outstanding.queue.entries();
        matches!(request, Request::ResetIncoming(_)) && queued > QUEUE_LIMIT
    }

    fn decide(&mut self, now: Time, number: Serial32, request: Request) -> Decision {
        if self.reconfiguration().responder.deferred().is_some() {
            // RFC 6525, 5.1.1: a peer has at most one chunk with requests outstanding.
            return Decision::Answer(Code::AlreadyInProgress);
        }
        match request {
            Request::ResetOutgoing { answers, last_tsn, streams } => {
                self.reconfiguration().requester.on_answer(answers);
                self.decide_reset_of_peer(now, last_tsn, streams)
            }
            Request::ResetIncoming(streams) => self.decide_own_reset(number, streams),
            Request::ResetAssociation => self.decide_association_reset(),
            Request::AddOutgoing(count) => self.decide_streams_of_peer(count),
            Request::AddIncoming(count) => self.decide_own_streams(count),
        }
    }

    /// The peer resets its streams (RFC 6525, 5.2.2).
    fn decide_reset_of_peer(&mut self, now: Time, last: Serial32, streams: Streams) -> Decision {
        let invited = self.reconfiguration().requester.take_invited(&streams);
        if !invited && !self.config.accepted_requests.stream_resets {
            return Decision::Answer(Code::Denied);
        }
        if streams.is_too_long() {
            return Decision::Answer(Code::Denied);
        }
        if !streams.exist(self.receiver.streams()) {
            return Decision::Answer(Code::WrongStream);
        }
        let last_tsn = last.unwrap_near(self.receiver.buffer.cumulative());
        if last_tsn > self.receiver.buffer.cumulative() {
            // E2: data that was sent before the reset has not arrived yet.
            self.receiver.await_reset(streams.clone(), last_tsn);
            return Decision::Defer(Deferred::Streams { streams, last_tsn });
        }
        self.perform_reset_of_peer(now, streams);
        Decision::Answer(Code::Performed)
    }

    fn perform_reset_of_peer(&mut self, now: Time, streams: Streams) {
        let readable = self.receiver.buffer.ready_count();
        self.receiver.restart_streams(now, &streams);
        self.announce(Reconfigured::ResetByPeer(streams));
        if !self.receiver.take_early(now) {
            self.abort_with(ErrorCause::VIOLATION);
        }
        self.note_readable(self.receiver.buffer.ready_count() > readable);
    }

    /// The peer requests that this end reset its streams (RFC 6525, 5.2.3).
    fn decide_own_reset(&mut self, number: Serial32, streams: Streams) -> Decision {
        let accepted = self.config.accepted_requests.stream_resets;
        if !accepted || !matches!(self.state, State::Established) {
            return Decision::Answer(Code::Denied);
        }
        if !streams.exist(self.outbound_streams()) {
            return Decision::Answer(Code::WrongStream);
        }
        // A request of this end that resets these streams is in flight.
        if self.reconfiguration().requester.covers_reset_of(&streams) {
            return Decision::Answer(Code::NothingToDo);
        }
        // 5.1.2 A4: the answer has the same list, which must fit into a packet.
        let room = self.sender.packet_room(self.sender.best_path());
        let answer = Request::ResetOutgoing {
            answers: number,
            last_tsn: Serial32(0),
            streams: streams.clone(),
        };
        if chunk_of(vec![Parameter::Request(number, answer).raw()]).wire_len() > room {
            return Decision::Answer(Code::Denied);
        }
        let wish = Wish::Reset { outgoing: true, incoming: false, streams, answers: Some(number) };
        self.wish_for_peer(wish, Decision::Request)
    }

    /// The peer adds streams on which it sends (RFC 6525, 5.2.5).
    fn decide_streams_of_peer(&mut self, count: u16) -> Decision {
        let invited = self.reconfiguration().requester.take_invited_streams(count);
        let sum = self.receiver.streams().checked_add(count);
        let limit = if invited { u16::MAX } else { self.config.stream_limit };
        let accepted = invited || self.config.accepted_requests.more_streams;
        if !accepted || sum.is_none_or(|sum| sum > limit) {
            return Decision::Answer(Code::Denied);
        }
        if count == 0 {
            return Decision::Answer(Code::NothingToDo);
        }
        self.reconfiguration().requester.on_streams_added();
        self.receiver.add_streams(count);
        let outcome = Outcome::Performed;
        self.announce(Reconfigured::StreamsAdded { outgoing: 0, incoming: count, outcome });
        Decision::Answer(Code::Performed)
    }

    /// The peer requests streams on which this end sends (RFC 6525, 5.2.6). This end's request to add
    /// them follows.
    fn decide_own_streams(&mut self, count: u16) -> Decision {
        let sum = self.outbound_streams().checked_add(count);
        let accepted = self.config.accepted_requests.more_streams;
        let open = matches!(self.state, State::Established);
        if !accepted || !open || sum.is_none_or(|sum| sum > self.config.stream_limit) {
            return Decision::Answer(Code::Denied);
        }
        if count == 0 {
            return Decision::Answer(Code::NothingToDo);
        }
        let wish = Wish::Add { outgoing: count, incoming: 0 };
        self.wish_for_peer(wish, Decision::Answer(Code::Performed))
    }

    /// Adds a request of this end at the request of the peer.
    fn wish_for_peer(&mut self, wish: Wish, decision: Decision) -> Decision {
        if self.reconfiguration().requester.conflicts(&wish) {
            return Decision::Answer(Code::AlreadyInProgress);
        }
        self.add_wish(wish);
        decision
    }

    /// Performs the deferred request of the peer if its condition is met now.
    pub(super) fn perform_deferred(&mut self, now: Time) {
        let Some(reconfiguration) = &self.control.reconfiguration else { return };
        match reconfiguration.responder.deferred() {
            Some(Deferred::Streams { streams, last_tsn })
                if *last_tsn <= self.receiver.buffer.cumulative() =>
            {
                let streams = streams.clone();
                self.perform_reset_of_peer(now, streams);
                self.end_deferred(Code::Performed, None);
            }
            Some(Deferred::Association) if self.is_flushed_but_for_held() => {
                self.perform_association_reset(now);
            }
            _ => {}
        }
        self.end_quiet(now);
    }

    /// The peer resets the association (RFC 6525, 5.2.4). G3 would count all data in flight as received.
    /// To avoid losing any, the reset waits for the acknowledgement of data that was submitted before it.
    fn decide_association_reset(&mut self) -> Decision {
        let accepted = self.config.accepted_requests.association_resets;
        if !accepted || !matches!(self.state, State::Established) {
            return Decision::Answer(Code::Denied);
        }
        if self.reconfiguration().requester.is_asking() {
            return Decision::Answer(Code::AlreadyInProgress);
        }
        // Streams that another request also holds stay held until this reset has ended.
        self.sender.outstanding.hold_streams(&Streams::All);
        if self.reconfiguration().requester.take_association_reset() {
            self.reconfiguration().both_reset = true;
            self.sender.release_streams(&Streams::All, false);
        }
        if self.reconfiguration().quiet_until.take().is_some() {
            self.sender.release_streams(&Streams::All, false);
        }
        Decision::Defer(Deferred::Association)
    }

    /// Whether all messages except those that wait for a reset have been acknowledged.
    fn is_flushed_but_for_held(&self) -> bool {
        let chunks = &self.sender.outstanding;
        chunks.queue.is_empty() && chunks.board.is_empty() && !chunks.has_messages_beside_queue()
    }

    fn perform_association_reset(&mut self, now: Time) {
        // G1: far from all TSNs that the peer has sent. G2: this end's TSNs continue.
        let readable = self.receiver.buffer.ready_count();
        let first = self.receiver.buffer.cumulative() + 1 + (1 << 31);
        let own = Serial32::wrap(self.sender.outstanding.board.next_tsn());
        self.receiver.restart_tsns(now, first);
        self.sender.outstanding.queue.restart_streams(&Streams::All);
        self.note_readable(self.receiver.buffer.ready_count() > readable);
        self.announce_association_reset(true, Outcome::Performed);
        if std::mem::take(&mut self.reconfiguration().both_reset) {
            self.announce_association_reset(false, Outcome::Performed);
        }
        self.end_deferred(Code::Performed, Some((own, Serial32::wrap(first))));
        self.reconfiguration().quiet_until = Some(Time::FAR_FUTURE);
        self.stay_quiet(now);
    }

    /// Called when the response to the reset of the association is sent, or sent again. Data then waits
    /// for two timeouts of the peer's request.
    fn stay_quiet(&mut self, now: Time) {
        let path = self.sender.best_path();
        let until = now + self.sender.paths[path.index()].tx.rtt.rto() * 2;
        if let Some(quiet) = &mut self.reconfiguration().quiet_until {
            *quiet = until;
        }
    }

    /// Resumes sending data after a reset of the association: the peer has used its new TSNs, or does not
    /// repeat its request.
    fn end_quiet(&mut self, now: Time) {
        let Some(until) = self.reconfiguration().quiet_until else { return };
        let first = self.reconfiguration().responder.first_tsn_of_peer();
        let next = Serial32::wrap(self.receiver.buffer.cumulative() + 1);
        if now >= until || first.is_some_and(|first| first != next) {
            self.reconfiguration().quiet_until = None;
            self.sender.release_streams(&Streams::All, false);
        }
    }

    /// RFC 6525, 5.2.2 E5: reports to the peer that the deferred request was performed.
    fn end_deferred(&mut self, code: Code, next_tsns: Option<(Serial32, Serial32)>) {
        let responder = &mut self.reconfiguration().responder;
        if let Some(response) = responder.end_deferred(code, next_tsns) {
            let path = self.sender.reply_path(self.receiver.acks.path());
            self.send_control(path, chunk_of(vec![Parameter::Response(response).raw()]));
        }
    }
}
