//! What surrounds an SCTP packet in a UDP datagram.

use ropewalk_base::{PathId, Time};
use ropewalk_engine::sctp::Packet;
use ropewalk_engine::sctp::wire::{self, Checksum, Ports, compact};

use super::handshake::HandshakeInProgress;
use crate::seal::{OVERHEAD, SealError, Session};

/// Encapsulation of the packets of one association.
pub enum Encapsulation {
    /// Nothing: SCTP in UDP (RFC 6951).
    Plain(Ports),
    /// The handshake that leads to a session is in progress.
    HandshakeInProgress(Box<HandshakeInProgress>),
    /// A session seals each packet.
    Sealed(Box<Session>),
}

/// SCTP ports inside a seal. Each session carries one association, so the ports need not differ.
pub(super) const SEALED_PORTS: Ports = Ports { source: super::PORT, destination: super::PORT };

impl std::fmt::Debug for Encapsulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::HandshakeInProgress(_) => "Shaking",
            Self::Sealed(_) => "Sealed",
        })
    }
}

impl Encapsulation {
    /// SCTP ports of outgoing packets.
    pub const fn ports(&self) -> Ports {
        match self {
            Self::Plain(ports) => *ports,
            Self::HandshakeInProgress(_) | Self::Sealed(_) => SEALED_PORTS,
        }
    }

    /// Bytes that the encapsulation adds to a packet.
    pub const fn overhead(&self) -> u32 {
        match self {
            Self::Plain(_) => 0,
            Self::HandshakeInProgress(_) | Self::Sealed(_) => OVERHEAD as u32,
        }
    }

    /// Appends the datagram that contains `packet`.
    ///
    /// # Errors
    /// If the session's keys are used up. In that case nothing is appended.
    #[inline]
    pub fn write(
        &mut self,
        path: PathId,
        packet: &Packet,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        match self {
            Self::Plain(ports) => wire::encode(packet, *ports, Checksum::Crc32c, out),
            // The association starts once there is a session.
            Self::HandshakeInProgress(_) => {}
            Self::Sealed(session) => {
                let form = compact::form_of(packet);
                session.seal_form(path.0, form, out, |out| match form {
                    compact::STANDARD => wire::encode(packet, SEALED_PORTS, Checksum::None, out),
                    _ => compact::encode(packet, out),
                })?;
            }
        }
        Ok(())
    }

    /// When [`Encapsulation::handle_timeout`] must be called.
    pub fn next_deadline(&self) -> Option<Time> {
        match self {
            Self::Plain(_) => None,
            Self::HandshakeInProgress(handshake) => handshake.next_deadline(),
            Self::Sealed(session) => session.next_deadline(),
        }
    }

    /// Handles timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Plain(_) => {}
            Self::HandshakeInProgress(handshake) => handshake.handle_timeout(now),
            Self::Sealed(session) => session.handle_timeout(now),
        }
    }
}
