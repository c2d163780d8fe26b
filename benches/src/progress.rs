//! Progress on the terminal.

use std::io::{IsTerminal, Write};

/// Shows progress: one line that is overwritten on a terminal, or one line per tenth in a file.
pub fn progress(name: &str, done: usize, all: usize) {
    let mut err = std::io::stderr().lock();
    let text = format!("  {name}: {done} of {all}");
    // A run continues even if its progress cannot be shown.
    let _ = if err.is_terminal() {
        let end = if done == all { "\n" } else { "" };
        write!(err, "\r{text}{end}")
    } else if is_tenth(done, all) {
        writeln!(err, "{text}")
    } else {
        Ok(())
    };
}

const fn is_tenth(done: usize, all: usize) -> bool {
    done * 10 / all != (done - 1) * 10 / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_ten_lines_or_fewer() {
        for (all, expected) in [(1, 1), (7, 7), (10, 10), (200, 10), (203, 10)] {
            assert_eq!((1..=all).filter(|done| is_tenth(*done, all)).count(), expected, "{all}");
        }
    }
}
