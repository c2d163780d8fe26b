//! The meters of all clients of a hub, and their file.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use ropewalk_base::Time;
use ropewalk_runtime::clock::{Clock, unix_time};
use ropewalk_runtime::seal::PublicKey;
use tokio::sync::Notify;

use super::error::TunnelError;
use super::quota::{Meter, Month, Volume};
use super::store::VolumeFile;
use crate::access::{ClientLimits, TunnelPolicy};
use crate::observe::ClientVolume;

/// Maximum number of clients whose volumes the status names: those that have used the largest part of theirs.
const SHOWN: usize = 16;

/// One meter for each key that has been connected or is in the file.
#[derive(Debug)]
pub(super) struct Meters {
    clock: Clock,
    file: VolumeFile,
    by_key: Mutex<BTreeMap<PublicKey, Arc<Meter>>>,
    /// Whether a volume has changed since the last store, and a notification of that.
    is_changed: AtomicBool,
    changed: Notify,
}

impl Meters {
    /// Reads the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open(file: &Path) -> Result<Self, TunnelError> {
        let clock = Clock::start();
        let (file, volumes) = VolumeFile::open(file)?;
        let meter = |(key, volume): (PublicKey, Volume)| {
            (key, Arc::new(Meter::new(ClientLimits::default(), volume, clock.now())))
        };
        let by_key = Mutex::new(volumes.into_iter().map(meter).collect());
        let (is_changed, changed) = Default::default();
        Ok(Self { clock, file, by_key, is_changed, changed })
    }

    /// The time for [`Meter::admit`].
    pub(super) fn now(&self) -> (Time, Month) {
        (self.clock.now(), Month::of_unix(unix_time().as_secs()))
    }

    /// The meter of a client, which uses these limits from now on.
    pub(super) fn of(&self, key: PublicKey, limits: ClientLimits) -> Arc<Meter> {
        let now = self.clock.now();
        let fresh = || Arc::new(Meter::new(limits, Volume::default(), now));
        let meter = self.by_key.lock().entry(key).or_insert_with(fresh).clone();
        meter.set_limits(limits, now);
        meter
    }

    /// Applies the limits of the current configuration.
    pub(super) fn refresh(&self, policy_of: &(dyn Fn(&PublicKey) -> TunnelPolicy + Send + Sync)) {
        let now = self.clock.now();
        for (key, meter) in &*self.by_key.lock() {
            meter.set_limits(policy_of(key).limits, now);
        }
    }

    /// Notes that a meter has counted something.
    pub(super) fn note_change(&self) {
        if !self.is_changed.load(Ordering::Relaxed)
            && !self.is_changed.swap(true, Ordering::Relaxed)
        {
            self.changed.notify_one();
        }
    }

    /// Waits until a meter has counted something since the last store.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Stores the volumes, if one has changed. Those of earlier months are omitted.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn store(&self) -> io::Result<()> {
        let (_, month) = self.now();
        self.is_changed.store(false, Ordering::Relaxed);
        let mut changed = false;
        let volumes: Vec<(PublicKey, Volume)> = {
            let all = self.by_key.lock();
            let read = all.iter().map(|(key, meter)| {
                changed |= meter.take_changed();
                (*key, meter.read().1)
            });
            read.filter(|(_, volume)| volume.month >= month && volume.bytes > 0).collect()
        };
        if changed { self.file.write(&volumes) } else { Ok(()) }
    }

    /// The clients that have used the largest part of their volumes.
    pub(super) fn figures(&self) -> Vec<ClientVolume> {
        let (_, month) = self.now();
        let mut used: Vec<ClientVolume> = Vec::new();
        for (key, meter) in &*self.by_key.lock() {
            let (limits, volume) = meter.read();
            let used_bytes = if volume.month >= month { volume.bytes } else { 0 };
            if let Some(quota_bytes) = limits.quota_bytes {
                used.push(ClientVolume { client: key.to_string(), used_bytes, quota_bytes });
            }
        }
        let part = |one: &ClientVolume| one.used_bytes as f64 / one.quota_bytes.max(1) as f64;
        used.sort_by(|a, b| part(b).total_cmp(&part(a)));
        used.truncate(SHOWN);
        used
    }
}
