//! A TUN device for a tokio runtime.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tun_rs::{
    AsyncDevice, DeviceBuilder, ExpandBuffer, GROTable, IDEAL_BATCH_SIZE, Layer, VIRTIO_NET_HDR_LEN,
};

use super::routes;

/// Maximum number of packets that one read returns.
const PACKETS_PER_READ: usize = IDEAL_BATCH_SIZE;
/// Packets that wait in the kernel. A short queue: the tunnel has a better one in front of its paths.
const KERNEL_QUEUE: u32 = 256;
/// Largest packet that the kernel hands over before it is segmented, bytes.
const LARGEST_READ: usize = VIRTIO_NET_HDR_LEN + 65_535;
/// Largest packet after segmentation, bytes: more than the MTU of any tunnel.
const LARGEST_SEGMENT: usize = 9216;
/// Maximum size of a joined packet, with the spare capacity that joining requires, bytes.
const JOINED_CAPACITY: usize = 65_535 + 2 * VIRTIO_NET_HDR_LEN;
/// Maximum number of buffers whose memory is kept for the next write.
const KEPT_BUFFERS: usize = 64;

/// Why there is no TUN device.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The process may not create one.
    #[error("not allowed to create a TUN device")]
    NotPermitted,
    /// The kernel has no TUN devices.
    #[error("/dev/net/tun cannot be opened: {0}")]
    Missing(io::Error),
    /// Another process uses the device.
    #[error("the TUN device {0} is in use")]
    Busy(String),
    /// Another error.
    #[error("cannot create the TUN device: {0}")]
    Other(io::Error),
}

impl TunError {
    fn of(name: &str, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(nix::libc::EPERM | nix::libc::EACCES) => Self::NotPermitted,
            Some(nix::libc::ENOENT | nix::libc::ENODEV) => Self::Missing(error),
            Some(nix::libc::EBUSY) => Self::Busy(name.to_owned()),
            _ => Self::Other(error),
        }
    }

    /// How to solve the problem.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::NotPermitted => "run it as root, or with the capability CAP_NET_ADMIN",
            Self::Missing(_) => {
                "load the module with `modprobe tun`; a container needs `--device /dev/net/tun`"
            }
            Self::Busy(_) => "stop the other process, or choose another --device",
            Self::Other(_) => "choose another --device; a name has at most 15 letters and digits",
        }
    }
}

/// A TUN device. It exists as long as this value or a clone of it does.
#[derive(Clone)]
pub struct TunDevice {
    device: Arc<AsyncDevice>,
    index: u32,
    name: Arc<str>,
}

impl fmt::Debug for TunDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunDevice").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TunDevice {
    /// Creates a device that is not started yet ([`routes::start_interface`]).
    ///
    /// # Errors
    /// [`TunError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn create(name: &str) -> Result<Self, TunError> {
        let failed = |error| TunError::of(name, error);
        let builder = DeviceBuilder::new().name(name).layer(Layer::L3).enable(false);
        let device =
            builder.offload(true).tx_queue_len(KERNEL_QUEUE).build_async().map_err(failed)?;
        let name = device.name().map_err(failed)?;
        let index = routes::interface_index(&name).map_err(failed)?;
        // No link-local address and no router solicitations: the device carries packets of programs only. Fails on a
        // system without IPv6, which is harmless.
        for (key, value) in [("addr_gen_mode", "1"), ("accept_ra", "0")] {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/{key}"), value);
        }
        // An address outlives the removal of another one in the same network.
        let key = format!("/proc/sys/net/ipv4/conf/{name}/promote_secondaries");
        let _ = std::fs::write(key, "1");
        Ok(Self { device: Arc::new(device), index, name: name.into() })
    }

    /// Index of the interface.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A reader of the device's packets.
    pub fn reader(&self) -> TunReader {
        TunReader {
            device: self.clone(),
            whole: vec![0; LARGEST_READ],
            segments: vec![vec![0; LARGEST_SEGMENT]; PACKETS_PER_READ],
            sizes: vec![0; PACKETS_PER_READ],
        }
    }

    /// A writer of packets to the device.
    pub fn writer(&self) -> TunWriter {
        TunWriter { device: self.clone(), table: GROTable::default(), packets: Vec::new() }
    }
}

/// Reads packets from a device.
#[derive(Debug)]
pub struct TunReader {
    device: TunDevice,
    whole: Vec<u8>,
    segments: Vec<Vec<u8>>,
    sizes: Vec<usize>,
}

impl TunReader {
    /// Waits for packets and appends them, at least one. Large packets of the kernel's offloads are segmented.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn read(&mut self, into: &mut Vec<Bytes>) -> io::Result<()> {
        let Self { device, whole, segments, sizes } = self;
        let (device, before) = (&device.device, into.len());
        loop {
            let mut read = device.recv_multiple(whole, segments, sizes, 0).await;
            while into.len() < before + PACKETS_PER_READ {
                match read {
                    Ok(count) => {
                        let sized = segments.iter().zip(&*sizes).take(count);
                        into.extend(sized.filter_map(|(segment, size)| {
                            segment.get(..*size).map(Bytes::copy_from_slice)
                        }));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.raw_os_error().is_some() => return Err(error),
                    // A packet that cannot be segmented is dropped, as a network card would drop it.
                    Err(_) => {}
                }
                read = device.try_recv_multiple(whole, segments, sizes, 0);
            }
            if into.len() > before {
                return Ok(());
            }
        }
    }
}

/// A packet and those joined to it. Memory is allocated as packets are joined: nearly all buffers hold a single packet.
#[derive(Default)]
struct JoinedPacket(Vec<u8>);

impl AsRef<[u8]> for JoinedPacket {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsMut<[u8]> for JoinedPacket {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl ExpandBuffer for JoinedPacket {
    fn buf_capacity(&self) -> usize {
        JOINED_CAPACITY
    }

    fn buf_resize(&mut self, new_len: usize, value: u8) {
        self.0.resize(new_len, value);
    }

    fn buf_extend_from_slice(&mut self, src: &[u8]) {
        self.0.extend_from_slice(src);
    }
}

/// Writes packets to a device.
pub struct TunWriter {
    device: TunDevice,
    table: GROTable,
    /// The packets of the last write; their memory is reused.
    packets: Vec<JoinedPacket>,
}

impl fmt::Debug for TunWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunWriter").field("device", &self.device).finish_non_exhaustive()
    }
}

impl TunWriter {
    /// Writes IP packets. Successive segments of a TCP connection are joined, which costs the kernel less. Returns
    /// whether the device took all packets.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn write<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>) -> io::Result<bool> {
        let Self { device, table, packets: buffers } = self;
        buffers.truncate(KEPT_BUFFERS);
        let mut count = 0;
        for packet in packets {
            if count == buffers.len() {
                buffers.push(JoinedPacket::default());
            }
            let buffer = &mut buffers[count].0;
            buffer.clear();
            buffer.resize(VIRTIO_NET_HDR_LEN, 0);
            buffer.extend_from_slice(packet);
            count += 1;
        }
        let joined = &mut buffers[..count];
        match device.device.send_multiple(table, joined, VIRTIO_NET_HDR_LEN).await {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(nix::libc::EBADFD) => Err(error),
            Err(_) => Ok(false),
        }
    }
}
