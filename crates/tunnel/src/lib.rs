//! The core of a tunnel: which inner packet is sent next, and when a received one is delivered.
//!
//! Each inner packet becomes one unordered message of a multipath association. The core decides everything
//! that concerns flows; the association decides everything that concerns paths.
//!
//! ```text
//!   enqueue -> queue per flow, CoDel, classes -> next    message    on_message -> order per flow -> deliver
//!              (before the paths are assigned)          ~~~~~~~~~>   (a gap is waited for, up to a limit)
//! ```
//!
//! One [`Tunnel`] is one end and does both. It reads no clock and opens no socket. **One input, then drain, then
//! ask for the deadline**: after [`Tunnel::enqueue`], [`Tunnel::on_message`] or a time that has passed, call
//! [`Tunnel::next`] until it returns nothing, [`Tunnel::deliver`] until it returns nothing, then
//! [`Tunnel::deadline`]. [`Tunnel::set_paths`] passes on what the association has measured.
//!
//! ```
//! use ropewalk_base::{Duration, Time};
//! use ropewalk_tunnel::{Class, Config, Ecn, Inner, Order, PathState, Tunnel, Waiting};
//!
//! let (mut client, mut hub) = (Tunnel::new(Config::default()), Tunnel::new(Config::default()));
//! let paths = [PathState::new(Duration::from_millis(20)), PathState::new(Duration::from_millis(90))];
//! hub.set_paths(&paths);
//! for name in ["first", "second"] {
//!     client.enqueue(Time::ZERO, Inner {
//!         flow: 7,
//!         class: Class::Bulk,
//!         order: Order::Restored,
//!         ecn: Ecn::NotEct,
//!         bytes: 1400,
//!         payload: name,
//!     });
//! }
//! let first = client.next(Time::ZERO, Waiting::default()).expect("room for it");
//! let second = client.next(Time::ZERO, Waiting { all: 1400, interactive: 0 }).expect("room for it");
//! // The second arrives sooner, on the quicker path, and waits for the first.
//! hub.on_message(Time::from_millis(20), second.header, second.bytes, second.payload);
//! assert_eq!(hub.deliver(Time::from_millis(20)), None);
//! hub.on_message(Time::from_millis(90), first.header, first.bytes, first.payload);
//! assert_eq!(hub.deliver(Time::from_millis(90)), Some("first"));
//! assert_eq!(hub.deliver(Time::from_millis(90)), Some("second"));
//! ```

mod codel;
mod config;
mod copies;
mod counters;
mod flow;
mod header;
mod ingress;
mod links;
mod moderation;
mod order;
mod outlook;
mod receiver;
mod tunnel;

pub use config::{CodelConfig, Config, Redundancy, packet_cost};
pub use counters::{ClassCounters, Counters, ReceiveCounters};
pub use header::Header;
pub use links::{LinkRule, LinkUse, PathRule, decode_uses, encode_uses};
pub use moderation::Moderation;
pub use outlook::{PathState, REPAIRS};
pub use tunnel::{Class, Ecn, Inner, Order, Outgoing, Tunnel, Waiting};
