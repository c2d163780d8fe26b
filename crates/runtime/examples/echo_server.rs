//! Echoes every message to its sender, sealed.
//!
//! `cargo run -p ropewalk-runtime --example echo_server -- [ADDRESS:PORT ...]`
//!
//! It prints what `echo_client` needs: its public key and its addresses, one per path.

use std::net::SocketAddr;
use std::process::ExitCode;

use ropewalk_runtime::endpoint::{Association, Endpoint, Options};
use ropewalk_runtime::seal::{Allowed, SecretKey};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo_server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let mut locals = Vec::new();
    for address in std::env::args().skip(1) {
        locals.push(address.parse::<SocketAddr>()?);
    }
    if locals.is_empty() {
        locals = vec!["127.0.0.1:0".parse()?, "127.0.0.1:0".parse()?];
    }
    let secret = SecretKey::generate()?;
    let public = secret.public();
    // Accepts everyone who knows the key. `Allowed::Keys` accepts only listed peers.
    let options = Options::listening(&locals).sealed(secret, Allowed::Anyone);
    let endpoint = Endpoint::open(options)?;
    let addresses: Vec<_> = endpoint.locals().iter().map(ToString::to_string).collect();
    println!("{public} {}", addresses.join(" "));
    loop {
        let association = endpoint.accept().await;
        tokio::spawn(async move {
            if let Err(error) = serve(association).await {
                eprintln!("{error}");
            }
        });
    }
}

async fn serve(association: Association) -> Result<(), Failure> {
    while let Some(message) = association.receive().await {
        association.send(message.stream, message.ppid, message.bytes).await?;
    }
    match association.stats() {
        Some(stats) => eprintln!("done, over {} paths", stats.paths.len()),
        None => eprintln!("done"),
    }
    Ok(())
}
