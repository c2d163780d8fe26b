//! Identifiers of the parts of a world: their positions in the order of addition.

/// A host of a world, in order of addition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u32);

/// Identifies where a packet enters a host, for example its interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Port(pub u32);

/// A link of a world, in order of addition; radio links have separate numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

impl LinkId {
    /// Bit that marks radio links, so that no look-up is needed to distinguish plain links.
    const RADIO: u32 = 1 << 31;

    /// The radio link at this position among all of them.
    pub(crate) const fn radio(position: u32) -> Self {
        Self(position | Self::RADIO)
    }

    /// Position among the radio links, if the link is one.
    pub(crate) const fn as_radio(self) -> Option<u32> {
        if self.0 & Self::RADIO == 0 { None } else { Some(self.0 & !Self::RADIO) }
    }
}

/// A route of a world, in order of addition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RouteId(pub u32);

/// A source of cross traffic in a world, in order of addition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CrossId(pub u32);

/// A channel of a world, in order of addition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub u32);

/// A station of a world's channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StationId {
    /// Channel of the station.
    pub channel: ChannelId,
    /// Position on the channel.
    pub station: u32,
}

/// The position of the next part as a number, where `length` parts exist.
pub(crate) fn index(length: usize) -> u32 {
    u32::try_from(length).expect("fewer than 2^32 of a kind")
}
