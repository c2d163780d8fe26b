//! TCP connections of the busy clients.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::clients::Fleet;
use crate::hub::Hub;
use crate::places::{Places, SERVER_ADDRESS};
use crate::report::{Group, Report};
use crate::{Failure, Load};

/// Port of the server. The first byte of a connection tells it what the client does.
const PORT: u16 = 7800;
const DOWNLOAD: u8 = b'd';
const UPLOAD: u8 = b'u';
/// Congestion control of the kernel's connections, independent of the machine's default.
const CONGESTION: &[u8] = b"cubic";
/// Bytes of one read or write.
const CHUNK: usize = 64 << 10;

/// Bytes that have arrived.
type Count = Arc<AtomicU64>;

/// Runs the busy clients, and adds their figures to the report.
///
/// # Errors
/// A connection cannot be opened.
pub async fn measure(
    places: &Places,
    hub: &Hub,
    fleet: &Fleet,
    load: Load,
    report: &mut Report,
) -> Result<(), Failure> {
    // The busy clients are spread evenly over all clients.
    let step = (fleet.addresses().len() / load.busy).max(1);
    let busy = fleet.addresses().iter().step_by(step).take(load.busy).enumerate();
    let kind = |number: usize| if number.is_multiple_of(2) { DOWNLOAD } else { UPLOAD };
    let counts: BTreeMap<IpAddr, (u8, Count)> =
        busy.map(|(number, address)| (*address, (kind(number), Count::default()))).collect();
    let uploads = counts.iter().map(|(address, (_, count))| (*address, count.clone())).collect();
    let server = Server::start(places, uploads)?;
    let mut flows = JoinSet::new();
    for (address, (kind, count)) in &counts {
        let stream = connect(*address, *kind).await?;
        match *kind {
            DOWNLOAD => flows.spawn(receive(stream, count.clone())),
            _ => flows.spawn(upload(stream)),
        };
    }
    tokio::time::sleep(load.warmup).await;
    let read =
        || counts.values().map(|(_, count)| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let (before, cpu, start) = (read(), hub.cpu()?, Instant::now());
    let mut most = 0;
    while start.elapsed() < load.measured {
        tokio::time::sleep(load.measured / 10).await;
        most = hub.memory()?.max(most);
    }
    let seconds = start.elapsed().as_secs_f64();
    let goodputs: Vec<f64> =
        read().iter().zip(&before).map(|(now, old)| (now - old) as f64 * 8.0 / seconds).collect();
    let of = |wanted: u8| {
        let pairs = counts.values().zip(&goodputs);
        pairs.filter(|((kind, _), _)| *kind == wanted).map(|(_, goodput)| *goodput).collect()
    };
    report.downloads = Group::of(of(DOWNLOAD));
    report.uploads = Group::of(of(UPLOAD));
    report.busy_cpu_share = (hub.cpu()? - cpu).as_secs_f64() / seconds;
    report.memory_busy_bytes = most;
    drop(server);
    Ok(())
}

async fn connect(address: IpAddr, kind: u8) -> Result<TcpStream, Failure> {
    let socket = TcpSocket::new_v4()?;
    SockRef::from(&socket).set_tcp_congestion(CONGESTION)?;
    socket.bind(SocketAddr::new(address, 0))?;
    let mut stream = socket.connect(SocketAddr::new(SERVER_ADDRESS.into(), PORT)).await?;
    stream.write_all(&[kind]).await?;
    Ok(stream)
}

/// Reads until the end of the connection, and counts the bytes.
async fn receive(mut stream: TcpStream, count: Count) {
    let mut bytes = vec![0; CHUNK];
    while let Ok(length @ 1..) = stream.read(&mut bytes).await {
        count.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Sends until the end of the connection.
async fn upload(mut stream: TcpStream) {
    let bytes = vec![0; CHUNK];
    while stream.write_all(&bytes).await.is_ok() {}
}

/// The server behind the hub, on a thread in the hub's namespace.
struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(places: &Places, uploads: BTreeMap<IpAddr, Count>) -> Result<Self, Failure> {
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // A socket belongs to the namespace in which it is created.
        let listener = places.at_hub(|| {
            let listener = std::net::TcpListener::bind((SERVER_ADDRESS, PORT))?;
            listener.set_nonblocking(true)?;
            // Accepted connections inherit the congestion control.
            SockRef::from(&listener).set_tcp_congestion(CONGESTION)?;
            Ok(listener)
        })?;
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = serve(listener, uploads) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, uploads: BTreeMap<IpAddr, Count>) {
    while let Ok((mut stream, from)) = listener.accept().await {
        let count = uploads.get(&from.ip()).cloned().unwrap_or_default();
        tokio::spawn(async move {
            match stream.read_u8().await {
                Ok(DOWNLOAD) => upload(stream).await,
                Ok(UPLOAD) => receive(stream, count).await,
                _ => {}
            }
        });
    }
}
