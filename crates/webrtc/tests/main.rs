//! Tests of the crate as its users see it: in virtual time, and with a browser and another stack over loopback.

mod channels;
mod chromium;
mod dcsctp;
mod hostile;
mod link;
mod pion;
mod random;
#[path = "../examples/send-file/site.rs"]
mod site;
#[path = "../examples/send-file/transfer.rs"]
mod transfer;
#[path = "../examples/transport/mod.rs"]
mod transport;
