//! The integration tests of this crate in one program: each program links all of the crate, which takes longer
//! than compiling most of these files.

mod any_text;
mod errors;
mod rate_logs;
mod ready;
mod reference;
mod scenarios;
mod traces;
