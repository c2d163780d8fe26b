//! Packet captures for Wireshark and tshark: pcapng files with one interface per path.
//!
//! Packets are written as the engine sends and receives them: SCTP as it is inside the seal, directly behind an IP
//! header with the path's addresses. The interface's description contains the UDP ports; real packet sizes are not
//! recorded.

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

use ropewalk_engine::sctp::wire;
pub use ropewalk_trace::Direction;
use ropewalk_trace::pcapng::{Interface, Writer};
use ropewalk_trace::{Protocol, ip_header};

/// Called once, when writing the file has failed.
type OnError = Box<dyn Fn(io::Error) + Send>;

/// A capture file. Clones write to the same file.
#[derive(Clone)]
pub struct Capture {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// None after an error.
    file: Option<Writer<BufWriter<File>>>,
    on_error: OnError,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capture")
    }
}

impl Capture {
    /// Creates the file, readable by its owner only, because its packets were encrypted on the network. If writing
    /// fails later, `on_error` is called and all further packets are dropped.
    ///
    /// # Errors
    /// The error of the system.
    pub fn create(path: &Path, on_error: impl Fn(io::Error) + Send + 'static) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        make_private(&file)?;
        let mut file = Writer::new(BufWriter::new(file))?;
        file.flush()?;
        let inner = Inner { file: Some(file), on_error: Box::new(on_error) };
        Ok(Self { inner: Arc::new(Mutex::new(inner)) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an interface with its name and description. Returns its number.
    pub fn interface(&self, name: &str, description: &str) -> u32 {
        let interface = Interface { name, description, snap: 0 };
        self.lock().write(|file| file.interface(&interface)).unwrap_or_default()
    }

    /// Writes a packet that is sent or received now. `sctp` starts at the SCTP ports. The checksum is filled in,
    /// because packets inside a seal have none.
    pub fn packet(&self, interface: u32, direction: Direction, way: (IpAddr, IpAddr), sctp: &[u8]) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let put = |out: &mut Vec<u8>| {
            ip_header(out, Protocol::Sctp, way, sctp.len());
            let body = out.len();
            out.extend(sctp);
            wire::sign(&mut out[body..]);
        };
        let time_ns = since.as_nanos() as u64;
        self.lock().write(|file| file.packet(time_ns, interface, direction, put));
    }

    /// Flushes the buffer to the system.
    pub fn flush(&self) {
        self.lock().write(Writer::flush);
    }
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
    /// Writes to the file unless an earlier write has failed. None after an error.
    fn write<T>(
        &mut self,
        write: impl FnOnce(&mut Writer<BufWriter<File>>) -> io::Result<T>,
    ) -> Option<T> {
        match write(self.file.as_mut()?) {
            Ok(value) => Some(value),
            Err(error) => {
                // A dropped writer would try to write its buffer once more, so the writer is taken apart.
                if let Some(file) = self.file.take() {
                    drop(file.into_inner().into_parts());
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
        let capture = Capture::create(&path, |error| panic!("{error}")).expect("a file");
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
        let told = Arc::new(Mutex::new(0));
        let count = told.clone();
        let capture = Capture::create(Path::new("/dev/full"), move |_| {
            *count.lock().expect("nobody panicked") += 1;
        });
        // The file header is written at once, so that an error shows at the start.
        assert!(capture.is_err());
        assert_eq!(*told.lock().expect("nobody panicked"), 0);
    }
}
