//! Functions named on a page exist in the file that the page names.

use crate::Finding;
use crate::tree::{SourceFile, Tree};

/// Pages whose tables name functions: a row with `` `Type::function` `` and `` `path/to/file.rs` ``.
const PAGES: [&str; 1] = ["docs/architecture.md"];

/// Finds rows of these tables whose function is not in the named file.
pub fn missing_functions(tree: &Tree) -> Vec<Finding> {
    let pages = PAGES.iter().filter_map(|path| tree.file(path));
    pages.flat_map(|page| missing_in(tree, page)).collect()
}

fn missing_in(tree: &Tree, page: &SourceFile) -> Vec<Finding> {
    let rows = page.text.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
    let wrong = rows.filter_map(|(index, line)| {
        let (function, path) = named(line)?;
        let message = match tree.file(path) {
            None => format!("there is no `{path}`"),
            Some(file) if !defines(file, function) => format!("`{path}` has no `fn {function}`"),
            Some(_) => return None,
        };
        Some(Finding::new(&page.path, index + 1, message))
    });
    wrong.collect()
}

/// The function and the file of a row, if it has both.
fn named(row: &str) -> Option<(&str, &str)> {
    let mut cells = row
        .split('|')
        .map(str::trim)
        .filter_map(|cell| cell.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')));
    let (function, path) = (cells.next()?, cells.next()?);
    let function = function.rsplit("::").next().unwrap_or(function);
    path.ends_with(".rs").then_some((function, path))
}

fn defines(file: &SourceFile, function: &str) -> bool {
    let text = &file.text;
    ["(", "<"].iter().any(|next| text.contains(&format!("fn {function}{next}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn the_functions_that_the_architecture_page_names_are_there() {
        let tree = Tree::real();
        let page = tree.file(PAGES[0]).expect("the page");
        let rows = page.text.lines().filter(|line| named(line).is_some()).count();
        assert!(rows > 20, "{rows} rows");
        assert_tidy(missing_functions(tree));
    }

    #[test]
    fn a_function_or_file_that_is_gone_is_found() {
        let page = "| step | function | file |\n| a | `T::there` | `a.rs` |\n| b | `T::gone` | `a.rs` |\n\
                    | c | `T::there` | `b.rs` |\n";
        let tree = Tree::of(&[("docs/architecture.md", page), ("a.rs", "fn there(&self) {}\n")]);
        let lines: Vec<_> = missing_functions(&tree).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [3, 4]);
    }
}
