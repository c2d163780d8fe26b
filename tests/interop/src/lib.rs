//! What tests against other people's stacks share: two hosts joined by links, peers as processes,
//! messages whose every byte is known, and captures that an independent dissector reads.
//!
//! Whatever the machine lacks (privileges, a library, a tool) is a [`Missing`], and the test says so
//! and ends.

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

/// Ends the test with a word if something is missing.
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
