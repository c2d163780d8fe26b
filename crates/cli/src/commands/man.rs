//! `ropewalk man`: the manual pages of all commands, one file each. Packages include them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::Cli;
use crate::failure::Failure;

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ropewalk man man1")]
pub struct ManArgs {
    /// Directory to write to, which is created if it does not exist
    dir: PathBuf,
}

/// Writes `ropewalk.1`, `ropewalk-run.1`, `ropewalk-proxy-exit.1` and so on.
///
/// # Errors
/// A file cannot be written.
pub fn execute(args: &ManArgs) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Run(format!("cannot write `{}`: {error}", path.display()))
    };
    fs::create_dir_all(&args.dir).map_err(|error| failed(&args.dir, error))?;
    for page in pages().map_err(|error| failed(&args.dir, error))? {
        let path = args.dir.join(&page.file);
        fs::write(&path, page.roff).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// A manual page.
struct Page {
    file: String,
    roff: Vec<u8>,
}

/// The pages of all commands that the help shows.
fn pages() -> std::io::Result<Vec<Page>> {
    // Pages of `help` would only repeat the others.
    let mut root = Cli::command().disable_help_subcommand(true);
    // Tells each command its full name, such as `ropewalk-proxy-exit`.
    root.build();
    let mut pages = Vec::new();
    add(&root, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut Vec<Page>) -> std::io::Result<()> {
    let man = Man::new(command.clone());
    let mut roff = Vec::new();
    man.render(&mut roff)?;
    pages.push(Page { file: man.get_filename(), roff });
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        add(sub, pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_name_and_options() {
        let pages = pages().expect("pages");
        let text = |file: &str| {
            let page = pages.iter().find(|page| page.file == file).expect(file);
            String::from_utf8(page.roff.clone()).expect("text")
        };
        assert!(text("ropewalk.1").contains("ropewalk\\-recv(1)"));
        assert!(text("ropewalk-recv.1").contains("\\-\\-overwrite"));
        assert!(text("ropewalk-proxy-exit.1").contains("\\-\\-allow\\-to"));
        let root = Cli::command();
        for sub in root.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            text(&format!("ropewalk-{}.1", sub.get_name()));
        }
    }

    #[test]
    fn the_help_and_hidden_commands_have_no_page() {
        let files: Vec<String> =
            pages().expect("pages").into_iter().map(|page| page.file).collect();
        for absent in ["ropewalk-help.1", "ropewalk-proxy-help.1", "ropewalk-man.1"] {
            assert!(!files.iter().any(|file| file == absent), "{files:?}");
        }
    }
}
