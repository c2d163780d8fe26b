//! Sockets: listeners, associations, and how Python waits for them.
//!
//! Each call that takes time is an [`Operation`]. Python either waits for it, with the interpreter released and
//! Ctrl-C honoured, or is called back, which is how asyncio waits. Arriving data goes into an inbox first: a
//! cancelled wait loses nothing.

mod address_event;
mod association;
mod association_control;
mod callback_thread;
mod inbox;
mod key;
mod limits;
mod listener;
mod message;
mod net_runtime;
mod open;
mod operation;
mod stats;
mod stream_event;

pub(crate) use association::Association;
pub(crate) use association_control::AssociationControl;
pub(crate) use key::{Key, net_default_key, net_find_peer};
pub(crate) use listener::Listener;
pub(crate) use message::Message;
pub(crate) use open::{net_connect, net_listen};
pub(crate) use operation::Operation;
