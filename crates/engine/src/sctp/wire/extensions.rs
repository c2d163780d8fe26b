//! RE-CONFIG (RFC 6525), ASCONF and ASCONF ACK (RFC 5061): lists of parameters, in the latter two after a
//! serial number.

use bytes::Bytes;
use ropewalk_base::Serial32;

use super::parameter::{self, Parameters};
use super::{Frame, RawChunk};
use crate::sctp::extension_chunk::RawParameter;

/// Maximum number of parameters of one chunk; a chunk with more is malformed.
const PARAMETERS_LIMIT: usize = 64;

pub(super) fn put(kind: u8, serial: Option<Serial32>, list: &[RawParameter], out: &mut Vec<u8>) {
    let frame = Frame::begin(kind, 0, out);
    if let Some(serial) = serial {
        out.extend_from_slice(&serial.0.to_be_bytes());
    }
    let first = out.len();
    list.iter().for_each(|one| parameter::put(one.kind, &one.value, out));
    out.truncate(parameter::unpadded_end(out, first));
    frame.end(out);
}

pub(super) fn read_list(list: Bytes) -> Option<Vec<RawParameter>> {
    let mut all = Vec::new();
    for one in Parameters::of(list) {
        let one = one.ok()?;
        if all.len() == PARAMETERS_LIMIT {
            return None;
        }
        all.push(RawParameter { kind: one.kind, value: one.value });
    }
    Some(all)
}

pub(super) fn read_numbered(raw: &RawChunk<'_>) -> Option<(Serial32, Vec<RawParameter>)> {
    let serial = raw.body().first_chunk::<4>()?;
    Some((Serial32(u32::from_be_bytes(*serial)), read_list(raw.copy_from(4))?))
}
