//! Bulk data through quinn with its default settings, one stream of one connection:
//!
//!     quinn-peer recv ADDRESS CERTIFICATE          prints {"bytes": ..., "seconds": ...} when the peer has finished
//!     quinn-peer send ADDRESS CERTIFICATE SECONDS
//!
//! The receiver writes its certificate to the file. The sender trusts only that certificate.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::{ClientConfig, Endpoint, ServerConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const NAME: &str = "peer";

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["recv", address, file] => receive(address.parse()?, file).await,
        ["send", address, file, seconds] => {
            send(address.parse()?, file, Duration::from_secs_f64(seconds.parse()?)).await
        }
        _ => {
            Err("usage: quinn-peer recv ADDRESS FILE | quinn-peer send ADDRESS FILE SECONDS".into())
        }
    }
}

async fn receive(address: SocketAddr, file: &str) -> Result<()> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let certificate = made.cert.der().clone();
    let endpoint = Endpoint::server(
        ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?,
        address,
    )?;
    std::fs::write(file, &certificate)?;
    let connection = endpoint.accept().await.ok_or("nobody came")?.await?;
    let mut stream = connection.accept_uni().await?;
    let (began, mut bytes) = (Instant::now(), 0);
    let mut chunks = vec![Bytes::new(); 64];
    while let Some(count) = stream.read_chunks(&mut chunks).await? {
        bytes += chunks[..count].iter().map(Bytes::len).sum::<usize>();
    }
    println!("{{\"bytes\": {bytes}, \"seconds\": {:.6}}}", began.elapsed().as_secs_f64());
    // The peer closes the connection after it has learned that everything has arrived.
    connection.closed().await;
    Ok(())
}

async fn send(address: SocketAddr, file: &str, time: Duration) -> Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(file)?))?;
    let mut endpoint = Endpoint::client(([0, 0, 0, 0], 0).into())?;
    endpoint.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let connection = endpoint.connect(address, NAME)?.await?;
    let mut stream = connection.open_uni().await?;
    let block = Bytes::from(vec![7; 1 << 20]);
    let began = Instant::now();
    while began.elapsed() < time {
        stream.write_chunk(block.clone()).await?;
    }
    stream.finish()?;
    stream.stopped().await?;
    connection.close(0u8.into(), b"done");
    endpoint.wait_idle().await;
    Ok(())
}
