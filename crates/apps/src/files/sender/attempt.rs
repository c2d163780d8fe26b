//! The sender's part of a transfer over one association.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_base::PeerText;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::blocks::{Block, Blocks, Closed, Mark};
use super::job::Job;
use super::reader::{Answer, Reader};
use crate::files::error::TransferError;
use crate::files::link::{AssociationEnded, Link};
use crate::files::stream::{SILENCE, next_messages, send_block};
use crate::files::watch::{TransferEvent, TransferStatus};
use crate::files::wire::{Decoder, Frame, Kind, WireItem, encode, greeting};

/// Maximum number of blocks between the disk and the association.
const QUEUE: usize = 4;
/// Maximum interval between messages to the receiver.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a receiver may keep the association alive without progress before the sender gives up.
pub const STALL_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 120 });
/// Fewer bytes than these do not count as progress.
const MIN_PROGRESS_BYTES: u64 = 16 << 10;

/// Sends everything that the job has yet to send. Also returns whether the receiver sent anything: a busy receiver
/// accepts an association and stays silent.
pub async fn attempt<L: Link>(
    link: &Arc<L>,
    job: &Arc<Job>,
    watch: &Arc<TransferStatus>,
) -> (Result<(), TransferError>, bool) {
    let list: Arc<[u32]> = job.rest().into();
    let base = job.bytes_done();
    let (blocks_in, blocks) = mpsc::channel(QUEUE);
    let (answers_in, answers) = mpsc::unbounded_channel();
    let (failed, reading) = oneshot::channel();
    let busy = Arc::new(AtomicBool::new(false));
    let out = Blocks::new(link.message_size(), blocks_in);
    let thread = {
        let (job, list, watch, busy) = (job.clone(), list.clone(), watch.clone(), busy.clone());
        tokio::task::spawn_blocking(move || {
            let (job, list, watch, busy) = (&job, &list, &watch, &busy);
            let reader = Reader { job, list, answers, out, watch, busy };
            if let Err(Closed) = reader.run() {
                let _ = failed.send(());
            }
        })
    };
    let progress_signs = AtomicU64::new(0);
    let mut reports = ReceiverReports {
        job,
        list: &list,
        watch,
        base,
        answers: answers_in,
        answered: 0,
        reported: (0, 0),
        progress_signs: &progress_signs,
        has_received: false,
    };
    let result = tokio::select! {
        result = reports.receive_reports(&**link) => result,
        () = send_until_end(&**link, blocks, job, &progress_signs) => Err(TransferError::AssociationEnded(link.end_reason().await)),
        () = wait_for_stall(&progress_signs, &busy) => Err(TransferError::Stalled(STALL_LIMIT.as_secs())),
        Ok(()) = reading => Err(TransferError::AssociationEnded(link.end_reason().await)),
    };
    let has_received = reports.has_received;
    watch.set_brought(watch.progress().placed.saturating_sub(job.bytes_existing()));
    // Its channels are closed now, so the thread stops at the next block.
    drop(reports);
    let _ = thread.await;
    (result, has_received)
}

/// Sends until the association ends. Returns when nothing more can be received either.
async fn send_until_end<L: Link>(
    link: &L,
    blocks: mpsc::Receiver<Block>,
    job: &Job,
    progress_signs: &AtomicU64,
) {
    let Err(AssociationEnded(_)) = send_blocks(link, blocks, job, progress_signs).await;
    // The peer's last messages may still be read.
    tokio::time::sleep(SILENCE).await;
}

/// Sends the greeting, then blocks. The greeting must be first and does not wait for the first block, which may take
/// longer than [`KEEPALIVE_INTERVAL`].
async fn send_blocks<L: Link>(
    link: &L,
    mut blocks: mpsc::Receiver<Block>,
    job: &Job,
    progress_signs: &AtomicU64,
) -> Result<Infallible, AssociationEnded> {
    send_block(link, Bytes::copy_from_slice(&greeting())).await?;
    let mut alive = Vec::new();
    encode(&Frame::Alive(0, 0), &mut alive);
    let alive = Bytes::from(alive);
    let mut open = true;
    loop {
        let next = async {
            match open {
                true => blocks.recv().await,
                false => std::future::pending().await,
            }
        };
        match timeout(KEEPALIVE_INTERVAL, next).await {
            Ok(Some(block)) => {
                // The answer may arrive before the last message is queued.
                for mark in &block.marks {
                    match *mark {
                        Mark::Sent(index) => job.sent(index),
                        Mark::Checked(index) => job.checked(index),
                    }
                }
                send_block(link, block.bytes).await?;
                progress_signs.fetch_add(1, Ordering::Relaxed);
            }
            Ok(None) => open = false,
            Err(_) => send_block(link, alive.clone()).await?,
        }
    }
}

/// Waits until the receiver has kept the association alive for [`STALL_LIMIT`] without progress, while this end
/// waited for it.
async fn wait_for_stall(progress_signs: &AtomicU64, busy: &AtomicBool) {
    let (mut last, mut since) = (progress_signs.load(Ordering::Relaxed), Instant::now());
    while since.elapsed() < STALL_LIMIT {
        tokio::time::sleep(KEEPALIVE_INTERVAL).await;
        let now = progress_signs.load(Ordering::Relaxed);
        if now != last || busy.load(Ordering::Relaxed) {
            (last, since) = (now, Instant::now());
        }
    }
}

/// Handles the receiver's frames.
struct ReceiverReports<'a> {
    job: &'a Job,
    list: &'a [u32],
    watch: &'a TransferStatus,
    /// Bytes of the entries that are no longer on the list.
    base: u64,
    answers: mpsc::UnboundedSender<Answer>,
    /// Entries of the list that the receiver has answered.
    answered: usize,
    /// The placed and read bytes that the receiver reported last.
    reported: (u64, u64),
    /// Counts signs of progress.
    progress_signs: &'a AtomicU64,
    has_received: bool,
}

impl ReceiverReports<'_> {
    async fn receive_reports<L: Link>(&mut self, link: &L) -> Result<(), TransferError> {
        let mut decoder = Decoder::default();
        let mut messages = Vec::new();
        loop {
            next_messages(link, &mut messages).await?;
            self.has_received = true;
            for mut message in messages.drain(..) {
                while let Some(item) = decoder.next(&mut message)? {
                    if self.on_item(item)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Returns whether that was the last frame.
    fn on_item(&mut self, item: WireItem) -> Result<bool, TransferError> {
        let frame = match item {
            WireItem::Frame(frame) => frame,
            WireItem::Greeting => return Ok(false),
            WireItem::Data(_) => return Err(TransferError::Violation("data from the receiver")),
        };
        match frame {
            Frame::Fresh(count) => self.answer(Answer::Fresh(count), count)?,
            Frame::Made(count) => self.answer(Answer::Made(count), count)?,
            Frame::Partial(len, hash) => self.answer(Answer::Partial(len, hash), 1)?,
            Frame::Exists => self.answer(Answer::Exists, 1)?,
            Frame::Refused(why) => {
                let place = self.answered as u32;
                self.answer(Answer::Refused, 1)?;
                self.failed(place, &why)?;
            }
            Frame::Done(place) => self.done(place)?,
            Frame::Failed(place, why) => self.failed(place, &why)?,
            Frame::Differs(place) => {
                if !self.job.differs(self.index(place)?) {
                    return Err(TransferError::Violation(
                        "it reports a difference that was not requested",
                    ));
                }
                self.forward(Answer::Differs(place));
            }
            Frame::Alive(placed, read) => self.alive(placed, read),
            Frame::Error(why) => return Err(TransferError::Peer(why)),
            Frame::Finished(..) => {
                if self.job.files_pending() > 0 || self.answered < self.list.len() {
                    return Err(TransferError::Violation("it finished without all entries"));
                }
                self.watch.set_placed(self.job.bytes_done());
                return Ok(true);
            }
            _ => return Err(TransferError::Violation("a frame that only senders send")),
        }
        Ok(false)
    }

    fn index(&self, place: u32) -> Result<u32, TransferError> {
        let index = self.list.get(place as usize).copied();
        index.ok_or(TransferError::Violation("an entry that is not on the list"))
    }

    /// The receiver reports a complete file. That is possible only for a file that was sent or compared.
    fn done(&mut self, place: u32) -> Result<(), TransferError> {
        let index = self.index(place)?;
        let was_checked = self.job.is_checked(index);
        if !self.job.done(index) && !self.job.has_failed(index) {
            return Err(TransferError::Violation("it reports a file that was not sent"));
        }
        let entry = &self.job.manifest.entries[index as usize];
        let name = PeerText::new(entry.name.to_string());
        self.watch.tell(TransferEvent::Finished(name, entry.size()));
        self.watch.set_files_done(self.job.files_done());
        self.progress_signs.fetch_add(1, Ordering::Relaxed);
        if was_checked {
            self.job.found(index, self.job.manifest.entries[index as usize].size());
            self.forward(Answer::Decided);
        }
        Ok(())
    }

    fn failed(&mut self, place: u32, why: &PeerText) -> Result<(), TransferError> {
        let index = self.index(place)?;
        let was_checked = self.job.is_checked(index);
        let why = PeerText::new(format!("receiver: {}", why.unescaped()));
        if self.job.fail(index, &why) {
            let name = self.job.manifest.entries[index as usize].name.to_string();
            self.watch.tell(TransferEvent::Failed(name.into(), why));
            self.watch.set_files_done(self.job.files_done());
            self.watch.lose(0, 0, self.job.manifest.entries[index as usize].size());
            self.progress_signs.fetch_add(1, Ordering::Relaxed);
        }
        if was_checked {
            self.forward(Answer::Decided);
        }
        Ok(())
    }

    /// The receiver reports its progress. It counts up to the size of the transfer, and only if it increases.
    fn alive(&mut self, placed: u64, read: u64) {
        let all = self.job.manifest.bytes();
        let now = (placed.min(all), read.min(all));
        let step = |before: u64, now: u64| now >= before.saturating_add(MIN_PROGRESS_BYTES);
        if step(self.reported.0, now.0) || step(self.reported.1, now.1) {
            self.reported = now;
            self.progress_signs.fetch_add(1, Ordering::Relaxed);
        }
        self.watch.set_placed(self.base.saturating_add(placed).min(all));
    }

    /// Forwards an answer. There are at most as many as entries, regardless of how many the receiver sends.
    fn answer(&mut self, answer: Answer, count: u32) -> Result<(), TransferError> {
        let count = count as usize;
        let end = self.answered.saturating_add(count);
        if count == 0 || end > self.list.len() {
            return Err(TransferError::Violation("more answers than entries"));
        }
        let places = &self.list[self.answered..end];
        let files = places
            .iter()
            .filter(|index| self.job.manifest.entries[**index as usize].kind != Kind::Folder);
        let fits = match answer {
            Answer::Made(_) => files.count() == 0,
            Answer::Refused => true,
            _ => files.count() == count,
        };
        if !fits {
            return Err(TransferError::Violation("an answer that does not fit its entry"));
        }
        self.answered = end;
        self.progress_signs.fetch_add(1, Ordering::Relaxed);
        self.forward(answer);
        Ok(())
    }

    fn forward(&self, answer: Answer) {
        // If the thread has stopped, that is detected elsewhere.
        let _ = self.answers.send(answer);
    }
}
