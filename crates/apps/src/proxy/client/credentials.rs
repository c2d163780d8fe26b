//! Optional authentication of the near end's clients, by name and password.

use std::fmt;

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    name: String,
    password: String,
}

/// A line that is not a name and a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not one line NAME:PASSWORD, each of 1 to 255 bytes")]
pub struct NotCredentials;

impl Credentials {
    /// Parses a line `name:password`.
    ///
    /// # Errors
    /// [`NotCredentials`].
    pub fn parse(text: &str) -> Result<Self, NotCredentials> {
        let line = text.trim_end_matches(['\r', '\n']);
        let (name, password) = line.split_once(':').ok_or(NotCredentials)?;
        // Length limits of RFC 1929.
        let fits = |part: &str| (1..=255).contains(&part.len());
        if line.contains('\n') || !fits(name) || !fits(password) {
            return Err(NotCredentials);
        }
        Ok(Self { name: name.to_owned(), password: password.to_owned() })
    }

    /// Compares name and password in constant time.
    pub fn are(&self, name: &[u8], password: &[u8]) -> bool {
        same(self.name.as_bytes(), name) & same(self.password.as_bytes(), password)
    }
}

fn same(a: &[u8], b: &[u8]) -> bool {
    use subtle::ConstantTimeEq;
    a.ct_eq(b).into()
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials {{ name: {:?}, .. }}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_a_password() {
        let credentials = Credentials::parse("anne:a:b \n").unwrap();
        for (name, password, are) in [
            ("anne", "a:b ", true),
            ("anne", "a:b", false),
            ("Anne", "a:b ", false),
            ("", "", false),
        ] {
            assert_eq!(credentials.are(name.as_bytes(), password.as_bytes()), are);
        }
        assert!(!format!("{credentials:?}").contains("a:b"), "a password is not shown");
        let long = format!("a:{}", "x".repeat(256));
        for text in ["", "anne", ":x", "anne:", "a:b\nc:d", &long] {
            assert_eq!(Credentials::parse(text), Err(NotCredentials), "{text}");
        }
    }
}
