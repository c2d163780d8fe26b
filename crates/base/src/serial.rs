//! Serial numbers that wrap around (RFC 1982). They have no `<`; comparisons are explicit methods.

/// A 32-bit serial number, for example a TSN; compare with [`Serial32::is_before`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Serial32(pub u32);

/// A 16-bit serial number, for example a stream sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Serial16(pub u16);

impl Serial32 {
    /// The number `n` steps ahead.
    #[inline]
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// Signed number of steps from `origin` to this number, in the shorter direction.
    #[inline]
    pub const fn distance_from(self, origin: Self) -> i32 {
        self.0.wrapping_sub(origin.0) as i32
    }

    /// Whether this number is before `other`, in the shorter direction.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// The 64-bit number nearest to `near` with these low 32 bits. Unwrapped numbers start at `2^32` plus the
    /// first serial number, so that there is always room below.
    #[inline]
    pub const fn unwrap_near(self, near: u64) -> u64 {
        let step = self.distance_from(Self(near as u32)) as i64;
        near.wrapping_add_signed(step)
    }

    /// The serial number of an unwrapped number.
    #[inline]
    pub const fn wrap(unwrapped: u64) -> Self {
        Self(unwrapped as u32)
    }
}

impl Serial16 {
    /// The number `n` steps ahead.
    #[inline]
    #[must_use]
    pub const fn plus(self, n: u16) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// Signed number of steps from `origin` to this number, in the shorter direction.
    #[inline]
    pub const fn distance_from(self, origin: Self) -> i16 {
        self.0.wrapping_sub(origin.0) as i16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        assert!(Serial32(u32::MAX).is_before(Serial32(0)));
        assert!(!Serial32(0).is_before(Serial32(u32::MAX)));
        assert_eq!(Serial16(2).distance_from(Serial16(65_535)), 3);
    }

    #[test]
    fn unwrapping_follows_a_reference_across_the_wrap() {
        let near = (1u64 << 32) + u32::MAX as u64;
        assert_eq!(Serial32(3).unwrap_near(near), near + 4);
        assert_eq!(Serial32(u32::MAX - 5).unwrap_near(near + 10), near - 5);
        assert_eq!(Serial32::wrap(near + 4), Serial32(3));
    }
}
