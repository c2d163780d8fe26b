//! Messages to an echo server and back, each checked: nothing lost, doubled, changed or out of order.
//!
//! ```text
//! ropewalk-messages serve --key FILE --allow PUBKEY --listen ADDRESS:PORT ...
//! ropewalk-messages run --key FILE --peer PUBKEY --to ADDRESS:PORT,... --from INTERFACE,...
//! ```
//!
//! `run` connects again whenever the association is lost, and ends when its standard input does: it then waits for the
//! echoes that are missing. It prints one JSON document per line: `count` once a second, `lost` and `silent` when an
//! association is given up, `wrong` for each violation.

#![allow(
    clippy::disallowed_methods,
    reason = "a program on real sockets that waits, and notes when things happened"
)]

mod echo;
mod echo_tracker;
mod options;
mod pattern;

use options::CommandOptions;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let role = arguments.next().unwrap_or_default();
    let options = CommandOptions::parse(arguments)?;
    match role.as_str() {
        "serve" => echo::serve(&options).await,
        "run" => echo::run(&options).await,
        _ => Err("say `serve` or `run`".into()),
    }
}
