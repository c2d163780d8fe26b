//! Error causes (RFC 9260, 3.3.10).

use bytes::Bytes;
use ropewalk_base::{Serial32, StreamId};

use super::parameter::{self, Parameter, Parameters};
use crate::sctp::ErrorCause;

/// Maximum number of causes read from one chunk.
const CAUSES_LIMIT: usize = 16;

/// Appends causes. Returns the length for the chunk header, which excludes the padding of the last cause.
pub(super) fn put(causes: &[ErrorCause], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    causes.iter().for_each(|cause| put_one(cause, out));
    let padding = causes.last().map_or(0, |last| last.len().next_multiple_of(4) - last.len());
    out.len() - start - padding as usize
}

fn put_one(cause: &ErrorCause, out: &mut Vec<u8>) {
    let code = cause.code();
    match cause {
        ErrorCause::InvalidStream(StreamId(stream)) => {
            let [a, b] = stream.to_be_bytes();
            parameter::put(code, &[a, b, 0, 0], out);
        }
        ErrorCause::UnsupportedHmac(id) => parameter::put(code, &id.to_be_bytes(), out),
        ErrorCause::MissingParameters(types) => {
            let mut value = (types.len() as u32).to_be_bytes().to_vec();
            value.extend(types.iter().flat_map(|kind| kind.to_be_bytes()));
            parameter::put(code, &value, out);
        }
        ErrorCause::StaleCookie(word) | ErrorCause::NoUserData(Serial32(word)) => {
            parameter::put(code, &word.to_be_bytes(), out);
        }
        ErrorCause::OutOfResource
        | ErrorCause::InvalidParameter
        | ErrorCause::CookieInShutdown
        | ErrorCause::IllegalAsconfAck => {
            parameter::put(code, &[], out);
        }
        ErrorCause::UnresolvableAddress(value)
        | ErrorCause::UnrecognisedChunk(value)
        | ErrorCause::UnrecognisedParameters(value)
        | ErrorCause::NewAddresses(value)
        | ErrorCause::UserAbort(value)
        | ErrorCause::ProtocolViolation(value)
        | ErrorCause::Other { value, .. } => parameter::put(code, value, out),
    }
}

/// The causes of an ABORT, `None` if their lengths contradict that of the chunk. RFC 9260, 3.3.7: an
/// ABORT with a format error is discarded.
pub(super) fn of_abort(list: Bytes) -> Option<Vec<ErrorCause>> {
    let sound = Parameters::of(list.clone()).all(|one| one.is_ok());
    sound.then(|| read(list))
}

/// Reads causes up to the first malformed one.
pub(super) fn read(list: Bytes) -> Vec<ErrorCause> {
    let sound = Parameters::of(list).map_while(Result::ok).map_while(read_one);
    sound.take(CAUSES_LIMIT).collect()
}

fn read_one(one: Parameter) -> Option<ErrorCause> {
    let word = || parameter::word(&one.value);
    Some(match one.kind {
        1 => ErrorCause::InvalidStream(StreamId((word()? >> 16) as u16)),
        2 => ErrorCause::MissingParameters(read_types(&one.value)?),
        3 => ErrorCause::StaleCookie(word()?),
        4 => ErrorCause::OutOfResource,
        5 => ErrorCause::UnresolvableAddress(one.value),
        6 => ErrorCause::UnrecognisedChunk(one.value),
        7 => ErrorCause::InvalidParameter,
        8 => ErrorCause::UnrecognisedParameters(one.value),
        9 => ErrorCause::NoUserData(Serial32(word()?)),
        10 => ErrorCause::CookieInShutdown,
        11 => ErrorCause::NewAddresses(one.value),
        12 => ErrorCause::UserAbort(one.value),
        13 => ErrorCause::ProtocolViolation(one.value),
        163 => ErrorCause::IllegalAsconfAck,
        261 => ErrorCause::UnsupportedHmac(u16::from_be_bytes(one.value[..].try_into().ok()?)),
        code => ErrorCause::Other { code, value: one.value },
    })
}

fn read_types(value: &[u8]) -> Option<Vec<u16>> {
    let (count, types) = value.split_first_chunk::<4>()?;
    let types = types.as_chunks::<2>().0.get(..u32::from_be_bytes(*count) as usize)?;
    Some(types.iter().map(|kind| u16::from_be_bytes(*kind)).collect())
}
