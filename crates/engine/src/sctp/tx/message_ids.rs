//! Message identifiers and fragment sequence numbers of I-DATA (RFC 8260, 2.1).

use ropewalk_base::{Serial32, StreamId};

use crate::sctp::chunk::{Data, DataFlags};
use crate::sctp::extensions::stream_reconfiguration::Streams;

/// The numbers of one stream.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    /// Message identifiers of the next ordered and the next unordered message. RFC 8260, 2.1: both start at 0, and
    /// ordered and unordered messages are numbered separately.
    next: [Serial32; 2],
    /// The message that is being fragmented, and the number of its next fragment. A stream has at most
    /// one.
    current: Serial32,
    fragment: u32,
}

/// The numbers of all streams.
#[derive(Clone, Debug)]
pub(super) struct MessageIds {
    streams: Vec<Numbers>,
    /// Whether datagrams are sent as DATA, because the form of packets has a shorter header for them.
    plain_datagrams: bool,
}

impl MessageIds {
    pub const fn new(plain_datagrams: bool) -> Self {
        Self { streams: Vec::new(), plain_datagrams }
    }

    /// Turns the next chunk of its stream into I-DATA.
    pub fn label(&mut self, chunk: &mut Data) {
        // An unordered unfragmented message is never reassembled, so its identifier is not needed.
        if self.plain_datagrams && chunk.is_datagram() {
            return;
        }
        let numbers = self.of(chunk.stream);
        if chunk.flags.has(DataFlags::BEGIN) {
            let next = &mut numbers.next[usize::from(chunk.flags.has(DataFlags::UNORDERED))];
            (numbers.current, numbers.fragment) = (*next, 0);
            *next = next.plus(1);
        }
        chunk.interleave(numbers.current, numbers.fragment);
        numbers.fragment += 1;
    }

    /// Turns an unordered message in one chunk, which may overtake a message that is being cut, into
    /// I-DATA.
    pub fn label_whole(&mut self, chunk: &mut Data) {
        if self.plain_datagrams && chunk.is_datagram() {
            return;
        }
        let next = &mut self.of(chunk.stream).next[1];
        chunk.interleave(*next, 0);
        *next = next.plus(1);
    }

    /// Numbers the messages of these streams from 0 on.
    pub fn restart(&mut self, streams: &Streams) {
        match streams {
            Streams::All => self.streams.clear(),
            Streams::Listed(each) => each.iter().for_each(|stream| {
                if let Some(numbers) = self.streams.get_mut(usize::from(stream.0)) {
                    *numbers = Numbers::default();
                }
            }),
        }
    }

    fn of(&mut self, stream: StreamId) -> &mut Numbers {
        let at = usize::from(stream.0);
        if self.streams.len() <= at {
            self.streams.resize(at + 1, Numbers::default());
        }
        &mut self.streams[at]
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Serial16;

    use super::*;

    fn labelled(ids: &mut MessageIds, stream: u16, flags: DataFlags) -> (u32, u32) {
        let mut chunk = Data { stream: StreamId(stream), flags, ppid: 9, ..Data::BLANK };
        ids.label(&mut chunk);
        (chunk.message().0, chunk.ppid)
    }

    #[test]
    fn ordered_and_unordered_messages_of_each_stream_have_numbers_of_their_own() {
        let mut ids = MessageIds::new(false);
        let (begin, end, whole) = (DataFlags::BEGIN, DataFlags::END, DataFlags::WHOLE);
        let middle = DataFlags::default();
        let unordered = whole.and(DataFlags::UNORDERED);
        for (stream, flags, expected) in [
            (0, begin, (0, 9)),
            (3, whole, (0, 9)),
            (0, middle, (0, 1)),
            (0, end, (0, 2)),
            (0, unordered, (0, 9)),
            (0, whole, (1, 9)),
            (3, whole, (1, 9)),
            (0, unordered, (1, 9)),
        ] {
            assert_eq!(labelled(&mut ids, stream, flags), expected, "{stream} {flags:?}");
        }
    }

    #[test]
    fn an_unordered_message_overtakes_an_unordered_one_that_is_being_cut_with_another_number() {
        let mut ids = MessageIds::new(false);
        let begin = DataFlags::BEGIN.and(DataFlags::UNORDERED);
        let end = DataFlags::END.and(DataFlags::UNORDERED);
        assert_eq!(labelled(&mut ids, 0, begin), (0, 9));
        let flags = DataFlags::WHOLE.and(DataFlags::UNORDERED);
        let mut fast = Data { flags, ssn: Serial16(7), ..Data::BLANK };
        ids.label_whole(&mut fast);
        assert_ne!(fast.message().0, 0, "the fragments that follow have the number of the first");
        assert_eq!(labelled(&mut ids, 0, end), (0, 1));
    }
}
