//! Programs that open a SOCKS connection to a proxy client, begin a request, and stop.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use ropewalk_runtime::seal::SecretKey;

use crate::exit::exit;
use crate::figure::{Bound, Failure, Figure};
use crate::victim::{Process, Server, free_address};

const CLIENTS: usize = 2000;
const PATIENCE: Duration = Duration::from_secs(40);

/// Connects through the proxy to a listener. Returns the seconds until a byte has passed through.
fn honest(socks: SocketAddr, target: SocketAddr) -> Result<f64, Failure> {
    let began = Instant::now();
    let mut stream = TcpStream::connect(socks)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let [high, low] = target.port().to_be_bytes();
    stream.write_all(&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, high, low])?;
    let mut answers = [0; 13];
    stream.read_exact(&mut answers)?;
    if answers[3] != 0 || answers[12] != b'!' {
        return Err(format!("the proxy answered {answers:?}").into());
    }
    Ok(began.elapsed().as_secs_f64())
}

fn start_proxy_client(
    binary: &Path,
    server: &Server,
    key: &Path,
    socks: SocketAddr,
) -> Result<Process, Failure> {
    let log = File::create(server.folder.path().join("near.log"))?;
    let mut command = Command::new(binary);
    command.arg("proxy").args(server.reach(server.address)).arg("--key").arg(key);
    command.args(["--socks", &socks.to_string()]);
    let process = Process(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?);
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(socks).is_err() {
        if Instant::now() > until {
            return Err("the near end does not listen".into());
        }
        sleep(Duration::from_millis(50));
    }
    Ok(process)
}

/// How long another program waits for its connection.
pub fn one_byte(binary: &Path) -> Result<Figure, Failure> {
    let keys = [SecretKey::generate()?, SecretKey::generate()?];
    let server = exit(binary, &keys, &[])?;
    let key = server.folder.path().join("near.key");
    keys[0].write_new_file(&key).map_err(|error| error.to_string())?;
    let socks = free_address()?;
    let _proxy_client = start_proxy_client(binary, &server, &key, socks)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let target = listener.local_addr()?;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"!");
        }
    });
    let usual = honest(socks, target)?;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = TcpStream::connect(socks)?;
        client.write_all(&[5])?;
        clients.push(client);
    }
    let seconds = honest(socks, target)?;
    Ok(Figure::new("another program is connected after", "s", seconds, Bound::AtMost(2.0))
        .with("seconds_usual", usual)
        .with("clients", clients.len()))
}
