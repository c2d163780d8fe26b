//! Bulk transfer over real sockets without sealing, for comparison with other stacks: `bulk receive
//! BUFFER ADDRESS,...` and `bulk send SECONDS OWN,... THEIRS,...`. Port 9899.

#![allow(clippy::disallowed_methods, reason = "what is measured is real time")]

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Endpoint, Options, PORT, Target};

/// Data in this time after the first byte is not counted.
const WARMUP: Duration = Duration::from_secs(5);
const MESSAGE: usize = 1400;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["receive", buffer, own] => receive(buffer.parse().expect("bytes"), own).await,
        ["send", seconds, own, theirs] => {
            send(seconds.parse().expect("seconds"), own, theirs).await;
        }
        _ => eprintln!("bulk receive BUFFER ADDRESS,... | bulk send SECONDS OWN,... THEIRS,..."),
    }
}

fn sockets(list: &str) -> Vec<SocketAddr> {
    let ip = |text: &str| SocketAddr::new(text.parse::<IpAddr>().expect("an address"), PORT);
    list.split(',').map(ip).collect()
}

async fn receive(buffer: u64, own: &str) {
    let mut options = Options::listening(&sockets(own));
    options.transport.receive_buffer = buffer;
    let endpoint = Endpoint::open(options).expect("an endpoint");
    let association = endpoint.accept().await;
    let (mut began, mut last, mut bytes) = (None, Instant::now(), 0);
    let mut messages = Vec::new();
    loop {
        association.receive_all(&mut messages).await;
        if messages.is_empty() {
            break;
        }
        last = Instant::now();
        let began = *began.get_or_insert(last);
        let came: usize = messages.drain(..).map(|message| message.bytes.len()).sum();
        if last >= began + WARMUP {
            bytes += came;
        }
    }
    let seconds = (last - began.unwrap_or(last)).saturating_sub(WARMUP).as_secs_f64();
    let goodput = 8.0 * bytes as f64 / seconds;
    println!("{{\"seconds\":{seconds:.3},\"bytes\":{bytes},\"goodput_bps\":{goodput:.0}}}");
}

async fn send(seconds: f64, own: &str, theirs: &str) {
    let endpoint = Endpoint::open(Options::connecting(&sockets(own))).expect("an endpoint");
    let target = Target { addresses: sockets(theirs), key: None };
    let association = endpoint.connect(&target).await.expect("an association");
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let message = Bytes::from_static(&[0x55; MESSAGE]);
    while Instant::now() < end {
        association.send(0, 0, message.clone()).await.expect("taken");
    }
    association.abort();
    // The ABORT must leave before the process exits.
    tokio::time::sleep(Duration::from_millis(300)).await;
}
