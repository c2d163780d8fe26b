//! Reasons why a connection could not be opened, for programs and users.

use std::fmt;
use std::io;

use ropewalk_base::PeerText;

use crate::mux::Refusal;

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The kind of reason.
    pub kind: ReasonKind,
    /// Text; at the near end, that of the exit.
    pub detail: PeerText,
}

/// Kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonKind {
    /// The exit's policy does not permit the target.
    NotAllowed,
    /// The name does not exist.
    NameUnknown,
    /// There is no route, or the host is down.
    Unreachable,
    /// The host is up, but nothing listens at the port.
    Refused,
    /// No answer in time.
    TimedOut,
    /// The exit did not understand the target.
    BadTarget,
    /// Too many connections.
    Busy,
    /// The near end has lost the exit.
    NoExit,
    /// Any other reason.
    Failed,
}

/// Each kind with its code between the two ends, its code in SOCKS (RFC 1928, 6) and its status in HTTP (RFC 9110,
/// 15).
const CODES: [(ReasonKind, u8, u8, u16); 9] = [
    (ReasonKind::Busy, Refusal::BUSY, 1, 503),
    (ReasonKind::NoExit, Refusal::CANCELLED, 3, 503),
    (ReasonKind::NotAllowed, 2, 2, 403),
    (ReasonKind::NameUnknown, 3, 4, 502),
    (ReasonKind::Unreachable, 4, 4, 502),
    (ReasonKind::Refused, 5, 5, 502),
    (ReasonKind::TimedOut, 6, 4, 504),
    (ReasonKind::BadTarget, 7, 1, 400),
    (ReasonKind::Failed, 8, 1, 502),
];

impl ReasonKind {
    fn row(self) -> (Self, u8, u8, u16) {
        let row = CODES.into_iter().find(|row| row.0 == self);
        row.unwrap_or(CODES[CODES.len() - 1])
    }

    /// The reply code in SOCKS 5.
    pub fn socks(self) -> u8 {
        self.row().2
    }

    /// The status code in HTTP.
    pub fn http(self) -> u16 {
        self.row().3
    }
}

impl Reason {
    /// Creates a reason.
    pub fn new(kind: ReasonKind, detail: impl Into<PeerText>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// The reason why a TCP connection failed.
    pub fn of_io(error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => ReasonKind::Refused,
            io::ErrorKind::TimedOut => ReasonKind::TimedOut,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable => ReasonKind::Unreachable,
            _ => ReasonKind::Failed,
        };
        Self::new(kind, error.to_string())
    }

    /// The reason in the form that is sent to the near end.
    pub fn refusal(&self) -> Refusal {
        Refusal::new(self.kind.row().1, self.detail.unescaped())
    }
}

impl From<Refusal> for Reason {
    fn from(refusal: Refusal) -> Self {
        let row = CODES.into_iter().find(|row| row.1 == refusal.code);
        Self::new(row.map_or(ReasonKind::Failed, |row| row.0), refusal.detail)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.detail.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_survive_the_way_and_every_kind_has_one_code() {
        for (kind, code, socks, http) in CODES {
            let reason = Reason::new(kind, "why \x1b[2J");
            assert_eq!(Reason::from(reason.refusal()), reason);
            assert_eq!(reason.to_string(), "why \\u{1b}[2J", "shown escaped");
            assert_eq!((kind.socks(), kind.http()), (socks, http));
            assert_eq!(CODES.iter().filter(|row| row.1 == code).count(), 1);
        }
        assert_eq!(Reason::from(Refusal::new(200, "new")).kind, ReasonKind::Failed);
    }
}
