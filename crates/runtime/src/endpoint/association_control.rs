//! What the user of an association may ask for and change (RFC 9260, 11.1.9 to 11.1.15).

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Time};
use ropewalk_engine::sctp::association::{self, ParameterError, Parameters};

use super::association::Association;
use super::peer::Peer;

/// A message of which the peer has not acknowledged the end, or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// On which stream it was sent.
    pub stream: u16,
    /// What it was said to be (payload protocol identifier).
    pub ppid: u32,
    /// Whether it was sent unordered.
    pub unordered: bool,
    /// Its bytes, but for a beginning that the peer has acknowledged.
    pub bytes: Bytes,
    /// Whether `bytes` are all of it.
    pub whole: bool,
    /// How many of `bytes` the peer has reported all the same: they have arrived before others that did not.
    pub reported: usize,
}

impl From<association::Undelivered> for Undelivered {
    fn from(message: association::Undelivered) -> Self {
        Self {
            stream: message.stream.0,
            ppid: message.ppid,
            unordered: message.unordered,
            bytes: message.payload.into_bytes(),
            whole: message.from_beginning,
            reported: message.reported as usize,
        }
    }
}

impl Association {
    /// Works on a path, if there is such a one.
    fn on_path<T>(
        &self,
        path: usize,
        work: impl FnOnce(&mut Peer, Time, PathId) -> T,
    ) -> Option<T> {
        self.with(|peer, now| {
            let known = path < peer.machine.path_count();
            known.then(|| work(peer, now, PathId::from_index(path)))
        })?
    }

    /// Whether HEARTBEATs go out on a path while it is idle, and at what interval; none: the association's. Without them an
    /// idle path is not found to have failed, nor one that has failed to have returned, and an association that is
    /// idle on all its paths does not end when its peer goes. An address that has yet to prove itself, a path that
    /// is doubted and one whose address changes are asked all the same. Whether there is such a path.
    pub fn set_heartbeats(&self, path: usize, enabled: bool, interval: Option<Duration>) -> bool {
        let set = self.on_path(path, |peer, now, path| {
            peer.machine.set_heartbeats(now, path, enabled, interval);
            peer.liveness.ask(now, &peer.machine);
        });
        set.is_some()
    }

    /// Sends a HEARTBEAT on a path now. Its answer, or its want, shows in the path's round trip and status. Whether it
    /// could be sent: the association is up and does not shut down, and the path has proved itself before.
    pub fn request_heartbeat(&self, path: usize) -> bool {
        let asked = self.on_path(path, |peer, now, path| peer.machine.request_heartbeat(now, path));
        asked.unwrap_or(false)
    }

    /// How many errors in a row a path may have before it counts as failed (Path.Max.Retrans); none: as many as the
    /// association's paths have. Whether there is such a path.
    pub fn set_path_max_retrans(&self, path: usize, most: Option<u32>) -> bool {
        let set = self.on_path(path, |peer, _, path| peer.machine.set_path_max_retrans(path, most));
        set.is_some()
    }

    /// The protocol parameters; none once it is gone.
    pub fn parameters(&self) -> Option<Parameters> {
        self.look(|peer, _| peer.machine.parameters())
    }

    /// Takes other protocol parameters from now on.
    ///
    /// # Errors
    /// [`ParameterError`]; nothing is changed then.
    pub fn set_parameters(&self, parameters: Parameters) -> Result<(), ParameterError> {
        let set = self.with(|peer, now| {
            peer.machine.set_parameters(now, parameters)?;
            peer.liveness.ask(now, &peer.machine);
            Ok(())
        });
        set.unwrap_or(Ok(()))
    }

    /// Messages of which nothing has ever left, oldest first: to be asked for once the association has ended.
    pub fn unsent(&self) -> Vec<Undelivered> {
        self.look(|peer, _| peer.machine.unsent().map(Into::into).collect()).unwrap_or_default()
    }

    /// Messages that have left, as a whole or in part, and of which the peer has not acknowledged the end, oldest first:
    /// to be asked for once the association has ended. The peer may or may not have got them.
    pub fn unacknowledged(&self) -> Vec<Undelivered> {
        let all = |peer: &Peer| peer.machine.unacknowledged().map(Into::into).collect();
        self.look(|peer, _| all(peer)).unwrap_or_default()
    }
}
