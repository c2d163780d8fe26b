//! Forwards packets between devices and links, on time.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use ropewalk_base::{Duration, Time};
use tun_rs::SyncDevice;

use super::cpu::CpuTime;
use super::error::EmulateError;
use super::lateness::Lateness;
use super::links::{Arrival, Links, LiveTraffic, PathTraffic, Side, TrafficSnapshot};
use crate::clock::Clock;

/// Packets that are read from one device before the other devices and the clock are checked.
const BATCH: usize = 16;
/// The longest sleep. Waking up measures the lateness, even if nothing is due.
const MAX_SLEEP: Duration = Duration::from_millis(10);
/// Real-time priority: above programs without one, low among those with one.
const PRIORITY: &str = "10";

/// Result of an emulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// How long the links were up.
    pub elapsed: Duration,
    /// CPU time of the forwarding thread.
    pub cpu: Duration,
    /// How long that thread waited for a CPU; `None` if the kernel does not count it.
    pub cpu_wait: Option<Duration>,
    /// Whether that thread had real-time priority.
    pub realtime: bool,
    /// How late packets were delivered.
    pub deliveries: Lateness,
    /// How late the emulator woke up, which may have delayed packets that arrived.
    pub wakeups: Lateness,
    /// Packets that a device refused.
    pub refused: u64,
    /// Devices that failed, or were removed by a program.
    pub broken: Vec<String>,
    /// Statistics of the paths.
    pub paths: Vec<PathTraffic>,
}

/// A device, and the end of a path that it represents.
struct DeviceEnd {
    side: Side,
    path: usize,
    device: SyncDevice,
    broken: bool,
}

/// The thread that forwards the packets.
#[derive(Debug)]
pub struct Forwarder {
    thread: JoinHandle<Report>,
    /// Closing this pipe stops the thread.
    line: PipeWriter,
}

impl Forwarder {
    /// Starts the thread. The clock is zero when this returns.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn start(
        links: Links,
        sender: Vec<SyncDevice>,
        receiver: Vec<SyncDevice>,
        realtime: bool,
        traffic: Option<LiveTraffic>,
    ) -> Result<Self, EmulateError> {
        let broken = |e| EmulateError::system("cannot start the emulator's thread", e);
        let (stop, line) = io::pipe().map_err(broken)?;
        let device_end =
            |side| move |(path, device)| DeviceEnd { side, path, device, broken: false };
        let devices = sender.into_iter().enumerate().map(device_end(Side::Sender));
        let devices =
            devices.chain(receiver.into_iter().enumerate().map(device_end(Side::Receiver)));
        let devices = devices.collect();
        let builder = thread::Builder::new().name("ropewalk-links".to_owned());
        let (ready, started) = mpsc::channel();
        let thread = builder.spawn(move || {
            let realtime = prepare(realtime);
            let mut work = ForwardingLoop::new(links, devices, realtime, traffic);
            // The receiver of this message waits for it.
            let _ = ready.send(());
            work.run(&stop);
            work.report()
        });
        let thread = thread.map_err(broken)?;
        // An error means that the thread panicked; `stop` reports that.
        let _ = started.recv();
        Ok(Self { thread, line })
    }

    /// Stops the thread.
    ///
    /// # Panics
    /// If the thread panicked.
    pub fn stop(self) -> Report {
        drop(self.line);
        match self.thread.join() {
            Ok(report) => report,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// State of the thread.
struct ForwardingLoop {
    clock: Clock,
    /// CPU time of the thread when the clock was started.
    cpu: Duration,
    /// How long the thread had waited for a CPU then.
    cpu_wait: Option<Duration>,
    links: Links,
    devices: Vec<DeviceEnd>,
    realtime: bool,
    deliveries: Lateness,
    wakeups: Lateness,
    refused: u64,
    /// Where the traffic is published, and when next.
    traffic: Option<LiveTraffic>,
    publish_at: Time,
}

impl ForwardingLoop {
    fn new(
        links: Links,
        devices: Vec<DeviceEnd>,
        realtime: bool,
        traffic: Option<LiveTraffic>,
    ) -> Self {
        Self {
            clock: Clock::start(),
            cpu: cpu_time(),
            cpu_wait: cpu_wait(),
            links,
            devices,
            realtime,
            deliveries: Lateness::default(),
            wakeups: Lateness::default(),
            refused: 0,
            traffic,
            publish_at: Time::ZERO,
        }
    }

    /// Publishes the traffic if it is due.
    fn publish_if_due(&mut self, now: Time) {
        if let Some(traffic) = self.traffic.as_ref().filter(|_| now >= self.publish_at) {
            let (paths, refused) = (self.links.traffic(), self.refused);
            traffic.publish(TrafficSnapshot { at: now, paths, refused });
            self.publish_at = now + LiveTraffic::INTERVAL;
        }
    }

    fn run(&mut self, stop: &PipeReader) {
        let mut ready = Vec::with_capacity(self.devices.len());
        loop {
            self.links.advance(self.clock.now());
            self.deliver();
            let now = self.clock.now();
            self.publish_if_due(now);
            let sleep = now.saturating_add(MAX_SLEEP);
            let due = self.links.next_wake().map_or(sleep, |at| at.min(sleep));
            ready.clear();
            if !wait(&self.devices, stop, due.since(now), &mut ready) {
                return;
            }
            let awake = self.clock.now();
            if ready.is_empty() && due > now {
                self.wakeups.add(due, awake);
            }
            for device_end in &ready {
                self.read_device(*device_end);
            }
        }
    }

    /// Delivers packets that have arrived.
    fn deliver(&mut self) {
        while let Some(Arrival { at, side, path, bytes }) = self.links.take() {
            let devices = self.devices.iter();
            let mut to = devices.filter(|e| e.side == side && e.path == path && !e.broken);
            let sent = to.next().map(|device_end| device_end.device.send(&bytes));
            if !matches!(sent, Some(Ok(_))) {
                self.refused += 1;
            }
            self.deliveries.add(at, self.clock.now());
            self.links.recycle(bytes);
        }
    }

    /// Reads packets from a device.
    fn read_device(&mut self, number: usize) {
        for _ in 0..BATCH {
            let mut buffer = self.links.buffer();
            let device_end = &mut self.devices[number];
            match device_end.device.recv(&mut buffer) {
                Ok(length) => {
                    buffer.truncate(length);
                    self.links.offer(self.clock.now(), device_end.side, device_end.path, buffer);
                }
                Err(error) => {
                    self.links.recycle(buffer);
                    use io::ErrorKind::{Interrupted, WouldBlock};
                    // A removed device would wake the thread forever.
                    device_end.broken = !matches!(error.kind(), WouldBlock | Interrupted);
                    return;
                }
            }
        }
    }

    fn report(mut self) -> Report {
        let elapsed = self.clock.now();
        self.links.advance(elapsed);
        let name = |device_end: &DeviceEnd| {
            format!(
                "{} at the {}",
                self.links.paths()[device_end.path].name,
                device_end.side.name()
            )
        };
        Report {
            elapsed: elapsed.since(Time::ZERO),
            cpu: cpu_time().saturating_sub(self.cpu),
            cpu_wait: cpu_wait().zip(self.cpu_wait).map(|(now, before)| now.saturating_sub(before)),
            realtime: self.realtime,
            broken: self.devices.iter().filter(|device_end| device_end.broken).map(name).collect(),
            paths: self.links.traffic(),
            deliveries: self.deliveries,
            wakeups: self.wakeups,
            refused: self.refused,
        }
    }
}

/// Waits for packets, for `most`, or for the stop signal. Returns false if stopped. Devices with packets are added to
/// `ready`.
fn wait(devices: &[DeviceEnd], stop: &PipeReader, most: Duration, ready: &mut Vec<usize>) -> bool {
    let mut files: Vec<PollFd<'_>> = Vec::with_capacity(devices.len() + 1);
    files.push(PollFd::new(stop.as_fd(), PollFlags::POLLIN));
    let whole = devices.iter().enumerate().filter(|(_, device_end)| !device_end.broken);
    files.extend(
        whole
            .clone()
            .map(|(_, device_end)| PollFd::new(device_end.device.as_fd(), PollFlags::POLLIN)),
    );
    let most = TimeSpec::from(std::time::Duration::from_nanos(most.as_nanos()));
    // An interrupted wait counts as a short one.
    let _ = ppoll(&mut files, Some(most), None);
    let happened = |file: &PollFd<'_>| file.revents().is_some_and(|events| !events.is_empty());
    if happened(&files[0]) {
        return false;
    }
    let with_news = whole.zip(&files[1..]).filter(|(_, file)| happened(file));
    ready.extend(with_news.map(|((number, _), _)| number));
    true
}

/// CPU time of the calling thread.
fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    spent.map_or(Duration::ZERO, |spent| {
        Duration::from_nanos(std::time::Duration::from(spent).as_nanos() as u64)
    })
}

/// How long the calling thread has waited for a CPU.
fn cpu_wait() -> Option<Duration> {
    CpuTime::of_this_thread().map(|time| time.waited)
}

/// Prepares the calling thread to wake up on time. Returns whether it has real-time priority.
fn prepare(realtime: bool) -> bool {
    // Otherwise the kernel may delay wake-ups by 50 us to combine them.
    let _ = nix::sys::prctl::set_timerslack(1);
    realtime && ask_for_realtime()
}

/// Requests real-time priority for the calling thread. Returns whether it was granted.
fn ask_for_realtime() -> bool {
    let thread = nix::unistd::gettid().to_string();
    let chrt = Command::new("chrt")
        .args(["--fifo", "--pid", PRIORITY, &thread])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    chrt.is_ok_and(|status| status.success())
}
