//! What one association does for a transfer, at the sender's end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::blocks::{Blocks, Closed};
use super::job::Job;
use super::reader::Reader;
use crate::files::broken::Broken;
use crate::files::link::Link;
use crate::files::stream::{SILENCE, next_messages, send_block};
use crate::files::watch::{News, Watch};
use crate::files::wire::{Decoder, Frame, Kind, Piece, encode};

/// Blocks between the disk and the association.
const QUEUE: usize = 4;
/// The receiver hears something at least so often.
const ALIVE: Duration = Duration::from_secs(1);

/// Sends what the job still has to send. With it goes whether the receiver was heard at all: one that is
/// busy takes an association and says nothing.
pub async fn attempt<L: Link>(
    link: &Arc<L>,
    job: &Arc<Job>,
    watch: &Arc<Watch>,
) -> (Result<(), Broken>, bool) {
    let list: Arc<[u32]> = job.rest().into();
    let base = job.bytes_settled();
    let (blocks_in, blocks) = mpsc::channel(QUEUE);
    let (answers_in, answers) = mpsc::unbounded_channel();
    let (failed, reading) = oneshot::channel();
    let out = Blocks::new(link.message_size(), blocks_in);
    let thread = {
        let (job, list, watch) = (job.clone(), list.clone(), watch.clone());
        tokio::task::spawn_blocking(move || {
            let reader = Reader { job: &job, list: &list, answers, out, watch: &watch };
            if let Err(Closed) = reader.run() {
                let _ = failed.send(());
            }
        })
    };
    let mut ear =
        Ear { job, list: &list, watch, base, answers: answers_in, answered: 0, heard: false };
    let result = tokio::select! {
        result = ear.listen(&**link) => result,
        () = speak(&**link, blocks) => Err(Broken::Gone(link.why_ended().await)),
        Ok(()) = reading => Err(Broken::Gone(link.why_ended().await)),
    };
    let heard = ear.heard;
    // With the ends of its channels gone, the thread stops at the next block.
    drop(ear);
    let _ = thread.await;
    (result, heard)
}

/// Sends blocks; ends when the association does and nothing more can be heard.
async fn speak<L: Link>(link: &L, mut blocks: mpsc::Receiver<Bytes>) {
    let mut alive = Vec::new();
    encode(&Frame::Alive(0), &mut alive);
    let alive = Bytes::from(alive);
    let mut open = true;
    loop {
        let next = async {
            match open {
                true => blocks.recv().await,
                false => std::future::pending().await,
            }
        };
        let block = match timeout(ALIVE, next).await {
            Ok(Some(block)) => block,
            Ok(None) => {
                open = false;
                continue;
            }
            Err(_) => alive.clone(),
        };
        if send_block(link, block).await.is_err() {
            // What the peer said last may still be read.
            tokio::time::sleep(SILENCE).await;
            return;
        }
    }
}

/// Hears what the receiver says.
struct Ear<'a> {
    job: &'a Job,
    list: &'a [u32],
    watch: &'a Watch,
    /// Bytes of the entries that are not on the list any more.
    base: u64,
    answers: mpsc::UnboundedSender<Frame>,
    /// Entries of the list that the receiver has answered for.
    answered: usize,
    heard: bool,
}

impl Ear<'_> {
    async fn listen<L: Link>(&mut self, link: &L) -> Result<(), Broken> {
        let mut decoder = Decoder::default();
        let mut messages = Vec::new();
        loop {
            next_messages(link, &mut messages).await?;
            self.heard = true;
            for mut message in messages.drain(..) {
                while let Some(piece) = decoder.next(&mut message)? {
                    if self.take(piece)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether that was the last thing.
    fn take(&mut self, piece: Piece) -> Result<bool, Broken> {
        let frame = match piece {
            Piece::Frame(frame) => frame,
            Piece::Greeted => return Ok(false),
            Piece::Data(_) => return Err(Broken::Violation("data from the receiver")),
        };
        match frame {
            Frame::Fresh(count) | Frame::Made(count) => self.answer(frame, count as usize)?,
            Frame::Partial(..) | Frame::Exists(..) | Frame::Refused(_) => self.answer(frame, 1)?,
            Frame::Done(place) => {
                if self.job.done(self.index(place)?) {
                    self.watch.set_files_done(self.job.files_done());
                }
            }
            Frame::Failed(place, why) => {
                let index = self.index(place)?;
                let why = crate::files::names::shown(why.as_bytes());
                if self.job.fail(index, &why) {
                    let name = self.job.manifest.entries[index as usize].name.to_string();
                    self.watch.tell(News::Failed(name, why));
                }
            }
            Frame::Alive(bytes) => self.watch.set_placed(self.base.saturating_add(bytes)),
            Frame::Trouble(why) => return Err(Broken::Peer(why)),
            Frame::Finished(..) => {
                if self.job.files_pending() > 0 {
                    return Err(Broken::Violation("it has finished, but not with all files"));
                }
                self.watch.set_placed(self.job.bytes_settled());
                return Ok(true);
            }
            _ => return Err(Broken::Violation("a frame that only senders send")),
        }
        Ok(false)
    }

    fn index(&self, place: u32) -> Result<u32, Broken> {
        let index = self.list.get(place as usize).copied();
        index.ok_or(Broken::Violation("an entry that is not on the list"))
    }

    /// Passes an answer on; there are no more than entries, however many the receiver sends.
    fn answer(&mut self, frame: Frame, count: usize) -> Result<(), Broken> {
        let end = self.answered + count;
        if count == 0 || end > self.list.len() {
            return Err(Broken::Violation("more answers than entries"));
        }
        let places = &self.list[self.answered..end];
        let files = places
            .iter()
            .filter(|index| self.job.manifest.entries[**index as usize].kind != Kind::Folder);
        let fits = match frame {
            Frame::Made(_) => files.count() == 0,
            Frame::Refused(_) => true,
            _ => files.count() == count,
        };
        if !fits {
            return Err(Broken::Violation("an answer that does not fit its entry"));
        }
        self.answered = end;
        // If the thread has stopped, its end is noticed elsewhere.
        let _ = self.answers.send(frame);
        Ok(())
    }
}
