//! INIT and INIT ACK with their parameters (RFC 9260, 3.3.2 and 3.3.3).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use ropewalk_base::Serial32;

use super::parameter::{self, Parameter, Parameters};
use super::{CHUNK_HEADER, RawChunk, kind};
use crate::sctp::extensions::authentication::parameters::{CHUNKS, HMAC_ALGO, RANDOM};
use crate::sctp::{Extensions, Families, Init, InitOptions};

const IPV4: u16 = 5;
const IPV6: u16 = 6;
pub const STATE_COOKIE: u16 = 7;
const UNRECOGNISED: u16 = 8;
const COOKIE_PRESERVATIVE: u16 = 9;
const HOST_NAME: u16 = 11;
const SUPPORTED_FAMILIES: u16 = 12;
const ECN: u16 = 0x8000;
const ZERO_CHECKSUM: u16 = 0x8001;
const SUPPORTED_EXTENSIONS: u16 = 0x8008;
const FORWARD_TSN: u16 = 0xc000;
const ADAPTATION: u16 = 0xc006;

/// Maximum number of addresses read from one chunk; further ones are ignored.
const ADDRESSES_LIMIT: usize = 64;
/// Limits of reported unknown parameters: their number and their bytes. A report must stay small in relation
/// to the chunk that caused it.
const REPORTS_LIMIT: usize = 8;
const REPORT_BYTES_LIMIT: usize = 64;

/// Length of the fixed part without the chunk header, bytes.
const FIXED: usize = 16;

/// Appends an INIT or an INIT ACK, with a cookie if there is one.
pub(super) fn put(kind: u8, init: &Init, cookie: Option<&Bytes>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0]);
    for word in [init.tag, init.window] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.extend_from_slice(&init.outbound_streams.to_be_bytes());
    out.extend_from_slice(&init.inbound_streams.to_be_bytes());
    out.extend_from_slice(&init.initial_tsn.0.to_be_bytes());
    init.addresses.iter().for_each(|address| put_address(*address, out));
    if init.preserve_millis > 0 {
        parameter::put(COOKIE_PRESERVATIVE, &init.preserve_millis.to_be_bytes(), out);
    }
    if let Some(cookie) = cookie {
        parameter::put(STATE_COOKIE, cookie, out);
    }
    put_options(&init.options, out);
    let end = parameter::unpadded_end(out, start + CHUNK_HEADER + FIXED);
    let length = u16::try_from(end - start).expect("an initiation fits into a packet");
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn put_address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(one) => parameter::put(IPV4, &one.octets(), out),
        IpAddr::V6(one) => parameter::put(IPV6, &one.octets(), out),
    }
}

fn put_options(options: &InitOptions, out: &mut Vec<u8>) {
    let families: Vec<u8> = [(options.families.v4, IPV4), (options.families.v6, IPV6)]
        .into_iter()
        .filter(|(listed, _)| *listed)
        .flat_map(|(_, kind)| kind.to_be_bytes())
        .collect();
    if !families.is_empty() {
        parameter::put(SUPPORTED_FAMILIES, &families, out);
    }
    if !options.extensions.is_empty() {
        let types: Vec<u8> = options.extensions.types().collect();
        parameter::put(SUPPORTED_EXTENSIONS, &types, out);
    }
    if options.forward_tsn {
        parameter::put(FORWARD_TSN, &[], out);
    }
    if options.ecn {
        parameter::put(ECN, &[], out);
    }
    for (kind, value) in options.authentication.iter().flat_map(|auth| auth.parameters()) {
        parameter::put(kind, value, out);
    }
    if let Some(layer) = options.adaptation {
        parameter::put(ADAPTATION, &layer.to_be_bytes(), out);
    }
    if let Some(method) = options.zero_checksum {
        parameter::put(ZERO_CHECKSUM, &method.to_be_bytes(), out);
    }
    for raw in &options.reported {
        parameter::put(UNRECOGNISED, raw, out);
    }
    // Last, because some unknown parameters end the processing of the list.
    for raw in options.host_name.iter().chain(&options.unknown) {
        out.extend_from_slice(raw);
        parameter::pad(out, raw.len());
    }
}

/// Encodes address parameters for an error cause (RFC 9260, 3.3.10.11).
pub fn address_parameters<'a>(addresses: impl IntoIterator<Item = &'a IpAddr>) -> Bytes {
    let mut out = Vec::new();
    addresses.into_iter().for_each(|address| put_address(*address, &mut out));
    out.into()
}

/// Reads the chunk and its cookie. A cookie may be empty.
pub(super) fn read(raw: &RawChunk<'_>) -> Option<(Init, Option<Bytes>)> {
    let (fixed, _) = raw.body().split_first_chunk::<FIXED>()?;
    let word =
        |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let init = Init {
        tag: word(0),
        window: word(4),
        outbound_streams: half(8),
        inbound_streams: half(10),
        initial_tsn: Serial32(word(12)),
        ..Init::default()
    };
    let mut reader = Reader { init, cookie: None };
    for one in Parameters::of(raw.copy_from(FIXED)) {
        match reader.take(one.ok()?)? {
            true => {}
            false => break,
        }
    }
    Some((reader.init, reader.cookie))
}

struct Reader {
    init: Init,
    cookie: Option<Bytes>,
}

impl Reader {
    /// Processes one parameter. Returns whether to continue, `None` if it is malformed.
    fn take(&mut self, one: Parameter) -> Option<bool> {
        let init = &mut self.init;
        let options = &mut init.options;
        match one.kind {
            IPV4 => {
                let octets: [u8; 4] = one.value[..].try_into().ok()?;
                self.take_address(Ipv4Addr::from(octets).into());
            }
            IPV6 => {
                let octets: [u8; 16] = one.value[..].try_into().ok()?;
                self.take_address(Ipv6Addr::from(octets).into());
            }
            STATE_COOKIE => self.cookie = Some(one.value),
            UNRECOGNISED if options.reported.len() < REPORTS_LIMIT => {
                options.reported.push(one.value);
            }
            UNRECOGNISED => {}
            COOKIE_PRESERVATIVE => init.preserve_millis = parameter::word(&one.value)?,
            HOST_NAME => options.host_name = Some(one.whole),
            SUPPORTED_FAMILIES => options.families = read_families(&one.value),
            SUPPORTED_EXTENSIONS => {
                options.extensions = options.extensions.and(Extensions::of_types(&one.value));
            }
            FORWARD_TSN => options.forward_tsn = true,
            ECN => options.ecn = true,
            ADAPTATION => options.adaptation = Some(parameter::word(&one.value)?),
            ZERO_CHECKSUM => options.zero_checksum = Some(parameter::word(&one.value)?),
            RANDOM | CHUNKS | HMAC_ALGO => {
                options.authentication.get_or_insert_default().take(one.kind, one.value);
            }
            _ => return Some(self.take_unknown(one)),
        }
        Some(true)
    }

    fn take_address(&mut self, address: IpAddr) {
        if self.init.addresses.len() < ADDRESSES_LIMIT {
            self.init.addresses.push(address);
        }
    }

    /// Handles an unknown parameter. RFC 9260, 3.2.1: the two highest bits of the type determine whether
    /// to continue and whether to report it.
    fn take_unknown(&mut self, one: Parameter) -> bool {
        let high = (one.kind >> 8) as u8;
        let unknown = &mut self.init.options.unknown;
        let bytes: usize = unknown.iter().map(Bytes::len).sum();
        let fits = unknown.len() < REPORTS_LIMIT && bytes + one.whole.len() <= REPORT_BYTES_LIMIT;
        if kind::is_reported(high) && fits {
            unknown.push(one.whole);
        }
        kind::goes_on(high)
    }
}

fn read_families(value: &[u8]) -> Families {
    let listed = |kind: u16| value.as_chunks::<2>().0.contains(&kind.to_be_bytes());
    Families { v4: listed(IPV4), v6: listed(IPV6) }
}
