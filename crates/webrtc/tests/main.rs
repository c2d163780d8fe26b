//! Tests of the crate as its users see it: in virtual time, and with a browser and other stacks over loopback.

mod aiortc;
mod channels;
mod chromium;
mod dcsctp;
mod hostile;
mod link;
mod peers;
mod pion;
mod random;
#[path = "../examples/send-file/site.rs"]
mod site;
#[path = "../examples/send-file/transfer.rs"]
mod transfer;
#[path = "../examples/transport/mod.rs"]
mod transport;
