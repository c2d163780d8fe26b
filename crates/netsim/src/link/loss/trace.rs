//! Loss by a list, for repeating what was measured and for tests.

use std::sync::Arc;

use super::LossError;

/// A list of fates, one per packet, repeated for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct LossTrace {
    fates: Arc<[bool]>,
    next: usize,
}

impl LossTrace {
    /// Packet by packet: true for lost.
    ///
    /// # Errors
    /// If the list is empty.
    pub fn new(fates: &[bool]) -> Result<Self, LossError> {
        if fates.is_empty() {
            return Err(LossError::Empty);
        }
        Ok(Self { fates: fates.into(), next: 0 })
    }

    /// Of every `length` packets, those with the given indices, counted from 0, are lost.
    ///
    /// # Errors
    /// If `length` is zero or not above an index.
    pub fn from_indices(indices: &[usize], length: usize) -> Result<Self, LossError> {
        let mut fates = vec![false; length];
        for index in indices {
            match fates.get_mut(*index) {
                Some(fate) => *fate = true,
                None => return Err(LossError::Index { index: *index, length }),
            }
        }
        Self::new(&fates)
    }

    pub(super) fn lost(&mut self) -> bool {
        let fate = self.fates[self.next];
        self.next = (self.next + 1) % self.fates.len();
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_repeated() {
        let mut trace = LossTrace::from_indices(&[1, 2], 4).expect("a trace");
        let lost: Vec<usize> = (0..10).filter(|_| trace.lost()).collect();
        assert_eq!(lost, [1, 2, 5, 6, 9]);
    }

    #[test]
    fn an_index_beyond_the_list_is_refused() {
        let refused = LossTrace::from_indices(&[4], 4);
        assert_eq!(refused, Err(LossError::Index { index: 4, length: 4 }));
        assert_eq!(LossTrace::new(&[]), Err(LossError::Empty));
    }
}
