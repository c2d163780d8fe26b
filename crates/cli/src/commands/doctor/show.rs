//! The checks as text and as a JSON document.

use serde::Serialize;

use super::peer::PeerRow;
use super::verdict::{Check, Verdict};
use crate::console::wrapped;

/// The JSON document.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    schema: &'static str,
    version: &'static str,
    system: &'static str,
    /// The worst verdict.
    verdict: Verdict,
    checks: &'a [Check],
    /// Results for each link and address of the peer. Empty without a peer.
    peer: &'a [PeerRow],
}

impl<'a> Document<'a> {
    pub fn new(checks: &'a [Check], peer: &'a [PeerRow]) -> Self {
        let has = |verdict| checks.iter().any(|check| check.verdict == verdict);
        let worst = [Verdict::Failure, Verdict::Warning].into_iter().find(|verdict| has(*verdict));
        Self {
            schema: "ropewalk.doctor/1",
            version: env!("CARGO_PKG_VERSION"),
            system: std::env::consts::OS,
            verdict: worst.unwrap_or(Verdict::Ok),
            checks,
            peer,
        }
    }

    pub fn has_failed(&self) -> bool {
        self.verdict == Verdict::Failure
    }
}

/// One entry for each check, in lines of at most `width` characters.
pub fn text(checks: &[Check], width: usize) -> String {
    let title = |check: &Check| match &check.link {
        Some(link) => format!("{} {link}", check.name),
        None => check.name.to_owned(),
    };
    let longest = checks.iter().map(|check| title(check).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let head = format!("{:<11}  {:<longest$}  ", check.verdict.name(), title(check));
        text += &wrapped(&head, &check.found, width);
        if let Some(advice) = &check.advice {
            let head = format!("{:11}  {:longest$}  do: ", "", "");
            text += &wrapped(&head, advice, width);
        }
    }
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (failures, warnings) = (count(Verdict::Failure), count(Verdict::Warning));
    let plural = |number| if number == 1 { "" } else { "s" };
    text + &format!(
        "{failures} failure{}, {warnings} warning{}\n",
        plural(failures),
        plural(warnings)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_an_entry_and_advice_follows_it() {
        let checks = [
            Check::ok("key", "fine"),
            Check::warning("route", "none", "add one").on("wlan0"),
            Check::not_checked("clock", "needs Linux"),
        ];
        let expected = "ok           key          fine\n\
                        warning      route wlan0  none\n                          do: add one\n\
                        not checked  clock        needs Linux\n\
                        0 failures, 1 warning\n";
        assert_eq!(text(&checks, 80), expected);
        let document = Document::new(&checks, &[]);
        assert!(!document.has_failed());
        assert_eq!(document.verdict, Verdict::Warning);
        assert!(Document::new(&[Check::failure("key", "bad", "mend it")], &[]).has_failed());
    }
}
