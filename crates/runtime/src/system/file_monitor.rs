//! Detects when a file is changed, replaced or removed (inotify(7)).

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, Event, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Maximum number of symbolic links that are followed, as in Linux (path_resolution(7)).
const LINKS_LIMIT: usize = 40;
/// Maximum number of events read at a time.
const READS: usize = 1024;
/// Bytes of events read by one call: several events, each with a name of at most 255 bytes.
const BUFFER: usize = 4096;

/// Waits for changes of a file, which need not exist.
///
/// It watches the directory of the file, because most programs write a new file and rename it, and the file itself,
/// which may be mounted there from another directory. If the file is a symbolic link, its target is watched as well.
#[derive(Debug)]
pub struct FileMonitor {
    inotify: AsyncFd<OwnedFd>,
    file: PathBuf,
}

impl FileMonitor {
    /// Starts to monitor changes of `file`.
    ///
    /// # Errors
    /// The error of the system, which limits the number of such monitors per user, or if the directory does not
    /// exist.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(file: &Path) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        #[expect(deprecated, reason = "sound for `OwnedFd`, and what replaces it is unsafe")]
        let inotify = AsyncFd::with_interest(inotify, Interest::READABLE)?;
        let monitor = Self { inotify, file: file.to_owned() };
        monitor.watch()?;
        Ok(monitor)
    }

    /// Waits until the file may have changed since the last call.
    ///
    /// # Errors
    /// Changes can no longer be detected.
    pub async fn changed(&self) -> io::Result<()> {
        // Another file may have replaced the one that was watched.
        self.watch()?;
        loop {
            let mut ready = self.inotify.readable().await?;
            let (has_changed, is_empty) = self.read()?;
            if is_empty {
                ready.clear_ready();
            }
            if has_changed {
                return Ok(());
            }
        }
    }

    /// Watches the file and its directory, and those of the targets of symbolic links.
    fn watch(&self) -> io::Result<()> {
        let entries =
            WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::CLOSE_WRITE;
        for (number, place) in self.places().enumerate() {
            let directory = place.parent().filter(|path| !path.as_os_str().is_empty());
            let directory = directory.unwrap_or(Path::new("."));
            let watched =
                inotify::add_watch(&self.inotify, directory, entries | WatchFlags::ONLYDIR);
            // The directory of a target need not exist.
            if number == 0 {
                watched?;
            }
        }
        // If the file is a symbolic link, this watches its target, which need not exist.
        let _ = inotify::add_watch(&self.inotify, &self.file, WatchFlags::CLOSE_WRITE);
        Ok(())
    }

    /// The path of the file, followed by the successive targets of symbolic links.
    fn places(&self) -> impl Iterator<Item = PathBuf> {
        let target = |link: &PathBuf| {
            let target = std::fs::read_link(link).ok()?;
            // A relative target starts at the directory of the link.
            Some(link.parent().map_or_else(|| target.clone(), |base| base.join(&target)))
        };
        std::iter::successors(Some(self.file.clone()), target).take(LINKS_LIMIT)
    }

    /// Reads events. Returns whether any concerns the file, and whether there are no more.
    fn read(&self) -> io::Result<(bool, bool)> {
        let names: Vec<PathBuf> = self.places().collect();
        let is_named = |event: &Event<'_>| {
            let Some(name) = event.file_name() else { return true };
            names.iter().any(|place| place.file_name() == Some(OsStr::from_bytes(name.to_bytes())))
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(self.inotify.get_ref(), &mut buffer);
        let mut has_changed = false;
        for _ in 0..READS {
            match reader.next() {
                // Events without a name concern the file itself, or report that events were lost.
                Ok(event) => has_changed |= is_named(&event),
                Err(Errno::WOULDBLOCK) => return Ok((has_changed, true)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((has_changed, false))
    }
}
