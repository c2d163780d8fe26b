//! Parameters of ASCONF and ASCONF ACK (RFC 5061, 4.2).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

use crate::sctp::extension_chunk::RawParameter;

/// Address parameters (RFC 9260, 3.3.2.1).
const IPV4: u16 = 5;
const IPV6: u16 = 6;
const ADD: u16 = 0xc001;
const DELETE: u16 = 0xc002;
const ERROR: u16 = 0xc003;
const SET_PRIMARY: u16 = 0xc004;
const SUCCESS: u16 = 0xc005;

/// Header of a parameter or an error cause, bytes.
const HEADER: usize = 4;
/// Length of the correlation identifier, bytes.
const ID: usize = 4;

/// Error causes in an ASCONF ACK (RFC 5061, 4.3; RFC 9260, 3.3.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The address is not one of the association, or not a unicast address.
    Unresolvable,
    /// The parameter is malformed.
    Invalid,
    /// No other address would be left.
    LastAddress,
    /// The maximum number of addresses is reached.
    Resources,
    /// The request came from this address.
    SourceAddress,
    /// The receiver does not permit it.
    NotPermitted,
    /// Another cause.
    Other(u16),
}

impl Refusal {
    /// Cause code.
    pub const fn code(self) -> u16 {
        match self {
            Self::Unresolvable => 5,
            Self::Invalid => 7,
            Self::LastAddress => 0xa0,
            Self::Resources => 0xa1,
            Self::SourceAddress => 0xa2,
            Self::NotPermitted => 0xa4,
            Self::Other(code) => code,
        }
    }

    const fn of_code(code: u16) -> Self {
        match code {
            5 => Self::Unresolvable,
            7 => Self::Invalid,
            0xa0 => Self::LastAddress,
            0xa1 => Self::Resources,
            0xa2 => Self::SourceAddress,
            0xa4 => Self::NotPermitted,
            code => Self::Other(code),
        }
    }
}

/// A request of an ASCONF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Add IP Address (4.2.1).
    Add(IpAddr),
    /// Delete IP Address (4.2.2).
    Delete(IpAddr),
    /// Set Primary IP Address (4.2.4).
    SetPrimary(IpAddr),
}

impl Request {
    /// The address. The unspecified one stands for the source of the packet.
    pub const fn address(self) -> IpAddr {
        match self {
            Self::Add(ip) | Self::Delete(ip) | Self::SetPrimary(ip) => ip,
        }
    }

    /// The same request about the source of the packet.
    pub const fn unnamed(self) -> Self {
        let source = match self.address() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        match self {
            Self::Add(_) => Self::Add(source),
            Self::Delete(_) => Self::Delete(source),
            Self::SetPrimary(_) => Self::SetPrimary(source),
        }
    }

    const fn kind(self) -> u16 {
        match self {
            Self::Add(_) => ADD,
            Self::Delete(_) => DELETE,
            Self::SetPrimary(_) => SET_PRIMARY,
        }
    }

    /// The parameter with this correlation identifier.
    pub fn raw(self, id: u32) -> RawParameter {
        let mut value = id.to_be_bytes().to_vec();
        put(&address_parameter(self.address()), &mut value);
        RawParameter { kind: self.kind(), value: value.into() }
    }
}

/// A parameter of an ASCONF after the first one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A request with its correlation identifier. `None`: its address is malformed.
    Request(u32, Option<Request>),
    /// Something else. RFC 5061, 4.2.6: an adaptation indication is for INIT and INIT ACK.
    Unknown(u16),
}

impl Asked {
    /// Reads a parameter, `None` if it is too short for its type.
    pub fn read(raw: &RawParameter) -> Option<Self> {
        if !matches!(raw.kind, ADD | DELETE | SET_PRIMARY) {
            return Some(Self::Unknown(raw.kind));
        }
        let (id, rest) = raw.value.split_first_chunk::<ID>()?;
        let ip = read_whole_address(rest);
        let request = ip.map(|ip| match raw.kind {
            ADD => Request::Add(ip),
            DELETE => Request::Delete(ip),
            _ => Request::SetPrimary(ip),
        });
        Some(Self::Request(u32::from_be_bytes(*id), request))
    }
}

/// A parameter of an ASCONF ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Success Indication (4.2.5).
    Success(u32),
    /// Error Cause Indication (4.2.3): its first cause.
    Error(u32, Refusal),
}

impl Answer {
    /// Reads a parameter, `None` if it is neither or malformed.
    pub fn read(raw: &RawParameter) -> Option<Self> {
        let (id, rest) = raw.value.split_first_chunk::<ID>()?;
        let id = u32::from_be_bytes(*id);
        match raw.kind {
            SUCCESS => Some(Self::Success(id)),
            ERROR => {
                let [a, b, ..] = *rest.first_chunk::<HEADER>()?;
                Some(Self::Error(id, Refusal::of_code(u16::from_be_bytes([a, b]))))
            }
            _ => None,
        }
    }

    /// Encodes the parameter. An error repeats the parameter `about`.
    pub fn raw(self, about: &RawParameter) -> RawParameter {
        match self {
            Self::Success(id) => {
                RawParameter { kind: SUCCESS, value: Bytes::copy_from_slice(&id.to_be_bytes()) }
            }
            Self::Error(id, refusal) => {
                let mut copied = Vec::new();
                put(about, &mut copied);
                let mut value = id.to_be_bytes().to_vec();
                value.extend(refusal.code().to_be_bytes());
                value.extend(((HEADER + copied.len()) as u16).to_be_bytes());
                value.extend(copied);
                RawParameter { kind: ERROR, value: value.into() }
            }
        }
    }
}

/// Length of a parameter on the wire, bytes.
pub fn wire_len(raw: &RawParameter) -> u32 {
    (HEADER + raw.value.len()).next_multiple_of(4) as u32
}

/// The address parameter at the beginning of an ASCONF.
pub fn address_parameter(ip: IpAddr) -> RawParameter {
    match ip {
        IpAddr::V4(ip) => RawParameter { kind: IPV4, value: Bytes::copy_from_slice(&ip.octets()) },
        IpAddr::V6(ip) => RawParameter { kind: IPV6, value: Bytes::copy_from_slice(&ip.octets()) },
    }
}

/// The address in a parameter, `None` if it is not an address parameter.
pub fn read_address(raw: &RawParameter) -> Option<IpAddr> {
    match raw.kind {
        IPV4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(&raw.value[..]).ok()?).into()),
        IPV6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(&raw.value[..]).ok()?).into()),
        _ => None,
    }
}

/// Reads an address parameter with its header that fills `bytes`.
fn read_whole_address(bytes: &[u8]) -> Option<IpAddr> {
    let ([a, b, c, d], value) = bytes.split_first_chunk::<HEADER>()?;
    let kind = u16::from_be_bytes([*a, *b]);
    if usize::from(u16::from_be_bytes([*c, *d])) != bytes.len() {
        return None;
    }
    read_address(&RawParameter { kind, value: Bytes::copy_from_slice(value) })
}

fn put(raw: &RawParameter, out: &mut Vec<u8>) {
    out.extend(raw.kind.to_be_bytes());
    out.extend(((HEADER + raw.value.len()) as u16).to_be_bytes());
    out.extend_from_slice(&raw.value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn requests_and_answers_are_read_as_they_were_written() {
        for address in ["192.0.2.7", "2001:db8::7", "0.0.0.0", "::"] {
            let address = ip(address);
            assert_eq!(read_address(&address_parameter(address)), Some(address));
            for (request, kind) in [
                (Request::Add(address), 0xc001),
                (Request::Delete(address), 0xc002),
                (Request::SetPrimary(address), 0xc004),
            ] {
                let raw = request.raw(0x0102_0304);
                assert_eq!(raw.kind, kind);
                assert_eq!(Asked::read(&raw), Some(Asked::Request(0x0102_0304, Some(request))));
                for refusal in [
                    Refusal::Unresolvable,
                    Refusal::Invalid,
                    Refusal::LastAddress,
                    Refusal::Resources,
                    Refusal::SourceAddress,
                    Refusal::NotPermitted,
                    Refusal::Other(77),
                ] {
                    let error = Answer::Error(9, refusal);
                    let written = error.raw(&raw);
                    assert_eq!(Answer::read(&written), Some(error));
                    assert_eq!(wire_len(&written), 12 + wire_len(&raw));
                }
                assert_eq!(Answer::read(&Answer::Success(9).raw(&raw)), Some(Answer::Success(9)));
            }
        }
    }

    #[test]
    fn malformed_parameters_are_recognised() {
        let raw = |kind, value: &[u8]| RawParameter { kind, value: Bytes::copy_from_slice(value) };
        let good = [0, 0, 0, 7, 0, 5, 0, 8, 192, 0, 2, 7];
        assert!(matches!(Asked::read(&raw(ADD, &good)), Some(Asked::Request(7, Some(_)))));
        for cut in 4..good.len() {
            assert_eq!(
                Asked::read(&raw(ADD, &good[..cut])),
                Some(Asked::Request(7, None)),
                "{cut}"
            );
        }
        for cut in 0..4 {
            assert_eq!(Asked::read(&raw(DELETE, &good[..cut])), None, "{cut}");
            assert_eq!(Answer::read(&raw(SUCCESS, &good[..cut])), None, "{cut}");
            assert_eq!(Answer::read(&raw(ERROR, &good[..4 + cut])), None, "{cut}");
        }
        let longer = [&good[..], &[0; 4]].concat();
        assert_eq!(Asked::read(&raw(SET_PRIMARY, &longer)), Some(Asked::Request(7, None)));
        let host_name = [0, 0, 0, 7, 0, 11, 0, 8, 97, 98, 99, 0];
        assert_eq!(Asked::read(&raw(ADD, &host_name)), Some(Asked::Request(7, None)));
        assert_eq!(Asked::read(&raw(0xc006, &[0; 4])), Some(Asked::Unknown(0xc006)));
        assert_eq!(Answer::read(&raw(ADD, &good)), None);
        assert_eq!(read_address(&raw(IPV4, &[1; 5])), None);
    }
}
