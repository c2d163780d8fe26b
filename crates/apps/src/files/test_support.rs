//! Test helpers: a temporary directory, and a pair of links in memory that can be cut.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex as Lock;
use ropewalk_base::PeerText;
use tokio::sync::{Mutex, mpsc, watch};

use super::link::{AssociationEnded, Figures, Link, PathFigures};
use super::peer::Peer;

/// A temporary directory, which is removed when this is dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let own = format!("ropewalk-files-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(own);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, bytes).expect("a file");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // The standard library holds a descriptor per level, and a process may have too few of them.
        if fs::remove_dir_all(&self.0).is_err() {
            let _ = std::process::Command::new("rm").arg("-rf").arg(&self.0).status();
        }
    }
}

/// The names of all entries below a directory, with the contents of files.
pub fn tree(root: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(place) = pending.pop() {
        for item in fs::read_dir(&place).expect("a directory") {
            let path = item.expect("an item").path();
            let own = path.strip_prefix(root).expect("inside").to_owned();
            if path.is_dir() {
                found.push((own, None));
                pending.push(path);
            } else {
                found.push((own, Some(fs::read(&path).expect("a file"))));
            }
        }
    }
    found.sort();
    found
}

/// One end of a pair of links.
pub struct MemoryLink {
    out: Lock<Option<mpsc::Sender<Bytes>>>,
    inbox: Mutex<mpsc::Receiver<Bytes>>,
    cut: watch::Sender<bool>,
    /// Bytes that both ends together may still send.
    left: std::sync::Arc<AtomicI64>,
    size: usize,
}

/// A pair of links that is cut after this many bytes.
pub fn pair(size: usize, cut_after: Option<u64>) -> (MemoryLink, MemoryLink) {
    let (a_out, b_in) = mpsc::channel(64);
    let (b_out, a_in) = mpsc::channel(64);
    let cut = watch::Sender::new(false);
    let left = std::sync::Arc::new(AtomicI64::new(cut_after.map_or(i64::MAX, |n| n as i64)));
    let end = |out, inbox| MemoryLink {
        out: Lock::new(Some(out)),
        inbox: Mutex::new(inbox),
        cut: cut.clone(),
        left: left.clone(),
        size,
    };
    (end(a_out, a_in), end(b_out, b_in))
}

fn gone() -> AssociationEnded {
    AssociationEnded("cut".into())
}

impl Figures for MemoryLink {
    fn paths(&self) -> Vec<PathFigures> {
        Vec::new()
    }

    fn abort(&self) {
        self.cut.send_replace(true);
    }
}

impl Link for MemoryLink {
    async fn send_all(
        &self,
        messages: &mut (dyn Iterator<Item = Bytes> + Send),
    ) -> Result<(), AssociationEnded> {
        let out = self.out.lock().clone().ok_or_else(gone)?;
        for message in messages {
            assert!((1..=self.size).contains(&message.len()), "{}", message.len());
            let len = message.len() as i64;
            if self.left.fetch_sub(len, Ordering::SeqCst) < len {
                self.abort();
            }
            let mut cut = self.cut.subscribe();
            tokio::select! {
                biased;
                _ = cut.wait_for(|cut| *cut) => return Err(gone()),
                sent = out.send(message) => sent.map_err(|_| gone())?,
            }
        }
        Ok(())
    }

    async fn receive_all(&self, into: &mut Vec<Bytes>) {
        let mut inbox = self.inbox.lock().await;
        let mut cut = self.cut.subscribe();
        tokio::select! {
            biased;
            _ = cut.wait_for(|cut| *cut) => {}
            _ = inbox.recv_many(into, 16) => {}
        }
    }

    fn peer(&self) -> Peer {
        Peer::default()
    }

    fn message_size(&self) -> usize {
        self.size
    }

    async fn end_reason(&self) -> PeerText {
        "cut".into()
    }

    async fn finish(&self) {
        self.out.lock().take();
    }
}
