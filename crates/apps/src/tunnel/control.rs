//! Messages between the ends of a tunnel in addition to packets: JSON documents on a separate stream.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// The stream of packets, which are unordered. Stream 0 without a payload protocol identifier gives the shortest
/// headers.
pub const PACKET_STREAM: u16 = 0;
/// The stream of these documents.
pub const CONTROL_STREAM: u16 = 1;
/// Payload protocol identifier of packets: none.
pub const PACKET_PPID: u32 = 0;
/// Payload protocol identifier of these documents.
pub const CONTROL_PPID: u32 = 0x5257_5443;
/// Payload protocol identifier of the message with the uses of paths ([`ropewalk_tunnel::encode_uses`]), on the
/// stream of the documents. An end that does not know it drops the message, and uses all paths.
pub const USES_PPID: u32 = 0x5257_544c;
/// Version of these documents. The ends must agree.
pub const VERSION: u32 = 2;
/// Why a hub aborts an association whose client has opened another one.
pub const TAKEN_OVER: &str = "another association of this key has taken over its addresses";
/// Maximum size of a document, bytes.
const LARGEST: usize = 4096;
/// Maximum number of addresses, networks and name servers in a document.
const MOST_ENTRIES: usize = 16;

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Control {
    /// The client requests its addresses.
    Hello {
        /// [`VERSION`] of the client.
        version: u32,
    },
    /// The hub assigns the client its addresses.
    Welcome(Welcome),
    /// The hub does not serve this client.
    Refused {
        /// The reason, as text.
        reason: String,
    },
}

/// The hub's answer to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    /// The client's addresses in the tunnel, with the prefix of the tunnel's network.
    pub addresses: Vec<IpNet>,
    /// The hub's own addresses in the tunnel.
    pub hub: Vec<IpAddr>,
    /// Name servers that the hub recommends.
    pub dns: Vec<IpAddr>,
}

/// A document that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The document has this size, which exceeds the maximum.
    #[error("a control message of {0} B")]
    TooLong(usize),
    /// The document is of an unknown kind.
    #[error("a control message of another version")]
    Unknown,
    /// The document has too many entries, or an address that no tunnel can have.
    #[error("a control message with addresses that cannot be used")]
    Content,
}

impl Control {
    /// The document as bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a document of the peer.
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ControlError> {
        if bytes.len() > LARGEST {
            return Err(ControlError::TooLong(bytes.len()));
        }
        let control: Self = serde_json::from_slice(bytes).map_err(|_| ControlError::Unknown)?;
        match &control {
            Self::Welcome(welcome) if !welcome.is_usable() => Err(ControlError::Content),
            _ => Ok(control),
        }
    }
}

impl Welcome {
    fn is_usable(&self) -> bool {
        let counts = [self.addresses.len(), self.hub.len(), self.dns.len()];
        let host = |ip: &IpAddr| !(ip.is_loopback() || ip.is_multicast() || ip.is_unspecified());
        let addresses = self.addresses.iter().all(|it| host(&it.addr()) && it.prefix_len() > 0);
        counts.iter().all(|count| *count <= MOST_ENTRIES)
            && !self.addresses.is_empty()
            && addresses
            && self.hub.iter().chain(&self.dns).all(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome() -> Welcome {
        Welcome {
            addresses: vec!["10.88.0.2/24".parse().expect("a network")],
            hub: vec![[10, 88, 0, 1].into()],
            dns: Vec::new(),
        }
    }

    #[test]
    fn documents_come_back_as_they_were_sent() {
        for document in [
            Control::Hello { version: VERSION },
            Control::Welcome(welcome()),
            Control::Refused { reason: "no free address".to_owned() },
        ] {
            assert_eq!(Control::decode(&document.encode()), Ok(document));
        }
    }

    #[test]
    fn hostile_documents_are_refused() {
        let changed = |change: fn(&mut Welcome)| {
            let mut welcome = welcome();
            change(&mut welcome);
            Control::Welcome(welcome).encode()
        };
        for (bytes, error) in [
            (vec![b' '; LARGEST + 1], ControlError::TooLong(LARGEST + 1)),
            (b"{}".to_vec(), ControlError::Unknown),
            (b"{\"hello\":{\"version\":1,\"more\":2}}".to_vec(), ControlError::Unknown),
            (changed(|it| it.addresses.clear()), ControlError::Content),
            (changed(|it| it.hub = vec![[127, 0, 0, 1].into()]), ControlError::Content),
            (changed(|it| it.dns = vec![[9, 9, 9, 9].into(); 17]), ControlError::Content),
            (
                changed(|it| it.addresses = vec!["10.0.0.1/0".parse().expect("one")]),
                ControlError::Content,
            ),
        ] {
            assert_eq!(Control::decode(&bytes), Err(error));
        }
    }
}
