//! Two ends of a Multipath TCP session in virtual time, over scripted paths.

mod chihani;
mod data;
mod driver;
mod failover;
mod handshake;
mod hostile;
mod loss;
mod random;
