//! The integration tests of this crate in one program: every program is linked with the entire crate, which
//! takes longer than compiling most of these files.

mod any_text;
mod errors;
mod rate_logs;
mod ready;
mod reference;
mod scenarios;
mod traces;
