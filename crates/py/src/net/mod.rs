//! Sockets: listeners, associations, and how Python waits for them.
//!
//! Whatever takes time is an [`Operation`]. Python either waits for it, with the interpreter free and
//! Ctrl-C heard, or has it call back, which is how asyncio waits. What arrives is put into an inbox
//! first: a wait that is given up loses nothing.

mod association;
mod callback_thread;
mod inbox;
mod key;
mod listener;
mod message;
mod net_runtime;
mod open;
mod operation;
mod stats;

pub(crate) use association::Association;
pub(crate) use key::Key;
pub(crate) use listener::Listener;
pub(crate) use message::Message;
pub(crate) use open::{net_connect, net_listen};
pub(crate) use operation::Operation;
