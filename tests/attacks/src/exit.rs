//! One key holds as many connections as it can at an exit while another client tries to connect.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_apps::mux::{Limits, Stream};
use ropewalk_apps::proxy::client::{Connector, EstablishedConnection};
use ropewalk_apps::proxy::live::{Live, transport};
use ropewalk_apps::proxy::{Host, Target as Destination};
use ropewalk_apps::whereabouts::Whereabouts;
use ropewalk_runtime::endpoint::Options;
use ropewalk_runtime::seal::{Allowed, SecretKey};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::figure::{Bound, Failure, Figure};
use crate::victim::{Server, Setup, loopback};

/// Clients with the attacker's key, and connections of each: more in total than the exit can hold.
const CLIENTS: usize = 3;
const CONNECTIONS_PER_CLIENT: usize = 1400;
/// Connections that the other client tries to open.
const ATTEMPTS: usize = 20;
const ANSWER: Duration = Duration::from_secs(15);

/// A client of the exit without programs behind it.
pub async fn proxy_client(
    server: &Server,
    secret: &SecretKey,
    number: usize,
) -> Result<EstablishedConnection, Failure> {
    let allowed = Allowed::Keys([server.key].into());
    let locals: [SocketAddr; 1] = [(loopback(number), 0).into()];
    let mut options = Options::connecting(&locals).sealed(secret.clone(), allowed);
    options.transport = transport();
    let place = Arc::new(Whereabouts::new(vec![server.address], None));
    let mut exit = Live { options, key: Some(server.key), place, limits: Limits::default() };
    Ok(exit.connect().await?)
}

/// A connection that the exit has established.
pub async fn open_stream(client: &EstablishedConnection, target: &Destination) -> Option<Stream> {
    let wanted = async {
        let mut stream = client.connection.open(target.encode()).await.ok()?;
        stream.opened().await.ok()?;
        // The byte tells the listener that the connection is open.
        stream.write_all(b"x").await.ok()?;
        Some(stream)
    };
    timeout(ANSWER, wanted).await.ok()?
}

/// An exit that allows connections to this machine and accepts both keys.
pub fn exit(binary: &Path, keys: &[SecretKey; 2], wrapper: &[&str]) -> Result<Server, Failure> {
    let allow = [keys[0].public(), keys[1].public()];
    let words = &["proxy", "exit", "--allow-private"];
    Server::start(binary, &Setup { words, allow: &allow, wrapper, memory: None })
}

/// Accepts connections and keeps them open.
pub async fn sink() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            kept.push(connection);
        }
    });
    Ok(address)
}

pub fn destination(address: SocketAddr) -> Result<Destination, Failure> {
    Ok(Destination::new(Host::Ip(address.ip()), address.port())?)
}

async fn hold(server: &Server, keys: &[SecretKey; 2]) -> Result<(usize, usize), Failure> {
    let target = destination(sink().await?)?;
    let mut holders = Vec::new();
    for number in 0..CLIENTS {
        holders.push(Arc::new(proxy_client(server, &keys[0], number + 1).await?));
    }
    let mut opening = JoinSet::new();
    for holder in
        holders.iter().flat_map(|holder| std::iter::repeat_n(holder, CONNECTIONS_PER_CLIENT))
    {
        let (holder, target) = (holder.clone(), target.clone());
        opening.spawn(async move { open_stream(&holder, &target).await });
    }
    let held: Vec<Stream> = opening.join_all().await.into_iter().flatten().collect();
    let other = proxy_client(server, &keys[1], CLIENTS + 1).await?;
    let mut made = Vec::new();
    for _ in 0..ATTEMPTS {
        made.extend(open_stream(&other, &target).await);
    }
    Ok((held.len(), made.len()))
}

/// The share of the other client's connections that succeed while one key holds as many as it can.
pub fn places(binary: &Path) -> Result<Figure, Failure> {
    let keys = [SecretKey::generate()?, SecretKey::generate()?];
    let server = exit(binary, &keys, &[])?;
    let runtime = Runtime::new()?;
    let (held, made) = runtime.block_on(hold(&server, &keys))?;
    runtime.shutdown_timeout(Duration::from_secs(2));
    let share = made as f64 / ATTEMPTS as f64;
    Ok(Figure::new("another key's connections are made", "share", share, Bound::AtLeast(1.0))
        .with("held_by_one_key", held))
}
