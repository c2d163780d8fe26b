//! The integration tests of this crate in one program: each program links all of the crate, which takes longer
//! than compiling most of these files.

mod markov;
mod optimise;
mod properties;
mod slot_claims;
mod slot_tables;
