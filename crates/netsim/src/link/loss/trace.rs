//! Loss by a list, to replay measurements and for tests.

use std::sync::Arc;

use super::LossError;

/// A list with one entry per packet, repeated indefinitely.
#[derive(Clone, Debug, PartialEq)]
pub struct LossTrace {
    fates: Arc<[bool]>,
    next: usize,
    repeats: bool,
}

impl LossTrace {
    /// A trace from a list: true means lost.
    ///
    /// # Errors
    /// If the list is empty.
    pub fn new(fates: &[bool]) -> Result<Self, LossError> {
        if fates.is_empty() {
            return Err(LossError::Empty);
        }
        Ok(Self { fates: fates.into(), next: 0, repeats: true })
    }

    /// Loses the packets with the given indices, counted from 0, of every `length` packets.
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

    /// Loses the packets with the given indices of the first `length` packets, and no later ones.
    ///
    /// # Errors
    /// As [`Self::from_indices`].
    pub fn once(indices: &[usize], length: usize) -> Result<Self, LossError> {
        Ok(Self { repeats: false, ..Self::from_indices(indices, length)? })
    }

    pub(super) fn lost(&mut self) -> bool {
        let Some(fate) = self.fates.get(self.next).copied() else { return false };
        self.next += 1;
        if self.repeats {
            self.next %= self.fates.len();
        }
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
    fn a_list_for_once_is_followed_by_no_loss() {
        let mut trace = LossTrace::once(&[1], 2).expect("a trace");
        let lost: Vec<usize> = (0..10).filter(|_| trace.lost()).collect();
        assert_eq!(lost, [1]);
    }

    #[test]
    fn an_index_beyond_the_list_is_refused() {
        let refused = LossTrace::from_indices(&[4], 4);
        assert_eq!(refused, Err(LossError::Index { index: 4, length: 4 }));
        assert_eq!(LossTrace::new(&[]), Err(LossError::Empty));
    }
}
