//! Python functions are shorter than 70 lines, as measured by Python's own parser.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::Finding;
use crate::size::Function;
use crate::tree::Tree;

/// Reads `{path: text}` from standard input; prints `[path, line, name, lines]` for every function. The name is
/// null for a file that does not parse.
const MEASURE: &str = r#"
import ast, json, sys
found = []
for path, text in json.load(sys.stdin).items():
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError as error:
        found.append([path, error.lineno or 0, None, 0])
        continue
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append([path, node.lineno, node.name, node.end_lineno - node.lineno + 1])
json.dump(found, sys.stdout)
"#;

/// Finds Python functions that are too long, and files that do not parse.
///
/// # Panics
/// If `python3` cannot be run.
pub fn long_functions(tree: &Tree) -> Vec<Finding> {
    let files = tree.with_extension(&["py"]);
    let texts: serde_json::Map<String, Value> =
        files.map(|file| (file.path.clone(), json!(file.text))).collect();
    let measured = measure(&Value::Object(texts));
    let rows = measured.as_array().expect("a list of functions");
    rows.iter().filter_map(finding).collect()
}

fn finding(row: &Value) -> Option<Finding> {
    let number = |index: usize| row[index].as_u64().and_then(|n| usize::try_from(n).ok());
    let path = row[0].as_str()?;
    let line = number(1)?;
    match row[2].as_str() {
        Some(name) => Function { name: name.into(), line, lines: number(3)? }.finding(path),
        None => Some(Finding::new(path, line, "cannot be read as Python")),
    }
}

fn measure(texts: &Value) -> Value {
    let mut child = Command::new("python3")
        .args(["-c", MEASURE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is needed to measure Python functions: install it");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(texts.to_string().as_bytes()).expect("python3 reads its input");
    drop(input);
    let output = child.wait_with_output().expect("python3 ends");
    assert!(output.status.success(), "python3 failed: {}", output.status);
    serde_json::from_slice(&output.stdout).expect("python3 answers in JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_tidy;

    #[test]
    fn the_python_functions_in_the_tree_are_short() {
        assert_tidy(long_functions(Tree::real()));
    }

    #[test]
    fn a_python_function_of_70_lines_is_refused_and_one_of_69_is_not() {
        let function = |lines: usize| {
            format!(
                "class C:\n  async def f(\n    self,\n  ):\n{}",
                "    x = 1\n".repeat(lines - 3)
            )
        };
        let (long, short) = (function(70), function(69));
        let tree = Tree::of(&[("long.py", &long), ("short.py", &short)]);
        let found = long_functions(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("long.py", 2));
    }

    #[test]
    fn a_file_that_is_not_python_is_a_finding() {
        assert_eq!(long_functions(&Tree::of(&[("a.py", "def f(:\n")])).len(), 1);
    }
}
