//! The sender of a connection with several paths: what SCTP and Multipath TCP have in common.

mod path;

pub(crate) use path::TxPath;
