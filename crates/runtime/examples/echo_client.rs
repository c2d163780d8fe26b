//! Sends messages to an echo server, over one path per server address, and prints the state of the paths.
//!
//! `cargo run -p ropewalk-runtime --example echo_client -- KEY ADDRESS:PORT [ADDRESS:PORT ...]`

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Association, Endpoint, Options, Target};
use ropewalk_runtime::seal::{Allowed, PublicKey, SecretKey};

type Failure = Box<dyn std::error::Error>;

/// Messages to be echoed.
const COUNT: u32 = 1000;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo_client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let key: PublicKey = arguments.next().ok_or("give the server's key and addresses")?.parse()?;
    let mut addresses = Vec::new();
    for address in arguments {
        addresses.push(address.parse::<SocketAddr>()?);
    }
    // One socket per path. A socket bound to an interface's address would send only through that interface.
    let locals: Vec<SocketAddr> = addresses.iter().map(|remote| anywhere(remote).into()).collect();
    let options = Options::connecting(&locals)
        .sealed(SecretKey::generate()?, Allowed::Keys(BTreeSet::from([key])));
    let endpoint = Endpoint::open(options)?;
    let association = endpoint.connect(&Target { addresses, key: Some(key) }).await?;

    let (asked, answered) = tokio::join!(ask(&association), answers(&association));
    asked?;
    println!("{answered} of {COUNT} came back");
    tell_paths(&association);
    // Waits until all data has been acknowledged. Dropping the association would wait in the background.
    association.shutdown().await?;
    Ok(())
}

const fn anywhere(remote: &SocketAddr) -> (IpAddr, u16) {
    match remote {
        SocketAddr::V4(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        SocketAddr::V6(_) => (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

async fn ask(association: &Association) -> Result<(), Failure> {
    for i in 0..COUNT {
        // Four streams: a message waits only for the previous one on its own stream.
        let bytes = Bytes::from(i.to_be_bytes().repeat(100));
        association.send((i % 4) as u16, i, bytes).await?;
    }
    Ok(())
}

async fn answers(association: &Association) -> u32 {
    let mut answered = 0;
    while answered < COUNT {
        let Some(message) = association.receive().await else { break };
        assert_eq!(message.bytes[..4], message.ppid.to_be_bytes(), "the echo of what was sent");
        answered += 1;
    }
    answered
}

fn tell_paths(association: &Association) {
    let Some(stats) = association.stats() else { return };
    for path in stats.paths {
        let remote = path.remote.map_or_else(|| "?".to_owned(), |remote| remote.to_string());
        let delivered = path.counters.delivered_bytes;
        let rtt = path.srtt_s.map_or_else(String::new, |s| format!(", {:.3} ms", s * 1e3));
        println!("{remote}: {delivered} bytes delivered{rtt}, {:?}", path.status);
    }
}
