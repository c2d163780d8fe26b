//! The result of a check.

use serde::{Serialize, Serializer};

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    /// It works, but worse than it could.
    Warning,
    /// It does not work.
    Failure,
    /// It could not be determined here.
    NotChecked,
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failure => "failure",
            Self::NotChecked => "not checked",
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A check with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Subject of the check.
    pub name: &'static str,
    /// The link that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    pub verdict: Verdict,
    /// Finding.
    pub found: String,
    /// Advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Check {
    fn new(name: &'static str, verdict: Verdict, found: impl Into<String>) -> Self {
        Self { name, link: None, verdict, found: found.into(), advice: None }
    }

    pub fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, Verdict::Ok, found)
    }

    pub fn warning(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { advice: Some(advice.into()), ..Self::new(name, Verdict::Warning, found) }
    }

    pub fn failure(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { advice: Some(advice.into()), ..Self::new(name, Verdict::Failure, found) }
    }

    /// A check that could not be made. `reason` states why.
    pub fn not_checked(name: &'static str, reason: impl Into<String>) -> Self {
        Self::new(name, Verdict::NotChecked, reason)
    }

    #[must_use]
    pub fn on(mut self, link: &str) -> Self {
        self.link = Some(link.to_owned());
        self
    }
}
