//! WebRTC data channels (RFC 8831, RFC 8832) over SCTP on a DTLS transport that the caller brings (RFC 8261).
//!
//! The crate has no sockets, no clock and no threads, and no ICE and no DTLS. The caller hands over the application data of
//! its DTLS connection, which are SCTP packets, and sends the packets that the crate makes as DTLS application data:
//!
//! ```text
//!   application    open(), send(), close()            Event::Opened, Event::Message, ...
//!                        |                                   ^
//!   this crate     Connection: channels, establishment protocol, closing
//!                        |                                   |
//!   ropewalk-engine      one SCTP association: streams, retransmission, congestion control
//!                        v                                   |
//!   caller         poll_transmit() -> DTLS -> UDP      UDP -> DTLS -> handle_packet()
//! ```
//!
//! **One input, then drain**: after each call that takes `now`, call [`Connection::poll_event`] until it returns nothing,
//! then [`Connection::poll_transmit`] until it returns false, then [`Connection::next_deadline`].
//!
//! ```
//! use ropewalk_webrtc::{ChannelOptions, Config, Connection, DtlsRole, Event, Message, Seed, Time};
//!
//! // In a program: Secret::new(32 bytes of the operating system's generator), and a monotonic clock.
//! let now = Time::ZERO;
//! let mut client = Connection::new(Config::new(DtlsRole::Client), Seed::root(1), now);
//! let mut server = Connection::new(Config::new(DtlsRole::Server), Seed::root(2), now);
//! let channel = client.open(now, ChannelOptions::labelled("greeting")).unwrap();
//!
//! let mut received = None;
//! while received.is_none() {
//!     while let Some(event) = client.poll_event(now) {
//!         if event == Event::Connected {
//!             client.send(now, channel, Message::from("hello")).unwrap();
//!         }
//!     }
//!     while let Some(event) = server.poll_event(now) {
//!         if let Event::Message { message, .. } = event {
//!             received = Some(message);
//!         }
//!     }
//!     // Here, packets go through DTLS.
//!     let mut packet = Vec::new();
//!     while client.poll_transmit(now, &mut packet) {
//!         server.handle_packet(now, packet.clone().into());
//!     }
//!     while server.poll_transmit(now, &mut packet) {
//!         client.handle_packet(now, packet.clone().into());
//!     }
//! }
//! assert_eq!(received, Some(Message::from("hello")));
//! ```

mod assembly;
mod channel;
mod config;
mod connection;
mod dcep;
mod event;
mod ppid;

pub use ropewalk_base::{Duration, Seed, Time};
pub use ropewalk_engine::sctp::association::CloseReason;
pub use ropewalk_engine::sctp::{Randomness, Secret};

pub use channel::{ChannelId, ChannelOptions, ChannelState, ChannelStats, Reliability, priority};
pub use config::{Config, DtlsRole};
pub use connection::{Connection, Stats};
pub use dcep::{Dcep, DcepError};
pub use event::{ChannelClosed, Event, Message, OpenError, SendError, Violation};
