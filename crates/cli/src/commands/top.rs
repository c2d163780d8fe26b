//! `ropewalk top`: the status of a running command, kept up to date on the terminal.

mod view;

use std::collections::VecDeque;
use std::io::{IsTerminal, stdin, stdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ropewalk_apps::observe::Status;

use self::view::View;
use crate::failure::Failure;
use crate::live::{Watched, watch};

/// Interval at which keys are read.
const KEYS: Duration = Duration::from_millis(100);
/// Rates that the sparkline shows: one a second.
const RATES: usize = 512;

/// Arguments of `top`.
#[derive(Debug, Args)]
#[command(
    after_help = "Keys: q or Esc ends it; Tab shows the next command, if several are running.\n\n\
    Examples:\n  \
    ropewalk top\n  \
    ropewalk top 4711"
)]
pub struct TopArgs {
    /// Process identifier of the command to show; by default the first that is running
    pid: Option<u32>,
}

/// Shows a command until the user or the command ends.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &TopArgs) -> Result<(), Failure> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::input(
            "this is not a terminal",
            "`ropewalk status --json` is for programs",
        ));
    }
    let mut commands = watch()?;
    if let Some(pid) = args.pid {
        commands.retain(|command| command.first.pid == pid);
    }
    if commands.is_empty() {
        let message = match args.pid {
            Some(pid) => format!("process {pid} is no running command of Ropewalk"),
            None => "no send, recv, bench or proxy is running".to_owned(),
        };
        return Err(Failure::Run(format!(
            "{message}\n = help: `ropewalk status` lists those that run"
        )));
    }
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::Run(format!("cannot use the terminal: {error}")))?;
    let shown = show(&mut terminal, commands);
    ratatui::restore();
    shown
}

/// What the main loop does next.
enum Next {
    Quit,
    Switch,
    Ended,
}

fn show(terminal: &mut DefaultTerminal, commands: Vec<Watched>) -> Result<(), Failure> {
    let several = commands.len() > 1;
    let mut commands: VecDeque<Command> = commands.into_iter().map(Command::start).collect();
    while let Some(mut command) = commands.pop_front() {
        match command.show(terminal, several)? {
            Next::Quit => return Ok(()),
            Next::Switch => commands.push_back(command),
            Next::Ended => {}
        }
    }
    Ok(())
}

/// A command, whose status a thread reads.
struct Command {
    updates: Receiver<Status>,
    status: Status,
    /// Rates of all links, bit/s, oldest first.
    rates: VecDeque<u64>,
}

impl Command {
    fn start(watched: Watched) -> Self {
        let Watched { first, mut lines } = watched;
        let (sender, updates) = channel();
        std::thread::spawn(move || {
            while let Some(status) = lines.read() {
                if sender.send(status).is_err() {
                    return;
                }
            }
        });
        let rates = VecDeque::from([rate(&first)]);
        Self { updates, status: first, rates }
    }

    fn show(&mut self, terminal: &mut DefaultTerminal, several: bool) -> Result<Next, Failure> {
        let failed = |error| Failure::Run(format!("cannot use the terminal: {error}"));
        loop {
            let view = View { status: &self.status, rates: &self.rates, several };
            terminal.draw(|frame| view.render(frame)).map_err(failed)?;
            match self.updates.recv_timeout(KEYS) {
                Ok(status) => self.take(status),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::Ended),
            }
            while event::poll(Duration::ZERO).map_err(failed)? {
                match event::read().map_err(failed)? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                            return Ok(Next::Quit);
                        }
                        KeyCode::Char('q') | KeyCode::Esc => return Ok(Next::Quit),
                        KeyCode::Tab if several => return Ok(Next::Switch),
                        _ => {}
                    },
                    _ => {}
                }
            }
        }
    }

    fn take(&mut self, status: Status) {
        self.rates.push_back(rate(&status));
        if self.rates.len() > RATES {
            self.rates.pop_front();
        }
        self.status = status;
    }
}

/// The rate of all links in both directions, bit/s.
fn rate(status: &Status) -> u64 {
    status.links.iter().map(|link| link.up_bps + link.down_bps).sum::<f64>() as u64
}
