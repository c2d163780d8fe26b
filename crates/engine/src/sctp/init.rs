//! Content of INIT and INIT ACK (RFC 9260, 3.3.2 and 3.3.3).

use core::net::IpAddr;

use bytes::Bytes;
use ropewalk_base::Serial32;

use super::cause::ErrorCause;
use super::extensions::Extensions;
use super::extensions::authentication::{AuthParameters, ChunkTypes};

/// INIT or INIT ACK. The state cookie of an INIT ACK is kept separately.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Init {
    /// Initiate tag; never 0.
    pub tag: u32,
    /// Advertised receive window, bytes.
    pub window: u32,
    /// Outbound streams wanted.
    pub outbound_streams: u16,
    /// Inbound streams allowed.
    pub inbound_streams: u16,
    /// Initial TSN.
    pub initial_tsn: Serial32,
    /// The sender's addresses; if empty, only its source address.
    pub addresses: Vec<IpAddr>,
    /// Cookie Preservative (RFC 9260, 3.3.2.1.3): by how much to extend the cookie's lifetime, ms; 0:
    /// parameter absent.
    pub preserve_millis: u32,
    /// Less frequent parameters.
    pub options: InitOptions,
}

/// Parameters that most INITs in simulations do not have.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InitOptions {
    /// Address families that the sender supports; if none is listed, all (3.3.2.1.5).
    pub families: Families,
    /// Supported extensions (RFC 5061, 4.2.7).
    pub extensions: Extensions,
    /// Partial reliability, announced by its own parameter (RFC 3758, 3.1).
    pub forward_tsn: bool,
    /// ECN (RFC 4960, Appendix A; reserved for it in RFC 9260, 3.3.2).
    pub ecn: bool,
    /// Adaptation layer (RFC 5061, 4.2.6).
    pub adaptation: Option<u32>,
    /// The error detection method with which zero checksums are accepted (RFC 9653).
    pub zero_checksum: Option<u32>,
    /// Authenticated chunks (RFC 4895, 3), `None` without such parameters.
    pub authentication: Option<Box<AuthParameters>>,
    /// A Host Name Address, which is refused (3.3.2.1.4): the complete parameter.
    pub host_name: Option<Bytes>,
    /// Unknown parameters that are to be reported (3.2.1), complete with headers.
    pub unknown: Vec<Bytes>,
    /// In an INIT ACK: the parameters of the INIT that are unknown to its receiver (3.3.3.1.2), complete
    /// and padded.
    pub reported: Vec<Bytes>,
}

/// Address families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Families {
    /// IPv4.
    pub v4: bool,
    /// IPv6.
    pub v6: bool,
}

/// Header of a parameter, bytes (3.2.1).
const PARAMETER_HEADER: u32 = 4;

const fn parameter(body: u32) -> u32 {
    PARAMETER_HEADER + body.next_multiple_of(4)
}

impl Init {
    /// Length of the chunk without a cookie, bytes: header, fixed part, parameters.
    pub(super) fn wire_len(&self) -> u32 {
        let addresses = self.addresses.iter().map(|a| match a {
            IpAddr::V4(_) => parameter(4),
            IpAddr::V6(_) => parameter(16),
        });
        let preservative = if self.preserve_millis > 0 { parameter(4) } else { 0 };
        20 + addresses.sum::<u32>() + preservative + self.options.wire_len()
    }

    /// The error cause of the ABORT that refuses an invalid INIT (3.3.2; 3.3.2.1.4).
    pub(super) fn fault(&self) -> Option<ErrorCause> {
        if let Some(name) = &self.options.host_name {
            return Some(ErrorCause::unresolvable(name));
        }
        let sane = self.outbound_streams != 0 && self.inbound_streams != 0 && self.window >= 1500;
        (!sane).then_some(ErrorCause::InvalidParameter)
    }

    /// Whether addresses can be reconfigured if `agreed` was negotiated with the sender. RFC 5061, 4.2.7:
    /// it lists ASCONF, ASCONF-ACK and AUTH, and requires authentication of the former two.
    pub(super) fn reconfigures_addresses(&self, agreed: Extensions) -> bool {
        let both = Extensions::ASCONF.and(Extensions::ASCONF_ACK).and(Extensions::AUTH);
        let types = self.options.authentication.as_ref().map(|auth| auth.types());
        agreed.has(both) && types.is_some_and(|types| types.and(ChunkTypes::ASCONF) == types)
    }

    /// All extensions that the sender announces, in the list or by their own parameters.
    pub fn extensions(&self) -> Extensions {
        let by_parameter =
            if self.options.forward_tsn { Extensions::FORWARD_TSN } else { Extensions::NONE };
        let ecn = if self.options.ecn { Extensions::ECN } else { Extensions::NONE };
        // RFC 4895, 6.1: without a random number and algorithms there is no key.
        let auth = self.options.authentication.as_ref().is_some_and(|auth| auth.is_offer());
        let auth = if auth { Extensions::AUTH } else { Extensions::NONE };
        let listed = self.options.extensions.without(Extensions::AUTH);
        listed.and(by_parameter).and(ecn).and(auth)
    }
}

impl InitOptions {
    /// The parameters to report, each with its padding.
    pub(super) fn unknown_padded(&self) -> Vec<Bytes> {
        let padded = |one: &Bytes| {
            let mut bytes = one.to_vec();
            bytes.resize(one.len().next_multiple_of(4), 0);
            Bytes::from(bytes)
        };
        self.unknown.iter().map(padded).collect()
    }

    /// The same in one piece. The last one has no padding, which RFC 9260, 3.2.1, does not count as part of a parameter.
    pub(super) fn unknown_joined(&self) -> Bytes {
        let mut joined = self.unknown_padded().concat();
        let padding = self.unknown.last().map_or(0, |last| last.len().wrapping_neg() % 4);
        joined.truncate(joined.len() - padding);
        joined.into()
    }

    fn wire_len(&self) -> u32 {
        let families = self.families.v4 as u32 + self.families.v6 as u32;
        let families = if families > 0 { parameter(2 * families) } else { 0 };
        let extensions =
            if self.extensions.is_empty() { 0 } else { parameter(self.extensions.len()) };
        let flags = [self.forward_tsn, self.ecn].map(|one| one as u32 * parameter(0));
        let words = [self.adaptation, self.zero_checksum];
        let words = words.map(|one| one.map_or(0, |_| parameter(4)));
        let raw = self.host_name.iter().chain(&self.unknown);
        let raw: u32 = raw.map(|one| (one.len() as u32).next_multiple_of(4)).sum();
        let reported: u32 = self.reported.iter().map(|one| parameter(one.len() as u32)).sum();
        let auth = self.authentication.as_ref().map_or(0, |auth| auth.wire_len());
        let sums = flags.into_iter().chain(words).sum::<u32>();
        families + extensions + sums + auth + raw + reported
    }
}
