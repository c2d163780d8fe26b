//! Secret keys in files: readable by their owner alone, and never overwritten.

use core::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::keys::{KeyError, SecretKey};

/// No key needs more; a device or a wrong file is not read to its end.
const FILE_MAX: u64 = 4096;

/// Why a key cannot be read from a file or written to one.
#[derive(Debug)]
pub struct KeyFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: KeyFileProblem,
}

/// What is wrong with a key file.
#[derive(Debug)]
pub enum KeyFileProblem {
    /// There is one already, and it may be the only copy of somebody's key.
    Exists,
    /// Others than its owner may read or write it; its mode.
    Open(u32),
    /// What it contains is no key.
    Key(KeyError),
    /// It is larger than a key file can be.
    TooLarge,
    /// The system says no.
    Io(io::Error),
}

impl SecretKey {
    /// Reads a key from a file that only its owner may read.
    ///
    /// # Errors
    /// [`KeyFileError`]: no such file, a mode that lets others in, or no key in it.
    pub fn read_file(path: &Path) -> Result<Self, KeyFileError> {
        read(path).map_err(|problem| KeyFileError { path: path.to_owned(), problem })
    }

    /// Writes the key to a new file with mode 0600. Others see all of it or nothing.
    ///
    /// # Errors
    /// [`KeyFileError`]: the file exists, or cannot be written.
    pub fn write_new_file(&self, path: &Path) -> Result<(), KeyFileError> {
        write(self, path).map_err(|problem| KeyFileError { path: path.to_owned(), problem })
    }
}

fn read(path: &Path) -> Result<SecretKey, KeyFileProblem> {
    let file = File::open(path)?;
    // Of the opened file, not of the name: it may be exchanged in between.
    check_mode(&file)?;
    let mut text = Zeroizing::new(String::with_capacity(FILE_MAX as usize + 1));
    file.take(FILE_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX {
        return Err(KeyFileProblem::TooLarge);
    }
    text.parse().map_err(KeyFileProblem::Key)
}

fn write(key: &SecretKey, path: &Path) -> Result<(), KeyFileProblem> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(KeyFileProblem::Exists);
    }
    let draft = draft_of(path);
    let written = write_draft(key, &draft).and_then(|()| {
        // Gives the file its name only if nothing has that name, which renaming would not.
        fs::hard_link(&draft, path)
    });
    // Either it never came to be, or it has its real name too.
    let _ = fs::remove_file(&draft);
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => KeyFileProblem::Exists,
        _ => KeyFileProblem::Io(error),
    })
}

fn write_draft(key: &SecretKey, draft: &Path) -> io::Result<()> {
    let text = key.text();
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(draft)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// A name in the same directory, so that both are on one file system.
fn draft_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.new", std::process::id()))
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn check_mode(file: &File) -> Result<(), KeyFileProblem> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(KeyFileProblem::Open(mode)) }
}

#[cfg(not(unix))]
fn check_mode(_: &File) -> Result<(), KeyFileProblem> {
    Ok(())
}

impl From<io::Error> for KeyFileProblem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.problem {
            KeyFileProblem::Exists => write!(f, "`{path}` exists already, and may be a key"),
            KeyFileProblem::Open(mode) => {
                write!(f, "others may read the key in `{path}`: its mode is {mode:04o}")
            }
            KeyFileProblem::Key(error) => write!(f, "`{path}` holds no secret key: {error}"),
            KeyFileProblem::TooLarge => {
                write!(f, "`{path}` holds no secret key: it has more than {FILE_MAX} bytes")
            }
            KeyFileProblem::Io(error) => write!(f, "`{path}`: {error}"),
        }
    }
}

impl KeyFileError {
    /// What to do about it.
    pub fn help(&self) -> String {
        let path = self.path.display();
        match &self.problem {
            KeyFileProblem::Exists => "give another name; a key is never overwritten".to_owned(),
            KeyFileProblem::Open(_) => format!("chmod 600 {path}"),
            KeyFileProblem::Key(_) | KeyFileProblem::TooLarge => {
                "give a file that `ropewalk keygen FILE` wrote".to_owned()
            }
            KeyFileProblem::Io(error) if error.kind() == ErrorKind::NotFound => {
                format!("`ropewalk keygen {path}` makes one, in a directory that exists")
            }
            KeyFileProblem::Io(_) => "give a file in a directory that you may use".to_owned(),
        }
    }
}

impl core::error::Error for KeyFileError {}

#[cfg(test)]
mod tests {
    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("ropewalk-keys-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).expect("a directory");
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_written_key_is_read_again_and_nothing_else_is_left() {
        let directory = Directory::new("round");
        let path = directory.0.join("me.key");
        let key = SecretKey::generate().expect("random numbers");
        key.write_new_file(&path).expect("written");
        assert_eq!(SecretKey::read_file(&path).expect("read").bytes(), key.bytes());
        assert_eq!(fs::read_dir(&directory.0).expect("a directory").count(), 1);
    }

    #[test]
    fn a_file_that_exists_is_left_alone() {
        let directory = Directory::new("exists");
        let path = directory.0.join("me.key");
        fs::write(&path, "precious").expect("written");
        let key = SecretKey::generate().expect("random numbers");
        let error = key.write_new_file(&path).expect_err("refused");
        assert!(matches!(error.problem, KeyFileProblem::Exists), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("read"), "precious");
        assert_eq!(fs::read_dir(&directory.0).expect("a directory").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_key_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let directory = Directory::new("mode");
        let path = directory.0.join("me.key");
        SecretKey::generate().expect("random numbers").write_new_file(&path).expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        for open in [0o640, 0o604, 0o620, 0o777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).expect("a mode");
            let error = SecretKey::read_file(&path).expect_err("refused");
            assert!(error.to_string().contains(&format!("{open:04o}")), "{error}");
            assert_eq!(error.help(), format!("chmod 600 {}", path.display()));
        }
    }

    #[test]
    fn what_is_no_key_file_is_refused_with_a_hint() {
        let directory = Directory::new("wrong");
        let path = directory.0.join("me.key");
        let absent = SecretKey::read_file(&path).expect_err("refused");
        assert!(absent.help().contains("ropewalk keygen"), "{}", absent.help());
        for text in ["", "not a key", &"A".repeat(5000)] {
            let _ = fs::remove_file(&path);
            let mut file = private(OpenOptions::new().write(true).create_new(true)).open(&path);
            file.as_mut().expect("a file").write_all(text.as_bytes()).expect("written");
            let error = SecretKey::read_file(&path).expect_err("refused");
            assert!(error.to_string().contains("holds no secret key"), "{error}");
            assert!(error.help().contains("ropewalk keygen"), "{}", error.help());
        }
    }
}
