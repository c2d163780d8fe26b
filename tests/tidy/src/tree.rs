//! The files of the repository, as text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    /// The full text.
    pub text: String,
}

impl SourceFile {
    /// The part of the path after the last dot; empty if there is none.
    pub fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// The crate under `crates/` that the file belongs to.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the file is in the `src/` of a crate under `crates/`.
    pub fn is_crate_source(&self) -> bool {
        let inside = self.path.strip_prefix("crates/").and_then(|rest| rest.split_once('/'));
        inside.is_some_and(|(_, rest)| rest.starts_with("src/"))
    }
}

/// All files of the repository that are under version control, or are new and not ignored.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Text files, ordered by path. A file that is not UTF-8 is only in `paths`.
    pub files: Vec<SourceFile>,
    /// Every file and every directory, without a trailing `/`.
    pub paths: BTreeSet<String>,
}

impl Tree {
    /// The real tree, read once per process.
    ///
    /// # Panics
    /// If no file can be read: a check of an empty tree would always pass.
    pub fn real() -> &'static Tree {
        static TREE: OnceLock<Tree> = OnceLock::new();
        TREE.get_or_init(|| {
            let root = root();
            let mut names = listed_by_git(&root).unwrap_or_else(|| listed_by_walking(&root));
            // A deleted file can still be in the index.
            names.retain(|name| root.join(name).is_file());
            names.sort();
            names.dedup();
            assert!(names.iter().any(|n| n == "Cargo.toml"), "no Cargo.toml in {}", root.display());
            Tree::read(&root, names)
        })
    }

    /// A tree with the given paths and texts, for the bad examples of the tests.
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.add_path(path);
            tree.files.push(SourceFile { path: (*path).to_owned(), text: (*text).to_owned() });
        }
        tree
    }

    /// The files with one of the given extensions.
    pub fn with_extension<'a>(
        &'a self,
        extensions: &'a [&'a str],
    ) -> impl Iterator<Item = &'a SourceFile> {
        self.files.iter().filter(move |file| extensions.contains(&file.extension()))
    }

    /// The text file at a path.
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    fn read(root: &Path, names: Vec<String>) -> Tree {
        let mut tree = Tree::default();
        for path in names {
            tree.add_path(&path);
            if let Ok(text) = fs::read_to_string(root.join(&path)) {
                tree.files.push(SourceFile { path, text });
            }
        }
        tree
    }

    fn add_path(&mut self, path: &str) {
        self.paths.insert(path.to_owned());
        for (slash, _) in path.match_indices('/') {
            self.paths.insert(path[..slash].to_owned());
        }
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate lives in tests/tidy").to_path_buf()
}

/// Tracked files and new ones that are not ignored, so that a file is checked before its first commit.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let names: Vec<String> = text.split('\0').filter(|n| !n.is_empty()).map(String::from).collect();
    // The list is empty for an unpacked archive inside another repository: walk the directories instead.
    (output.status.success() && !names.is_empty()).then_some(names)
}

/// Directories that tools fill, as in `.gitignore`.
const FILLED_BY_TOOLS: [&str; 8] =
    [".git", ".venv", "__pycache__", ".pytest_cache", "node_modules", "target", "out", "bench-out"];

fn listed_by_walking(root: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() {
                if !FILLED_BY_TOOLS.iter().any(|tool| name == *tool) {
                    pending.push(path);
                }
            } else if let Ok(relative) = path.strip_prefix(root) {
                names.push(relative.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_tree_holds_this_file() {
        assert!(Tree::real().file("tests/tidy/src/tree.rs").is_some());
    }

    #[test]
    fn git_and_walking_agree_on_the_rust_files_of_this_crate() {
        let ours = |names: Vec<String>| {
            let ours = names.into_iter().filter(|name| name.starts_with("tests/tidy/src/"));
            ours.collect::<BTreeSet<String>>()
        };
        let walked = ours(listed_by_walking(&root()));
        assert!(walked.contains("tests/tidy/src/lib.rs"));
        if let Some(listed) = listed_by_git(&root()) {
            assert_eq!(ours(listed), walked);
        }
    }

    #[test]
    fn directories_count_as_paths() {
        let tree = Tree::of(&[("docs/guide/start.md", "")]);
        assert!(tree.paths.contains("docs/guide"));
        assert!(!tree.paths.contains("docs/guid"));
    }

    #[test]
    fn a_file_knows_its_crate_and_extension() {
        let tree = Tree::of(&[("crates/engine/src/sctp/mod.rs", ""), ("Makefile", "")]);
        assert_eq!(tree.files[0].crate_name(), Some("engine"));
        assert_eq!(tree.files[0].extension(), "rs");
        assert!(tree.files[0].is_crate_source());
        assert_eq!(tree.files[1].crate_name(), None);
        assert_eq!(tree.files[1].extension(), "");
    }
}
