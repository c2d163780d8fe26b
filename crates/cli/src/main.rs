//! The `ropewalk` command.
//!
//! Data goes to stdout, everything else to stderr. The exit status is 0 on success, 1 if the run failed, and 2
//! if the input was wrong and nothing was run or written. If the command runs a program for the user, the exit
//! status is that of the program.

mod args;
mod commands;
mod config;
mod console;
mod failure;
mod files;
mod format;
mod live;
mod output;
mod packet_files;
mod printer;
mod progress;
mod record_file;
mod table;
mod vary;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser};
use ropewalk_scenario::{json_schema, nearest};

use crate::commands::Command;
use crate::console::Console;
use crate::failure::Failure;

/// Simulates, predicts and explains multipath transport.
#[derive(Debug, Parser)]
#[command(name = "ropewalk", version, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    ropewalk run wifi-lte\n  \
    ropewalk compare kuhn-2-200-45\n  \
    ropewalk predict wifi-lte --json\n\n\
    Exit status: 0 success, 1 the run failed, 2 the input is wrong.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Write nothing but errors to stderr: no progress bar, no notes
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Colours: on a terminal, unless NO_COLOR is set (auto); always; or never
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        hide_possible_values = true
    )]
    color: ColorChoice,
}

fn main() -> ExitCode {
    use_colour(asked_colour(std::env::args_os()));
    let result = parsed().and_then(|Cli { command, quiet, color }| {
        use_colour(color);
        commands::execute(command, Console::new(quiet))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Status(_)) {
                console::write_error(&failure);
            }
            failure.exit_code()
        }
    }
}

/// The command line with the options of its file. What clap refuses of the command line ends the program here.
fn parsed() -> Result<Cli, Failure> {
    let configured = config::expand(&Cli::command(), std::env::args_os().collect())?;
    let command = Cli::command().color(asked_colour(configured.words.iter().cloned()));
    let matched = command.try_get_matches_from(&configured.words);
    let cli = matched.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    cli.or_else(|error| match configured.locate(&error) {
        Some(failure) => Err(failure),
        None => with_nearest(with_separator(with_key(error)), &configured.words).exit(),
    })
}

/// Colours what is printed from now on, or not.
fn use_colour(choice: ColorChoice) {
    let choice = match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// The colours that `--color` asks for. Errors of the arguments need it before the arguments are parsed.
fn asked_colour(arguments: impl Iterator<Item = OsString>) -> ColorChoice {
    let words = arguments.map(|word| word.to_string_lossy().into_owned());
    // Words after `--` belong to another program.
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    let joined = words.iter().find_map(|word| word.strip_prefix("--color="));
    let apart = words.windows(2).find(|pair| pair[0] == "--color").map(|pair| pair[1].as_str());
    match joined.or(apart) {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// Suggests `--set` for an unknown option that is a key of the scenario, such as `--duration`.
fn with_key(mut error: clap::Error) -> clap::Error {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.trim_start_matches('-').replace('-', "_"),
        _ => return error,
    };
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap_or_default();
    let table = schema["properties"]["transfer"]["$ref"].as_str().unwrap_or_default();
    let keys = schema.pointer(table.trim_start_matches('#')).map(|table| &table["properties"]);
    let is_key = keys.is_some_and(|keys| keys.get(&unknown).is_some());
    if error.kind() == ErrorKind::UnknownArgument && is_key {
        let tip =
            format!("to change this key of the scenario, use '--set transfer.{unknown}=VALUE'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Suggests the valid name that is nearest to an unknown command, option or value of the command line `words`. It replaces clap's
/// suggestion, which misses short names and swapped letters.
fn with_nearest(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let (unknown, suggested) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand)
        }
        ErrorKind::InvalidValue => (ContextKind::InvalidValue, ContextKind::SuggestedValue),
        _ => return error,
    };
    let Some(ContextValue::String(given)) = error.get(unknown) else { return error };
    let valid = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) => values.clone(),
        _ => commands_before(words, given),
    };
    let valid: Vec<&str> = valid.iter().map(String::as_str).collect();
    let Some(name) = nearest(given, &valid).map(str::to_owned) else { return error };
    let value = match suggested {
        ContextKind::SuggestedSubcommand => ContextValue::Strings(vec![name]),
        _ => ContextValue::String(name),
    };
    error.insert(suggested, value);
    error
}

/// The commands that may stand where `given` does.
fn commands_before(words: &[OsString], given: &str) -> Vec<String> {
    let root = Cli::command();
    let mut command = &root;
    for word in words.iter().skip(1).take_while(|word| *word != given) {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    command.get_subcommands().map(|one| one.get_name().to_owned()).collect()
}

/// Names `--` if a word stands where only a program after `--` may, as in `ropewalk preload iperf3`.
fn with_separator(mut error: clap::Error) -> clap::Error {
    let word = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if !word.starts_with('-') => word.clone(),
        _ => return error,
    };
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => return error,
    };
    if error.kind() == ErrorKind::UnknownArgument && usage.contains("-- <") {
        let tip = format!("the program to run and its arguments follow '--': '-- {word} ...'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_colours_are_known_before_the_arguments_are_parsed() {
        for (words, expected) in [
            (&["ropewalk", "run", "--color=never"][..], ColorChoice::Never),
            (&["ropewalk", "--color", "always", "run"], ColorChoice::Always),
            (&["ropewalk", "run", "color"], ColorChoice::Auto),
            (&["ropewalk", "emulate", "a.toml", "--", "ls", "--color=never"], ColorChoice::Auto),
        ] {
            assert_eq!(asked_colour(words.iter().map(OsString::from)), expected, "{words:?}");
        }
    }

    #[test]
    fn an_option_that_is_a_key_of_the_scenario_points_to_set() {
        for (option, tip) in [("--duration", true), ("--receive-buffer", true), ("--length", false)]
        {
            let error = Cli::try_parse_from(["ropewalk", "run", "a.toml", option, "1"]);
            let shown = with_key(error.expect_err("there is no such option")).to_string();
            assert_eq!(shown.contains("--set transfer."), tip, "{shown}");
        }
    }

    #[test]
    fn a_program_without_the_separator_points_to_it() {
        for (words, tip) in [
            (&["preload", "iperf3", "-s"][..], true),
            (&["preload", "--udp-port", "9000", "iperf3"], true),
            (&["preload", "--iperf3"], false),
            (&["schema", "iperf3"], false),
        ] {
            let error = Cli::try_parse_from([&["ropewalk"], words].concat());
            let shown = with_separator(error.expect_err("it is refused")).to_string();
            assert_eq!(shown.contains("'-- iperf3 ...'"), tip, "{shown}");
        }
    }

    /// What a refused command line shows.
    fn refusal(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> =
            ["ropewalk"].iter().chain(words).map(|word| OsString::from(*word)).collect();
        let error = Cli::try_parse_from(&words).err()?;
        Some(with_nearest(error, &words).to_string())
    }

    /// Misspells each command below `command`, which `path` leads to.
    fn misspell(command: &clap::Command, path: &[&str]) {
        for inner in command.get_subcommands() {
            let name = inner.get_name();
            let mut letters: Vec<char> = name.chars().collect();
            let last = letters.len() - 1;
            letters.swap(last - 1, last);
            let slip: String = letters.into_iter().collect();
            // Some commands end in two equal letters. One mistake in three letters is tolerated.
            if slip != name && name.len() >= 3 {
                let shown = refusal(&[path, &[&slip]].concat()).expect("no such command");
                assert!(shown.contains(&format!("'{name}'")), "{path:?} {slip}: {shown}");
            }
            misspell(inner, &[path, &[name]].concat());
        }
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest_valid_one() {
        misspell(&Cli::command(), &[]);
        let shown = refusal(&["run", "a.toml", "--color", "nver"]).expect("no such value");
        assert!(shown.contains("'never'"), "{shown}");
        // There is a command `run`, but none of the tunnel's.
        for words in [&["zebra"][..], &["tunnel", "runn"], &["--color", "never", "tunnel", "runn"]]
        {
            let shown = refusal(words).expect("no such command");
            assert!(!shown.contains("tip:"), "{shown}");
        }
    }

    #[test]
    fn the_declaration_of_all_arguments_is_sound() {
        Cli::command().debug_assert();
    }
}
