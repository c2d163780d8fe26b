//! The status of a command on a Unix socket: one JSON document per line, the first immediately and then one per
//! second.
//!
//! The socket is in the runtime directory of the user, with mode 0600: no other user can read it.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ropewalk_base::PeerText;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use super::monitor::Published;
use super::status::Status;

/// Maximum number of readers at a time; further ones are closed.
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
    /// System errors, and the errors of [`check_directory`].
    pub fn bind(directory: &Path, command: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        check_directory(directory)?;
        let name = format!("{}-{}{SUFFIX}", command.replace(' ', "-"), std::process::id());
        let path = directory.join(name);
        // Removes the sockets of commands that have ended: confined ones cannot do it themselves.
        drop(running(&[directory.to_owned()]));
        // Renamed only when it listens; otherwise another command would consider it abandoned.
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
/// `$RUNTIME_DIRECTORY`, `$XDG_RUNTIME_DIR/ropewalk`, `/run/ropewalk` for root, or else one for the user in the
/// directory for temporary files.
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

/// The directories in which sockets are searched: the user's own, and that of services.
pub fn directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = own_directory().into_iter().collect();
    if std::env::var_os("ROPEWALK_RUNTIME_DIR").is_none() {
        directories.push(PathBuf::from(SYSTEM_DIRECTORY));
    }
    directories
}

/// Checks that only this user and root can change the contents of the directory.
///
/// # Errors
/// `NotFound` if there is no directory; `PermissionDenied` with the reason if others can change it.
pub fn check_directory(directory: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let is_own = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    let problem = match found.is_dir() {
        false => "it is not a directory",
        true if !is_own => "it belongs to another user",
        true if found.mode() & 0o022 != 0 => "others can write to it",
        true => return Ok(()),
    };
    Err(io::Error::new(ErrorKind::PermissionDenied, problem))
}

/// A running command.
#[derive(Debug)]
pub struct Running {
    /// Its socket.
    pub path: PathBuf,
    lines: BufReader<UnixStream>,
}

impl Running {
    /// Waits for the next status. Its texts are escaped like those of peers: the command may run as another user.
    ///
    /// # Errors
    /// The command has ended, or sent invalid data.
    pub fn read(&mut self) -> io::Result<Status> {
        let mut line = String::new();
        if self.lines.by_ref().take(LINE_LIMIT).read_line(&mut line)? == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the command has ended"));
        }
        let status = serde_json::from_str(&line).and_then(|mut document| {
            escape(&mut document);
            serde_json::from_value(document)
        });
        status.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }
}

/// Escapes all texts of a document.
fn escape(value: &mut Value) {
    match value {
        Value::String(text) => *text = PeerText::new(std::mem::take(text)).escaped(),
        Value::Array(values) => values.iter_mut().for_each(escape),
        Value::Object(members) => members.values_mut().for_each(escape),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Connects to all commands with sockets in these directories and in their subdirectories, which belong to services
/// of other users. Ignores directories that fail [`check_directory`]. Removes the sockets of commands that have ended
/// from those that pass.
pub fn running(directories: &[PathBuf]) -> Vec<Running> {
    let entries = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let mut found: Vec<(PathBuf, bool)> = Vec::new();
    for directory in directories.iter().filter(|it| check_directory(it).is_ok()) {
        for path in entries(directory) {
            if path.is_dir() {
                let is_own = check_directory(&path).is_ok();
                found.extend(entries(&path).map(|below| (below, is_own)));
            } else {
                found.push((path, true));
            }
        }
    }
    found.retain(|(path, _)| path.to_string_lossy().ends_with(SUFFIX));
    found.sort();
    found.dedup();
    found.into_iter().filter_map(|(path, is_own)| connect(path, is_own)).collect()
}

/// Connects to a command. `is_own` is whether the socket of a command that has ended is removed.
fn connect(path: PathBuf, is_own: bool) -> Option<Running> {
    match UnixStream::connect(&path) {
        Ok(socket) => {
            socket.set_read_timeout(Some(READ_TIMEOUT)).ok()?;
            Some(Running { path, lines: BufReader::new(socket) })
        }
        Err(error) => {
            if is_own && error.kind() == ErrorKind::ConnectionRefused {
                let _ = fs::remove_file(&path);
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::status::{EventStatus, Refused, TunnelFigures};
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

    #[test]
    fn a_directory_that_others_can_change_is_neither_read_nor_cleaned() {
        let base = std::env::temp_dir().join(format!("ropewalk-others-{}", std::process::id()));
        let directory = base.join("real");
        fs::create_dir_all(&directory).expect("a directory");
        let found = || running(std::slice::from_ref(&directory)).len();
        let _listener = UnixListener::bind(directory.join("live.sock")).expect("a socket");
        let stale = directory.join("stale.sock");
        let leave_stale = || drop(UnixListener::bind(&stale).expect("a socket"));
        let mode = |mode| {
            fs::set_permissions(&directory, Permissions::from_mode(mode)).expect("permissions");
        };
        leave_stale();
        for others in [0o777, 0o770, 0o1777] {
            mode(others);
            assert!(found() == 0 && stale.exists(), "{others:o}");
        }
        mode(0o700);
        let link = base.join("link");
        std::os::unix::fs::symlink(&directory, &link).expect("a link");
        assert!(running(std::slice::from_ref(&link)).is_empty() && stale.exists(), "a link");
        fs::remove_file(link).expect("a link");
        // Only root can give a directory away.
        if std::os::unix::fs::chown(&directory, Some(65_534), None).is_ok() {
            assert!(found() == 0 && stale.exists(), "another user's");
            let services = running(std::slice::from_ref(&base)).len();
            assert!(services == 1 && stale.exists(), "a service's is read but not cleaned");
            std::os::unix::fs::chown(&directory, Some(0), None).expect("an owner");
        }
        assert!(found() == 1 && !stale.exists(), "an own directory");
        fs::remove_dir_all(base).expect("an own directory");
    }

    #[test]
    fn no_text_of_another_process_is_read_unescaped() {
        let evil = "one\ntwo\u{1b}[2J\u{202e}\u{9b}31m";
        let text = || evil.to_owned();
        let event = EventStatus {
            time_s: 1.0,
            event: text(),
            peer: text(),
            link: Some(text()),
            text: text(),
        };
        let refused = vec![Refused { reason: text(), packets: 1 }];
        let addresses = vec![text()];
        let tunnel =
            TunnelFigures { interface: text(), addresses, refused, ..TunnelFigures::default() };
        let status = Status {
            schema: text(),
            command: text(),
            pid: 1,
            version: text(),
            time_s: 1.0,
            uptime_s: 1.0,
            transfer: None,
            tunnel: Some(tunnel),
            associations: Vec::new(),
            links: Vec::new(),
            events: vec![event],
        };
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let line = serde_json::to_string(&status).expect("a document") + "\n";
        theirs.write_all(line.as_bytes()).expect("it fits");
        let mut running = Running { path: PathBuf::new(), lines: BufReader::new(ours) };
        let read = running.read().expect("a status");
        let shown = serde_json::to_value(&read).expect("a document");
        let expected = "one\\u{a}two\\u{1b}[2J\\u{202e}\\u{9b}31m";
        let tunnel = read.tunnel.expect("a tunnel");
        assert_eq!((&*read.command, &*tunnel.refused[0].reason), (expected, expected));
        for character in ['\n', '\u{1b}', '\u{202e}', '\u{9b}'] {
            let hidden = texts(&shown).into_iter().find(|text| text.contains(character));
            assert_eq!(hidden, None, "{character:?}");
        }
    }

    fn texts(value: &Value) -> Vec<&str> {
        match value {
            Value::String(text) => vec![text],
            Value::Array(values) => values.iter().flat_map(texts).collect(),
            Value::Object(members) => members.values().flat_map(texts).collect(),
            _ => Vec::new(),
        }
    }
}
