//! The seed tree: one root per run, one named child per component, no shared streams.

use crate::rng::{Rng, split_mix};

/// A node of the seed tree. Children are distinguished by name alone, so adding a component never changes the
/// random numbers of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(u64);

impl Seed {
    /// The root of a run. Its number is printed with every result.
    pub const fn root(number: u64) -> Self {
        Self(number)
    }

    /// The child called `name`, for example `link/lte/loss`. Slashes have no meaning: `a/b` and `a` then `b`
    /// are different children.
    #[must_use]
    pub fn child(self, name: &str) -> Self {
        // FNV-1a over the name, keyed with the parent, then mixed.
        let mut hash = split_mix(self.0) ^ 0xcbf2_9ce4_8422_2325;
        for byte in name.as_bytes() {
            hash = (hash ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(split_mix(hash ^ name.len() as u64))
    }

    /// The stream of this node.
    pub fn rng(self) -> Rng {
        Rng::from_seed(self.0)
    }

    /// The number behind the node.
    pub const fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_differ_by_name_and_by_parent() {
        let root = Seed::root(1);
        let names = ["link/lte/loss", "link/wifi/loss", "link/lte/jitter", "", "a", "b"];
        let mut numbers: Vec<_> = names.iter().map(|n| root.child(n).number()).collect();
        numbers.extend(names.iter().map(|n| Seed::root(2).child(n).number()));
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
    }

    #[test]
    fn the_tree_is_pinned_so_that_old_results_can_be_repeated() {
        assert_eq!(
            Seed::root(1).child("link/lte/loss").rng().next_u64(),
            3_032_070_649_169_393_326
        );
    }
}
