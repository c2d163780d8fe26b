//! Names of custom schedulers, which a program makes available to scenarios.

use core::fmt;
use std::sync::{PoisonError, RwLock};

use crate::suggest;
use crate::tree::{Node, Raw};
use crate::types::{Named, SchedulerName};

/// Names are never removed, so that a valid scenario stays valid.
static NAMES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

/// Maximum number of names, and maximum length of one: they are kept until the program ends.
const MOST: usize = 1000;
const LONGEST: usize = 64;

/// The name is not allowed for a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestNameError {
    name: String,
    reason: String,
}

impl fmt::Display for GuestNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a scheduler cannot be called {:?}: {}", self.name, self.reason)
    }
}

impl core::error::Error for GuestNameError {}

/// Permits this value of `transfer.scheduler` from now on, everywhere in the program. Adding a name twice is
/// not an error.
///
/// # Errors
/// If the name is that of a built-in scheduler, or has other characters than lower-case letters, digits and
/// hyphens.
pub fn add_guest_scheduler(name: &str) -> Result<(), GuestNameError> {
    let refuse = |reason: String| Err(GuestNameError { name: name.to_owned(), reason });
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
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    if !names.contains(&name) {
        if names.len() >= MOST {
            return refuse(format!("there are {MOST} already"));
        }
        names.push(String::leak(name.to_owned()));
    }
    Ok(())
}

/// The added names, in the order of addition.
pub fn guest_schedulers() -> Vec<&'static str> {
    NAMES.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The custom scheduler that the scenario names, if any. A built-in scheduler replaces it in the tree, so that
/// the other checks need no special case.
pub(crate) fn take(root: &mut Node) -> Option<&'static str> {
    let names = guest_schedulers();
    if names.is_empty() {
        return None;
    }
    let mut found = None;
    for (table, key) in [("transfer", "scheduler"), ("scheduler", "name")] {
        let node = child(root, table).and_then(|table| child(table, key));
        let Some(Raw::Text(text)) = node.map(|node| &mut node.raw) else { continue };
        if let Some(name) = names.iter().find(|name| *name == text) {
            found = Some(*name);
            *text = SchedulerName::RoundRobin.as_str().into();
        }
    }
    found
}

fn child<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let Raw::Table(pairs) = &mut node.raw else { return None };
    pairs.iter_mut().find(|pair| pair.key == key).map(|pair| &mut pair.node)
}

/// The custom names, for the hint on an unknown name.
pub(crate) fn hint() -> String {
    match guest_schedulers()[..] {
        [] => String::new(),
        ref names => format!("; registered: {}", suggest::quoted_or_list(names)),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Scenario, add_guest_scheduler, guest_schedulers};

    const TEXT: &str = "[transfer]\nscheduler = 'our-own'\n[[path]]\nname = 'a'\n";

    #[test]
    fn a_name_is_valid_from_when_it_was_added() {
        let unknown = Scenario::parse(&TEXT.replace("our-own", "nobodys"), "x.toml").unwrap_err();
        assert!(unknown.to_string().contains("nobodys"), "{unknown}");
        add_guest_scheduler("our-own").expect("a free name");
        add_guest_scheduler("our-own").expect("the same again");
        assert_eq!(guest_schedulers().iter().filter(|name| **name == "our-own").count(), 1);
        let scenario = Scenario::parse(TEXT, "x.toml").expect("the name is known");
        assert_eq!(scenario.scheduler.guest, Some("our-own"));
        assert_eq!(scenario.scheduler.label(), "our-own");
        let again = Scenario::parse(&scenario.to_toml(), "x.toml").expect("its own text");
        assert_eq!(again, scenario);
        let daps = Scenario::parse_with(TEXT, "x.toml", &["transfer.scheduler=daps"]);
        assert_eq!(daps.expect("valid").scheduler.label(), "daps");
        let set = Scenario::parse_with("[[path]]\nname='a'", "x.toml", &["scheduler.name=our-own"]);
        assert_eq!(set.expect("valid").scheduler.label(), "our-own");
        let unknown = Scenario::parse(&TEXT.replace("our-own", "our-one"), "x.toml").unwrap_err();
        assert!(unknown.to_string().contains("registered: `our-own`"), "{unknown}");
    }

    #[test]
    fn names_of_the_house_and_odd_names_are_refused() {
        for name in ["daps", "", "9lives", "two words", "Upper", "a\"b", &"x".repeat(65)] {
            let error = add_guest_scheduler(name).unwrap_err().to_string();
            assert!(error.contains(&format!("{name:?}")), "{error}");
        }
    }
}
