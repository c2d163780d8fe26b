//! Programs with the library preloaded, and their environment.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ropewalk_interop::Missing;

/// Longer than any program takes.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The library, which is built with the tests, or another one (`tests/sanitize/run.py --quick`).
pub fn library() -> PathBuf {
    if let Some(other) = std::env::var_os("ROPEWALK_LIBRARY") {
        return PathBuf::from(other);
    }
    let test = std::env::current_exe().expect("a test is a file");
    let library = test.parent().expect("in a directory").join("libropewalk.so");
    assert!(library.is_file(), "{} is missing", library.display());
    library
}

/// Two free UDP ports below the range from which the system assigns ports. No other test uses them.
pub fn free_udp_ports() -> [u16; 2] {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let from = std::process::id() as u16 % 200 * 100;
    let next = || 10_000 + (from + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
    let is_free = |port: &u16| UdpSocket::bind(("127.0.0.1", *port)).is_ok();
    [(); 2].map(|()| std::iter::repeat_with(next).find(is_free).expect("a free port"))
}

/// The runtime of the address sanitizer, if the tests are compiled with it (`make sanitize`): programs must load it
/// before the library.
pub fn sanitizer() -> Option<PathBuf> {
    std::env::var_os("ROPEWALK_SANITIZER").map(PathBuf::from)
}

/// Value of LD_PRELOAD: the library, after the sanitizer's runtime if there is one.
pub fn preload() -> OsString {
    let library = library().into_os_string();
    let Some(sanitizer) = sanitizer() else { return library };
    let mut both = sanitizer.into_os_string();
    both.push(":");
    both.push(library);
    both
}

/// Options of the sanitizer: where to report errors, and whether leaks at the end of the program are errors.
pub fn sanitizer_options(leaks: bool) -> OsString {
    let mut options = OsString::from(format!("detect_leaks={}", u8::from(leaks)));
    if let Some(reports) = std::env::var_os("ROPEWALK_SANITIZER_REPORTS") {
        options.push(":log_path=");
        options.push(reports);
    }
    options
}

/// A program with the library preloaded. It listens on the UDP port `own`, and its peers on `peer`.
pub fn preloaded(program: impl AsRef<OsStr>, own: u16, peer: u16) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", preload())
        .env("ASAN_OPTIONS", sanitizer_options(false))
        .env("ROPEWALK_UDP_PORT", own.to_string())
        .env("ROPEWALK_PEER_UDP_PORT", peer.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Checks that a program is installed.
///
/// # Errors
/// If it is not. `package` contains it.
pub fn installed(program: &str, package: &str) -> Result<(), Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if found { Ok(()) } else { Err(Missing(format!("`{program}` (package {package})"))) }
}

/// Output of a program, and how it ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Its output, if it succeeded.
    pub fn good(self) -> String {
        assert!(self.status.success(), "{self:?}");
        self.stdout
    }
}

/// A running program, which is killed when this is dropped.
pub struct Running(Child);

impl Running {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("the program starts"))
    }

    /// Wraps a running child.
    pub const fn of(child: Child) -> Self {
        Self(child)
    }

    /// Its standard output, to be read while it runs.
    pub fn stdout(&mut self) -> std::process::ChildStdout {
        self.0.stdout.take().expect("piped")
    }

    /// Its process.
    pub const fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let reader = |pipe: Option<Box<dyn std::io::Read + Send>>| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut pipe) = pipe {
                    let _ = pipe.read_to_end(&mut bytes);
                }
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let stdout = reader(self.0.stdout.take().map(|pipe| Box::new(pipe) as _));
        let stderr = reader(self.0.stderr.take().map(|pipe| Box::new(pipe) as _));
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                break status;
            }
            if begun.elapsed() > LIMIT {
                let _ = self.0.kill();
                let _ = self.0.wait();
                let (stdout, stderr) = (stdout.join(), stderr.join());
                panic!("the program hangs: {stdout:?} {stderr:?}");
            }
            thread::sleep(Duration::from_millis(5));
        };
        let text = |thread: thread::JoinHandle<String>| thread.join().expect("no panic");
        Ended { status, stdout: text(stdout), stderr: text(stderr) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a program has bound a UDP port of this network namespace.
pub fn await_udp_port(port: u16) {
    let begun = Instant::now();
    let wanted = format!(":{port:04X}");
    let bound = || {
        let table = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap_or_default();
        table
            .lines()
            .any(|line| line.split_whitespace().nth(1).is_some_and(|a| a.ends_with(&wanted)))
    };
    while !bound() {
        assert!(begun.elapsed() < LIMIT, "nothing binds UDP port {port}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A C program of `tests/programs`, linked with `libraries`. It is compiled with the address sanitizer if these tests are.
///
/// # Errors
/// If there is no compiler.
///
/// # Panics
/// If it cannot be compiled.
pub fn compiled(name: &str, libraries: &[&str]) -> Result<PathBuf, Missing> {
    installed("cc", "gcc")?;
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let unique = format!("{name}-{}-{:?}", std::process::id(), thread::current().id());
    let output = std::env::temp_dir().join(unique.replace(['(', ')'], ""));
    let mut command = Command::new("cc");
    command.args(["-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "-I"]).arg(include);
    let Some(sanitizer) = sanitizer() else {
        run(command.arg(source).arg("-o").arg(&output).args(libraries));
        return Ok(output);
    };
    // The runtime of this compiler is not linked, because the library needs the runtime of the
    // compiler that built it.
    let object = output.with_extension("o");
    command.args(libraries.iter().filter(|argument| argument.starts_with("-I")));
    let sanitized = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"];
    run(command.args(sanitized).arg("-c").arg("-o").arg(&object).arg(source));
    let mut link = Command::new("cc");
    run(link.arg("-o").arg(&output).arg(&object).arg(sanitizer).args(libraries));
    std::fs::remove_file(&object).expect("it is ours");
    Ok(output)
}

/// Runs a compiler.
fn run(command: &mut Command) {
    let ended = command.output().expect("cc");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}
