//! Many associations of one server: the cost of idle ones, and whether busy ones share fairly.
//!
//! `cargo run --release -p ropewalk-runtime --example many -- idle 1000` (memory of a server with this number) or
//! `... -- busy 100` (goodput in 20 seconds, and its Jain index). The ends run in separate processes, each with as
//! many shards and threads as a third argument says (1). A fourth argument is a number of idle associations in
//! addition to busy ones.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Association, Endpoint, Options, Target, Transport};
use ropewalk_runtime::seal::{Allowed, PublicKey, SecretKey};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const PORT: u16 = 9897;
/// Time before the goodput measurement, and its duration.
const WARM_UP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(20);

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["clients", key, ref load @ ..] => {
            let load = Load::parse(load)?;
            run(load.shards, clients(key.parse()?, load))
        }
        ref load => {
            let load = Load::parse(load)?;
            run(load.shards, serve(load))
        }
    }
}

/// The load to run.
#[derive(Clone, Copy)]
struct Load {
    busy: usize,
    idle: usize,
    /// Shards and threads of each end.
    shards: usize,
}

impl Load {
    fn parse(words: &[&str]) -> Result<Self, Box<dyn std::error::Error>> {
        let number = |at: usize, default| words.get(at).map_or(Ok(default), |word| word.parse());
        let (count, shards, idle) = (number(1, 100)?, number(2, 1)?, number(3, 0)?);
        match words.first() {
            Some(&"idle") => Ok(Self { busy: 0, idle: count, shards }),
            Some(&"busy") => Ok(Self { busy: count, idle, shards }),
            _ => Err("say: idle COUNT [SHARDS], or busy COUNT [SHARDS [IDLE]]".into()),
        }
    }

    fn words(self) -> [String; 4] {
        let (kind, count) = if self.busy == 0 { ("idle", self.idle) } else { ("busy", self.busy) };
        [kind.into(), count.to_string(), self.shards.to_string(), self.idle.to_string()]
    }

    const fn count(self) -> usize {
        self.busy + self.idle
    }
}

/// Runs one end with as many threads as shards.
fn run(threads: usize, end: impl Future<Output = Outcome>) -> Outcome {
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build()?.block_on(end)
}

fn small() -> Transport {
    Transport { receive_buffer: 256 << 10, streams: 16, ..Transport::default() }
}

/// Resident memory of this process, bytes.
fn resident() -> Result<u64, Box<dyn std::error::Error>> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm")?
        .split_whitespace()
        .nth(1)
        .ok_or("no second word")?
        .parse()?;
    Ok(pages * 4096)
}

/// CPU time of this process, user and system, seconds.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no name")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    // Linux counts in hundredths of a second.
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}

async fn serve(load: Load) -> Outcome {
    let secret = SecretKey::generate()?;
    let key = secret.public();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["clients", &key.to_string()])
        .args(load.words())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    // The clients' key is listed: an unlisted one would have to prove its address first, at a limited rate.
    let mut client = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut client)?;
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let allowed = Allowed::Keys([client.trim().parse()?].into());
    let mut options = Options::listening(&[at]).sealed(secret, allowed);
    options.shards = load.shards;
    if load.busy > 0 {
        options.transport = small();
    }
    // All clients have one key and one address.
    let (count, limits) = (load.count(), &mut options.limits);
    (limits.associations, limits.memory) = (count, 4 << 30);
    (limits.associations_per_key, limits.associations_per_prefix) = (count, count);
    let endpoint = Endpoint::open(options)?;
    let before = resident()?;
    let mut held: Vec<Arc<Association>> = Vec::new();
    while held.len() < count {
        held.push(Arc::new(endpoint.accept().await));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let result = report(load, &held, before).await;
    child.kill()?;
    result
}

async fn report(load: Load, held: &[Arc<Association>], before: u64) -> Outcome {
    let Load { busy, idle, shards } = load;
    if busy == 0 {
        let after = resident()?;
        let each = (after - before) as f64 / idle as f64;
        println!(
            "{idle} idle associations: {:.1} MB resident, {each:.0} bytes each",
            after as f64 / 1e6
        );
        return Ok(());
    }
    let before = cpu_seconds()?;
    let (mbit_s, jain) = goodput(held, busy).await;
    let cpu = cpu_seconds()? - before;
    let per_gb = cpu / (MEASURED.as_secs_f64() + WARM_UP.as_secs_f64()) / (mbit_s / 8e3);
    println!(
        "{busy} busy associations beside {idle} idle ones, {shards} shards: {mbit_s:.0} Mbit/s, {per_gb:.3} CPU s/GB at \
         this end, Jain's index {jain:.3}"
    );
    Ok(())
}

/// The goodput of the busy associations together, Mbit/s, and Jain's index of it.
async fn goodput(held: &[Arc<Association>], busy: usize) -> (f64, f64) {
    let counts: Vec<_> = held.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
    for (association, count) in held.iter().zip(&counts) {
        let (association, count) = (association.clone(), count.clone());
        tokio::spawn(async move {
            let mut messages = Vec::new();
            loop {
                association.receive_all(&mut messages).await;
                if messages.is_empty() {
                    return;
                }
                let bytes: usize = messages.drain(..).map(|m| m.bytes.len()).sum();
                count.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        });
    }
    tokio::time::sleep(WARM_UP).await;
    let read = || counts.iter().map(|c| c.load(Ordering::Relaxed) as f64).collect::<Vec<_>>();
    let before = read();
    tokio::time::sleep(MEASURED).await;
    let mut shares: Vec<f64> =
        read().iter().zip(&before).map(|(after, before)| after - before).collect();
    // Idle ones have received nothing. A busy one that has received nothing counts.
    shares.sort_by(|a, b| b.total_cmp(a));
    shares.truncate(busy);
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|s| s * s).sum::<f64>());
    (sum * 8.0 / MEASURED.as_secs_f64() / 1e6, sum * sum / (shares.len() as f64 * squares))
}

async fn clients(key: PublicKey, load: Load) -> Outcome {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let secret = SecretKey::generate()?;
    println!("{}", secret.public());
    let mut options = Options::connecting(&[at]).sealed(secret, Allowed::Anyone);
    options.transport = small();
    options.shards = load.shards;
    let endpoint = Endpoint::open(options)?;
    let target = Target { addresses: vec![(Ipv4Addr::LOCALHOST, PORT).into()], key: Some(key) };
    let mut held = Vec::new();
    for _ in 0..load.count() {
        held.push(Arc::new(endpoint.connect(&target).await?));
    }
    for association in held.iter().take(load.busy) {
        let association = association.clone();
        tokio::spawn(async move {
            let message = Bytes::from(vec![1; association.message_size()]);
            while association.send(0, 0, message.clone()).await.is_ok() {}
        });
    }
    std::future::pending().await
}
