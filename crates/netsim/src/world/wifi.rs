//! Wi-Fi channels of a world.

use super::World;
use crate::host::Host;
use crate::ids::{ChannelId, LinkId, StationId};
use crate::wifi::{RadioConfig, RadioError, StationConfig, StationStats};

impl<P: Clone, H: Host<P>> World<P, H> {
    /// Adds an empty 802.11 channel.
    pub fn add_channel(&mut self) -> ChannelId {
        self.network.add_channel()
    }

    /// Adds a station to a channel. Its randomness is that of `station/<name>` in the seed tree.
    ///
    /// # Panics
    /// If the channel is not in the world or the name is taken.
    pub fn add_station(
        &mut self,
        channel: ChannelId,
        name: &str,
        config: StationConfig,
    ) -> StationId {
        let name = self.claim("station", name);
        let seed = self.seed.child(&name);
        let station = self.network.channel_mut(channel).add_station(config, seed);
        StationId { channel, station }
    }

    /// Adds a link from a station to another one; its frames contend on the channel. Routes use it like any
    /// other link. All links of a channel must be added before the first packet is offered.
    ///
    /// # Errors
    /// If a value of `config` is invalid.
    ///
    /// # Panics
    /// If the station is not in the world, or something was sent on its channel already.
    pub fn add_radio(
        &mut self,
        station: StationId,
        config: RadioConfig,
    ) -> Result<LinkId, RadioError> {
        config.check()?;
        let radio = self.network.channel_mut(station.channel).add_radio(station.station, config);
        Ok(self.network.add_radio(station.channel, radio))
    }

    /// Counters of a station's MAC.
    ///
    /// # Panics
    /// If the station is not in the world.
    pub fn station_stats(&self, id: StationId) -> StationStats {
        self.network.channel(id.channel).station_stats(id.station)
    }
}
