//! The parameters of RE-CONFIG chunks (RFC 6525, 4).

use bytes::Bytes;
use ropewalk_base::{Serial32, StreamId};

use super::Streams;
use crate::sctp::extension_chunk::RawParameter;

/// Parameter types.
mod kind {
    pub const RESET_OUTGOING: u16 = 13;
    pub const RESET_INCOMING: u16 = 14;
    pub const RESET_ASSOCIATION: u16 = 15;
    pub const RESPONSE: u16 = 16;
    pub const ADD_OUTGOING: u16 = 17;
    pub const ADD_INCOMING: u16 = 18;
}

/// Result of a request (RFC 6525, 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Success: nothing to do.
    NothingToDo,
    /// Success: performed.
    Performed,
    /// Denied.
    Denied,
    /// Error: wrong stream sequence number.
    WrongStream,
    /// Error: request already in progress.
    AlreadyInProgress,
    /// Error: bad sequence number.
    BadSequenceNumber,
    /// In progress.
    InProgress,
    /// A number that RFC 6525 does not define.
    Unknown(u32),
}

impl Code {
    const NUMBERED: [Self; 7] = [
        Self::NothingToDo,
        Self::Performed,
        Self::Denied,
        Self::WrongStream,
        Self::AlreadyInProgress,
        Self::BadSequenceNumber,
        Self::InProgress,
    ];

    fn from_number(number: u32) -> Self {
        let known = usize::try_from(number).ok().and_then(|at| Self::NUMBERED.get(at));
        known.copied().unwrap_or(Self::Unknown(number))
    }

    fn number(self) -> u32 {
        let at = Self::NUMBERED.iter().position(|one| *one == self);
        match (self, at) {
            (Self::Unknown(number), _) => number,
            (_, at) => at.unwrap_or_default() as u32,
        }
    }
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Outgoing SSN Reset (4.1): the sender of the request resets its streams.
    ResetOutgoing {
        /// The request that this one answers; otherwise the last request that arrived.
        answers: Serial32,
        /// The last TSN that the sender has assigned.
        last_tsn: Serial32,
        streams: Streams,
    },
    /// Incoming SSN Reset (4.2): requests that the receiver reset its streams.
    ResetIncoming(Streams),
    /// SSN/TSN Reset (4.3).
    ResetAssociation,
    /// Add Outgoing Streams (4.5): number of streams to add on which the sender of the request sends.
    AddOutgoing(u16),
    /// Add Incoming Streams (4.6): number of streams to add on which the receiver of the request sends.
    AddIncoming(u16),
}

/// The answer to a request (4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// The request.
    pub number: Serial32,
    pub code: Code,
    /// After a reset of the association: the next TSN of the sender of the response, and that of its receiver.
    pub next_tsns: Option<(Serial32, Serial32)>,
}

/// A parameter of a RE-CONFIG chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// A request with its sequence number.
    Request(Serial32, Request),
    Response(Response),
}

/// A list of stream numbers. An odd length is malformed.
fn read_streams(list: &[u8]) -> Option<Streams> {
    if !list.len().is_multiple_of(2) {
        return None;
    }
    let numbers = list.chunks_exact(2).map(|two| StreamId(u16::from_be_bytes([two[0], two[1]])));
    let numbers: Vec<StreamId> = numbers.collect();
    Some(Streams::of(&numbers))
}

fn words<const N: usize>(value: &[u8]) -> Option<([u32; N], &[u8])> {
    let (head, rest) = value.split_at_checked(4 * N)?;
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(head.chunks_exact(4)) {
        *word = u32::from_be_bytes(bytes.try_into().ok()?);
    }
    Some((words, rest))
}

impl Parameter {
    /// Reads a parameter, `None` if it is malformed or of another type.
    pub fn read(raw: &RawParameter) -> Option<Self> {
        let value = &raw.value[..];
        let ([number], rest) = words::<1>(value)?;
        let request = match raw.kind {
            kind::RESET_OUTGOING => {
                let ([answers, last], list) = words::<2>(rest)?;
                let streams = read_streams(list)?;
                Request::ResetOutgoing {
                    answers: Serial32(answers),
                    last_tsn: Serial32(last),
                    streams,
                }
            }
            kind::RESET_INCOMING => Request::ResetIncoming(read_streams(rest)?),
            kind::RESET_ASSOCIATION if rest.is_empty() => Request::ResetAssociation,
            kind::ADD_OUTGOING | kind::ADD_INCOMING => {
                // RFC 6525, 4.5: the lower half is reserved and ignored.
                let ([both], []) = words::<1>(rest)? else { return None };
                let count = (both >> 16) as u16;
                match raw.kind {
                    kind::ADD_OUTGOING => Request::AddOutgoing(count),
                    _ => Request::AddIncoming(count),
                }
            }
            kind::RESPONSE => return Self::read_response(Serial32(number), rest),
            _ => return None,
        };
        Some(Self::Request(Serial32(number), request))
    }

    fn read_response(number: Serial32, rest: &[u8]) -> Option<Self> {
        let ([code], tsns) = words::<1>(rest)?;
        let next_tsns = match words::<2>(tsns) {
            _ if tsns.is_empty() => None,
            Some(([sender, receiver], [])) => Some((Serial32(sender), Serial32(receiver))),
            _ => return None,
        };
        Some(Self::Response(Response { number, code: Code::from_number(code), next_tsns }))
    }

    /// The parameter as on the wire.
    pub fn raw(&self) -> RawParameter {
        let mut value = Vec::new();
        let mut word = |number: u32| value.extend_from_slice(&number.to_be_bytes());
        let kind = match self {
            Self::Request(number, request) => {
                word(number.0);
                let (kind, streams) = put_request(request, word);
                streams.iter().for_each(|one| value.extend_from_slice(&one.0.to_be_bytes()));
                kind
            }
            Self::Response(Response { number, code, next_tsns }) => {
                word(number.0);
                word(code.number());
                if let Some((sender, receiver)) = next_tsns {
                    word(sender.0);
                    word(receiver.0);
                }
                kind::RESPONSE
            }
        };
        RawParameter { kind, value: Bytes::from(value) }
    }
}

/// Writes the part of a request after its sequence number. Returns its type and the streams to list at
/// its end.
fn put_request(request: &Request, mut word: impl FnMut(u32)) -> (u16, &[StreamId]) {
    match request {
        Request::ResetOutgoing { answers, last_tsn, streams } => {
            word(answers.0);
            word(last_tsn.0);
            (kind::RESET_OUTGOING, streams.listed())
        }
        Request::ResetIncoming(streams) => (kind::RESET_INCOMING, streams.listed()),
        Request::ResetAssociation => (kind::RESET_ASSOCIATION, &[]),
        Request::AddOutgoing(count) => {
            word(u32::from(*count) << 16);
            (kind::ADD_OUTGOING, &[])
        }
        Request::AddIncoming(count) => {
            word(u32::from(*count) << 16);
            (kind::ADD_INCOMING, &[])
        }
    }
}

/// Reads the parameters of a chunk, `None` if one is malformed or RFC 6525, 3.1, does not allow their
/// combination.
pub fn read_all(list: &[RawParameter]) -> Option<Vec<Parameter>> {
    if list.len() > 2 {
        return None;
    }
    let all: Vec<Parameter> = list.iter().map(Parameter::read).collect::<Option<_>>()?;
    let may_join = match &all[..] {
        [_] => true,
        [Parameter::Request(_, a), Parameter::Request(_, b)] => may_go_together(a, b),
        // 3.1: a response may be combined with another response, or with an outgoing reset that answers a
        // request. Other combinations are harmless.
        [_, _] => true,
        _ => false,
    };
    may_join.then_some(all)
}

fn may_go_together(a: &Request, b: &Request) -> bool {
    use Request::{AddIncoming, AddOutgoing, ResetIncoming, ResetOutgoing};
    matches!(
        (a, b),
        (ResetOutgoing { .. }, ResetIncoming(_))
            | (ResetIncoming(_), ResetOutgoing { .. })
            | (AddOutgoing(_), AddIncoming(_))
            | (AddIncoming(_), AddOutgoing(_))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_parameter() -> Vec<Parameter> {
        let listed = Streams::of(&[StreamId(7), StreamId(0), StreamId(7), StreamId(65_535)]);
        let (answers, last_tsn) = (Serial32(u32::MAX), Serial32(0x8000_0000));
        let requests = [
            Request::ResetOutgoing { answers, last_tsn, streams: listed.clone() },
            Request::ResetOutgoing { answers, last_tsn, streams: Streams::All },
            Request::ResetIncoming(listed),
            Request::ResetIncoming(Streams::All),
            Request::ResetAssociation,
            Request::AddOutgoing(65_535),
            Request::AddIncoming(1),
        ];
        let next_tsns = Some((Serial32(1), Serial32(u32::MAX)));
        let codes = (0..9).map(Code::from_number);
        let responses = codes.flat_map(|code| {
            [None, next_tsns].map(|next_tsns| {
                Parameter::Response(Response { number: Serial32(9), code, next_tsns })
            })
        });
        let requests = requests.into_iter().zip(0u32..);
        requests
            .map(|(request, at)| Parameter::Request(Serial32(u32::MAX).plus(at), request))
            .chain(responses)
            .collect()
    }

    #[test]
    fn every_parameter_is_read_as_it_was_written() {
        for parameter in every_parameter() {
            assert_eq!(Parameter::read(&parameter.raw()), Some(parameter));
        }
    }

    #[test]
    fn a_parameter_with_a_byte_too_many_or_too_few_is_malformed() {
        for parameter in every_parameter() {
            let raw = parameter.raw();
            let longer = [&raw.value[..], &[0]].concat().into();
            for value in [raw.value.slice(1..), longer] {
                let other = RawParameter { value, ..raw.clone() };
                assert_eq!(Parameter::read(&other), None, "{parameter:?}");
            }
        }
    }

    #[test]
    fn a_chunk_has_one_or_two_parameters_that_go_together() {
        let all = every_parameter();
        let raw: Vec<RawParameter> = all.iter().map(Parameter::raw).collect();
        assert_eq!(read_all(&[]), None);
        assert_eq!(read_all(&[raw[7].clone(), raw[7].clone(), raw[7].clone()]), None);
        for (allowed, pair) in [
            (true, [0, 2]),
            (true, [3, 1]),
            (true, [5, 6]),
            (true, [6, 5]),
            (true, [7, 0]),
            (true, [8, 8]),
            (false, [0, 1]),
            (false, [2, 3]),
            (false, [0, 4]),
            (false, [4, 5]),
            (false, [0, 5]),
            (false, [5, 5]),
        ] {
            let list = pair.map(|at| raw[at].clone());
            let expected = allowed.then(|| pair.map(|at| all[at].clone()).to_vec());
            assert_eq!(read_all(&list), expected, "{pair:?}");
        }
    }
}
