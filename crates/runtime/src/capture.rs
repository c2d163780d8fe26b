//! Packet captures for Wireshark and tshark: pcapng files with one interface per path.
//!
//! Packets are written as the engine sends and receives them: SCTP as it is inside the seal, directly behind an IP
//! header with the path's addresses. The interface's description contains the UDP ports; real packet sizes are not
//! recorded. Format: draft-ietf-opsawg-pcapng, sections 4.1 to 4.3.

#![allow(
    clippy::disallowed_methods,
    reason = "the file says when each packet came by the clock on the wall"
)]

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use ropewalk_engine::sctp::wire;

/// Packets that begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
/// Protocol number of SCTP in IP headers.
const SCTP: u8 = 132;
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received by this endpoint.
    In = 1,
    /// Sent by this endpoint.
    Out = 2,
}

/// Called once, when writing the file has failed.
type OnError = Box<dyn Fn(io::Error) + Send>;

/// A capture file. Clones write to the same file.
#[derive(Clone)]
pub struct Capture {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// None after an error.
    file: Option<BufWriter<File>>,
    on_error: OnError,
    interfaces: u32,
    block: Vec<u8>,
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
        let mut file = BufWriter::new(file);
        let mut header = Vec::new();
        block(&mut header, SECTION, |out| {
            out.extend(0x1a2b_3c4d_u32.to_le_bytes());
            out.extend([1, 0, 0, 0]);
            // The length of the section is unknown.
            out.extend((-1_i64).to_le_bytes());
        });
        file.write_all(&header)?;
        file.flush()?;
        let file = Some(file);
        let inner = Inner { file, on_error: Box::new(on_error), interfaces: 0, block: header };
        Ok(Self { inner: Arc::new(Mutex::new(inner)) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an interface with its name and description. Returns its number.
    pub fn interface(&self, name: &str, description: &str) -> u32 {
        let mut inner = self.lock();
        let number = inner.interfaces;
        inner.interfaces += 1;
        inner.put(INTERFACE, |out| {
            out.extend(LINKTYPE_RAW.to_le_bytes());
            out.extend([0; 2]);
            // No limit on the captured length of packets.
            out.extend([0; 4]);
            option(out, 2, name.as_bytes());
            option(out, 3, description.as_bytes());
            // Timestamps are in units of 10^-9 s.
            option(out, 9, &[9]);
            out.extend([0; 4]);
        });
        number
    }

    /// Writes a packet that is sent or received now. `sctp` starts at the SCTP ports. The checksum is filled in,
    /// because packets inside a seal have none.
    pub fn packet(&self, interface: u32, direction: Direction, way: (IpAddr, IpAddr), sctp: &[u8]) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time = since.as_nanos() as u64;
        self.lock().put(ENHANCED_PACKET, |out| {
            out.extend(interface.to_le_bytes());
            out.extend(((time >> 32) as u32).to_le_bytes());
            out.extend((time as u32).to_le_bytes());
            let lengths = out.len();
            out.extend([0; 8]);
            let start = out.len();
            ip_header(out, way, sctp.len());
            let body = out.len();
            out.extend(sctp);
            wire::sign(&mut out[body..]);
            let length = ((out.len() - start) as u32).to_le_bytes();
            out[lengths..lengths + 4].copy_from_slice(&length);
            out[lengths + 4..lengths + 8].copy_from_slice(&length);
            pad(out);
            option(out, 2, &(direction as u32).to_le_bytes());
            out.extend([0; 4]);
        });
    }

    /// Flushes the buffer to the system.
    pub fn flush(&self) {
        let mut inner = self.lock();
        let flushed = inner.file.as_mut().map_or(Ok(()), Write::flush);
        inner.check(flushed);
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
    fn put(&mut self, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(file) = &mut self.file else { return };
        self.block.clear();
        block(&mut self.block, kind, write);
        let written = file.write_all(&self.block);
        self.check(written);
    }

    fn check(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            // A dropped writer would try to write its buffer once more, so the writer is taken apart.
            if let Some(file) = self.file.take() {
                drop(file.into_parts());
            }
            (self.on_error)(error);
        }
    }
}

/// Appends a block of type `kind`. `write` appends its content, a multiple of four bytes.
fn block(out: &mut Vec<u8>, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    write(out);
    let length = (out.len() as u32 + 4).to_le_bytes();
    out[4..8].copy_from_slice(&length);
    out.extend(length);
}

/// Pads to a multiple of four bytes.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(out);
}

/// Appends an IP header for a payload of so many bytes of SCTP (RFC 791, 3.1; RFC 8200, 3).
fn ip_header(out: &mut Vec<u8>, (from, to): (IpAddr, IpAddr), payload: usize) {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = [0; 20];
            (header[0], header[8], header[9]) = (0x45, 64, SCTP);
            header[2..4].copy_from_slice(&(payload as u16 + 20).to_be_bytes());
            header[12..16].copy_from_slice(&from.octets());
            header[16..20].copy_from_slice(&to.octets());
            let words = header.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            let sum = words.sum::<u32>();
            let folded = (sum & 0xffff) + (sum >> 16);
            header[10..12]
                .copy_from_slice(&(!(folded as u16 + (folded >> 16) as u16)).to_be_bytes());
            out.extend(header);
        }
        (from, to) => {
            let six = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            out.extend([0x60, 0, 0, 0]);
            out.extend((payload as u16).to_be_bytes());
            out.extend([SCTP, 64]);
            out.extend(six(from).octets());
            out.extend(six(to).octets());
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
    fn a_file_is_made_of_blocks_that_tell_their_length_twice() {
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
        let length = 20 + sctp.len();
        capture.packet(path_1, Direction::Out, way, &sctp);
        capture.flush();
        let bytes = std::fs::read(&path).expect("written");
        std::fs::remove_file(&path).expect("removed");
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let (mut at, mut kinds, mut last) = (0, Vec::new(), 0);
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert_eq!((length % 4, word(at + length - 4) as usize), (0, length));
            kinds.push(word(at));
            (last, at) = (at, at + length);
        }
        assert_eq!(kinds, [SECTION, INTERFACE, ENHANCED_PACKET]);
        assert_eq!((word(last + 20), word(last + 24)), (length as u32, length as u32));
        let packet = &bytes[last + 28..last + 28 + length];
        // The words of a header with a correct checksum add up to zero (RFC 1071).
        let words = packet[..20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
        let sum = words.sum::<u32>();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        // The checksum is correct now.
        let (packet, mut read) = (Bytes::copy_from_slice(&packet[20..]), Packet::default());
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
