//! Records of packets: captures for Wireshark and tshark (pcapng), with one interface per path, and qlog files.
//!
//! Packets are written as the engine sends and receives them: SCTP in the form inside the seal. In a capture, SCTP
//! follows directly after an IP header with the path's addresses, and the interface's description contains the UDP
//! ports; real packet sizes are not recorded. A qlog has the chunks of each packet, its size on the wire, and the
//! measurements of each path.

#![allow(
    clippy::disallowed_methods,
    reason = "the file says when each packet came by the clock on the wall"
)]

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use ropewalk_engine::sctp::{Packet, wire};
pub use ropewalk_trace::Direction;
use ropewalk_trace::pcapng::{self, Interface};
use ropewalk_trace::qlog::{self, Header, Metrics, Place};
use ropewalk_trace::{Protocol, ip_header};

use crate::clock::Clock;

/// Write buffer of each file, bytes.
const BUFFER: usize = 64 << 10;

/// Called once, when writing a file has failed.
type OnError = Box<dyn Fn(io::Error) + Send>;

/// Files that record packets: a capture, a qlog, or both. Clones write to the same files.
#[derive(Clone)]
pub struct Capture {
    clock: Clock,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    pcapng: Option<Output<pcapng::Writer<BufWriter<File>>>>,
    qlog: Option<Output<qlog::Writer<BufWriter<File>>>>,
    /// Associations in the qlog so far.
    groups: u64,
}

/// A file, and the callback for write errors.
struct Output<W> {
    /// `None` after an error.
    writer: Option<W>,
    on_error: OnError,
}

/// Title and end of a qlog.
#[derive(Clone, Copy, Debug)]
pub struct Vantage<'a> {
    /// Title of the trace, such as the command.
    pub title: &'a str,
    /// Whether this end opens associations.
    pub opens: bool,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capture")
    }
}

impl Default for Capture {
    /// Records nothing.
    fn default() -> Self {
        Self { clock: Clock::start(), inner: Arc::default() }
    }
}

impl Capture {
    /// Adds a capture file. It is readable by its owner only, because its packets were encrypted on the network. If
    /// writing fails later, `on_error` is called and all further packets are dropped.
    ///
    /// # Errors
    /// The error of the system.
    pub fn with_pcapng(
        self,
        path: &Path,
        on_error: impl Fn(io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let mut writer = pcapng::Writer::new(create(path)?)?;
        writer.flush()?;
        self.lock().pcapng = Some(Output::new(writer, on_error));
        Ok(self)
    }

    /// Adds a qlog, with the same properties. Its times start now.
    ///
    /// # Errors
    /// The error of the system.
    pub fn with_qlog(
        mut self,
        path: &Path,
        vantage: Vantage<'_>,
        on_error: impl Fn(io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let file = create(path)?;
        self.clock = Clock::start();
        let began = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let Vantage { title, opens } = vantage;
        let name = if opens { "client" } else { "server" };
        let header = Header { title, vantage: name, opens, wall_clock: Some(&began) };
        let mut writer = qlog::Writer::new(file, &header)?;
        writer.flush()?;
        self.lock().qlog = Some(Output::new(writer, on_error));
        Ok(self)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an interface to the capture file, with its name and description. Returns its number.
    pub fn interface(&self, name: &str, description: &str) -> u32 {
        let interface = Interface { name, description, snap: 0 };
        self.lock().pcapng(|file| file.interface(&interface)).unwrap_or_default()
    }

    /// Writes a packet that is sent or received now to the capture file. `sctp` starts at the SCTP ports. The checksum
    /// is filled in, because packets inside a seal have none.
    pub fn packet(&self, interface: u32, direction: Direction, way: (IpAddr, IpAddr), sctp: &[u8]) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let put = |out: &mut Vec<u8>| {
            ip_header(out, Protocol::Sctp, way, sctp.len());
            let body = out.len();
            out.extend(sctp);
            wire::sign(&mut out[body..]);
        };
        let time_ns = since.as_nanos() as u64;
        self.lock().pcapng(|file| file.packet(time_ns, interface, direction, put));
    }

    /// Whether there is a capture file that can be written.
    pub fn has_pcapng(&self) -> bool {
        self.lock().pcapng.as_ref().is_some_and(|output| output.writer.is_some())
    }

    /// Whether there is a qlog that can be written.
    pub fn has_qlog(&self) -> bool {
        self.lock().qlog.as_ref().is_some_and(|output| output.writer.is_some())
    }

    /// Returns the identifier of one more association in the qlog.
    pub fn next_group(&self) -> String {
        let mut inner = self.lock();
        inner.groups += 1;
        inner.groups.to_string()
    }

    /// Writes a packet of `length` bytes, headers below SCTP included, that is sent or received now to the qlog.
    pub fn log_packet(&self, place: Place<'_>, direction: Direction, length: u32, packet: &Packet) {
        let now = self.clock.now();
        self.lock().qlog(|file| file.packet(now, place, direction, length, packet));
    }

    /// Writes the measurements of a path to the qlog.
    pub fn log_metrics(&self, place: Place<'_>, metrics: &Metrics) {
        let now = self.clock.now();
        self.lock().qlog(|file| file.metrics(now, place, metrics));
    }

    /// Flushes the buffers to the system.
    pub fn flush(&self) {
        let mut inner = self.lock();
        inner.pcapng(pcapng::Writer::flush);
        inner.qlog(qlog::Writer::flush);
    }
}

/// Creates a file that only its owner can read.
fn create(path: &Path) -> io::Result<BufWriter<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    make_private(&file)?;
    Ok(BufWriter::with_capacity(BUFFER, file))
}

/// An existing file keeps its permissions when it is opened: removes those of other users.
#[cfg(unix)]
fn make_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let found = file.metadata()?;
    // Devices and pipes, such as /dev/null, are left unchanged.
    if !found.is_file() || found.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_: &File) -> io::Result<()> {
    Ok(())
}

impl Inner {
    /// Writes to the capture file. `None` if there is none, or after an error.
    fn pcapng<T>(
        &mut self,
        write: impl FnOnce(&mut pcapng::Writer<BufWriter<File>>) -> io::Result<T>,
    ) -> Option<T> {
        self.pcapng.as_mut()?.write(write, pcapng::Writer::into_inner)
    }

    /// Writes to the qlog. `None` if there is none, or after an error.
    fn qlog<T>(
        &mut self,
        write: impl FnOnce(&mut qlog::Writer<BufWriter<File>>) -> io::Result<T>,
    ) -> Option<T> {
        self.qlog.as_mut()?.write(write, qlog::Writer::into_inner)
    }
}

impl<W> Output<W> {
    fn new(writer: W, on_error: impl Fn(io::Error) + Send + 'static) -> Self {
        Self { writer: Some(writer), on_error: Box::new(on_error) }
    }

    /// Writes to the file unless an earlier write has failed. `None` after an error.
    fn write<T>(
        &mut self,
        write: impl FnOnce(&mut W) -> io::Result<T>,
        take_apart: impl FnOnce(W) -> BufWriter<File>,
    ) -> Option<T> {
        match write(self.writer.as_mut()?) {
            Ok(value) => Some(value),
            Err(error) => {
                // Dropping the writer would write its buffer once more, so it is taken apart.
                if let Some(writer) = self.writer.take() {
                    drop(take_apart(writer).into_parts());
                }
                (self.on_error)(error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ropewalk_engine::sctp::wire::{Checksum, Ports};
    use ropewalk_engine::sctp::{Chunk, Packet};

    use super::*;

    #[test]
    fn a_captured_packet_is_private_and_has_a_checksum() {
        let path = std::env::temp_dir().join(format!("ropewalk-capture-{}", std::process::id()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::write(&path, b"from before").expect("a file");
            let open = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(&path, open).expect("a mode");
        }
        let capture = Capture::default().with_pcapng(&path, |error| panic!("{error}"));
        let capture = capture.expect("a file");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "what existed becomes private as well");
        }
        let path_1 = capture.interface("wlan0", "192.0.2.1:5000 to 198.51.100.7:9899");
        let way = ("192.0.2.1".parse().expect("one"), "198.51.100.7".parse().expect("one"));
        let sent = Packet::of(7, Chunk::Heartbeat(Bytes::from_static(b"is it there?!")));
        let ports = Ports { source: 5000, destination: 9899 };
        let mut sctp = Vec::new();
        wire::encode(&sent, ports, Checksum::None, &mut sctp);
        capture.packet(path_1, Direction::Out, way, &sctp);
        capture.flush();
        let bytes = std::fs::read(&path).expect("written");
        std::fs::remove_file(&path).expect("removed");
        // The last block ends with an option, the end of the options and the length, 16 bytes.
        let padded = sctp.len().next_multiple_of(4);
        let start = bytes.len() - 16 - padded;
        let packet = Bytes::copy_from_slice(&bytes[start..start + sctp.len()]);
        let mut read = Packet::default();
        assert_eq!(wire::decode(&packet, Checksum::Crc32c, &mut read), Ok(ports));
        assert_eq!(read, sent);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_takes_nothing_is_refused_at_once() {
        // The file header is written immediately, so that an error is reported at the start.
        let full = Path::new("/dev/full");
        let told = |_| panic!("an error at the start is returned");
        assert!(Capture::default().with_pcapng(full, told).is_err());
        let vantage = Vantage { title: "test", opens: true };
        assert!(Capture::default().with_qlog(full, vantage, told).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_fails_later_is_reported_once_and_the_other_goes_on() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let name = |kind| {
            let file = format!("ropewalk-capture-{kind}-{}", std::process::id());
            std::env::temp_dir().join(file)
        };
        let (fifo, file) = (name("fifo"), name("beside"));
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        let reader = OpenOptions::new().read(true).write(true).open(&fifo).expect("a reader");
        let told = Arc::new(AtomicU32::new(0));
        let count = told.clone();
        let vantage = Vantage { title: "test", opens: true };
        let capture = Capture::default()
            .with_pcapng(&file, |error| panic!("{error}"))
            .expect("a file")
            .with_qlog(&fifo, vantage, move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            })
            .expect("a pipe");
        drop(reader);
        let interface = capture.interface("lo", "one path");
        let way = ("127.0.0.1".parse().expect("one"), "127.0.0.1".parse().expect("one"));
        let packet = Packet::of(7, Chunk::CookieAck);
        for _ in 0..3 {
            let place = Place { path: "lo", group: None };
            capture.log_packet(place, Direction::Out, 40, &packet);
            capture.packet(interface, Direction::Out, way, &[0; 12]);
            capture.flush();
        }
        assert_eq!(told.load(Ordering::Relaxed), 1);
        assert_eq!((capture.has_qlog(), capture.has_pcapng()), (false, true));
        assert!(std::fs::metadata(&file).expect("a file").len() > 3 * 12);
        std::fs::remove_file(&fifo).and_then(|()| std::fs::remove_file(&file)).expect("removed");
    }
}
