//! A minimal Markdown parser for the checks of the docs: prose lines, links, headings.

use crate::tree::SourceFile;

/// The lines outside of code blocks, with their numbers from 1.
pub fn prose(file: &SourceFile) -> Vec<(usize, &str)> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let mark = fence_mark(line);
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if mark.starts_with(open) => fence = None,
            (None, None) => lines.push((index + 1, line)),
            _ => {}
        }
    }
    lines
}

/// The run of backquotes or tildes that opens or closes a code block.
fn fence_mark(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let first = line.chars().next().filter(|c| "`~".contains(*c))?;
    let length = line.chars().take_while(|c| *c == first).count();
    // "```a``` b" is inline code, not a block.
    let block = length >= 3 && !line[length..].contains('`');
    block.then(|| &line[..length])
}

/// A line with inline code (`` `…` ``) blanked out.
fn without_code(line: &str) -> String {
    let pieces = line.split('`').enumerate();
    pieces.map(|(index, piece)| if index % 2 == 0 { piece } else { "code" }).collect()
}

/// The targets of `[text](target)` and `[text]: target` in a line of prose.
pub fn link_targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    let mut targets = Vec::new();
    let defined = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    targets.extend(defined.map(|(_, target)| target));
    targets.extend(line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|p| p.0));
    // A title may follow: `[text](target "title")`.
    let bare = targets.into_iter().filter_map(|target| target.split_whitespace().next());
    bare.map(|target| target.trim_matches(['<', '>']).to_owned()).collect()
}

/// The anchors of a page: its headings in the spelling of links.
pub fn anchors(file: &SourceFile) -> Vec<String> {
    let headings = prose(file).into_iter().filter_map(|(_, line)| {
        let level = line.chars().take_while(|c| *c == '#').count();
        (1..=6)
            .contains(&level)
            .then(|| line[level..].trim())
            .filter(|_| line[level..].starts_with(' '))
    });
    let mut anchors: Vec<String> = Vec::new();
    for heading in headings {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let before = anchors.iter().filter(|other| **other == anchor).count();
        anchors.push(if before == 0 { anchor } else { format!("{anchor}-{before}") });
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> SourceFile {
        SourceFile { path: "docs/a.md".into(), text: text.into() }
    }

    #[test]
    fn code_blocks_are_not_prose() {
        let page = page("a\n```sh\nb\n```\nc\n~~~~\n```\n~~~~\nd ```e``` f\n");
        let numbers: Vec<usize> = prose(&page).iter().map(|line| line.0).collect();
        assert_eq!(numbers, [1, 5, 9]);
    }

    #[test]
    fn links_are_found_in_every_spelling() {
        let table = [
            ("see [a](b.md) and [c](d.md#e \"t\")", vec!["b.md", "d.md#e"]),
            ("![picture](p.svg)", vec!["p.svg"]),
            ("[a]: <b.md>", vec!["b.md"]),
            ("`x[0](y)` is code", vec![]),
            ("[a] (b)", vec![]),
        ];
        for (line, expected) in table {
            assert_eq!(link_targets(line), expected, "{line}");
        }
    }

    #[test]
    fn headings_become_anchors() {
        let page = page("# What it is, & why\n## Files\n## Files\n#no\n```\n# code\n```\n");
        assert_eq!(anchors(&page), ["what-it-is--why", "files", "files-1"]);
    }
}
