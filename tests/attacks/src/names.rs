//! An attacker asks an exit to resolve names for which no name server answers.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ropewalk_apps::proxy::{Host, Target as Destination};
use ropewalk_runtime::seal::SecretKey;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::exit::{exit, open_stream, proxy_client, sink};
use crate::figure::{Bound, Failure, Figure};
use crate::victim::{Folder, Server};

/// Address of the name server that answers for one name only.
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 77);
const ANSWERED: &str = "answered.test";
const UNANSWERED: usize = 1500;
/// Header of a DNS message, bytes (RFC 1035, 4.1.1).
const HEADER: usize = 12;

/// Answers queries for the one name with the address of this machine, until `over` is set.
fn serve_names(over: &AtomicBool, ignored: &AtomicUsize) -> Result<(), Failure> {
    let socket = UdpSocket::bind((NAME_SERVER, 53))?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut room = [0; 512];
    while !over.load(Ordering::Relaxed) {
        let Ok((size, from)) = socket.recv_from(&mut room) else { continue };
        let question = &room[..size];
        if !question.windows(8).any(|part| part.eq_ignore_ascii_case(b"answered")) {
            ignored.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        // Repeats the question, and adds one address for an A query.
        let end = HEADER + question[HEADER..].iter().position(|byte| *byte == 0).unwrap_or(0) + 5;
        let asks_ipv4 = question.get(end - 4..end - 2) == Some(&[0, 1][..]);
        let mut answer = question[..2].to_vec();
        answer.extend([0x81, 0x80, 0, 1, 0, u8::from(asks_ipv4), 0, 0, 0, 0]);
        answer.extend(&question[HEADER..end]);
        if asks_ipv4 {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
        }
        socket.send_to(&answer, from)?;
    }
    Ok(())
}

async fn ask(server: &Server, keys: &[SecretKey; 2]) -> Result<f64, Failure> {
    let port = sink().await?.port();
    let flooder = Arc::new(proxy_client(server, &keys[0], 1).await?);
    let other = proxy_client(server, &keys[1], 2).await?;
    let honest = Destination::new(Host::Name(ANSWERED.to_owned()), port)?;
    // Checks that the name resolves without the attack.
    open_stream(&other, &honest)
        .await
        .ok_or("the honest name does not resolve without the attack")?;
    let mut asking = JoinSet::new();
    for number in 0..UNANSWERED {
        let name = Host::Name(format!("silent-{number}.test"));
        let (flooder, target) = (flooder.clone(), Destination::new(name, port)?);
        asking.spawn(async move { open_stream(&flooder, &target).await });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    let made = open_stream(&other, &honest).await;
    let seconds = began.elapsed().as_secs_f64();
    asking.abort_all();
    // JSON has no infinity: 60 s means never.
    Ok(if made.is_some() { seconds } else { 60.0 })
}

/// How long another client waits for a name that the name server answers immediately.
pub fn unanswered(binary: &Path) -> Result<Figure, Failure> {
    let folder = Folder::new()?;
    let resolver = folder.path().join("resolv.conf");
    std::fs::write(&resolver, format!("nameserver {NAME_SERVER}\n"))?;
    let (over, ignored) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (end, count) = (over.clone(), ignored.clone());
    let names = thread::spawn(move || serve_names(&end, &count));
    let keys = [SecretKey::generate()?, SecretKey::generate()?];
    let mount = format!(
        "mount --bind '{}' \"$(readlink -f /etc/resolv.conf)\" && exec \"$@\"",
        resolver.display()
    );
    let wrapper = ["unshare", "--mount", "sh", "-c", &mount, "sh"];
    let server = exit(binary, &keys, &wrapper)?;
    let runtime = Runtime::new()?;
    let seconds = runtime.block_on(ask(&server, &keys));
    runtime.shutdown_timeout(Duration::from_secs(2));
    over.store(true, Ordering::Relaxed);
    names.join().map_err(|_| "the server of names panicked")??;
    Ok(Figure::new("another key's name is resolved after", "s", seconds?, Bound::AtMost(2.0))
        .with("questions_ignored", ignored.load(Ordering::Relaxed)))
}
