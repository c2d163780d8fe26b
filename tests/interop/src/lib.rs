//! Shared parts of the tests against other stacks: two hosts joined by links, peers as processes,
//! messages with known contents, and captures that an independent dissector reads.
//!
//! If the machine lacks something (privileges, a library, a tool), the result is a [`Missing`]. The
//! test then reports it and passes.

pub mod capture;
pub mod crafted;
pub mod hosts;
pub mod ours;
pub mod pattern;
pub mod peer;
pub mod translators;

use std::fmt;

/// What the machine lacks.
#[derive(Debug)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// Ends the test with a note if something is missing.
#[macro_export]
macro_rules! or_skip {
    ($what:expr) => {
        match $what {
            Ok(value) => value,
            Err(missing) => {
                eprintln!("skipped: {missing}");
                return;
            }
        }
    };
}
