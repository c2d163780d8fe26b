//! Secret keys in files: readable by their owner only, and never overwritten.

use core::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::keys::{KeyError, SecretKey};
use super::psk::PresharedKey;
use super::trusted_file::{self, Secrecy};

/// Size limit of a key file, bytes, so that a wrong file is not read to its end.
const FILE_MAX: u64 = 4096;

/// Why a key cannot be read from a file or written to one.
#[derive(Debug, thiserror::Error)]
pub struct KeyFileError {
    /// The file.
    pub path: PathBuf,
    /// The problem.
    pub problem: KeyFileProblem,
}

/// A problem with a key file.
#[derive(Debug)]
pub enum KeyFileProblem {
    /// The file exists, and may be the only copy of a key.
    Exists,
    /// Not a regular file; what it is instead.
    NotAFile(&'static str),
    /// The file belongs to another user.
    Owner {
        /// The file's owner.
        owner: u32,
        /// The user who reads it.
        user: u32,
    },
    /// Users other than the owner may write it, or read it although it is secret.
    Open {
        /// The file's mode.
        mode: u32,
        /// Whether the file is secret.
        secrecy: Secrecy,
    },
    /// The file does not contain a key.
    Key(KeyError),
    /// The file is larger than this limit, bytes.
    TooLarge(u64),
    /// The file is not UTF-8.
    NotText,
    /// A system error.
    Io(io::Error),
}

impl SecretKey {
    /// Reads a key from a file that only its owner, this user or root, may read.
    ///
    /// # Errors
    /// [`KeyFileError`]: the file is missing or not regular, its owner or mode gives others access, or it contains no
    /// key.
    pub fn read_file(path: &Path) -> Result<Self, KeyFileError> {
        read(path)
    }

    /// Writes the key to a new file with mode 0600. The file appears complete or not at all.
    ///
    /// # Errors
    /// [`KeyFileError`]: the file exists or cannot be written.
    pub fn write_new_file(&self, path: &Path) -> Result<(), KeyFileError> {
        write(&self.text(), path)
    }
}

impl PresharedKey {
    /// Like [`SecretKey::read_file`].
    ///
    /// # Errors
    /// Like [`SecretKey::read_file`].
    pub fn read_file(path: &Path) -> Result<Self, KeyFileError> {
        read(path)
    }

    /// Like [`SecretKey::write_new_file`].
    ///
    /// # Errors
    /// Like [`SecretKey::write_new_file`].
    pub fn write_new_file(&self, path: &Path) -> Result<(), KeyFileError> {
        write(&self.text(), path)
    }
}

fn read<K: core::str::FromStr<Err = KeyError>>(path: &Path) -> Result<K, KeyFileError> {
    let text = trusted_file::read_trusted(path, Secrecy::Secret, FILE_MAX)?;
    let problem =
        |error| KeyFileError { path: path.to_owned(), problem: KeyFileProblem::Key(error) };
    text.parse().map_err(problem)
}

/// Writes a line to a new file with mode 0600: `prefix`, and 32 random bytes in hexadecimal digits. The file appears
/// complete or not at all.
///
/// # Errors
/// [`KeyFileError`]: the file exists or cannot be written, or there are no random numbers.
pub fn write_new_secret(prefix: &str, path: &Path) -> Result<(), KeyFileError> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    getrandom::fill(&mut *bytes).map_err(|_| KeyFileError {
        path: path.to_owned(),
        problem: KeyFileProblem::Key(KeyError::NoRandomness),
    })?;
    // Allocated in full: a growing string would leave copies of the secret in memory.
    let mut text = Zeroizing::new(String::with_capacity(prefix.len() + 2 * bytes.len()));
    text.push_str(prefix);
    for byte in bytes.iter() {
        let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    write(&text, path)
}

fn write(text: &Zeroizing<String>, path: &Path) -> Result<(), KeyFileError> {
    write_once(text, path).map_err(|problem| KeyFileError { path: path.to_owned(), problem })
}

fn write_once(text: &str, path: &Path) -> Result<(), KeyFileProblem> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(KeyFileProblem::Exists);
    }
    let draft = draft_of(path);
    let written = write_draft(text, &draft).and_then(|()| {
        // A hard link fails if the name exists; a rename would replace the file.
        fs::hard_link(&draft, path)
    });
    // The draft was never created, or also has its real name now.
    let _ = fs::remove_file(&draft);
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => KeyFileProblem::Exists,
        _ => KeyFileProblem::Io(error),
    })
}

fn write_draft(text: &str, draft: &Path) -> io::Result<()> {
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(draft)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// A name in the same directory, and therefore on the same file system.
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

impl From<io::Error> for KeyFileProblem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.problem {
            KeyFileProblem::Exists => write!(f, "`{path}` already exists and may be a key"),
            KeyFileProblem::NotAFile(kind) => write!(f, "`{path}` is {kind}, not a regular file"),
            KeyFileProblem::Owner { owner, user } => {
                write!(f, "`{path}` belongs to user {owner}, and this is user {user}")
            }
            KeyFileProblem::Open { mode, secrecy: Secrecy::Secret } => {
                write!(f, "others may read the key in `{path}`: its mode is {mode:04o}")
            }
            KeyFileProblem::Open { mode, secrecy: Secrecy::Public } => {
                write!(f, "others may change `{path}`: its mode is {mode:04o}")
            }
            KeyFileProblem::Key(error) => write!(f, "`{path}` holds no secret key: {error}"),
            KeyFileProblem::TooLarge(limit) => {
                write!(f, "`{path}` has more than {limit} bytes, which is too much")
            }
            KeyFileProblem::NotText => write!(f, "`{path}` is not text"),
            KeyFileProblem::Io(error) => write!(f, "`{path}`: {error}"),
        }
    }
}

impl KeyFileError {
    /// A hint on how to solve the problem.
    pub fn help(&self) -> String {
        let path = self.path.display();
        match &self.problem {
            KeyFileProblem::Exists => "give another name; a key is never overwritten".to_owned(),
            KeyFileProblem::Open { secrecy: Secrecy::Secret, .. } => format!("chmod 600 {path}"),
            KeyFileProblem::Open { .. } => format!("chmod go-w {path}"),
            KeyFileProblem::Owner { user, .. } => {
                format!("`chown {user} {path}`, or a copy of your own: only you or root may own it")
            }
            KeyFileProblem::Key(_)
            | KeyFileProblem::TooLarge(_)
            | KeyFileProblem::NotText
            | KeyFileProblem::NotAFile(_) => {
                "give a file that `ropewalk keygen FILE` wrote".to_owned()
            }
            KeyFileProblem::Io(error) if error.kind() == ErrorKind::NotFound => {
                format!("`ropewalk keygen {path}` creates one in an existing directory")
            }
            KeyFileProblem::Io(_) => "give a file in a directory that you may use".to_owned(),
        }
    }
}

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
            let shown = error.to_string();
            assert!(shown.contains("no secret key") || shown.contains("too much"), "{shown}");
            assert!(error.help().contains("ropewalk keygen"), "{}", error.help());
        }
    }

    #[test]
    fn a_pre_shared_key_survives_its_file_and_is_no_secret_key_of_zeros() {
        let directory = Directory::new("psk");
        let path = directory.0.join("shared.psk");
        let psk = PresharedKey::generate().expect("random numbers");
        psk.write_new_file(&path).expect("written");
        assert!(PresharedKey::read_file(&path).expect("read") == psk);
        assert!(!format!("{psk:?}").contains(psk.text().as_str()));
        let zeros = format!("{}=", "A".repeat(43));
        assert_eq!(zeros.parse::<PresharedKey>(), Err(KeyError::Zero));
    }

    /// Reading any of these would block or never end.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let directory = Directory::new("kinds");
        let (fifo, link) = (directory.0.join("fifo"), directory.0.join("link"));
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).expect("a FIFO");
        std::os::unix::fs::symlink(&fifo, &link).expect("a link");
        let zero = PathBuf::from("/dev/zero");
        for (path, kind) in [
            (&fifo, "a FIFO"),
            (&link, "a FIFO"),
            (&directory.0, "a directory"),
            (&zero, "a device"),
        ] {
            for error in [
                SecretKey::read_file(path).expect_err("refused"),
                PresharedKey::read_file(path).expect_err("refused"),
                trusted_file::read_trusted(path, Secrecy::Public, 100).expect_err("refused"),
            ] {
                assert!(error.to_string().contains(kind), "{error}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_another_user_is_refused() {
        let directory = Directory::new("owner");
        let path = directory.0.join("me.key");
        SecretKey::generate().expect("random numbers").write_new_file(&path).expect("written");
        // Only root can change a file's owner.
        if std::os::unix::fs::chown(&path, Some(12_345), None).is_err() {
            return;
        }
        let error = SecretKey::read_file(&path).expect_err("refused");
        assert!(error.to_string().contains("belongs to user 12345"), "{error}");
        assert!(error.help().contains("chown"), "{}", error.help());
    }

    #[cfg(unix)]
    #[test]
    fn a_list_may_be_read_by_all_and_written_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let directory = Directory::new("list");
        let path = directory.0.join("peers.toml");
        fs::write(&path, "hello").expect("written");
        for (mode, good) in [(0o644, true), (0o600, true), (0o664, false), (0o646, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            let read = trusted_file::read_trusted(&path, Secrecy::Public, 5);
            assert_eq!(read.is_ok(), good, "{mode:o}: {read:?}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
        let error = trusted_file::read_trusted(&path, Secrecy::Public, 4).expect_err("too large");
        assert!(error.to_string().contains("4 bytes"), "{error}");
        fs::write(&path, [0xff; 3]).expect("written");
        let error = trusted_file::read_trusted(&path, Secrecy::Public, 4).expect_err("no text");
        assert!(matches!(error.problem, KeyFileProblem::NotText), "{error}");
    }
}
