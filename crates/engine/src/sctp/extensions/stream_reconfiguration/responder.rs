//! The requests of the peer (RFC 6525, 5.2): their sequence numbers, the answers to the last ones, and
//! the deferred request.

use ropewalk_base::Serial32;

use super::Streams;
use super::parameters::{Code, Response};

/// Number of requests whose answers are kept: a chunk has at most two requests.
const KEPT: usize = 2;

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// This answer is sent again if the request is repeated.
    Known(Code, Option<(Serial32, Serial32)>),
    /// The request is the deferred one.
    Deferred,
    /// A request of this end is the answer.
    Request,
}

/// How a sequence number relates to earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The next request.
    New,
    /// A repetition, whose answer is known.
    Repeated(Answer),
    /// Neither (RFC 6525, 4.4: bad sequence number).
    Wrong,
}

/// A deferred request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deferred {
    /// The peer resets these streams once all TSNs up to `last_tsn` have arrived (RFC 6525, 5.2.2 E2).
    Streams { streams: Streams, last_tsn: u64 },
    /// The association is reset once all data of this end is acknowledged.
    Association,
}

/// The requests of the peer.
#[derive(Clone, Debug)]
pub struct Responder {
    expected: Serial32,
    last: [Option<(Serial32, Answer)>; KEPT],
    deferred: Option<(Serial32, Deferred)>,
}

impl Responder {
    pub const fn new(first: Serial32) -> Self {
        Self { expected: first, last: [None; KEPT], deferred: None }
    }

    /// The number of the peer's last request.
    pub const fn last_number(&self) -> Serial32 {
        self.expected.plus(u32::MAX)
    }

    /// Whether a request with this number is new. A new request must be passed to [`Self::answer`] or
    /// [`Self::defer`].
    pub fn turn(&self, number: Serial32) -> Turn {
        if number == self.expected {
            return Turn::New;
        }
        let known = self.last.iter().flatten().find(|(one, _)| *one == number);
        known.map_or(Turn::Wrong, |(_, answer)| Turn::Repeated(*answer))
    }

    /// Keeps the answer to the next request.
    pub const fn answer(&mut self, answer: Answer) {
        self.last = [self.last[1], Some((self.expected, answer))];
        self.expected = self.expected.plus(1);
    }

    /// Defers the next request. No other request may be deferred.
    pub fn defer(&mut self, deferred: Deferred) {
        self.deferred = Some((self.expected, deferred));
        self.answer(Answer::Deferred);
    }

    /// The deferred request.
    pub fn deferred(&self) -> Option<&Deferred> {
        self.deferred.as_ref().map(|(_, deferred)| deferred)
    }

    /// Ends the deferred request with this answer.
    pub fn end_deferred(
        &mut self,
        code: Code,
        next_tsns: Option<(Serial32, Serial32)>,
    ) -> Option<Response> {
        let (number, _) = self.deferred.take()?;
        self.settle(number, Answer::Known(code, next_tsns));
        Some(Response { number, code, next_tsns })
    }

    /// The first TSN of the peer after its last reset of the association.
    pub fn first_tsn_of_peer(&self) -> Option<Serial32> {
        self.last.iter().flatten().rev().find_map(|(_, answer)| match answer {
            Answer::Known(_, Some((_, of_peer))) => Some(*of_peer),
            _ => None,
        })
    }

    /// Ends the request `number` if a request of this end answers it.
    pub fn end_answered(&mut self, number: Serial32, code: Code) {
        if self.turn(number) == Turn::Repeated(Answer::Request) {
            self.settle(number, Answer::Known(code, None));
        }
    }

    fn settle(&mut self, number: Serial32, answer: Answer) {
        for (one, known) in self.last.iter_mut().flatten() {
            if *one == number {
                *known = answer;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_two_requests_are_known_and_others_are_wrong() {
        let mut responder = Responder::new(Serial32(u32::MAX - 1));
        for round in 0..6u32 {
            let number = Serial32(u32::MAX - 1).plus(round);
            assert_eq!(responder.turn(number), Turn::New);
            assert_eq!(responder.last_number(), number.plus(u32::MAX));
            responder.answer(Answer::Known(Code::Unknown(round), None));
            for back in 0..4 {
                let expected = match back {
                    0 | 1 if back <= round => {
                        Turn::Repeated(Answer::Known(Code::Unknown(round - back), None))
                    }
                    _ => Turn::Wrong,
                };
                assert_eq!(responder.turn(number.plus(back.wrapping_neg())), expected);
            }
            assert_eq!(responder.turn(number.plus(2)), Turn::Wrong);
            assert_eq!(responder.turn(number.plus(1 << 31)), Turn::Wrong);
        }
    }

    #[test]
    fn a_deferred_request_keeps_its_answer_for_repetitions() {
        let mut responder = Responder::new(Serial32(5));
        responder.defer(Deferred::Association);
        assert_eq!(responder.turn(Serial32(5)), Turn::Repeated(Answer::Deferred));
        let tsns = Some((Serial32(1), Serial32(2)));
        let response = responder.end_deferred(Code::Performed, tsns);
        let expected = Response { number: Serial32(5), code: Code::Performed, next_tsns: tsns };
        assert_eq!(response, Some(expected));
        let answer = Answer::Known(Code::Performed, tsns);
        assert_eq!(responder.turn(Serial32(5)), Turn::Repeated(answer));
        assert_eq!(responder.end_deferred(Code::Denied, None), None);
    }
}
