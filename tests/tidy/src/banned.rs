//! Calls that the project bans, by place.
//!
//! Clippy rejects most of them too, but an attribute can silence clippy. Nothing silences this test in the
//! crates where a clock, a global generator or the order of a hash map would break "same seed, same bytes".

use crate::Finding;
use crate::tokens::{Attribute, Kind, Token, attributes, lex};
use crate::tree::{SourceFile, Tree};

/// Crates whose results depend only on their arguments.
const PURE: [&str; 6] = ["base", "engine", "tunnel", "webrtc", "netsim", "models"];

/// The crates below the runtime, and the Python classes. They have neither a clock nor a random source.
const DETERMINISTIC: [&str; 9] =
    ["base", "engine", "tunnel", "webrtc", "netsim", "models", "scenario", "lab", "py"];

/// All crates except the command line, the only one that uses the terminal.
const LIBRARIES: [&str; 11] = [
    "base", "engine", "tunnel", "webrtc", "netsim", "models", "scenario", "lab", "runtime", "apps",
    "py",
];

/// Where a rule applies.
#[derive(Clone, Copy)]
enum Place {
    /// In every Rust file, tests and benches included.
    Everywhere,
    /// In the sources of these crates.
    Crates(&'static [&'static str]),
    /// In the sources of all crates but below these folders.
    Outside(&'static [&'static str]),
}

/// A banned sequence of tokens.
struct Rule {
    /// Any of these sequences; an element is a word or one character of punctuation.
    refused: &'static [&'static [&'static str]],
    place: Place,
    why: &'static str,
}

/// Directories that change a machine: the calls themselves, and the resources of a tunnel.
const OWNERS: [&str; 2] = ["crates/runtime/src/", "crates/apps/src/tunnel/machine/"];

const RULES: [Rule; 8] = [
    Rule {
        refused: &[&["Instant"], &["SystemTime"]],
        place: Place::Crates(&DETERMINISTIC),
        why: "reads a clock: time is an argument below the runtime",
    },
    Rule {
        refused: &[
            &["thread_rng"],
            &["ThreadRng"],
            &["OsRng"],
            &["from_entropy"],
            &["from_os_rng"],
            &["getrandom"],
            &["RandomState"],
        ],
        place: Place::Crates(&DETERMINISTIC),
        why: "randomness from outside the run: ask for `seed.child(\"…\")`",
    },
    Rule {
        refused: &[&["HashMap"], &["HashSet"]],
        place: Place::Crates(&DETERMINISTIC),
        why: "its order differs from run to run: use `BTreeMap`, `BTreeSet` or a `Vec`",
    },
    Rule {
        refused: &[&["println", "!"], &["eprintln", "!"], &["print", "!"], &["eprint", "!"]],
        place: Place::Crates(&LIBRARIES),
        why: "a library does not print: return it, or emit a record",
    },
    Rule {
        refused: &[
            &["std", ":", ":", "fs"],
            &["std", ":", ":", "env"],
            &["std", ":", ":", "process"],
            &["std", ":", ":", "thread"],
        ],
        place: Place::Crates(&PURE),
        why: "touches the machine: this crate is a function of its arguments",
    },
    Rule {
        refused: &[&["UdpSocket"], &["TcpStream"], &["TcpListener"], &["UnixStream"]],
        place: Place::Crates(&DETERMINISTIC),
        why: "a socket below the runtime: hand over packets instead",
    },
    Rule {
        refused: &[
            &["routes", ":", ":", "add_address"],
            &["routes", ":", ":", "remove_address"],
            &["routes", ":", ":", "start_interface"],
            &["routes", ":", ":", "add_route"],
            &["routes", ":", ":", "add_route_in"],
            &["routes", ":", ":", "remove_route"],
            &["routes", ":", ":", "remove_route_in"],
            &["firewall", ":", ":", "install"],
            &["firewall", ":", ":", "remove"],
            &["rules", ":", ":", "add"],
            &["rules", ":", ":", "remove"],
        ],
        place: Place::Outside(&OWNERS),
        why: "changes the machine, and nothing would undo it: ask `tunnel::machine::Machine`",
    },
    Rule {
        refused: &[&["todo", "!"], &["unimplemented", "!"], &["dbg", "!"]],
        place: Place::Everywhere,
        why: "unfinished: finish it or take it out",
    },
];

/// Lints that must not be silenced without a reason.
const LINTS_WITH_REASON: [&str; 4] =
    ["disallowed_methods", "disallowed_types", "too_many_lines", "missing_docs"];

/// The crate with the one exception. A file of `lab` that measures the speed of a run may read a clock, with an
/// `expect` or `allow` of `clippy::disallowed_methods` that has a reason.
const MAY_TIME_ITSELF: &str = "lab";

/// Finds every banned call of the tree.
pub fn banned_calls(tree: &Tree) -> Vec<Finding> {
    per_file(tree, |file, tokens| {
        RULES.iter().flat_map(|rule| rule.findings(file, tokens)).collect()
    })
}

/// Finds tests that are ignored without a reason.
pub fn ignored_without_reason(tree: &Tree) -> Vec<Finding> {
    per_file(tree, |file, tokens| {
        let silent = attributes(tokens).filter(|attribute| {
            let inside = attribute.inside;
            let ignores = inside.first().is_some_and(|token| token.is_word("ignore"));
            let reason = inside.get(2).and_then(crate::tokens::string_of);
            ignores && reason.is_none_or(|text| text.trim().is_empty())
        });
        let message = "`#[ignore]` without a reason: write `#[ignore = \"why\"]`";
        silent.map(|attribute| Finding::new(&file.path, attribute.line, message)).collect()
    })
}

/// Finds lints that are silenced without a reason.
pub fn silenced_without_reason(tree: &Tree) -> Vec<Finding> {
    per_file(tree, |file, tokens| {
        let silent = attributes(tokens).filter(|attribute| {
            let lint = LINTS_WITH_REASON.iter().any(|lint| silences(attribute, lint));
            lint && !has_reason(attribute)
        });
        let message = "a lint of the project is silenced: add `reason = \"why\"`";
        silent.map(|attribute| Finding::new(&file.path, attribute.line, message)).collect()
    })
}

fn per_file(tree: &Tree, check: impl Fn(&SourceFile, &[Token]) -> Vec<Finding>) -> Vec<Finding> {
    let files = tree.with_extension(&["rs"]);
    files
        .flat_map(|file| match lex(file) {
            Ok(tokens) => check(file, &tokens),
            Err(finding) => vec![finding],
        })
        .collect()
}

impl Rule {
    fn findings(&self, file: &SourceFile, tokens: &[Token]) -> Vec<Finding> {
        if !self.holds_in(file) {
            return Vec::new();
        }
        let excused = self.is_about_clocks() && times_itself(file, tokens);
        let places = tokens.iter().enumerate().filter(|_| !excused);
        places
            .filter_map(|(index, token)| {
                let found = self.refused.iter().find(|pieces| begins(&tokens[index..], pieces))?;
                let message = format!("`{}` {}", found.concat(), self.why);
                Some(Finding::new(&file.path, token.line, message))
            })
            .collect()
    }

    fn holds_in(&self, file: &SourceFile) -> bool {
        match self.place {
            Place::Everywhere => true,
            Place::Crates(rules) => {
                file.is_crate_source()
                    && file.crate_name().is_some_and(|name| rules.contains(&name))
            }
            Place::Outside(folders) => {
                file.is_crate_source() && !folders.iter().any(|one| file.path.starts_with(one))
            }
        }
    }

    fn is_about_clocks(&self) -> bool {
        self.refused.contains(&["Instant"].as_slice())
    }
}

/// Whether `tokens` begin with `pieces`; `use std::{fs, io}` counts as `std::fs`.
fn begins(tokens: &[Token], pieces: &[&str]) -> bool {
    let Some((last, path)) = pieces.split_last() else { return false };
    let same = path.iter().zip(tokens).all(|(piece, token)| token.is(piece));
    if !same || tokens.len() <= path.len() {
        return false;
    }
    match tokens[path.len()].kind {
        Kind::Open(_) if path.len() > 1 => {
            let close = crate::tokens::closing(tokens, path.len());
            tokens[path.len()..close].iter().any(|token| token.is(last))
        }
        _ => tokens[path.len()].is(last),
    }
}

fn times_itself(file: &SourceFile, tokens: &[Token]) -> bool {
    file.crate_name() == Some(MAY_TIME_ITSELF)
        && attributes(tokens).any(|a| silences(&a, "disallowed_methods") && has_reason(&a))
}

fn silences(attribute: &Attribute<'_>, lint: &str) -> bool {
    let first = attribute.inside.first();
    first.is_some_and(|token| token.is_word("allow") || token.is_word("expect"))
        && attribute.inside.iter().any(|token| token.is_word(lint))
}

fn has_reason(attribute: &Attribute<'_>) -> bool {
    attribute.inside.windows(3).any(|three| {
        let text = crate::tokens::string_of(&three[2]);
        three[0].is_word("reason") && text.is_some_and(|text| !text.trim().is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn no_banned_call_is_made() {
        assert_tidy(banned_calls(Tree::real()));
    }

    #[test]
    fn no_test_in_the_tree_is_ignored_without_a_reason() {
        assert_tidy(ignored_without_reason(Tree::real()));
    }

    #[test]
    fn no_lint_in_the_tree_is_silenced_without_a_reason() {
        assert_tidy(silenced_without_reason(Tree::real()));
    }

    #[test]
    fn calls_are_refused_by_place() {
        let timed = "#![expect(clippy::disallowed_methods, reason = \"cpu_s\")] use Instant;";
        let table = [
            ("crates/engine/src/a.rs", "fn f() { let t = std::time::Instant::now(); }", 1),
            ("crates/engine/src/a.rs", "// Instant is refused\nfn f() {}", 0),
            ("crates/engine/src/a.rs", timed, 1),
            ("crates/lab/src/a.rs", "use std::time::Instant;", 1),
            ("crates/lab/src/a.rs", timed, 0),
            ("crates/runtime/src/a.rs", "use std::time::Instant;", 0),
            ("crates/netsim/src/a.rs", "fn f() { rand::thread_rng(); }", 1),
            ("crates/lab/src/a.rs", "type T = std::collections::HashMap<u8, u8>;", 1),
            ("crates/cli/src/a.rs", "fn f() { println!(); }", 0),
            ("crates/lab/src/a.rs", "fn f() { println!(); eprintln!(); }", 2),
            ("crates/lab/examples/a.rs", "fn f() { println!(); }", 0),
            ("crates/lab/src/a.rs", "fn print() {}", 0),
            ("crates/models/src/a.rs", "use std::fs;", 1),
            ("crates/models/src/a.rs", "use std::{fmt, fs};", 1),
            ("crates/models/src/a.rs", "use std::{fmt, io};", 0),
            ("crates/lab/src/a.rs", "use std::fs;", 0),
            ("crates/engine/src/a.rs", "use std::net::{IpAddr, UdpSocket};", 1),
            ("crates/engine/src/a.rs", "use std::net::IpAddr;", 0),
            ("crates/cli/src/a.rs", "use a::routes::add_route;", 1),
            ("crates/apps/src/tunnel/hub.rs", "fn f() { firewall::install(&table); }", 1),
            ("crates/apps/src/tunnel/machine/a.rs", "fn f() { rules::add(&rule); }", 0),
            ("crates/apps/src/tunnel/hub.rs", "fn f() { routes::interfaces(); }", 0),
            ("benches/src/a.rs", "fn f() { todo!() }", 1),
            ("crates/cli/src/a.rs", "fn f() { dbg!(1); unimplemented!() }", 2),
        ];
        for (path, text, expected) in table {
            let found = banned_calls(&Tree::of(&[(path, text)]));
            assert_eq!(found.len(), expected, "{path}: {text}: {found:?}");
        }
    }

    #[test]
    fn an_ignored_test_must_say_why() {
        let table = [
            ("#[ignore] fn f() {}", 1),
            ("#[ignore = \"\"] fn f() {}", 1),
            ("#[ignore = \"needs two network cards\"] fn f() {}", 0),
            ("#[test] fn ignore() {}", 0),
        ];
        for (text, expected) in table {
            let found = ignored_without_reason(&Tree::of(&[("a.rs", text)]));
            assert_eq!(found.len(), expected, "{text}");
        }
    }

    #[test]
    fn a_silenced_lint_must_say_why() {
        let table = [
            ("#![allow(clippy::disallowed_types)]", 1),
            ("#[expect(clippy::too_many_lines, reason = \" \")] fn f() {}", 1),
            ("#[expect(clippy::too_many_lines, reason = \"a table\")] fn f() {}", 0),
            ("#[allow(dead_code)] fn f() {}", 0),
        ];
        for (text, expected) in table {
            let found = silenced_without_reason(&Tree::of(&[("a.rs", text)]));
            assert_eq!(found.len(), expected, "{text}");
        }
    }
}
