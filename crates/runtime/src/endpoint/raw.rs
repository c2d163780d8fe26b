//! SCTP directly over IP (protocol 132), through raw sockets.
//!
//! A raw socket receives a copy of every packet of its protocol, regardless of the SCTP ports. A filter in the kernel
//! (classic BPF) passes only packets whose destination port belongs to the endpoint. Over IPv4 the packet begins with
//! its IP header, over IPv6 with the SCTP header.

use std::fmt;
use std::io;
use std::path::Path;

use super::socket::BindAddress;

/// IP protocol number of SCTP.
pub const PROTOCOL: i32 = 132;

/// What carries the packets of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// UDP (RFC 6951). Translators and firewalls let it pass, and it needs no privilege.
    #[default]
    Udp,
    /// IP alone (RFC 9260), for peers without UDP encapsulation. Linux only; requires `CAP_NET_RAW`, and a kernel
    /// whose own SCTP is not loaded. Addresses have no port; a given port is ignored.
    Ip,
}

impl Carrier {
    /// The names of all carriers, which name the encapsulation: `udp` and `none`.
    pub const NAMES: [&'static str; 2] = ["udp", "none"];

    /// The carrier with that encapsulation.
    ///
    /// # Errors
    /// If there is no such encapsulation.
    pub fn from_name(name: &str) -> Result<Self, UnknownCarrier> {
        match name {
            "udp" => Ok(Self::Udp),
            "none" => Ok(Self::Ip),
            _ => Err(UnknownCarrier(name.to_owned())),
        }
    }
}

/// No encapsulation has this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{}` is no encapsulation: {} are", .0.escape_debug(), Carrier::NAMES.join(", "))]
pub struct UnknownCarrier(pub String);

impl std::str::FromStr for Carrier {
    type Err = UnknownCarrier;

    fn from_str(name: &str) -> Result<Self, UnknownCarrier> {
        Self::from_name(name)
    }
}

/// Why packets cannot be sent over IP alone.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// The system does not permit it.
    NotPermitted,
    /// The kernel's own SCTP would answer the same packets.
    KernelSctp,
    /// Sealed packets are not SCTP packets.
    Sealed,
    /// Several shards would each receive all packets.
    Shards,
    /// Inherited sockets are UDP sockets.
    Inherited,
    /// A packet would arrive at both sockets.
    Overlap(BindAddress, BindAddress),
    /// This system has no such sockets, or its sockets behave differently.
    Unsupported,
    /// Any other error of the system.
    System(io::Error),
}

impl fmt::Display for RawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SCTP over IP without UDP: ")?;
        match self {
            Self::NotPermitted => f.write_str(
                "raw sockets are not permitted: run it as root or with CAP_NET_RAW, or use the encapsulation in UDP",
            ),
            Self::KernelSctp => f.write_str(
                "the kernel's own SCTP is loaded and would answer the same packets: unload it (`modprobe -r sctp`), or \
                 use the encapsulation in UDP",
            ),
            Self::Sealed => f.write_str(
                "sealed packets are no SCTP packets and need UDP: leave one of the two out",
            ),
            Self::Shards => f.write_str("an endpoint has one shard: each would receive all packets"),
            Self::Inherited => f.write_str("inherited sockets are UDP sockets"),
            Self::Overlap(one, other) => {
                write!(f, "packets would arrive both at {one} and at {other}: leave one out")
            }
            Self::Unsupported => f.write_str("this needs Linux"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for RawError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted,
            _ => Self::System(error),
        }
    }
}

impl RawError {
    /// Checks that this process may send and receive SCTP packets over IP, and that nothing else on this machine
    /// would answer them.
    ///
    /// # Errors
    /// If one of these conditions is not met.
    pub fn check() -> Result<(), Self> {
        if kernel_speaks_sctp(Path::new("/proc/net/protocols")) {
            return Err(Self::KernelSctp);
        }
        unbound(socket2::Domain::IPV4).map(|_| ()).map_err(Self::from)
    }
}

/// Whether the kernel has registered its own SCTP, which answers every packet that belongs to none of its associations.
fn kernel_speaks_sctp(protocols: &Path) -> bool {
    let text = std::fs::read_to_string(protocols).unwrap_or_default();
    text.lines().any(|line| matches!(line.split_whitespace().next(), Some("SCTP" | "SCTPv6")))
}

/// Length of the IP header in front of a packet, bytes. Without a valid header, the length of `bytes`.
pub fn ip_header(bytes: &[u8]) -> usize {
    let words = bytes.first().filter(|first| **first >> 4 == 4).map_or(0, |first| first & 15);
    let header = usize::from(words) * 4;
    // RFC 791, 3.1: a header has at least 5 words.
    if header < 20 { bytes.len() } else { header.min(bytes.len()) }
}

/// Whether a packet could arrive at sockets that are bound to both.
pub fn overlap(one: &BindAddress, other: &BindAddress) -> bool {
    let (a, b) = (one.address.ip(), other.address.ip());
    let address =
        a == b || a.is_ipv4() == b.is_ipv4() && (a.is_unspecified() || b.is_unspecified());
    let different =
        one.interface.is_some() && other.interface.is_some() && one.interface != other.interface;
    address && !different
}

/// An unbound raw socket of SCTP that receives nothing yet.
#[cfg(target_os = "linux")]
fn unbound(domain: socket2::Domain) -> io::Result<socket2::Socket> {
    let protocol = socket2::Protocol::from(PROTOCOL);
    let socket = socket2::Socket::new(domain, socket2::Type::RAW, Some(protocol))?;
    deliver_only(socket2::SockRef::from(&socket), domain == socket2::Domain::IPV4, &[])?;
    Ok(socket)
}

#[cfg(not(target_os = "linux"))]
fn unbound(_: socket2::Domain) -> io::Result<socket2::Socket> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A raw socket of SCTP at that address. It receives nothing until [`deliver_only`] names ports.
///
/// # Errors
/// The error of the system.
pub fn bind(local: &BindAddress) -> io::Result<std::net::UdpSocket> {
    let socket = unbound(socket2::Domain::for_address(local.address))?;
    if let Some(interface) = &local.interface {
        super::socket::bind_interface(&socket, interface)?;
    }
    let mut address = local.address;
    address.set_port(0);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Maximum number of ports that the kernel compares. With more, it delivers all packets and the endpoint drops those
/// for other ports.
#[cfg(target_os = "linux")]
const FILTER_PORTS_LIMIT: usize = 1024;

/// Makes the kernel deliver only packets to these SCTP ports.
///
/// # Errors
/// The error of the system.
#[cfg(target_os = "linux")]
pub fn deliver_only(socket: socket2::SockRef<'_>, is_ipv4: bool, ports: &[u16]) -> io::Result<()> {
    use nix::libc::{
        BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_MSH, BPF_RET,
    };
    use socket2::SockFilter;
    let step = |code: u32, jf: u8, k: u32| SockFilter::new(code as u16, 0, jf, k);
    let all = || step(BPF_RET | BPF_K, 0, u32::MAX);
    let mut program = match is_ipv4 {
        // X: length of the IP header. The destination port is the second half of the first word behind it.
        true => vec![step(BPF_LDX | BPF_B | BPF_MSH, 0, 0), step(BPF_LD | BPF_H | BPF_IND, 0, 2)],
        false => vec![step(BPF_LD | BPF_H | BPF_ABS, 0, 2)],
    };
    if ports.len() > FILTER_PORTS_LIMIT {
        program.push(all());
    } else {
        for port in ports {
            program.extend([step(BPF_JMP | BPF_JEQ | BPF_K, 1, u32::from(*port)), all()]);
        }
        program.push(step(BPF_RET | BPF_K, 0, 0));
    }
    socket.attach_filter(&program)
}

/// Does nothing here: there are no raw sockets of SCTP.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn deliver_only(_: socket2::SockRef<'_>, _: bool, _: &[u16]) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_follows_the_ip_header_is_the_packet() {
        let packet = |words: u8, length: usize| {
            let mut bytes = vec![0x40 | words];
            bytes.extend((1..length).map(|n| n as u8));
            bytes
        };
        for (words, length, rest) in [(5, 32, 12), (6, 32, 8), (15, 61, 1), (5, 20, 0), (15, 40, 0)]
        {
            let bytes = packet(words, length);
            assert_eq!(ip_header(&bytes), length - rest, "{words} words, {length} B");
        }
        assert_eq!(ip_header(&packet(4, 32)), 32);
        assert_eq!(ip_header(&[0x65; 60]), 60);
        assert_eq!(ip_header(&[]), 0);
    }

    proptest! {
        #[test]
        fn no_bytes_stop_it(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let header = ip_header(&bytes);
            prop_assert!(header == bytes.len() || (20..bytes.len()).contains(&header));
        }
    }

    #[test]
    fn sockets_overlap_if_a_packet_could_arrive_at_both() {
        let at = |ip: &str, interface: Option<&str>| BindAddress {
            address: std::net::SocketAddr::new(ip.parse().expect("an address"), 9899),
            interface: interface.map(str::to_owned),
        };
        for (one, other, expected) in [
            (at("10.0.0.1", None), at("10.0.0.2", None), false),
            (at("10.0.0.1", None), at("10.0.0.1", None), true),
            (at("0.0.0.0", None), at("10.0.0.1", None), true),
            (at("0.0.0.0", None), at("::", None), false),
            (at("::", None), at("fd00::1", None), true),
            (at("0.0.0.0", Some("a")), at("0.0.0.0", Some("b")), false),
            (at("0.0.0.0", Some("a")), at("0.0.0.0", None), true),
        ] {
            assert_eq!(overlap(&one, &other), expected, "{one}, {other}");
            assert_eq!(overlap(&other, &one), expected, "{other}, {one}");
        }
    }

    #[test]
    fn the_kernel_s_own_sctp_is_recognised() {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("ropewalk-protocols-{}", std::process::id()));
        let text = |names: &[&str]| {
            let lines = names.iter().map(|name| format!("{name:<9} 1216      0      -1   NI\n"));
            lines.collect::<String>()
        };
        for (names, expected) in [
            (&["protocol", "TCP", "UDP"][..], false),
            (&["protocol", "SCTPv6", "SCTP", "TCP"], true),
            (&["protocol", "SCTP"], true),
            (&[], false),
        ] {
            std::fs::write(&path, text(names)).expect("a temporary file");
            assert_eq!(kernel_speaks_sctp(&path), expected, "{names:?}");
        }
        std::fs::remove_file(&path).expect("it is there");
        assert!(!kernel_speaks_sctp(&path));
    }
}
