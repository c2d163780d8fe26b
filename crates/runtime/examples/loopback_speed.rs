//! Two ends in one process: how fast one sends to the other, sealed, over loopback addresses.
//!
//! `cargo run --release -p ropewalk-runtime --example loopback_speed -- [MEGABYTES] [PATHS] [plain] [observed]`

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::{Endpoint, Observer, Options, Target};
use ropewalk_runtime::seal::{Allowed, SecretKey};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: usize| {
        arguments.get(at).and_then(|word| word.parse().ok()).unwrap_or(default)
    };
    let (megabytes, paths) = (number(1, 1000), number(2, 2));
    let plain = arguments.iter().any(|word| word == "plain");
    let locals: Vec<SocketAddr> = vec![(Ipv4Addr::LOCALHOST, 0).into(); paths];
    let (mut server, mut client) = (Options::listening(&locals), Options::connecting(&locals));
    let mut key = None;
    if !plain {
        let (one, other) = (SecretKey::generate()?, SecretKey::generate()?);
        key = Some(one.public());
        server = server.sealed(one, Allowed::Anyone);
        client = client.sealed(other, Allowed::Anyone);
    }
    if arguments.iter().any(|word| word == "observed") {
        let observer = Observer::new(ropewalk_base::Duration::from_millis(250), |_| {});
        (server.observer, client.observer) = (Some(observer.clone()), Some(observer));
    }
    let server = Endpoint::open(server)?;
    let client = Endpoint::open(client)?;
    let near = client.connect(&Target { addresses: server.locals().to_vec(), key }).await?;
    let far = server.accept().await;
    let block = Bytes::from(vec![7; near.message_size()]);
    let count = megabytes * 1_000_000 / block.len();
    let clock = Clock::start();
    let send = async {
        near.send_all(0, 0, &mut std::iter::repeat_n(block, count)).await?;
        near.shutdown().await?;
        Ok::<(), Box<dyn std::error::Error>>(())
    };
    let receive = async {
        let (mut bytes, mut messages) = (0, Vec::new());
        loop {
            far.receive_all(&mut messages).await;
            if messages.is_empty() {
                return bytes;
            }
            bytes += messages.drain(..).map(|m| m.bytes.len()).sum::<usize>();
        }
    };
    let (sent, bytes) = tokio::join!(send, receive);
    sent?;
    let took: Duration = Duration::from_nanos(clock.now().as_nanos());
    println!(
        "{bytes} bytes in {:.3} s: {:.3} Gbit/s",
        took.as_secs_f64(),
        bytes as f64 * 8e-9 / took.as_secs_f64()
    );
    Ok(())
}
