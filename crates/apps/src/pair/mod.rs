//! Pairing over UDP: one end shows a short code, the other end types it, and both learn each other's public keys.
//!
//! The cryptography is in [`ropewalk_runtime::seal`]. This module carries its messages in datagrams and holds the
//! rules: one attempt per code, a limited lifetime, bounded work for packets from unauthenticated peers. The two
//! machines, [`Responder`] and [`Initiator`], use no sockets; `live` drives them.

mod code;
mod initiator;
mod introduction;
mod live;
mod message;
mod responder;
#[cfg(test)]
mod tests;

pub use self::code::{Code, CodeError, Invitation, InvitationError};
pub use self::initiator::{Initiator, Joined};
pub use self::introduction::Introduction;
pub use self::live::{OfferSockets, PairError, join, offer};
pub use self::responder::Responder;
