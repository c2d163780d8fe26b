//! A receiver of files with a sender that says what it likes. What has its final name is what was sent, whole; nothing is
//! written anywhere else; and the receiver is ready for the next sender, who is honest.

#![no_main]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ropewalk_apps::files::wire::{Entry, Frame, Kind, Stamp, encode, frame_header, greeting};
use ropewalk_apps::files::{
    Accept, Figures, Gone, Link, Name, PathFigures, Store, Summary, Watch, receive,
};
use ropewalk_fuzz::Input;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// Names that clash: files and folders of one name, a file below a file, the receiver's own folder.
const NAMES: [&str; 8] = ["a", "b", "a/b", "a/b/c", "d", "d/a", ".ropewalk", ".ropewalk/a"];
/// What the honest sender sends afterwards, and under which name.
const HONEST: (&str, &[u8]) = ("honest", b"a few honest words");
/// Steps of one input.
const STEPS: usize = 60;
/// An input that takes so long hangs: the receiver waits for nobody who has gone.
const PATIENCE: Duration = Duration::from_secs(8);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

/// An association that has brought everything already, and takes what it is told.
struct Said {
    messages: Mutex<Vec<Bytes>>,
    over: Notify,
}

impl Figures for Said {
    fn paths(&self) -> Vec<PathFigures> {
        Vec::new()
    }

    fn hang_up(&self) {
        self.over.notify_one();
    }
}

impl Link for Said {
    async fn send_all(
        &self,
        messages: &mut (dyn Iterator<Item = Bytes> + Send),
    ) -> Result<(), Gone> {
        messages.for_each(drop);
        Ok(())
    }

    async fn receive_all(&self, into: &mut Vec<Bytes>) {
        into.append(&mut self.messages.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn message_size(&self) -> usize {
        1400
    }

    async fn why_ended(&self) -> String {
        "it has gone".to_owned()
    }

    async fn finish(&self) {}
}

/// Senders that come one after the other.
struct Senders(Mutex<Vec<Vec<Bytes>>>);

impl Accept for Senders {
    type Link = Said;

    async fn accept(&self) -> Option<Said> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // Nobody else comes; a sender that stays is not disturbed.
        let messages = match next {
            Some(messages) => messages,
            None => std::future::pending().await,
        };
        Some(Said { messages: Mutex::new(messages), over: Notify::new() })
    }
}

/// What a sender says, and which content it has sent for which name.
#[derive(Default)]
struct Sender {
    said: Vec<u8>,
    entries: Vec<(String, Kind)>,
    current: Option<(usize, Vec<u8>)>,
    sent: BTreeMap<String, Vec<Vec<u8>>>,
}

impl Sender {
    fn new() -> Self {
        Self { said: greeting().to_vec(), ..Self::default() }
    }

    fn frame(&mut self, frame: &Frame) {
        encode(frame, &mut self.said);
    }

    fn entry(&mut self, name: &str, kind: Kind) {
        // The receiver keeps some names for itself.
        let Ok(name) = Name::new(name.as_bytes()) else { return };
        let text = name.to_string();
        let entry = Entry { name, kind, mode: 0o640, modified: Stamp::default() };
        self.frame(&Frame::Entries(vec![entry]));
        self.entries.push((text, kind));
    }

    fn data(&mut self, data: &[u8]) {
        self.said.extend(frame_header(data.len()));
        self.said.extend(data);
        if let Some((_, content)) = &mut self.current {
            content.extend(data);
        }
    }

    fn begin(&mut self, index: usize, offset: u64) {
        self.frame(&Frame::Begin(index as u32, offset));
        self.current = Some((index, Vec::new()));
    }

    fn end(&mut self, spoilt: bool) {
        let (index, content) = self.current.take().unwrap_or_default();
        let mut hash = *blake3::hash(&content).as_bytes();
        hash[0] ^= u8::from(spoilt);
        self.frame(&Frame::End(hash));
        if let Some((name, _)) = self.entries.get(index) {
            self.sent.entry(name.clone()).or_default().push(content);
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let (what, detail) = (input.byte(), input.byte());
        let index = usize::from(detail) % (self.entries.len() + 1);
        match what % 16 {
            0..=2 => {
                let kind =
                    if detail & 8 == 0 { Kind::File(u64::from(detail >> 4)) } else { Kind::Folder };
                self.entry(NAMES[usize::from(detail) % NAMES.len()], kind);
            }
            3 => {
                let bytes = self.entries.iter().map(|(_, kind)| size(*kind)).sum::<u64>();
                self.frame(&Frame::Listed(
                    self.entries.len() as u32,
                    bytes + u64::from(detail >> 6),
                ));
            }
            4..=6 => self.begin(index, u64::from(detail >> 6)),
            7 | 8 => self.data(&vec![what; usize::from(detail & 15)]),
            9 | 10 => self.end(detail & 3 == 3),
            11 => self.frame(&Frame::Same(index as u32)),
            12 => self.frame(&Frame::Skip(index as u32, "no".to_owned())),
            13 => self.frame(&Frame::Over),
            14 => self.frame(&Frame::Alive(detail.into())),
            _ => self.said.extend(input.bytes(usize::from(detail & 31))),
        }
    }

    fn messages(&self, size: usize) -> Vec<Bytes> {
        self.said.chunks(size).map(Bytes::copy_from_slice).collect()
    }
}

const fn size(kind: Kind) -> u64 {
    match kind {
        Kind::File(size) => size,
        Kind::Folder => 0,
    }
}

fn honest() -> Sender {
    let mut sender = Sender::new();
    let (name, content) = HONEST;
    sender.entry(name, Kind::File(content.len() as u64));
    sender.frame(&Frame::Listed(1, content.len() as u64));
    sender.begin(0, 0);
    sender.data(content);
    sender.end(false);
    sender.frame(&Frame::Over);
    sender
}

/// A folder of this process that is empty.
fn fresh() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let memory = Path::new("/dev/shm");
    let room = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    room.join(format!("ropewalk-fuzz-{}-{number}", std::process::id()))
}

/// Every file below, but for what the receiver keeps for itself.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && entry.file_name() != ".ropewalk" => {
                files(&entry.path(), into);
            }
            Ok(kind) if !kind.is_dir() => into.push(entry.path()),
            _ => {}
        }
    }
}

/// Both senders, one after the other, until the honest one has brought what it has.
fn run(inbox: &Path, senders: Vec<Vec<Bytes>>) {
    let store = Arc::new(Store::open(inbox, false).expect("an empty folder"));
    let watch = Arc::new(Watch::new(|_| {}));
    let senders = Senders(Mutex::new(senders));
    let goes_on = |_: Summary| !inbox.join(HONEST.0).is_file();
    let all = receive(&senders, &store, &watch, goes_on);
    let done = RUNTIME.block_on(async { tokio::time::timeout(PATIENCE, all).await });
    assert!(done.is_ok(), "the honest sender has no turn");
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let size = 1 + usize::from(input.byte());
    let mut sender = Sender::new();
    for _ in 0..STEPS {
        if input.is_over() {
            break;
        }
        sender.step(&mut input);
    }
    let outside = fresh();
    let inbox = outside.join("inbox");
    fs::create_dir_all(&inbox).expect("an empty folder");
    // The last one comes first.
    run(&inbox, vec![honest().messages(1000), sender.messages(size)]);
    let beside: Vec<_> = fs::read_dir(&outside).expect("it is there").flatten().collect();
    assert_eq!(beside.len(), 1, "{beside:?}");
    let mut found = Vec::new();
    files(&inbox, &mut found);
    for path in found {
        let name = path.strip_prefix(&inbox).expect("below").to_string_lossy().into_owned();
        let content = fs::read(&path).expect("a file");
        if name == HONEST.0 {
            assert_eq!(content, HONEST.1);
            continue;
        }
        let empty =
            sender.entries.iter().any(|(known, kind)| *known == name && *kind == Kind::File(0));
        let sent = sender.sent.get(&name).is_some_and(|all| all.contains(&content));
        assert!(sent || (empty && content.is_empty()), "{name} has {content:?}, which nobody sent");
    }
    assert!(inbox.join(HONEST.0).is_file(), "the receiver ended before the honest sender came");
    fs::remove_dir_all(&outside).expect("it is ours");
});
