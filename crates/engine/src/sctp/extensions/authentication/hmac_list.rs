//! The algorithms that an end offers for the codes of authenticated chunks (RFC 4895, 3.3).

use super::HmacId;

/// Algorithms, the preferred one first. RFC 4895, 3.3: SHA-1 is always among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HmacList {
    first: HmacId,
    second: Option<HmacId>,
}

/// Why a list of algorithms cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HmacListError {
    /// This algorithm is not supported.
    #[error("the HMAC algorithm {0} is not supported")]
    Unsupported(u16),
    /// SHA-1 is missing.
    #[error("SHA-1 (1) must be among the HMAC algorithms")]
    NoSha1,
}

impl Default for HmacList {
    /// SHA-256, then SHA-1.
    fn default() -> Self {
        Self { first: HmacId::Sha256, second: Some(HmacId::Sha1) }
    }
}

impl HmacList {
    /// Creates a list of these identifiers without repetitions.
    ///
    /// # Errors
    /// [`HmacListError`].
    pub fn of(numbers: &[u16]) -> Result<Self, HmacListError> {
        let mut known = Vec::new();
        for number in numbers {
            let id = HmacId::from_number(*number).ok_or(HmacListError::Unsupported(*number))?;
            if !known.contains(&id) {
                known.push(id);
            }
        }
        match known[..] {
            [first] if first == HmacId::Sha1 => Ok(Self { first, second: None }),
            [first, second] => Ok(Self { first, second: Some(second) }),
            _ => Err(HmacListError::NoSha1),
        }
    }

    /// The algorithms in their order.
    pub fn iter(self) -> impl Iterator<Item = HmacId> {
        core::iter::once(self.first).chain(self.second)
    }

    /// Whether the algorithm is among them.
    pub fn has(self, id: HmacId) -> bool {
        self.iter().any(|one| one == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_algorithms_has_sha_1_and_only_what_is_supported() {
        let numbers = |list: HmacList| list.iter().map(HmacId::number).collect::<Vec<_>>();
        for (given, expected) in [
            (&[3, 1][..], Ok(vec![3, 1])),
            (&[1, 3], Ok(vec![1, 3])),
            (&[1], Ok(vec![1])),
            (&[1, 1, 3, 1], Ok(vec![1, 3])),
            (&[], Err(HmacListError::NoSha1)),
            (&[3, 3], Err(HmacListError::NoSha1)),
            (&[1, 2], Err(HmacListError::Unsupported(2))),
        ] {
            assert_eq!(HmacList::of(given).map(numbers), expected, "{given:?}");
        }
        assert_eq!(numbers(HmacList::default()), [3, 1]);
    }
}
