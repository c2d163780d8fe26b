//! The example `send-file` against Chromium: its page gets a file, hashes it, and sends it back.

#![expect(clippy::disallowed_methods, reason = "a test in real time gives up after a while")]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ropewalk_webrtc::{Config, DtlsRole};

use crate::site::Site;
use crate::transfer::{Report, Transfer};
use crate::transport::{Server, http, random};

/// Bytes of the file.
const SIZE: usize = 16 << 20;
/// Longest time that the browser may take to start and to transfer the file.
const PATIENCE: Duration = Duration::from_secs(100);

/// The browser's executable: `$CHROMIUM`, or the system's name for it.
fn find() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"].map(PathBuf::from);
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from).into_iter().chain(names);
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    // Joining an absolute path yields that path.
    named
        .flat_map(|name| folders.iter().map(|folder| folder.join(&name)).collect::<Vec<_>>())
        .find(|path| path.is_file())
}

/// A folder of the test, and a browser that does not outlive it.
struct Scene {
    folder: PathBuf,
    browser: Option<Child>,
}

impl Scene {
    fn new() -> Self {
        let name = format!("ropewalk-webrtc-{:016x}", u64::from_le_bytes(random()));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("inbox")).expect("a temporary folder");
        Self { folder, browser: None }
    }

    fn start(&mut self, browser: &PathBuf, url: &str) {
        let mut command = Command::new(browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]);
        command.arg(format!("--user-data-dir={}", self.folder.join("profile").display())).arg(url);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.browser = Some(command.spawn().expect("the browser starts"));
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(browser) = &mut self.browser {
            let _ = browser.kill();
            let _ = browser.wait();
        }
        // Processes of the browser may write a little longer.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_page_in_chromium_gets_a_file_and_sends_it_back() {
    let Some(browser) = find() else {
        return eprintln!("skipped: there is no chromium");
    };
    let mut scene = Scene::new();
    let path = scene.folder.join("file.bin");
    let content: Vec<u8> = (0..SIZE).map(|at| ((at * 2_654_435_761) >> 13) as u8).collect();
    fs::write(&path, &content).expect("the file is written");

    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut server = Server::bind(any, Config::new(DtlsRole::Server)).expect("a socket");
    let (address, requests) = http::listen(any).expect("a socket");
    let site = Site::new();
    scene.start(&browser, &format!("{}#echo", site.url(address)));
    let deadline = Instant::now() + PATIENCE;
    let inbox = scene.folder.join("inbox");
    let mut transfer = None;
    let report = loop {
        server.receive().expect("the socket works");
        for request in requests.try_iter() {
            if site.respond(request, &mut server).is_some() {
                let file = Transfer::new(&path, Some(&inbox)).expect("the file is there");
                assert_eq!(file.size(), SIZE as u64);
                transfer = Some(file);
            }
        }
        let now = server.now();
        for (peer, transfer) in server.peers().iter_mut().zip(&mut transfer) {
            assert_eq!(peer.ended(), None);
            if let Some(connection) = peer.connection() {
                transfer.run(connection, now).expect("the files can be used");
            }
        }
        server.flush();
        let report = transfer.as_ref().map(|transfer| &transfer.report);
        if let Some(report) = report.filter(|report| !report.received.is_empty()) {
            break report.clone();
        }
        assert!(Instant::now() < deadline, "not done: {report:?}");
    };
    check(&report, &content);
}

fn check(report: &Report, content: &[u8]) {
    let hash = ring::digest::digest(&ring::digest::SHA256, content);
    let sha256: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    // The page has computed it by SubtleCrypto.
    assert_eq!(report.confirmed, Some((SIZE as u64, sha256.clone())));
    let [(path, bytes, hash)] = &report.received[..] else { panic!("one file: {report:?}") };
    assert_eq!((*bytes, hash), (SIZE as u64, &sha256));
    assert!(fs::read(path).expect("it was written") == content, "what came back is the file");
}

#[test]
fn what_cannot_be_sent_or_kept_is_refused_before_a_peer_comes() {
    let folder = std::env::temp_dir().join(format!("send-file-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (file, missing) = (folder.join("file"), folder.join("missing"));
    fs::write(&file, "bytes").expect("a file");
    for (path, inbox, why) in [
        (&file, None, None),
        (&file, Some(&folder), None),
        (&folder, None, Some("no file")),
        (&missing, None, Some("missing")),
        (&file, Some(&missing), Some("missing: there is no such folder")),
        (&file, Some(&file), Some("there is no such folder")),
    ] {
        let refused = Transfer::new(path, inbox.map(PathBuf::as_path)).err();
        match (refused.map(|error| error.to_string()), why) {
            (None, None) => {}
            (Some(error), Some(why)) => assert!(error.contains(why), "{error}"),
            (refused, why) => panic!("{path:?} {inbox:?}: {refused:?}, expected {why:?}"),
        }
    }
    fs::remove_dir_all(&folder).expect("it is ours");
}
