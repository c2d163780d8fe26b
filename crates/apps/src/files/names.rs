//! Names of files: checking names from a peer, and showing names on a terminal.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Longest name, bytes (`PATH_MAX` of Linux).
pub const NAME_LIMIT: usize = 4096;
/// Longest part of a name, bytes (`NAME_MAX` of all common file systems).
const PART_LIMIT: usize = 255;
/// Folder in which the receiver keeps unfinished files. No entry may be in it.
pub const HIDDEN: &str = ".ropewalk";

/// A path below the receiver's directory, with its parts joined by `/`. The name itself cannot lead out of the
/// directory. A link in the directory could, so files are opened accordingly.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Box<[u8]>);

/// Why a name is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadName {
    /// The name is empty.
    #[error("the name is empty")]
    Empty,
    /// The name, or a part of it, is too long.
    #[error("the name is too long (4096 bytes, 255 per part)")]
    TooLong,
    /// The name is an absolute path.
    #[error("the name begins at the root")]
    Absolute,
    /// A part of it is `.` or `..`.
    #[error("`.` or `..` in the name")]
    Dots,
    /// There are two slashes in a row, or one at the end.
    #[error("an empty part in the name")]
    EmptyPart,
    /// The name contains a zero byte.
    #[error("a zero byte in the name")]
    Zero,
    /// The name is in the folder of unfinished files.
    #[error("the name lies in the folder of unfinished files, `.ropewalk`")]
    Hidden,
    /// This system does not support such a name.
    #[error("this system cannot have such a name")]
    Foreign,
}

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// [`BadName`]: the name could lead out of the directory or into the folder of unfinished files.
    pub fn new(bytes: &[u8]) -> Result<Self, BadName> {
        match bytes {
            [] => return Err(BadName::Empty),
            [b'/', ..] => return Err(BadName::Absolute),
            _ if bytes.len() > NAME_LIMIT => return Err(BadName::TooLong),
            _ if bytes.contains(&0) => return Err(BadName::Zero),
            _ => {}
        }
        for (place, part) in bytes.split(|byte| *byte == b'/').enumerate() {
            match part {
                b"" => return Err(BadName::EmptyPart),
                b"." | b".." => return Err(BadName::Dots),
                _ if part.len() > PART_LIMIT => return Err(BadName::TooLong),
                // Some file systems do not distinguish upper and lower case.
                _ if place == 0 && part.eq_ignore_ascii_case(HIDDEN.as_bytes()) => {
                    return Err(BadName::Hidden);
                }
                _ => {}
            }
        }
        let name = Self(bytes.into());
        if name.is_native() { Ok(name) } else { Err(BadName::Foreign) }
    }

    /// Whether the system splits the name into the same parts.
    fn is_native(&self) -> bool {
        let Some(path) = native(&self.0) else { return false };
        let parts = self.0.split(|byte| *byte == b'/').count();
        let strange = cfg!(windows) && self.0.iter().any(|byte| b"\\:".contains(byte));
        let normal = path.components().filter(|c| matches!(c, Component::Normal(_))).count();
        !strange && normal == parts && path.components().count() == parts
    }

    /// The name's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name as a relative path of this system.
    pub fn path(&self) -> PathBuf {
        // Cannot fail: checked by `new`.
        native(&self.0).unwrap_or_default()
    }

    /// The last part of the name.
    pub fn last_part(&self) -> &[u8] {
        self.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// Escapes bytes for a terminal: control characters and bytes that are not UTF-8.
pub fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '"' => text.push(c),
                _ => text.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Escapes a path for a terminal.
pub fn shown_path(path: &Path) -> String {
    shown(path.as_os_str().as_encoded_bytes())
}

#[cfg(unix)]
fn native(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Some(PathBuf::from(OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
fn native(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}

/// The bytes of a part of a path on the wire. `None` if they cannot be represented for other systems.
#[cfg(unix)]
pub fn wire_bytes(part: &OsStr) -> Option<&[u8]> {
    use std::os::unix::ffi::OsStrExt;
    Some(part.as_bytes())
}

/// The bytes of a part of a path on the wire. `None` if they cannot be represented for other systems.
#[cfg(not(unix))]
pub fn wire_bytes(part: &OsStr) -> Option<&[u8]> {
    part.to_str().map(str::as_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_could_lead_out_of_the_directory_are_refused() {
        let long = "x".repeat(256);
        let deep = "abc/".repeat(1100) + "x";
        for (name, why) in [
            ("", BadName::Empty),
            ("/etc/passwd", BadName::Absolute),
            ("..", BadName::Dots),
            ("a/../../b", BadName::Dots),
            ("./a", BadName::Dots),
            ("a//b", BadName::EmptyPart),
            ("a/", BadName::EmptyPart),
            ("a\0b", BadName::Zero),
            (".ropewalk/lock", BadName::Hidden),
            (".Ropewalk", BadName::Hidden),
            (&long, BadName::TooLong),
            (&deep, BadName::TooLong),
        ] {
            assert_eq!(Name::new(name.as_bytes()), Err(why), "{name:?}");
        }
    }

    #[test]
    fn ordinary_names_are_taken_as_they_are() {
        for name in ["a", "a/b.txt", "...", "..a", "a/.ropewalk", "naïve/ü", "with space", "-rf"]
        {
            assert_eq!(Name::new(name.as_bytes()).expect(name).to_string(), name);
        }
    }

    #[cfg(unix)]
    #[test]
    fn odd_names_are_kept_and_shown_escaped() {
        for (bytes, text) in [
            (&b"caf\xe9"[..], r"caf\xe9"),
            (b"a\nb", r"a\nb"),
            (b"\x1b[31mred", r"\u{1b}[31mred"),
            ("a\u{202e}b".as_bytes(), r"a\u{202e}b"),
        ] {
            let name = Name::new(bytes).expect("a name");
            assert_eq!(name.bytes(), bytes);
            assert_eq!(name.to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn no_name_that_is_taken_leads_out(bytes in prop::collection::vec(
            prop_oneof![Just(b'/'), Just(b'.'), Just(b'\\'), Just(0), any::<u8>()], 0..24)
        ) {
            if let Ok(name) = Name::new(&bytes) {
                let joined = Path::new("dir").join(name.path());
                prop_assert!(joined.starts_with("dir"));
                let normal = |c: Component<'_>| matches!(c, Component::Normal(_));
                prop_assert!(joined.components().all(normal));
                prop_assert!(joined.components().count() > 1);
            }
        }
    }
}
