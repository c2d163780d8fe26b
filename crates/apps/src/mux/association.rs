//! Uses an association of the runtime to transport messages.

use std::sync::Arc;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Association, Part};

use super::transport::{MessageTransport, TransportEnded, TransportMessage};

impl MessageTransport for Arc<Association> {
    async fn send(&self, stream: u16, ppid: u32, bytes: Bytes) -> Result<(), TransportEnded> {
        let sent = Association::send(self, stream, ppid, bytes).await;
        sent.map_err(|error| TransportEnded(error.to_string().into()))
    }

    async fn receive(&self, into: &mut Vec<TransportMessage>) -> Result<(), TransportEnded> {
        let mut received = Vec::new();
        self.receive_all(&mut received).await;
        if received.is_empty() {
            let reason = self.ended().await;
            let words = reason.map_or("it has ended".to_owned(), |reason| reason.to_string());
            return Err(TransportEnded(words.into()));
        }
        // A message longer than the receive buffer is delivered in parts. Our own messages are never that long. A
        // part counts as a complete message, which is then invalid.
        let whole = |part: Part| matches!(part, Part::Whole);
        into.extend(received.into_iter().map(|m| TransportMessage {
            stream: m.stream,
            ppid: if whole(m.part) { m.ppid } else { 0 },
            bytes: m.bytes,
        }));
        Ok(())
    }

    fn streams(&self) -> u16 {
        Association::streams(self)
    }

    fn message_size(&self) -> usize {
        Association::message_size(self)
    }

    fn abort(&self) {
        Association::abort(self);
    }
}
