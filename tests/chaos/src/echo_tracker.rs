//! Tracks messages whose echo has not arrived.

use std::collections::{BTreeSet, VecDeque};

use crate::pattern::{Label, ORDERED_STREAMS};

/// The tracker of one association.
pub struct EchoTracker {
    connection: u64,
    next: u64,
    ordered: Vec<VecDeque<u64>>,
    unordered: BTreeSet<u64>,
    pub echoed: u64,
}

impl EchoTracker {
    pub fn new(connection: u64) -> Self {
        let ordered = vec![VecDeque::new(); usize::from(ORDERED_STREAMS)];
        Self { connection, next: 0, ordered, unordered: BTreeSet::new(), echoed: 0 }
    }

    pub fn outstanding(&self) -> usize {
        self.unordered.len() + self.ordered.iter().map(VecDeque::len).sum::<usize>()
    }

    /// The next message.
    pub fn send(&mut self) -> Label {
        let label = Label { connection: self.connection, number: self.next };
        self.next += 1;
        match label.stream() {
            (_, true) => drop(self.unordered.insert(label.number)),
            (stream, false) => self.ordered[usize::from(stream)].push_back(label.number),
        }
        label
    }

    /// Checks an echo.
    ///
    /// # Errors
    /// A description of the violation.
    pub fn take(&mut self, stream: u16, bytes: &[u8]) -> Result<(), String> {
        let label = Label::of(bytes).ok_or("a message that is too short")?;
        if label.connection != self.connection {
            return Err(format!("{label:?} belongs to another association"));
        }
        if *bytes != label.message()[..] {
            return Err(format!("{label:?} was changed on its way"));
        }
        if label.stream().0 != stream {
            return Err(format!("{label:?} came on stream {stream}"));
        }
        match label.stream() {
            (_, true) if self.unordered.remove(&label.number) => {}
            (_, true) => return Err(format!("{label:?} came twice")),
            (stream, false) => {
                let expected = self.ordered[usize::from(stream)].pop_front();
                if expected != Some(label.number) {
                    return Err(format!(
                        "{label:?} came on stream {stream} instead of {expected:?}"
                    ));
                }
            }
        }
        self.echoed += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_echo_is_accepted_once_unchanged_and_in_the_order_of_its_stream() {
        let mut echo_tracker = EchoTracker::new(7);
        let sent: Vec<Label> = (0..12).map(|_| echo_tracker.send()).collect();
        let mut take = |label: Label| echo_tracker.take(label.stream().0, &label.message());
        assert_eq!(take(sent[9]), Ok(()), "unordered ones overtake each other");
        assert!(take(sent[9]).expect_err("twice").contains("twice"));
        assert_eq!(take(sent[0]), Ok(()));
        assert!(take(sent[0]).is_err(), "twice on an ordered stream");
        assert!(take(sent[6]).is_err(), "out of order");
        assert!(take(Label { connection: 8, number: 2 }).is_err());
        let mut changed = sent[4].message().to_vec();
        changed[16] ^= 1;
        assert!(echo_tracker.take(4, &changed).is_err());
    }
}
