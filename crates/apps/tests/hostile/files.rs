//! A sender of files that lists the maximum number of entries, in the smallest possible frames.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_apps::access::AccessList;
use ropewalk_apps::files::wire::{Entry, Frame, Kind, Stamp, encode, greeting};
use ropewalk_apps::files::{
    Accept, Admission, Admit, AssociationEnded, Figures, Link, Name, PathFigures, Peer, Rules,
    TransferStatus, receive,
};
use ropewalk_base::PeerText;
use tokio::sync::mpsc;

use crate::{allocated, turn};

/// Cost of an entry in addition to its name, as the limit of the list counts it.
const ENTRY_COST: u64 = 160;
const ENTRIES: u32 = 60_000;

/// A sender that sends arbitrary messages and never reads.
struct SilentReceiver {
    inbox: tokio::sync::Mutex<mpsc::Receiver<Bytes>>,
    hung_up: tokio::sync::Notify,
}

impl Figures for SilentReceiver {
    fn paths(&self) -> Vec<PathFigures> {
        Vec::new()
    }

    fn abort(&self) {
        self.hung_up.notify_one();
    }
}

impl Link for SilentReceiver {
    async fn send_all(
        &self,
        messages: &mut (dyn Iterator<Item = Bytes> + Send),
    ) -> Result<(), AssociationEnded> {
        // Its window is closed after the greeting.
        if messages.map(|message| message.len()).sum::<usize>() > greeting().len() {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn receive_all(&self, into: &mut Vec<Bytes>) {
        self.inbox.lock().await.recv_many(into, 16).await;
    }

    fn peer(&self) -> Peer {
        Peer::default()
    }

    fn message_size(&self) -> usize {
        1400
    }

    async fn end_reason(&self) -> PeerText {
        "cut".into()
    }

    async fn finish(&self) {}
}

struct SingleLinkAcceptor(Mutex<Option<SilentReceiver>>);

impl Accept for SingleLinkAcceptor {
    type Link = SilentReceiver;

    async fn accept(&self) -> Option<SilentReceiver> {
        let next = self.0.lock().expect("unharmed").take();
        match next {
            Some(link) => Some(link),
            None => std::future::pending().await,
        }
    }
}

/// Entries that cannot be accepted, each with a reason.
fn list() -> Vec<Bytes> {
    let mut bytes = greeting().to_vec();
    for number in 0..ENTRIES {
        let name = Name::new(format!("{number:07}").as_bytes()).expect("a name");
        let kind = Kind::File(2);
        let entry = Entry { name, kind, mode: 0, modified: Stamp::default() };
        encode(&Frame::Entries(vec![entry]), &mut bytes);
    }
    encode(&Frame::Listed(ENTRIES, 2 * u64::from(ENTRIES)), &mut bytes);
    bytes.chunks(1400).map(Bytes::copy_from_slice).collect()
}

#[test]
fn a_list_costs_what_its_limit_counts_even_if_its_sender_takes_no_answers() {
    let _turn = turn();
    let directory = std::env::temp_dir().join(format!("ropewalk-hostile-{}", std::process::id()));
    let rules = Rules { max_file_bytes: Some(1), ..Rules::default() };
    let admission = Admission::open(&directory, AccessList::anyone(), rules).expect("a directory");
    let admit: Arc<Admit> = Arc::new(move |peer: &Peer| admission.admit(peer));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    let messages = list();
    let (say, inbox) = mpsc::channel(16);
    let link = SilentReceiver {
        inbox: tokio::sync::Mutex::new(inbox),
        hung_up: tokio::sync::Notify::new(),
    };
    let watch = Arc::new(TransferStatus::new(|_| ()));
    let before = allocated();
    let most = runtime.block_on(async {
        let gate = SingleLinkAcceptor(Mutex::new(Some(link)));
        let receiving = receive(&gate, &admit, &watch, |_| true);
        let talking = async {
            let mut most = 0;
            for message in messages {
                let _ = say.send(message).await;
                most = most.max(allocated().saturating_sub(before));
            }
            let mut alive = Vec::new();
            encode(&Frame::Alive(0, 0), &mut alive);
            for _ in 0..40 {
                let _ = say.send(alive.clone().into()).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
                most = most.max(allocated().saturating_sub(before));
            }
            most
        };
        tokio::select! {
            _ = receiving => panic!("the receiver has ended"),
            most = talking => most,
        }
    });
    drop(say);
    runtime.shutdown_timeout(Duration::from_secs(5));
    drop(admit);
    let _ = std::fs::remove_dir_all(&directory);
    // Blocks in transit, names of failures, and the buffers of the threads are added.
    let bound = u64::from(ENTRIES) * (ENTRY_COST + 7) + (8 << 20);
    assert!(most <= bound, "{most} bytes for {ENTRIES} entries, {bound} are counted");
}
