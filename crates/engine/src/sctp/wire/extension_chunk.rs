//! Dispatch of extension chunks by type.

use ropewalk_base::Serial32;

use super::{
    CHUNK_HEADER, Frame, RawChunk, data_fragment, extensions, forward, kind, nr_sack, parameter,
};
use crate::sctp::extension_chunk::{Auth, Covered, ExtensionChunk, MarkCount};

pub(super) fn put(rare: &ExtensionChunk, out: &mut Vec<u8>) {
    match rare {
        ExtensionChunk::NrSack(sack) => nr_sack::put(sack, out),
        ExtensionChunk::ForwardTsn(forward) => forward::put(forward, out),
        ExtensionChunk::IForwardTsn(forward) => forward::put_interleaved(forward, out),
        ExtensionChunk::ReConfig(list) => extensions::put(kind::RE_CONFIG, None, list, out),
        ExtensionChunk::Asconf(serial, list) => {
            extensions::put(kind::ASCONF, Some(*serial), list, out)
        }
        ExtensionChunk::AsconfAck(serial, list) => {
            extensions::put(kind::ASCONF_ACK, Some(*serial), list, out);
        }
        ExtensionChunk::Auth(auth) => put_auth(auth, out),
        ExtensionChunk::Pad(bytes) => {
            let [high, low] = (*bytes + CHUNK_HEADER as u16).to_be_bytes();
            out.extend_from_slice(&[kind::PAD, 0, high, low]);
            out.resize(out.len() + *bytes as usize, 0);
        }
        ExtensionChunk::Ecne(tsn) => put_tsn(kind::ECNE, *tsn, out),
        ExtensionChunk::Cwr(tsn) => put_tsn(kind::CWR, *tsn, out),
        ExtensionChunk::MarkCount(count) => {
            let frame = Frame::begin(kind::MARK_COUNT, count.path, out);
            out.extend_from_slice(&count.tsn.0.to_be_bytes());
            out.extend_from_slice(&count.bytes.to_be_bytes());
            frame.end(out);
        }
        ExtensionChunk::Heartbeat { answer, parameters } => {
            let kind = if *answer { kind::HEARTBEAT_ACK } else { kind::HEARTBEAT };
            let frame = Frame::begin(kind, 0, out);
            out.extend_from_slice(parameters);
            frame.end(out);
        }
        ExtensionChunk::DataFragment(part) => data_fragment::put(part, out),
    }
}

fn put_auth(auth: &Auth, out: &mut Vec<u8>) {
    let frame = Frame::begin(kind::AUTH, 0, out);
    out.extend_from_slice(&auth.key.to_be_bytes());
    out.extend_from_slice(&auth.hmac.to_be_bytes());
    out.extend_from_slice(&auth.code);
    frame.end(out);
}

fn put_tsn(kind: u8, tsn: Serial32, out: &mut Vec<u8>) {
    let frame = Frame::begin(kind, 0, out);
    out.extend_from_slice(&tsn.0.to_be_bytes());
    frame.end(out);
}

/// Whether chunks of this type can be decoded.
pub(super) const fn is_known(kind: u8) -> bool {
    matches!(
        kind,
        kind::NR_SACK
            | kind::FORWARD_TSN
            | kind::I_FORWARD_TSN
            | kind::RE_CONFIG
            | kind::ASCONF
            | kind::ASCONF_ACK
            | kind::AUTH
            | kind::PAD
            | kind::ECNE
            | kind::CWR
            | kind::DATA_FRAGMENT
            | kind::MARK_COUNT
    )
}

/// Reads a chunk of a type that [`is_known`], `None` if it is malformed.
pub(super) fn read(raw: &RawChunk<'_>) -> Option<ExtensionChunk> {
    let tsn = || parameter::word(raw.body()).map(Serial32);
    Some(match raw.kind {
        kind::NR_SACK => ExtensionChunk::NrSack(nr_sack::read(raw)?),
        kind::FORWARD_TSN => ExtensionChunk::ForwardTsn(forward::read(raw)?),
        kind::I_FORWARD_TSN => ExtensionChunk::IForwardTsn(forward::read_interleaved(raw)?),
        kind::RE_CONFIG => ExtensionChunk::ReConfig(extensions::read_list(raw.copy_from(0))?),
        kind::ASCONF => {
            let (serial, list) = extensions::read_numbered(raw)?;
            ExtensionChunk::Asconf(serial, list)
        }
        kind::ASCONF_ACK => {
            let (serial, list) = extensions::read_numbered(raw)?;
            ExtensionChunk::AsconfAck(serial, list)
        }
        kind::AUTH => {
            let [a, b, c, d] = *raw.body().first_chunk::<4>()?;
            let [key, hmac] = [[a, b], [c, d]].map(u16::from_be_bytes);
            ExtensionChunk::Auth(Auth {
                key,
                hmac,
                code: raw.copy_from(4),
                covered: Covered(raw.copy_with_rest()),
            })
        }
        kind::PAD => ExtensionChunk::Pad(raw.body().len() as u16),
        kind::ECNE => ExtensionChunk::Ecne(tsn()?),
        kind::CWR => ExtensionChunk::Cwr(tsn()?),
        kind::MARK_COUNT => {
            let [a, b, c, d, e, f, g, h] = *raw.body().first_chunk::<8>()?;
            ExtensionChunk::MarkCount(MarkCount {
                path: raw.flags,
                tsn: Serial32(u32::from_be_bytes([a, b, c, d])),
                bytes: u32::from_be_bytes([e, f, g, h]),
            })
        }
        kind::DATA_FRAGMENT => ExtensionChunk::DataFragment(data_fragment::read(raw)?),
        _ => return None,
    })
}
