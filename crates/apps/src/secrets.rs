//! Files with the secrets of authenticated chunks (AUTH, RFC 4895): one secret in a line, with its number.
//!
//! ```text
//! # number, secret
//! 2 hex:8f3a...
//! 1 a passphrase of both ends
//! ```
//!
//! The first one authenticates what this end sends, and all of them are accepted from the peer. So secrets can be replaced one end
//! after the other: the new one is added as the last line of both files, then moved to the first line of both.

use std::fmt;
use std::path::{Path, PathBuf};

use ropewalk_runtime::endpoint::{SharedKeyError, SharedKeys};
use ropewalk_runtime::seal::{KeyFileError, KeyFileProblem, Secrecy, read_trusted};

/// Maximum size of a file, bytes.
const FILE_MAX: u64 = 16_384;
/// Minimum length of a secret, bytes. An attacker who has seen the handshake can search for a short one.
pub const LEAST_SECRET: usize = 16;
/// Prefix of a secret in hexadecimal digits.
const HEX: &str = "hex:";
const LINE_HELP: &str = "a line is a number from 0 to 65535, a space, and a secret of 16 to 256 bytes: text, or hex: and \
     hexadecimal digits; `ropewalk keygen --secrets FILE` creates such a file";

/// Why a file with secrets was rejected. It names no part of a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The file cannot be read, or others may read it.
    #[error("{0}")]
    File(KeyFileError),
    /// A line is wrong.
    #[error("{path}:{line}: {problem}", path = .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The problem.
        problem: SecretProblem,
    },
    /// The file has no secret.
    #[error("{}: there is no secret in this file", .0.display())]
    Empty(PathBuf),
}

/// A problem with a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecretProblem {
    /// The line does not begin with a number and a space.
    NoNumber,
    /// The number already has a secret, on this line.
    Repeated(u16, usize),
    /// The digits after `hex:` are not hexadecimal, or their number is odd.
    Hex,
    /// The secret is too short: it has this many bytes.
    Short(usize),
    /// The secret cannot be set.
    Refused(SharedKeyError),
}

impl fmt::Display for SecretProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => f.write_str("there is no number before the secret"),
            Self::Repeated(id, line) => {
                write!(f, "number {id} has a secret already, in line {line}")
            }
            Self::Hex => f.write_str("the secret is not an even number of hexadecimal digits"),
            Self::Short(len) => write!(f, "the secret has {len} bytes, and needs {LEAST_SECRET}"),
            Self::Refused(SharedKeyError::TooMany) => {
                write!(f, "there are more than {} secrets", SharedKeys::LIMIT - 1)
            }
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl SecretsError {
    /// Advice on how to solve the problem.
    pub fn help(&self) -> String {
        match self {
            Self::File(error) => match &error.problem {
                KeyFileProblem::Io(io) if io.kind() == std::io::ErrorKind::NotFound => format!(
                    "`ropewalk keygen --secrets {}` creates one; both ends need the same",
                    error.path.display()
                ),
                KeyFileProblem::Open { .. } | KeyFileProblem::Owner { .. } => error.help(),
                _ => LINE_HELP.to_owned(),
            },
            Self::Line { .. } | Self::Empty(_) => LINE_HELP.to_owned(),
        }
    }
}

/// Reads the secrets of a file that only its owner, this user or root, may read. The first one is active. The empty key 0, which
/// everyone knows, is not among them.
///
/// # Errors
/// [`SecretsError`].
pub fn read_file(path: &Path) -> Result<SharedKeys, SecretsError> {
    let text = read_trusted(path, Secrecy::Secret, FILE_MAX).map_err(SecretsError::File)?;
    match parse(&text) {
        Ok(Some(keys)) => Ok(keys),
        Ok(None) => Err(SecretsError::Empty(path.to_owned())),
        Err((line, problem)) => Err(SecretsError::Line { path: path.to_owned(), line, problem }),
    }
}

/// The secrets in a text. `None` if it contains none. An error includes its line.
fn parse(text: &str) -> Result<Option<SharedKeys>, (usize, SecretProblem)> {
    let mut keys = SharedKeys::default();
    let mut known: Vec<(u16, usize)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let (line, at) = (line.trim(), at + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (id, secret) = entry(line).map_err(|problem| (at, problem))?;
        if let Some((_, first)) = known.iter().find(|(other, _)| *other == id) {
            return Err((at, SecretProblem::Repeated(id, *first)));
        }
        let set = keys.set(id, &secret).and_then(|()| match known.is_empty() {
            true => keys.activate(id),
            false => Ok(()),
        });
        set.map_err(|error| (at, SecretProblem::Refused(error)))?;
        known.push((id, at));
    }
    if known.iter().all(|(id, _)| *id != 0) {
        // Cannot fail once another key is active; if there is none, the keys are not used.
        let _ = keys.delete(0);
    }
    Ok((!known.is_empty()).then_some(keys))
}

/// The number and the secret of a line.
fn entry(line: &str) -> Result<(u16, Vec<u8>), SecretProblem> {
    let (number, secret) = line.split_once([' ', '\t']).ok_or(SecretProblem::NoNumber)?;
    let id = number.parse().map_err(|_| SecretProblem::NoNumber)?;
    let secret = secret.trim();
    let bytes = match secret.strip_prefix(HEX) {
        Some(digits) => unhex(digits).ok_or(SecretProblem::Hex)?,
        None => secret.as_bytes().to_vec(),
    };
    if bytes.len() < LEAST_SECRET {
        return Err(SecretProblem::Short(bytes.len()));
    }
    Ok((id, bytes))
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: &u8| char::from(*digit).to_digit(16);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some((value(high)? << 4 | value(low)?) as u8);
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "a secret of both ends";

    #[test]
    fn the_first_secret_is_active_and_the_empty_one_is_not_accepted() {
        let text = format!("# ours\n\n 7 {LONG}\n1\thex:{}\n", "8f".repeat(32));
        let found = parse(&text).expect("valid").expect("two");
        let mut expected = SharedKeys::default();
        expected.set(7, LONG.as_bytes()).expect("room");
        expected.activate(7).expect("it is there");
        expected.delete(0).expect("it is not active");
        assert_ne!(found, expected);
        expected.set(1, &[0x8f; 32]).expect("room");
        assert_eq!((found.active(), found), (7, expected));
        let zero = parse(&format!("5 {LONG}\n0 {LONG}!")).expect("valid").expect("two");
        let mut expected = SharedKeys::default();
        expected.set(0, format!("{LONG}!").as_bytes()).expect("room");
        assert_ne!(zero, expected, "the first one is active");
        expected.set(5, LONG.as_bytes()).expect("room");
        expected.activate(5).expect("it is there");
        // The order of the keys differs, and nothing else.
        assert_eq!(zero.active(), expected.active());
        assert!(matches!(parse("# nothing\n\n"), Ok(None)));
    }

    #[test]
    fn a_wrong_line_is_named_and_no_secret_is_shown() {
        let many: String = (1..=16).map(|id| format!("{id} {LONG}\n")).collect();
        for (text, line, problem) in [
            (format!("1 {LONG}\n{LONG}"), 2, SecretProblem::NoNumber),
            ("12345678901234567890".into(), 1, SecretProblem::NoNumber),
            (format!("65536 {LONG}"), 1, SecretProblem::NoNumber),
            (format!("-1 {LONG}"), 1, SecretProblem::NoNumber),
            (format!("#\n\n3 {LONG}\n3 {LONG}"), 4, SecretProblem::Repeated(3, 3)),
            ("1 hex:8f3".into(), 1, SecretProblem::Hex),
            (format!("1 hex:{}", "+1".repeat(16)), 1, SecretProblem::Hex),
            ("1 short".into(), 1, SecretProblem::Short(5)),
            ("1 hex:00ff".into(), 1, SecretProblem::Short(2)),
            (format!("1 {}", "x".repeat(257)), 1, SecretProblem::Refused(SharedKeyError::TooLong)),
            (many, 16, SecretProblem::Refused(SharedKeyError::TooMany)),
        ] {
            let error = parse(&text).expect_err(&text);
            assert_eq!(error, (line, problem), "{text}");
            let path = PathBuf::from("secrets");
            let error = SecretsError::Line { path, line, problem: error.1 };
            assert!(error.to_string().starts_with(&format!("secrets:{line}: ")), "{error}");
            assert!(!error.to_string().contains("secret of both"), "{error}");
        }
    }
}
