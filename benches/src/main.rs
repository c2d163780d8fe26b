//! Measures the figures that docs/figures.md quotes: `make bench`, or `cargo run --release -p
//! ropewalk-bench -- speed models --json`.
//!
//! The output shows each figure with its target. A missed target is a result, not an error: the
//! exit status is nonzero only if something could not be measured. It is 2 if the arguments are
//! wrong.

mod args;
mod child;
mod clock;
mod machine;
mod memory;
mod progress;
mod report;
mod row;
mod runs;
mod sections;

use std::process::ExitCode;

use args::{Args, Command};
use machine::Machine;
use report::Report;

fn main() -> ExitCode {
    match Args::parse(std::env::args().skip(1)) {
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
        Ok(Command::Help) => {
            print!("{}", args::help());
            ExitCode::SUCCESS
        }
        // The section `many` starts this binary again, so that memory is measured in a new process.
        Ok(Command::Idle(associations)) => match memory::idle(associations) {
            Ok(bytes) => {
                println!("{bytes}");
                ExitCode::SUCCESS
            }
            Err(message) => {
                eprintln!("error: {message}");
                ExitCode::FAILURE
            }
        },
        Ok(Command::Measure(args)) => measure(&args),
    }
}

fn measure(args: &Args) -> ExitCode {
    let mut report = Report::new(Machine::read());
    for warning in &report.machine.warnings {
        eprintln!("warning: {warning}");
    }
    for section in &args.sections {
        eprintln!("{} ...", section.name);
        report.sections.push(section.run());
    }
    if args.json {
        println!("{}", report.json());
    } else {
        print!("{}", report.markdown());
    }
    if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
