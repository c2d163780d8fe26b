//! The ECN field of the IP header.

/// A codepoint of the ECN field (RFC 3168, 5; RFC 9331, 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not support ECN: a queue can only drop the packet.
    #[default]
    NotEct = 0,
    /// The sender's congestion control is scalable: it expects frequent marks (RFC 9331).
    Ect1 = 1,
    /// The sender responds to a mark as to a loss (RFC 3168).
    Ect0 = 2,
    /// Congestion experienced: a queue has marked the packet.
    Ce = 3,
}

impl Ecn {
    /// The codepoint in the two low bits of an IPv4 TOS or IPv6 traffic class.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            1 => Self::Ect1,
            2 => Self::Ect0,
            3 => Self::Ce,
            _ => Self::NotEct,
        }
    }

    /// Whether a queue may mark the packet instead of dropping it.
    #[inline]
    pub const fn may_be_marked(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// Whether a queue has marked the packet.
    #[inline]
    pub const fn is_marked(self) -> bool {
        matches!(self, Self::Ce)
    }

    /// Whether a dual queue treats the packet as low-latency traffic (RFC 9331, 5.1). The sender of a marked packet is
    /// unknown.
    #[inline]
    pub const fn is_low_latency(self) -> bool {
        matches!(self, Self::Ect1 | Self::Ce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_the_rfc() {
        let table = [
            (0b00, Ecn::NotEct, [false, false, false]),
            (0b01, Ecn::Ect1, [true, false, true]),
            (0b10, Ecn::Ect0, [true, false, false]),
            (0b11, Ecn::Ce, [true, true, true]),
        ];
        for (bits, ecn, [may_be_marked, is_marked, is_low_latency]) in table {
            assert_eq!(Ecn::from_bits(0xb8 | bits), ecn);
            assert_eq!(ecn as u8, bits);
            assert_eq!(ecn.may_be_marked(), may_be_marked);
            assert_eq!(ecn.is_marked(), is_marked);
            assert_eq!(ecn.is_low_latency(), is_low_latency);
        }
    }
}
