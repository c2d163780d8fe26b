//! Atomic writing of files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes `bytes` to a temporary file in the same directory and renames it to `path`. A reader sees either the
/// old or the complete new contents. An existing file is replaced.
///
/// # Errors
/// The error of the file system; the temporary file is removed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path does not end in a file name")
    })?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    // The process id keeps the temporary files of concurrent processes apart.
    hidden.push(format!(".{}.part", std::process::id()));
    let temporary = path.with_file_name(hidden);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    if written.is_err() {
        // Report the first error, not one of the clean-up.
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("ropewalk-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory");
        dir
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let dir = dir("atomic");
        let path = dir.join("a.txt");
        for text in ["first", "second"] {
            write_atomically(&path, text.as_bytes()).expect("a writable directory");
            assert_eq!(fs::read_to_string(&path).expect("the file"), text);
        }
        assert_eq!(fs::read_dir(&dir).expect("the room").count(), 1);
        fs::remove_dir_all(dir).expect("to tidy up");
    }

    #[test]
    fn a_target_that_cannot_be_replaced_leaves_no_temporary_file() {
        let dir = dir("atomic-refused");
        let path = dir.join("taken");
        fs::create_dir_all(path.join("inside")).expect("a directory in the way");
        assert!(write_atomically(&path, b"x").is_err());
        assert_eq!(fs::read_dir(&dir).expect("the room").count(), 1);
        fs::remove_dir_all(dir).expect("to tidy up");
    }
}
