//! Each kind of thing is registered only in the places that the table "To add" of CONTRIBUTING.md lists.
//!
//! A file that names a majority of a kind, such as of the schedulers, is a place where such things are
//! registered. A contributor who adds one must know all such places, so other files must not become one.

use std::collections::BTreeSet;

use crate::Finding;
use crate::tokens::{Kind, lex};
use crate::tree::{SourceFile, Tree};

/// A kind of thing that is registered.
pub struct Registered {
    /// Its name in the table of CONTRIBUTING.md.
    pub name: &'static str,
    /// Names and types of such things.
    pub things: &'static [&'static [&'static str]],
    /// Files that may name a majority of them.
    pub places: &'static [&'static str],
}

/// All kinds. Each thing is a list of the spellings that occur in code.
pub const KINDS: [Registered; 7] = [
    Registered {
        name: "scheduler",
        things: &[
            &["Lay", "lay"],
            &["RoundRobin", "round-robin"],
            &["Weighted", "weighted"],
            &["MinRtt", "min-rtt"],
            &["Daps", "daps"],
            &["DapsLcm", "daps-lcm"],
            &["Redundant", "redundant"],
            &["Backup", "backup"],
            &["Bas", "bas"],
            &["ReceptionIndex", "reception-index"],
            &["Ods", "ods"],
            &["Otias", "otias"],
            &["Sttf", "sttf"],
            &["Blest", "blest"],
            &["Ecf", "ecf"],
            &["Stms", "stms"],
            &["Linux", "linux"],
        ],
        places: &[
            "crates/engine/src/scheduler/mod.rs",
            "crates/engine/src/scheduler/registry.rs",
            "crates/scenario/src/types/choices.rs",
        ],
    },
    Registered {
        name: "congestion control",
        things: &[
            &["Rfc9260", "rfc9260"],
            &["NewReno", "newreno"],
            &["Lia", "lia"],
            &["FullyCoupled", "fully-coupled"],
            &["Olia", "olia"],
            &["Balia", "balia"],
            &["WVegas", "wvegas"],
            &["Cubic", "cubic"],
        ],
        places: &[
            "crates/engine/src/congestion/mod.rs",
            "crates/engine/src/congestion/registry.rs",
            "crates/scenario/src/types/choices.rs",
        ],
    },
    Registered {
        name: "recovery",
        things: &[
            &["DSack", "d-sack"],
            &["Eifel", "eifel"],
            &["TcpDoor", "Door", "door"],
            &["FRto", "f-rto"],
        ],
        places: &[
            "crates/engine/src/mptcp/reordering/mod.rs",
            "crates/engine/src/mptcp/reordering/registry.rs",
            "crates/scenario/src/types/choices.rs",
        ],
    },
    Registered {
        name: "loss model",
        things: &[
            &["Bernoulli", "bernoulli"],
            &["GilbertElliott", "gilbert-elliott"],
            &["Markov", "markov"],
            &["Round", "round"],
            &["LossTrace", "trace"],
        ],
        places: &[
            "crates/lab/src/loss.rs",
            "crates/netsim/src/link/loss/mod.rs",
            "crates/netsim/src/link/mod.rs",
            "crates/scenario/src/types/loss.rs",
        ],
    },
    Registered {
        name: "window manager",
        things: &[
            &["Splitting", "BufferSplitting", "buffer-splitting"],
            &["SplittingOutstanding", "BufferSplittingOutstanding", "buffer-splitting-outstanding"],
            &["Dynamic", "dynamic"],
            &["Static", "static"],
            &["Adaptive", "adaptive"],
        ],
        places: &[
            "crates/engine/src/window/manager.rs",
            "crates/engine/src/window/mod.rs",
            "crates/lab/src/engine_config.rs",
            "crates/scenario/src/types/choices.rs",
        ],
    },
    Registered {
        name: "figure of the results",
        things: &[
            &["goodput_bps"],
            &["goodput_wire_bps"],
            &["delivered_packets"],
            &["first_arrival_s"],
            &["receive_buffer"],
            &["blocking_time_s"],
            &["app_delay_s"],
            &["out_of_order"],
            &["spurious_retransmissions"],
            &["flow_control_bound_bps"],
            &["share_of_bound"],
            &["association_goodput_bps"],
        ],
        places: &[
            "crates/lab/src/measure.rs",
            "crates/lab/src/result/mod.rs",
            "python/ropewalk/_figures.py",
            "web/report/vocabulary.js",
        ],
    },
    Registered {
        name: "CLI command",
        things: &[
            &["RunArgs"],
            &["CompareArgs"],
            &["TournamentArgs"],
            &["SweepArgs"],
            &["PredictArgs"],
            &["TuneArgs"],
            &["ExplainArgs"],
            &["EmulateArgs"],
            &["BenchArgs"],
            &["SendArgs"],
            &["RecvArgs"],
            &["ProxyArgs"],
        ],
        places: &["crates/cli/src/commands/mod.rs"],
    },
];

/// Modules that exist in tests only.
const TEST_MODULES: [&str; 2] = ["conformance", "model"];

/// Finds unlisted files that name a majority of a kind, and listed files that do not.
pub fn unlisted_registries(tree: &Tree) -> Vec<Finding> {
    KINDS.iter().flat_map(|kind| unlisted(tree, kind)).collect()
}

fn unlisted(tree: &Tree, kind: &Registered) -> Vec<Finding> {
    let sources = tree.with_extension(&["rs", "py", "pyi", "js"]).filter(|file| is_product(file));
    let found: Vec<&str> =
        sources.filter(|file| names_most(file, kind)).map(|file| file.path.as_str()).collect();
    let unlisted = found.iter().filter(|path| !kind.places.contains(path)).map(|path| {
        let message = format!(
            "names most of one kind ({}): register them in {} alone",
            kind.name,
            kind.places.join(", ")
        );
        Finding::new(path, 0, message)
    });
    let stale = kind.places.iter().filter(|path| !found.contains(path)).map(|path| {
        let message = format!("does not name most of one kind ({}) any more: unlist it", kind.name);
        Finding::new(path, 0, message)
    });
    unlisted.chain(stale).collect()
}

/// Whether the file is code of the product, not of its tests.
fn is_product(file: &SourceFile) -> bool {
    let is_source = file.is_crate_source()
        || file.path.starts_with("python/ropewalk/")
        || file.path.starts_with("web/report/");
    // A paper's comparison has its own list.
    let is_paper = file.path.contains("/reproduce/");
    let is_test = |part: &str| {
        let name = part.strip_suffix(".rs").unwrap_or(part);
        name.starts_with("tests") || name.ends_with("_tests") || TEST_MODULES.contains(&name)
    };
    is_source && !is_paper && !file.path.split('/').any(is_test)
}

fn names_most(file: &SourceFile, kind: &Registered) -> bool {
    let words = words(file);
    let named = kind.things.iter().filter(|spellings| spellings.iter().any(|s| words.contains(*s)));
    named.count() * 4 >= kind.things.len() * 3
}

/// The words and the literals of a file.
fn words(file: &SourceFile) -> BTreeSet<String> {
    if file.extension() != "rs" {
        let separates = |c: char| !(c.is_alphanumeric() || c == '_' || c == '-');
        return file.text.split(separates).map(str::to_owned).collect();
    }
    // Unit tests, at the end of a file, may name anything.
    let code = file.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = SourceFile { path: file.path.clone(), text: code.to_owned() };
    let tokens = lex(&code).unwrap_or_default();
    let words = tokens.into_iter().filter_map(|token| match token.kind {
        Kind::Word(word) => Some(word),
        Kind::Literal(text) => Some(text.trim_matches('"').to_owned()),
        _ => None,
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn each_kind_is_registered_in_the_listed_places_alone() {
        assert_tidy(unlisted_registries(Tree::real()));
    }

    #[test]
    fn a_further_list_of_schedulers_is_found_and_a_mention_is_not() {
        let names = KINDS[0].things.iter().map(|spellings| format!("{:?}", spellings[1]));
        let list = format!("const ALL: &[&str] = &[{}];\n", names.collect::<Vec<_>>().join(", "));
        let mention = "fn of() -> Scheduler { Scheduler::MinRtt(MinRtt) }\n";
        let tree = Tree::of(&[("crates/a/src/list.rs", &*list), ("crates/a/src/one.rs", mention)]);
        let found = unlisted(&tree, &KINDS[0]);
        let paths: Vec<&str> = found.iter().map(|finding| finding.path.as_str()).collect();
        assert!(paths.contains(&"crates/a/src/list.rs"), "{paths:?}");
        assert!(!paths.contains(&"crates/a/src/one.rs"), "{paths:?}");
    }

    #[test]
    fn the_table_of_contributing_has_a_row_for_each_kind_with_its_places() {
        let page = &Tree::real().file("CONTRIBUTING.md").expect("the page").text;
        for kind in &KINDS {
            let start = format!("| {} |", kind.name);
            let row = page.lines().find(|line| line.starts_with(&start));
            let row =
                row.unwrap_or_else(|| panic!("CONTRIBUTING.md has no row for: {}", kind.name));
            for place in kind.places {
                let short = place.strip_prefix("crates/").unwrap_or(place).replace("/src/", "/");
                assert!(row.contains(&short), "the row for {} lacks {short}", kind.name);
            }
        }
    }
}
