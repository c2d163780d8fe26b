//! The status of a command on a Unix socket: one JSON document per line, the first at once and then one a second.
//!
//! The socket is in the runtime directory of the user, with mode 0600: nobody else can read it.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use super::monitor::Published;
use super::status::Status;

/// Most readers at a time; further ones are closed.
const READERS: usize = 16;
/// Longest line that a reader accepts, bytes.
const LINE_LIMIT: u64 = 16 << 20;
/// How long a reader waits for a line.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// Where services and root have their sockets.
const SYSTEM_DIRECTORY: &str = "/run/ropewalk";
const SUFFIX: &str = ".sock";

/// A bound socket. Dropping it removes the file.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
    file: SocketFile,
}

#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A confined command may not remove it; the next reader does.
        let _ = fs::remove_file(&self.0);
    }
}

impl StatusSocket {
    /// Binds a socket for this process in the directory, which is created if necessary.
    ///
    /// # Errors
    /// Those of the system; also if the directory belongs to somebody else.
    pub fn bind(directory: &Path, command: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let found = fs::symlink_metadata(directory)?;
        let own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
        if !own || found.mode() & 0o022 != 0 {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "others can write to it"));
        }
        let name = format!("{}-{}{SUFFIX}", command.replace(' ', "-"), std::process::id());
        let path = directory.join(name);
        // Removes the sockets of commands that have ended: confined ones cannot do it themselves.
        drop(running(&[directory.to_owned()]));
        // Under its name only when it listens, or another command would take it for one that has ended.
        let new = SocketFile(path.with_extension("new"));
        let _ = fs::remove_file(&new.0);
        let listener = UnixListener::bind(&new.0)?;
        fs::set_permissions(&new.0, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        fs::rename(&new.0, &path)?;
        let file = SocketFile(path);
        Ok(Self { listener, file })
    }

    /// Serves readers until the runtime ends.
    pub(super) async fn serve(self, published: Arc<Published>) {
        let Self { listener, file: _file } = self;
        let Ok(listener) = tokio::net::UnixListener::from_std(listener) else { return };
        let places = Arc::new(Semaphore::new(READERS));
        loop {
            let Ok((mut socket, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(place) = places.clone().try_acquire_owned() else { continue };
            let published = published.clone();
            tokio::spawn(async move {
                let mut status = published.subscribe().await;
                loop {
                    let line = format!("{}\n", &*status.borrow_and_update());
                    let written = socket.write_all(line.as_bytes()).await;
                    if written.is_err() || status.changed().await.is_err() {
                        break;
                    }
                }
                drop(place);
            });
        }
    }
}

/// The directory in which a command of this user creates its socket: `$ROPEWALK_RUNTIME_DIR`, systemd's
/// `$RUNTIME_DIRECTORY`, `$XDG_RUNTIME_DIR/ropewalk`, `/run/ropewalk` for root, else one for the user in the directory
/// for temporary files.
pub fn own_directory() -> Option<PathBuf> {
    let of = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(directory) = of("ROPEWALK_RUNTIME_DIR").or_else(|| of("RUNTIME_DIRECTORY")) {
        return Some(directory);
    }
    if let Some(directory) = of("XDG_RUNTIME_DIR") {
        return Some(directory.join("ropewalk"));
    }
    let user = rustix::process::geteuid();
    if user.is_root() {
        return Some(PathBuf::from(SYSTEM_DIRECTORY));
    }
    Some(std::env::temp_dir().join(format!("ropewalk-{}", user.as_raw())))
}

/// The directories in which sockets are looked for: the own one, and that of services.
pub fn directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = own_directory().into_iter().collect();
    if std::env::var_os("ROPEWALK_RUNTIME_DIR").is_none() {
        directories.push(PathBuf::from(SYSTEM_DIRECTORY));
    }
    directories
}

/// A running command.
#[derive(Debug)]
pub struct Running {
    /// Its socket.
    pub path: PathBuf,
    lines: BufReader<UnixStream>,
}

impl Running {
    /// Waits for the next status.
    ///
    /// # Errors
    /// The command has ended, or sent something else.
    pub fn read(&mut self) -> io::Result<Status> {
        let mut line = String::new();
        if self.lines.by_ref().take(LINE_LIMIT).read_line(&mut line)? == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the command has ended"));
        }
        serde_json::from_str(&line).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }
}

/// Connects to all commands with sockets in these directories and in the directories below them. Removes the sockets
/// of commands that have ended.
pub fn running(directories: &[PathBuf]) -> Vec<Running> {
    let mut found: Vec<PathBuf> = Vec::new();
    for directory in directories {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                let below = fs::read_dir(&path).into_iter().flatten().flatten();
                found.extend(below.map(|entry| entry.path()));
            }
            found.push(path);
        }
    }
    found.retain(|path| path.to_string_lossy().ends_with(SUFFIX));
    found.sort();
    found.dedup();
    found.into_iter().filter_map(connect).collect()
}

fn connect(path: PathBuf) -> Option<Running> {
    match UnixStream::connect(&path) {
        Ok(socket) => {
            socket.set_read_timeout(Some(READ_TIMEOUT)).ok()?;
            Some(Running { path, lines: BufReader::new(socket) })
        }
        Err(error) => {
            if error.kind() == ErrorKind::ConnectionRefused {
                let _ = fs::remove_file(&path);
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_private_and_one_without_a_command_is_removed() {
        let directory =
            std::env::temp_dir().join(format!("ropewalk-socket-{}", std::process::id()));
        let socket = StatusSocket::bind(&directory, "proxy exit").expect("a socket");
        let mode = |path: &Path| fs::metadata(path).expect("it exists").mode() & 0o777;
        assert_eq!((mode(&directory), mode(&socket.file.0)), (0o700, 0o600));
        assert_eq!(running(std::slice::from_ref(&directory)).len(), 1);
        let StatusSocket { listener, file } = socket;
        drop(listener);
        assert!(running(std::slice::from_ref(&directory)).is_empty());
        assert!(!file.0.exists(), "the stale socket is gone");
        fs::set_permissions(&directory, Permissions::from_mode(0o777)).expect("permissions");
        assert!(StatusSocket::bind(&directory, "recv").is_err(), "others can write to it");
        fs::remove_dir_all(directory).expect("an own directory");
    }
}
