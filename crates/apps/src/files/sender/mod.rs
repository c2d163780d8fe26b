//! The sending end of a transfer.

mod attempt;
mod blocks;
mod job;
pub(super) mod reader;
pub(super) mod source;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_base::PeerText;
use tokio::time::{Instant, sleep};

use self::attempt::attempt;
pub use self::job::Job;
use super::error::{REFUSES, TransferError};
use super::link::Link;
use super::stream::end;
use super::watch::{TransferEvent, TransferStatus};

/// Pause between two attempts to connect to the receiver.
const PAUSE: Duration = Duration::from_millis(300);
/// Number of associations that the peer may end without sending any message before the sender gives up.
/// The pause doubles with each attempt.
const OTHER_SERVICE_ATTEMPTS: u32 = 5;
/// The probable reason in that case.
const OTHER_SERVICE: &str = "the peer accepts the association and then ends it: it may run another service, \
                             such as `ropewalk tunnel serve`, and not `ropewalk recv`";
/// The probable reason if an association is established and the receiver stays silent.
const BUSY: &str = "the receiver accepts the association but sends nothing: it may be busy with another \
                    transfer, or may not be `ropewalk recv`";

/// Why the receiver could not be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialError {
    /// Another attempt may succeed.
    Passing(PeerText),
    /// Another attempt would fail as well.
    Lasting(PeerText),
    /// The peer refused the handshake because a clock is wrong. Another attempt may succeed.
    Clock(PeerText),
}

/// Opens associations to the receiver.
pub trait Dial {
    /// The type of an association.
    type Link: Link;

    /// Opens an association, or gives up after a few seconds.
    fn dial(&self) -> impl Future<Output = Result<Self::Link, DialError>> + Send;
}

/// Why a job was not completed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// The receiver could not be reached.
    #[error("the receiver cannot be reached: {0}")]
    Unreachable(PeerText),
    /// The receiver refused the handshake because a clock is wrong.
    #[error("the receiver cannot be reached: {0}")]
    Clock(PeerText),
    /// The receiver was lost, and could not be reached again in time.
    #[error("connection to the receiver lost: {0}")]
    Lost(PeerText),
    /// The peer does not speak this protocol.
    #[error("{}", OTHER_SERVICE)]
    OtherService,
    /// One end has given up.
    #[error("{0}")]
    Transfer(TransferError),
}

impl SendError {
    /// Whether the receiver does not accept files of this sender, so that another attempt would fail as well.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Transfer(TransferError::Peer(why)) => why.unescaped().starts_with(REFUSES),
            Self::OtherService => true,
            _ => false,
        }
    }
}

/// Sends everything. Retries as long as the receiver's last sign of life is not older than `retry`.
///
/// # Errors
/// [`SendError`]. Failures of single files are not an error: the job lists them.
pub async fn send<D: Dial>(
    dial: &D,
    job: &Arc<Job>,
    watch: &Arc<TransferStatus>,
    retry: Duration,
) -> Result<(), SendError> {
    watch.set_total(job.manifest.files() as u64, job.manifest.bytes());
    let mut last_sign = Instant::now();
    let mut reached = false;
    let mut ended_early = 0;
    loop {
        let mut refuses_date = false;
        let why = match dial.dial().await {
            Ok(link) => {
                watch.tell(TransferEvent::Connected(link.peer()));
                let (result, has_received) = transfer_over(link, job, watch).await;
                if has_received {
                    (reached, last_sign, ended_early) = (true, Instant::now(), 0);
                }
                match result {
                    Ok(()) => return Ok(()),
                    Err(error) if !error.may_pass() => return Err(SendError::Transfer(error)),
                    Err(TransferError::Silent(_)) if !has_received => BUSY.into(),
                    Err(TransferError::AssociationEnded(_)) if !has_received => {
                        ended_early += 1;
                        if ended_early == OTHER_SERVICE_ATTEMPTS {
                            return Err(SendError::OtherService);
                        }
                        OTHER_SERVICE.into()
                    }
                    Err(error) => error.to_string().into(),
                }
            }
            Err(DialError::Lasting(why)) => return Err(SendError::Unreachable(why)),
            Err(DialError::Passing(why)) => why,
            Err(DialError::Clock(why)) => {
                refuses_date = true;
                why
            }
        };
        if last_sign.elapsed() >= retry {
            let error = match (refuses_date, reached) {
                (true, _) => SendError::Clock,
                (false, true) => SendError::Lost,
                (false, false) => SendError::Unreachable,
            };
            return Err(error(why));
        }
        watch.tell(TransferEvent::Lost(why));
        sleep(PAUSE * (1 << ended_early)).await;
    }
}

async fn transfer_over<L: Link>(
    link: L,
    job: &Arc<Job>,
    watch: &Arc<TransferStatus>,
) -> (Result<(), TransferError>, bool) {
    let link = Arc::new(link);
    watch.attach(link.clone());
    let (result, has_received) = attempt(&link, job, watch).await;
    end(&*link, result.is_ok()).await;
    watch.detach();
    (result, has_received)
}
