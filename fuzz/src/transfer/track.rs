//! What a sender says, as the receiver understands it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use ropewalk_apps::files::wire::{Decoder, Frame, WireItem};

/// A BLAKE3 hash.
pub type Digest = [u8; 32];

/// What was said of files, by their names.
#[derive(Default)]
pub struct Claims {
    /// Hashes that files were said to have when their bytes had been sent.
    pub sent: BTreeMap<Vec<u8>, BTreeSet<Digest>>,
    /// Files that were sent whole or compared.
    pub offered: BTreeSet<Vec<u8>>,
}

/// Reads along on one association.
#[derive(Default)]
pub struct Track {
    decoder: Decoder,
    makes_no_sense: bool,
    names: Vec<Vec<u8>>,
    current: Option<Vec<u8>>,
}

impl Track {
    pub fn read(&mut self, bytes: &[u8], claims: &mut Claims) {
        let mut bytes = Bytes::copy_from_slice(bytes);
        while !self.makes_no_sense {
            match self.decoder.next(&mut bytes) {
                Ok(Some(WireItem::Frame(frame))) => self.take(frame, claims),
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(_) => self.makes_no_sense = true,
            }
        }
    }

    fn name(&self, place: u32) -> Option<Vec<u8>> {
        self.names.get(place as usize).cloned()
    }

    fn take(&mut self, frame: Frame, claims: &mut Claims) {
        match frame {
            Frame::Entries(entries) => {
                self.names.extend(entries.iter().map(|entry| entry.name.bytes().to_vec()));
            }
            Frame::Begin(place, _) => self.current = self.name(place),
            Frame::End(hash) => {
                let Some(name) = self.current.take() else { return };
                claims.offered.insert(name.clone());
                claims.sent.entry(name).or_default().insert(hash);
            }
            Frame::Check(place, _) => claims.offered.extend(self.name(place)),
            _ => {}
        }
    }
}
