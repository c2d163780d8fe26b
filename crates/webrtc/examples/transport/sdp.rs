//! The parts of session descriptions that data channels need (RFC 8841, RFC 8839, RFC 8122): reads an offer, writes an
//! answer.

use std::net::SocketAddr;

/// Length of messages without `a=max-message-size` (RFC 8841, 6).
const DEFAULT_MAX_MESSAGE_SIZE: usize = 64 << 10;

/// Contents of an offer.
pub struct Offer {
    /// SHA-256 of the peer's certificate.
    pub fingerprint: [u8; 32],
    /// Identifier of the media section.
    pub mid: String,
    /// Whether the peer asks this end to start the DTLS handshake (`a=setup:passive`).
    pub is_passive: bool,
    pub sctp_port: u16,
    /// Maximum size of a message that the peer accepts, bytes.
    pub max_message_size: usize,
}

impl Offer {
    /// Reads an offer with one section for data channels.
    pub fn read(text: &str) -> Result<Self, String> {
        let value = |name: &str| {
            text.lines().find_map(|line| {
                line.trim_end().strip_prefix("a=")?.strip_prefix(name)?.strip_prefix(':')
            })
        };
        if !text.contains("m=application ") {
            return Err("the offer has no section for data channels".into());
        }
        let fingerprint = value("fingerprint").ok_or("the offer has no fingerprint")?;
        let port = value("sctp-port").ok_or("the offer has no SCTP port")?;
        let max_message_size = match value("max-message-size").map(str::parse) {
            // RFC 8841, 6: 0 means any length.
            Some(Ok(0)) => usize::MAX,
            Some(Ok(size)) => size,
            _ => DEFAULT_MAX_MESSAGE_SIZE,
        };
        Ok(Self {
            fingerprint: parse_fingerprint(fingerprint)
                .ok_or("the fingerprint is not of SHA-256")?,
            mid: value("mid").unwrap_or("0").to_owned(),
            is_passive: value("setup") == Some("passive"),
            sctp_port: port.parse().map_err(|_| "the SCTP port is no number")?,
            max_message_size,
        })
    }
}

fn parse_fingerprint(text: &str) -> Option<[u8; 32]> {
    let (hash, digits) = text.trim().split_once(' ')?;
    if !hash.eq_ignore_ascii_case("sha-256") {
        return None;
    }
    let bytes: Option<Vec<u8>> =
        digits.split(':').map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// Contents of an answer.
pub struct Answer<'a> {
    pub mid: &'a str,
    pub ufrag: &'a str,
    pub password: &'a str,
    pub fingerprint: [u8; 32],
    /// Whether this end starts the DTLS handshake.
    pub is_active: bool,
    pub address: SocketAddr,
    /// Maximum size of a message that this end accepts, bytes.
    pub max_message_size: usize,
}

impl Answer<'_> {
    pub fn write(&self) -> String {
        let pairs: Vec<String> =
            self.fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
        let family = if self.address.is_ipv4() { "IP4" } else { "IP6" };
        let lines = [
            "v=0".to_owned(),
            "o=- 1 1 IN IP4 0.0.0.0".to_owned(),
            "s=-".to_owned(),
            "t=0 0".to_owned(),
            // RFC 8445, 2.5: this end answers connectivity checks, and sends none.
            "a=ice-lite".to_owned(),
            format!("a=group:BUNDLE {}", self.mid),
            format!("m=application {} UDP/DTLS/SCTP webrtc-datachannel", self.address.port()),
            format!("c=IN {family} {}", self.address.ip()),
            format!("a=mid:{}", self.mid),
            format!("a=ice-ufrag:{}", self.ufrag),
            format!("a=ice-pwd:{}", self.password),
            format!("a=fingerprint:sha-256 {}", pairs.join(":")),
            format!("a=setup:{}", if self.is_active { "active" } else { "passive" }),
            "a=sctp-port:5000".to_owned(),
            format!("a=max-message-size:{}", self.max_message_size),
            format!(
                "a=candidate:1 1 udp 2130706431 {} {} typ host",
                self.address.ip(),
                self.address.port()
            ),
            "a=end-of-candidates".to_owned(),
        ];
        lines.map(|line| line + "\r\n").concat()
    }
}
