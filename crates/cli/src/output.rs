//! Stdout, which only carries data.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes `text` to stdout.
///
/// # Errors
/// If standard output cannot be written. It is not an error if the reader stops reading, as `head` does.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("stdout cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes `document` to stdout as JSON.
///
/// # Errors
/// The document cannot be written.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::Run(format!("the result cannot be written as JSON: {error}")))?;
    print(&(text + "\n"))
}
