//! The integration tests of this crate in one program: each program links the entire crate, which takes
//! longer than compiling most of these files.

mod conformance;
mod delays;
mod driver;
mod hostile;
mod ledger;
mod mptcp;
mod pair;
mod random;
mod rules;
