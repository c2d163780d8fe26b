//! Custom schedulers: names that the caller of the parser permits besides the built-in ones.

use std::sync::Arc;

use crate::choice::Named;
use crate::tree::{Node, Raw};
use crate::types::SchedulerName;

/// Maximum length of a name.
const LONGEST: usize = 64;

/// The name is not allowed for a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scheduler cannot be called {name:?}: {reason}")]
pub struct SchedulerNameError {
    name: String,
    reason: String,
}

/// Checks the name of a custom scheduler.
///
/// # Errors
/// If a built-in scheduler has this name, or if it contains characters other than lower-case letters,
/// digits and hyphens.
pub fn check_scheduler_name(name: &str) -> Result<(), SchedulerNameError> {
    let refuse = |reason: String| Err(SchedulerNameError { name: name.to_owned(), reason });
    if SchedulerName::CHOICES.iter().any(|choice| choice.name == name) {
        return refuse("a built-in scheduler has that name".to_owned());
    }
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || !name.chars().all(letter) || name.len() > LONGEST {
        return refuse(format!(
            "names are a lower-case letter and up to {} lower-case letters, digits and hyphens, \
             for example \"least-loaded\"",
            LONGEST - 1
        ));
    }
    Ok(())
}

/// The custom scheduler in `names` that the scenario selects, if any. In the tree, it is replaced
/// by a built-in scheduler, so that the other checks need no special case.
pub(crate) fn take(root: &mut Node, names: &[&str]) -> Option<Arc<str>> {
    let mut found = None;
    for (table, key) in [("transfer", "scheduler"), ("scheduler", "name")] {
        let node = child(root, table).and_then(|table| child(table, key));
        let Some(Raw::Text(text)) = node.map(|node| &mut node.raw) else { continue };
        if let Some(name) = names.iter().find(|name| *name == text) {
            found = Some(Arc::from(*name));
            *text = SchedulerName::RoundRobin.as_str().into();
        }
    }
    found
}

fn child<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let Raw::Table(pairs) = &mut node.raw else { return None };
    pairs.iter_mut().find(|pair| pair.key == key).map(|pair| &mut pair.node)
}

#[cfg(test)]
mod tests {
    use crate::{Override, Scenario, check_scheduler_name};

    const TEXT: &str = "[transfer]\nscheduler = 'our-own'\n[[path]]\nname = 'a'\n";

    fn parse(text: &str, set: &[&str]) -> Result<Scenario, String> {
        let overrides: Vec<_> =
            set.iter().map(|change| Override { option: "--set", change }).collect();
        Scenario::parse_custom(text, "x.toml", &overrides, &["our-own"]).map_err(|e| e.to_string())
    }

    #[test]
    fn a_name_is_valid_if_the_caller_permits_it() {
        let unknown = Scenario::parse(TEXT, "x.toml").unwrap_err().to_string();
        assert!(unknown.contains("our-own") && !unknown.contains("registered"), "{unknown}");
        let scenario = parse(TEXT, &[]).expect("the name is known");
        assert_eq!(scenario.scheduler.custom.as_deref(), Some("our-own"));
        assert_eq!(scenario.scheduler.label(), "our-own");
        assert_eq!(parse(&scenario.to_toml(), &[]).expect("its own text"), scenario);
        let daps = parse(TEXT, &["transfer.scheduler=daps"]).expect("valid");
        assert_eq!(daps.scheduler.label(), "daps");
        let set = parse("[[path]]\nname='a'", &["scheduler.name=our-own"]).expect("valid");
        assert_eq!(set.scheduler.label(), "our-own");
        let unknown = parse(&TEXT.replace("our-own", "our-one"), &[]).unwrap_err();
        assert!(unknown.contains("registered: `our-own`"), "{unknown}");
    }

    #[test]
    fn names_of_built_in_schedulers_and_odd_names_are_refused() {
        for name in ["daps", "", "9lives", "two words", "Upper", "a\"b", &"x".repeat(65)] {
            let error = check_scheduler_name(name).unwrap_err().to_string();
            assert!(error.contains(&format!("{name:?}")), "{error}");
        }
        check_scheduler_name("least-loaded-2").expect("a valid name");
    }
}
