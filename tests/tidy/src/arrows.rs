//! Dependency order: which crate may depend on which (docs/decisions/architecture.md).

use toml::{Table, Value};

use crate::Finding;
use crate::tree::{SourceFile, Tree};

/// Permitted dependencies of one crate.
struct CrateRule {
    name: &'static str,
    /// Crates that it may depend on.
    below: &'static [&'static str],
    /// Further crates that only its tests may depend on.
    in_tests: &'static [&'static str],
}

/// The complete architecture, lowest crates first. A crate that is not listed here must not exist.
const CRATES: [CrateRule; 14] = [
    CrateRule { name: "base", below: &[], in_tests: &[] },
    // The engine's pair tests run over simulated links.
    CrateRule { name: "engine", below: &["base"], in_tests: &["netsim"] },
    CrateRule { name: "trace", below: &["engine", "base"], in_tests: &[] },
    CrateRule { name: "tunnel", below: &["base"], in_tests: &[] },
    CrateRule { name: "webrtc", below: &["engine", "base"], in_tests: &[] },
    CrateRule { name: "netsim", below: &["base"], in_tests: &[] },
    CrateRule { name: "models", below: &["base"], in_tests: &[] },
    CrateRule { name: "scenario", below: &["base"], in_tests: &[] },
    CrateRule {
        name: "lab",
        below: &["engine", "trace", "tunnel", "netsim", "models", "scenario", "base"],
        in_tests: &[],
    },
    // The emulator runs netsim's links in real time; a test compares a live run with a simulated one.
    CrateRule {
        name: "runtime",
        below: &["engine", "trace", "netsim", "base"],
        in_tests: &["lab", "scenario"],
    },
    CrateRule { name: "apps", below: &["runtime", "tunnel", "base"], in_tests: &[] },
    // Its tests run real programs in the namespaces of `interop` (tests/interop).
    CrateRule { name: "sockets", below: &["runtime", "engine", "base"], in_tests: &["interop"] },
    CrateRule {
        name: "cli",
        below: &["apps", "lab", "runtime", "scenario", "models", "base"],
        // `load` (tests/load) runs many clients against the real command; `preload` needs the library of `sockets`.
        in_tests: &["engine", "netsim", "load", "sockets"],
    },
    CrateRule {
        name: "py",
        below: &["apps", "lab", "runtime", "scenario", "models", "base"],
        in_tests: &[],
    },
];

/// Crates that take time, randomness and bytes as arguments.
const PURE: [&str; 6] = ["base", "engine", "tunnel", "webrtc", "netsim", "models"];

/// External crates that provide a clock, a socket, a log or a global generator; the pure crates must not use
/// them.
const IMPURE: [&str; 15] = [
    "async-std",
    "chrono",
    "env_logger",
    "fastrand",
    "getrandom",
    "libc",
    "log",
    "mio",
    "nix",
    "rand",
    "rustix",
    "socket2",
    "time",
    "tokio",
    "tracing",
];

/// Modules of the engine, each with the modules that it may use. Every module may use those not listed here.
const ENGINE: [(&str, &[&str]); 8] = [
    ("path", &[]),
    ("recovery", &["path"]),
    ("congestion", &["path"]),
    ("scheduler", &["path"]),
    ("window", &["path", "scheduler"]),
    ("multipath", &["path", "recovery", "congestion", "scheduler", "window"]),
    ("mptcp", &["path", "recovery", "congestion", "scheduler", "window", "multipath"]),
    ("sctp", &["path", "recovery", "congestion", "scheduler", "window", "multipath"]),
];

/// Finds uses of an engine module by a module that may not depend on it.
pub fn wrong_engine_arrows(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.with_extension(&["rs"]) {
        let Some(inside) = file.path.strip_prefix("crates/engine/src/") else { continue };
        let module = inside.split(['/', '.']).next().unwrap_or_default();
        let Some((_, below)) = ENGINE.iter().find(|(name, _)| *name == module) else { continue };
        for (index, line) in file.text.lines().enumerate() {
            let code = line.trim_start();
            let uses = code.split("crate::").skip(1).filter(|_| !code.starts_with("//"));
            for used in uses {
                let word = |c: char| !(c.is_alphanumeric() || c == '_');
                let used = used.split(word).next().unwrap_or_default();
                let known = ENGINE.iter().any(|(name, _)| *name == used);
                if known && used != module && !below.contains(&used) {
                    let why = format!("`{module}` may not use `{used}`; it may use {below:?}");
                    findings.push(Finding::new(&file.path, index + 1, why));
                }
            }
        }
    }
    findings
}

/// Finds dependencies between crates that violate the order, and external ones that a pure crate must not have.
pub fn wrong_arrows(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|file| {
        let inside = file.path.strip_prefix("crates/");
        inside.is_some_and(|rest| rest.ends_with("/Cargo.toml") && rest.matches('/').count() == 1)
    });
    manifests.flat_map(check_manifest).collect()
}

fn check_manifest(file: &SourceFile) -> Vec<Finding> {
    let name = file.crate_name().unwrap_or_default();
    let Some(rule) = CRATES.iter().find(|rule| rule.name == name) else {
        let message = format!("`{name}` has no dependency rule: add one in arrows.rs");
        return vec![Finding::new(&file.path, 0, message)];
    };
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::new(&file.path, 0, format!("not TOML: {error}"))],
    };
    let uses = dependencies(&manifest);
    let wrong = uses.iter().filter_map(|used| Some((used, rule.objection(used)?)));
    wrong.map(|(used, why)| Finding::new(&file.path, line_of(file, &used.package), why)).collect()
}

/// A dependency as declared in a manifest.
struct Use {
    package: String,
    for_tests: bool,
}

impl CrateRule {
    fn objection(&self, used: &Use) -> Option<String> {
        let (name, package) = (self.name, &used.package);
        if let Some(other) = package.strip_prefix("ropewalk-") {
            let allowed = self.below.contains(&other)
                || (used.for_tests && (self.in_tests.contains(&other) || other == name));
            return (!allowed)
                .then(|| format!("`{name}` may not use `{other}`; it may use {:?}", self.below));
        }
        if used.for_tests {
            return None;
        }
        if name == "base" {
            return Some(format!("`base` has no dependencies, so not `{package}` either"));
        }
        let worldly = PURE.contains(&name) && IMPURE.contains(&package.as_str());
        worldly.then(|| format!("`{package}` has side effects, which are not allowed in `{name}`"))
    }
}

/// All dependencies of a manifest, for every target, with the real name of a renamed package.
fn dependencies(manifest: &Table) -> Vec<Use> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let per_target = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut uses = Vec::new();
    for table in per_target.chain([manifest]) {
        for (key, for_tests) in
            [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
        {
            let declared = table.get(key).and_then(Value::as_table);
            for (alias, value) in declared.into_iter().flatten() {
                let package = value.get("package").and_then(Value::as_str).unwrap_or(alias);
                uses.push(Use { package: package.to_owned(), for_tests });
            }
        }
    }
    uses
}

fn line_of(file: &SourceFile, package: &str) -> usize {
    file.text.lines().position(|line| line.contains(package)).map_or(0, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn the_stairs_in_the_tree_lead_downwards() {
        let tree = Tree::real();
        assert!(tree.file("crates/engine/Cargo.toml").is_some());
        assert_tidy(wrong_arrows(tree));
    }

    #[test]
    fn modules_of_the_engine_use_only_those_below_them() {
        assert_tidy(wrong_engine_arrows(Tree::real()));
        let used = |module: &str, used: &str| {
            let path = format!("crates/engine/src/{module}/a.rs");
            let text = format!("// crate::sctp in a comment\nuse crate::{used}::Thing;\n");
            wrong_engine_arrows(&Tree::of(&[(&path, &text)])).len()
        };
        assert_eq!(
            (used("sctp", "multipath"), used("sctp", "sctp"), used("path", "meter")),
            (0, 0, 0)
        );
        assert_eq!(
            (used("path", "scheduler"), used("sctp", "mptcp"), used("window", "sctp")),
            (1, 1, 1)
        );
    }

    #[test]
    fn every_room_stands_on_rooms_in_the_tree_below_it() {
        for (index, rule) in CRATES.iter().enumerate() {
            for other in rule.below {
                let below = CRATES[..index].iter().any(|r| r.name == *other);
                assert!(below, "{} uses {other}, which is not below it", rule.name);
            }
        }
    }

    #[test]
    fn dependencies_are_allowed_or_refused_by_the_rules() {
        let table = [
            ("engine", "[dependencies]\nropewalk-base.workspace = true\nbytes = \"1\"", 0),
            ("engine", "[dependencies]\nropewalk-netsim.workspace = true", 1),
            ("engine", "[dev-dependencies]\nropewalk-netsim.workspace = true", 0),
            ("engine", "[dev-dependencies]\nropewalk-lab.workspace = true", 1),
            ("engine", "[dependencies]\nrand = \"0.9\"", 1),
            ("engine", "[target.'cfg(unix)'.dependencies]\nropewalk-lab = \"0\"", 1),
            ("models", "[dependencies]\nsim = { package = \"ropewalk-netsim\" }", 1),
            ("base", "[dependencies]\nserde = \"1\"", 1),
            ("base", "[dev-dependencies]\nproptest = \"1\"", 0),
            ("base", "[build-dependencies]\ncc = \"1\"", 1),
            ("lab", "[dependencies]\nropewalk-engine = \"0\"\nropewalk-runtime = \"0\"", 1),
            ("runtime", "[dependencies]\nropewalk-lab = \"0\"", 1),
            ("cli", "[dependencies]\nropewalk-runtime = \"0\"\nropewalk-py = \"0\"", 1),
            ("attic", "[dependencies]", 1),
            ("lab", "[dependencies", 1),
        ];
        for (name, manifest, expected) in table {
            let path = format!("crates/{name}/Cargo.toml");
            let found = wrong_arrows(&Tree::of(&[(&path, manifest)]));
            assert_eq!(found.len(), expected, "{name}: {manifest}: {found:?}");
        }
    }
}
