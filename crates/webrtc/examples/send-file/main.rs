//! Sends a file to a browser on this machine, and receives files from it:
//!
//! ```text
//! cargo run -p ropewalk-webrtc --example send-file -- FILE [--inbox DIR] [--once]
//! ```
//!
//! Open the printed URL in a browser. The page receives the file over a WebRTC data channel.

#![expect(clippy::disallowed_methods, reason = "it shows rates")]

mod site;
mod transfer;
#[path = "../transport/mod.rs"]
mod transport;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ropewalk_webrtc::{Config, DtlsRole};

use self::site::Site;
use self::transfer::Transfer;
use self::transport::{Server, http};

struct Options {
    file: PathBuf,
    inbox: Option<PathBuf>,
    once: bool,
}

fn options() -> Option<Options> {
    let mut words = std::env::args_os().skip(1);
    let (mut file, mut inbox, mut once) = (None, None, false);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--once") => once = true,
            Some("--inbox") => inbox = Some(words.next()?.into()),
            Some(other) if other.starts_with('-') => return None,
            _ if file.is_none() => file = Some(word.into()),
            _ => return None,
        }
    }
    Some(Options { file: file?, inbox, once })
}

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("usage: send-file FILE [--inbox DIR] [--once]");
        return ExitCode::from(2);
    };
    // Check the file and the folder before a browser opens the page.
    if let Err(error) = Transfer::new(&options.file, options.inbox.as_deref()) {
        eprintln!("send-file: {error}");
        return ExitCode::from(2);
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("send-file: {}: {error}", options.file.display());
            ExitCode::FAILURE
        }
    }
}

/// A browser, and which of its results were printed.
struct Browser {
    transfer: Transfer,
    began: Instant,
    /// Whether the completed transfer was printed.
    is_done: bool,
    /// Number of received files that were printed.
    received: usize,
}

type Browsers = BTreeMap<u64, Browser>;

fn run(options: &Options) -> io::Result<()> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut server = Server::bind(any, Config::new(DtlsRole::Server))?;
    let (address, requests) = http::listen(any)?;
    let site = Site::new();
    println!("{}", site.url(address));
    let mut browsers = Browsers::new();
    let mut shown = Instant::now();
    loop {
        server.receive()?;
        for request in requests.try_iter() {
            if let Some(number) = site.respond(request, &mut server) {
                let transfer = Transfer::new(&options.file, options.inbox.as_deref())?;
                browsers.insert(number, Browser::new(transfer));
            }
        }
        drive(&mut server, &mut browsers)?;
        if shown.elapsed() >= Duration::from_millis(200) {
            shown = Instant::now();
            let done = browsers.iter_mut().filter_map(|(number, one)| one.show(*number));
            let sound = done.fold(None, |all, sound| Some(sound && all != Some(false)));
            match sound.filter(|_| options.once) {
                Some(true) => return Ok(()),
                Some(false) => return Err(io::Error::other("the browser has got something else")),
                None => {}
            }
        }
    }
}

/// Runs all connections once.
fn drive(server: &mut Server, browsers: &mut Browsers) -> io::Result<()> {
    let now = server.now();
    for peer in server.peers() {
        let Some(browser) = browsers.get_mut(&peer.number) else { continue };
        if let Some(connection) = peer.connection() {
            browser.transfer.run(connection, now)?;
        }
        if browser.transfer.report.is_over {
            peer.end("the association has ended");
        }
        if let Some(why) = peer.ended() {
            eprintln!("browser {}: {why}", peer.number);
            browsers.remove(&peer.number);
        }
    }
    server.flush();
    Ok(())
}

impl Browser {
    fn new(transfer: Transfer) -> Self {
        Self { transfer, began: Instant::now(), is_done: false, received: 0 }
    }

    /// Prints new results. Returns whether the browser received the right bytes, once it has confirmed them.
    fn show(&mut self, number: u64) -> Option<bool> {
        let report = &self.transfer.report;
        for (path, bytes, _) in &report.received[self.received..] {
            println!("browser {number}: sent {} ({bytes} bytes)", path.display());
        }
        self.received = report.received.len();
        if self.is_done {
            return None;
        }
        let size = self.transfer.size();
        let seconds = self.began.elapsed().as_secs_f64();
        if let Some((bytes, sha256)) = &report.confirmed {
            self.is_done = true;
            // Browsers do not hash a file that does not fit into their memory.
            let sound = *bytes == size && (sha256.is_empty() || *sha256 == report.sha256);
            let what = if sound { "has the file" } else { "has got something else" };
            println!("\rbrowser {number}: {what} ({bytes} bytes in {seconds:.1} s)");
            return Some(sound);
        }
        if io::stderr().is_terminal() && report.sent > 0 {
            let part = report.sent as f64 / size.max(1) as f64;
            let bar = "#".repeat((part * 30.0) as usize);
            let rate = report.sent as f64 / seconds / 1e6;
            eprint!("\rbrowser {number}: [{bar:30}] {:3.0} %  {rate:.1} MB/s ", part * 100.0);
            let _ = io::stderr().flush();
        }
        None
    }
}
