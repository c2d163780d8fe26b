//! SIGHUP: reads the file of `--config` again while a command runs.
//!
//! Options that can change while the command runs apply immediately. If other options differ, each SIGHUP logs a
//! warning that they need a restart. A file with an error changes nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches};
use ropewalk_apps::observe::{Event, PeerIdentity, Reporter};

use super::interrupt::Hangups;
use super::log::as_note;
use crate::console::Console;
use crate::failure::Failure;
use crate::{Cli, config};

/// Reports the results of a SIGHUP.
#[derive(Clone)]
pub struct Announcer {
    reporter: Reporter,
    console: Console,
    /// Whether a log shows events, so that notes are only for a person at a terminal.
    has_log: bool,
}

impl Announcer {
    /// Creates an announcer for a command that logs events.
    pub const fn with_log(reporter: Reporter, console: Console) -> Self {
        Self { reporter, console, has_log: true }
    }

    /// Creates an announcer for a command that only prints notes.
    pub const fn with_notes(reporter: Reporter, console: Console) -> Self {
        Self { reporter, console, has_log: false }
    }

    /// Reports an event.
    pub fn say(&self, event: Event) {
        let peer = PeerIdentity::default();
        if !self.has_log || self.console.has_viewer() {
            self.console.note(as_note(&peer, &event));
        }
        self.reporter.report(peer, event);
    }
}

/// Options that a SIGHUP may change, for a command with the arguments `A`.
pub struct Reload<A> {
    announcer: Announcer,
    options: Vec<LiveOption<A>>,
}

/// Applies an option that has been checked.
pub type Commit = Box<dyn FnOnce() -> Result<(), Failure> + Send>;

/// Checks options in new arguments. Returns `None` if the change needs a restart.
type Check<A> = Arc<dyn Fn(&A) -> Result<Option<Commit>, Failure> + Send + Sync>;

/// Long names of options, and the function that checks and applies them.
type LiveOption<A> = (&'static [&'static str], Check<A>);

impl<A: Args + FromArgMatches + Send + 'static> Reload<A> {
    /// Creates a reload without options.
    pub const fn new(announcer: Announcer) -> Self {
        Self { announcer, options: Vec::new() }
    }

    /// Permits a SIGHUP to change these options. If one of them differs, `check` is called. The function that it
    /// returns is called after all options have been checked.
    #[must_use]
    pub fn on(
        mut self,
        names: &'static [&'static str],
        check: impl Fn(&A) -> Result<Option<Commit>, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.options.push((names, Arc::new(check)));
        self
    }

    /// Like [`Reload::on`], for options whose values are valid if they can be parsed.
    #[must_use]
    pub fn set(
        self,
        names: &'static [&'static str],
        apply: impl Fn(&A) + Send + Sync + 'static,
    ) -> Self
    where
        A: Clone,
    {
        let apply = Arc::new(apply);
        self.on(names, move |args| {
            let (apply, args) = (apply.clone(), args.clone());
            Ok(Some(Box::new(move || {
                apply(&args);
                Ok(())
            })))
        })
    }

    /// Reads the file again at each SIGHUP from now on, if there is a file. Without one, a SIGHUP ends the command.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn watch(self, file: Option<&Path>) {
        let Some(file) = file.map(|file| file.display().to_string()) else { return };
        // Install the handler before the command reports that it is ready.
        let mut hangups = Hangups::new(true);
        let words: Vec<_> = std::env::args_os().collect();
        // The file was read a moment ago. Unless it has changed since, this is the current state.
        let root = Cli::command();
        let mut state = match config::read_again(&root, words.clone()) {
            Ok(first) => InForce::new(first),
            Err(error) => return self.refuse(&error),
        };
        tokio::spawn(async move {
            loop {
                hangups.next().await;
                match config::read_again(&root, words.clone()) {
                    Ok(new) => self.apply(&file, &mut state, new),
                    Err(error) => self.refuse(&error),
                }
            }
        });
    }

    /// Applies the differences from the current options.
    fn apply(&self, file: &str, state: &mut InForce, new: ArgMatches) {
        let command = A::augment_args(Command::new("options"));
        let differing = state.differences(&command, &new);
        let checked = A::from_arg_matches(&new)
            .map_err(|error| Failure::Input(error.to_string()))
            .and_then(|args| self.check(&differing, &args));
        let commits = match checked {
            Ok(commits) => commits,
            Err(error) => return self.refuse(&error),
        };
        let (mut live, mut failed) = (Vec::new(), Vec::new());
        for (names, commit) in commits {
            match commit() {
                Ok(()) => live.extend(names),
                Err(error) => {
                    failed.extend(names);
                    self.announcer.say(Event::Problem(one_line(&error)));
                }
            }
        }
        for event in events(file, &differing, &live, &failed) {
            self.announcer.say(event);
        }
        state.take(&live, new);
    }

    /// Checks the options that differ. Returns functions that apply those that can change now.
    fn check(
        &self,
        differing: &[String],
        args: &A,
    ) -> Result<Vec<(&'static [&'static str], Commit)>, Failure> {
        let mut commits = Vec::new();
        for (names, check) in &self.options {
            let differs = differing.iter().any(|name| names.contains(&name.as_str()));
            if differs && let Some(commit) = check(args)? {
                commits.push((*names, commit));
            }
        }
        Ok(commits)
    }

    fn refuse(&self, error: &Failure) {
        let problem = format!("{}; the old options stay in force", one_line(error));
        self.announcer.say(Event::Problem(problem));
    }
}

/// The current options: those of the start, and those that later files have changed.
struct InForce {
    first: ArgMatches,
    /// The options that a SIGHUP has changed, each with the latest file that changed it.
    changed: BTreeMap<&'static str, Arc<ArgMatches>>,
}

impl InForce {
    const fn new(first: ArgMatches) -> Self {
        Self { first, changed: BTreeMap::new() }
    }

    /// The options of `new` that differ, in the order of the command's help.
    fn differences(&self, command: &Command, new: &ArgMatches) -> Vec<String> {
        let differs = |option: &str| {
            let now = self.changed.get(option).map_or(&self.first, |changed| changed.as_ref());
            config::differs(command, option, now, new)
        };
        let options = command.get_arguments().filter_map(|option| option.get_long());
        options.filter(|option| differs(option)).map(str::to_owned).collect()
    }

    /// Records that these options now have the values of `new`.
    fn take(&mut self, live: &[&'static str], new: ArgMatches) {
        let new = Arc::new(new);
        self.changed.extend(live.iter().map(|option| (*option, new.clone())));
    }
}

/// Events about the options that differ: those that have changed, and those that need a restart. Options that could
/// not be changed have already been reported.
fn events(file: &str, differing: &[String], live: &[&str], failed: &[&str]) -> Vec<Event> {
    let shown = |is_shown: &dyn Fn(&str) -> bool| {
        let names = differing.iter().filter(|name| is_shown(name));
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let changed = shown(&|name| live.contains(&name));
    let fixed = shown(&|name| !live.contains(&name) && !failed.contains(&name));
    let mut events = Vec::new();
    if !fixed.is_empty() {
        let text =
            format!("{file}: a restart is needed to change {fixed}; the old values stay in force");
        events.push(Event::Problem(text));
    }
    if !changed.is_empty() {
        events.push(Event::OptionsChanged(format!("read {file}: changed {changed}")));
    } else if differing.is_empty() {
        let text = format!("read {file}: it has the options that are in force");
        events.push(Event::OptionsChanged(text));
    }
    events
}

/// Formats an error of several lines as one: place, message, help.
fn one_line(error: &Failure) -> String {
    let text = error.to_string();
    let mut message = String::new();
    let (mut place, mut help) = (None, None);
    for line in text.lines().map(str::trim_start) {
        if let Some(at) = line.strip_prefix("--> ") {
            place.get_or_insert(at);
        } else if let Some(hint) = line.strip_prefix("= help: ") {
            help.get_or_insert(hint);
        } else if message.is_empty() {
            message = line.trim_start_matches("error: ").to_owned();
        }
    }
    let place = place.map_or_else(String::new, |at| format!("{at}: "));
    let help = help.map_or_else(String::new, |hint| format!("; help: {hint}"));
    format!("{place}{message}{help}")
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn an_option_that_needs_a_restart_differs_until_its_value_is_back() {
        let command =
            Command::new("test").arg(Arg::new("a").long("a")).arg(Arg::new("b").long("b"));
        let read = |words: &str| {
            let words = ["test"].into_iter().chain(words.split_whitespace());
            command.clone().try_get_matches_from(words).expect("options")
        };
        let mut state = InForce::new(read("--a 1 --b 1"));
        for (file, differing) in [
            ("--a 2 --b 2", vec!["a", "b"]),
            ("--a 2 --b 2", vec!["b"]),
            ("--a 2 --b 1", vec![]),
            ("--a 1 --b 1", vec!["a"]),
            ("--b 1", vec!["a"]),
        ] {
            let new = read(file);
            assert_eq!(state.differences(&command, &new), differing, "{file}");
            // `b` needs a restart.
            state.take(if differing.contains(&"a") { &["a"] } else { &[] }, new);
        }
    }

    #[test]
    fn what_has_changed_and_what_needs_a_restart_is_named_and_nothing_else_is_said() {
        let texts = |differing: &[&str], live: &[&str], failed: &[&str]| {
            let differing: Vec<String> = differing.iter().map(|name| (*name).to_owned()).collect();
            let events = events("f.toml", &differing, live, failed);
            events.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        for (differing, live, failed, expected) in [
            (&[][..], &[][..], &[][..], "it has the options that are in force"),
            (&["a"], &["a"], &[], "changed `a`"),
            (&["a", "b"], &["b"], &[], "restart is needed to change `a`;"),
            (&["a", "b"], &["b"], &[], "changed `b`"),
            (&["a"], &[], &[], "restart is needed to change `a`;"),
            (&["a", "b"], &["a"], &["b"], "changed `a`"),
        ] {
            let text = texts(differing, live, failed);
            assert!(text.contains(expected) && !text.contains("nothing"), "{text}");
        }
        assert_eq!(texts(&["a"], &[], &["a"]), "");
    }

    #[test]
    fn an_error_of_several_lines_becomes_one_with_its_place_and_help() {
        let shown = "error: unknown option `listn`\n --> recv.toml:2:1\n  |\n2 | listn = 1\n  | ^^^^^\n \
                     = help: did you mean `listen`?";
        let line = "recv.toml:2:1: unknown option `listn`; help: did you mean `listen`?";
        assert_eq!(one_line(&Failure::Input(shown.to_owned())), line);
        assert_eq!(one_line(&Failure::input("no file", "give one")), "no file; help: give one");
    }
}
