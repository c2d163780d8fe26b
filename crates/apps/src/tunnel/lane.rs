//! A lane: the packets of one association in both directions, the same at the client and at the hub.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Association, Received};
use tokio::sync::mpsc;

use super::control::{PACKET_PPID, PACKET_STREAM};
use super::counters::{Counters, Refusal};
use super::path_mtu::LEAST_MTU;

/// Packets that wait for the paths.
const QUEUE: usize = 256;
/// Packets that are taken from the queue at once.
const BATCH: usize = 64;
/// Largest MTU of a tunnel, bytes.
const MOST_MTU: u32 = 9000;

/// Takes packets that have arrived. They are not checked yet.
pub trait PacketSink: Send {
    /// Takes them.
    fn deliver(&mut self, packets: Vec<Bytes>) -> impl Future<Output = ()> + Send;
}

/// Gives packets to a lane.
#[derive(Clone, Debug)]
pub struct LaneInlet {
    packets: mpsc::Sender<Bytes>,
    mtu: Arc<AtomicU32>,
    counters: Arc<Counters>,
}

impl PartialEq for LaneInlet {
    fn eq(&self, other: &Self) -> bool {
        self.packets.same_channel(&other.packets)
    }
}

impl LaneInlet {
    /// Queues a packet that has been checked. It is dropped if the queue is full.
    pub fn push(&self, packet: Bytes) {
        if self.packets.try_send(packet).is_err() {
            self.counters.on_refused(Refusal::QueueFull);
        }
    }

    /// Largest inner packet that fits into one packet of every path, bytes; at least the smallest MTU of IPv6.
    pub fn mtu(&self) -> u32 {
        self.mtu.load(Ordering::Relaxed)
    }
}

/// The packets of one association.
#[derive(Debug)]
pub struct Lane {
    association: Association,
    packets: mpsc::Receiver<Bytes>,
    mtu: Arc<AtomicU32>,
    counters: Arc<Counters>,
}

impl Lane {
    /// A lane over an association, and its inlet.
    pub fn new(association: Association, counters: Arc<Counters>) -> (Self, LaneInlet) {
        let (sender, packets) = mpsc::channel(QUEUE);
        let mtu = Arc::new(AtomicU32::new(mtu_of(&association)));
        let inlet = LaneInlet { packets: sender, mtu: mtu.clone(), counters: counters.clone() };
        (Self { association, packets, mtu, counters }, inlet)
    }

    /// Carries packets until the association ends.
    pub async fn run(&mut self, sink: &mut impl PacketSink) {
        let Self { association, packets, mtu, counters } = self;
        let association = &*association;
        let up = async {
            let mut batch = Vec::with_capacity(BATCH);
            while packets.recv_many(&mut batch, BATCH).await > 0 {
                mtu.store(mtu_of(association), Ordering::Relaxed);
                batch.iter().for_each(|packet| counters.on_sent(packet.len()));
                let mut messages = batch.drain(..).map(|packet| (PACKET_PPID, packet));
                if association.send_all_unordered(PACKET_STREAM, &mut messages).await.is_err() {
                    return;
                }
            }
        };
        let down = async {
            let mut arrived = Vec::new();
            loop {
                association.receive_all(&mut arrived).await;
                if arrived.is_empty() {
                    return;
                }
                sink.deliver(arrived.drain(..).filter_map(packet).collect()).await;
            }
        };
        tokio::select! {
            () = up => {}
            () = down => {}
        }
    }
}

/// The packet in a message. None for other messages.
fn packet(message: Received) -> Option<Bytes> {
    (message.stream == PACKET_STREAM && message.ppid == PACKET_PPID).then_some(message.bytes)
}

/// The MTU of a tunnel over this association.
fn mtu_of(association: &Association) -> u32 {
    let size = u32::try_from(association.message_size()).unwrap_or(u32::MAX);
    size.clamp(LEAST_MTU, MOST_MTU)
}
