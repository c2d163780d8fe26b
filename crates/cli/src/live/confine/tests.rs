use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{env, fs};

use super::*;

/// Tells the child process which profile to apply.
const PROFILE: &str = "ROPEWALK_TEST_PROFILE";

/// A directory that any user may enter. An unprivileged user may not enter the build directory.
fn everybodys_directory(name: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = env::temp_dir().join(format!("ropewalk-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).expect("a directory");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("its mode");
    path
}

/// Attempts what an attacker would try, and prints each result: `ok`, or the kind of the error.
fn try_everything(room: &Path) {
    let show = |what: &str, result: std::io::Result<()>| {
        println!("{what}={}", result.map_or_else(|error| format!("{error:?}"), |()| "ok".into()));
    };
    let of_nix = |result: nix::Result<()>| result.map_err(std::io::Error::from);
    show("exec", Err(Command::new("/bin/true").exec()));
    show("spawn", Command::new("/bin/true").status().map(drop));
    show("trace", of_nix(nix::sys::ptrace::traceme()));
    show("unshare", of_nix(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)));
    show("chroot", of_nix(nix::unistd::chroot(room)));
    show("kill", of_nix(nix::sys::signal::kill(nix::unistd::getppid(), None)));
    show("write", fs::write(room.join("new"), "x"));
    show("append", fs::File::options().append(true).open(room.join("old")).map(drop));
    show("rename", fs::rename(room.join("old"), room.join("older")));
    show("remove", fs::remove_file(room.join("older")));
    show("directory", fs::create_dir(room.join("sub")));
    show("read", fs::read("/etc/hosts").map(drop));
    show(
        "outside",
        fs::write(env::temp_dir().join(format!("ropewalk-outside-{}", std::process::id())), "x"),
    );
    let raw = socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None);
    show("packet socket", raw.map(drop));
    show("udp", std::net::UdpSocket::bind("127.0.0.1:0").map(drop));
    show("interfaces", ropewalk_runtime::interfaces::list().map(drop));
    show("changes of interfaces", watch_interfaces());
    show(
        "thread",
        std::thread::Builder::new().spawn(|| ()).map(|thread| thread.join().expect("it ends")),
    );
    show("core", {
        let limits = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE);
        let dumpable = nix::sys::prctl::get_dumpable().expect("an answer");
        let none = limits.expect("limits") == (0, 0) && !dumpable;
        if none { Err(ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    });
}

/// Opens the system's notifications, and polls for one.
fn watch_interfaces() -> std::io::Result<()> {
    use ropewalk_runtime::system::{Changes, NetworkMonitor};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let monitor = NetworkMonitor::open(Changes::Interfaces)?;
        let changed = tokio::time::timeout(std::time::Duration::ZERO, monitor.changed());
        changed.await.unwrap_or(Ok(()))
    })
}

#[test]
#[ignore = "runs in a process of its own, started by the test below"]
fn confined_child() {
    let Ok(profile) = env::var(PROFILE) else { return };
    let room = env::current_dir().expect("a directory");
    fs::write("old", "x").expect("nothing is confined yet");
    let files = if profile == "recv" { Files::below(&room) } else { Files::default() };
    let args = ConfineArgs { no_confine: profile == "none" };
    println!("{}", args.restrict_files(&files).expect("files"));
    // Existing threads are confined too.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        wait.recv().expect("the word");
        Command::new("/bin/true").exec().raw_os_error()
    });
    println!("{}", args.restrict_calls(&files).expect("calls"));
    if profile != "none" {
        go.send(()).expect("it waits");
        assert_eq!(other.join().expect("it ends"), Some(nix::libc::EPERM));
        try_everything(&room);
    }
}

/// Runs the child with this profile as this user; returns its output.
fn child(profile: &str, user: Option<u32>) -> String {
    let room = everybodys_directory(&format!("confine-{profile}-{user:?}"));
    let program = room.join("test");
    fs::copy(env::current_exe().expect("this test"), &program).expect("a copy");
    let mut command = Command::new(&program);
    command.args(["--exact", "live::confine::tests::confined_child", "--ignored", "--nocapture"]);
    command.env(PROFILE, profile).current_dir(&room);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let output = command.output().expect("the child");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{profile} {user:?}: {text}{errors}");
    fs::remove_dir_all(room).expect("it can go");
    text
}

#[test]
fn a_confined_process_runs_no_program_traces_nothing_and_keeps_its_files() {
    let root = nix::unistd::geteuid().is_root();
    // 65534 is the unprivileged user.
    let users = if root { vec![None, Some(65534)] } else { vec![None] };
    for user in users {
        for profile in ["exit", "recv"] {
            let text = child(profile, user);
            let result = |what: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(&format!("{what}=")));
                line.unwrap_or_else(|| panic!("no {what} in: {text}")).to_owned()
            };
            for what in
                ["exec", "spawn", "trace", "unshare", "chroot", "kill", "packet socket", "core"]
            {
                assert_ne!(result(what), "ok", "{profile} {user:?} {what}: {text}");
            }
            assert!(result("exec").contains("PermissionDenied"), "{text}");
            assert!(result("trace").contains("PermissionDenied"), "{text}");
            for what in ["udp", "interfaces", "changes of interfaces", "thread"] {
                assert_eq!(result(what), "ok", "{profile} {user:?} {what}: {text}");
            }
            for what in ["write", "append", "rename", "remove", "directory"] {
                assert_eq!(result(what) == "ok", profile == "recv", "{profile} {what}: {text}");
            }
            // Without Landlock, a process that may write somewhere may write wherever its user may.
            if text.contains("no Landlock") {
                println!("{profile}: this kernel has no Landlock: files outside are not tested");
            } else {
                assert_ne!(result("read"), "ok", "{profile} {user:?}: {text}");
                assert_ne!(result("outside"), "ok", "{profile} {user:?}: {text}");
            }
            if profile == "exit" {
                assert_ne!(result("outside"), "ok", "{profile} {user:?}: {text}");
            }
        }
    }
    assert!(child("none", None).contains("--no-confine"));
}
