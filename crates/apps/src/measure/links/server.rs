//! The server of a measurement of links: sends the trains that the client requests, and reports those that arrive.

use std::time::Duration;

use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::Association;

use super::super::CONTROL;
use super::message::{LOG_PART, Message, TRAIN_LIMIT, Train};
use super::pacer::{Log, Logs, Pacer};

/// Maximum number of bytes that the server sends to one client.
const BYTES_LIMIT: u64 = 2_000_000_000;
/// Maximum number of trains that are sent at the same time.
const PACERS_LIMIT: usize = 16;
/// Longest train, seconds.
const SECONDS_LIMIT: f64 = 60.0;
/// Time without a message or a probe after which the client is gone.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// Interval at which probes are sent.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// Serves a client that has opened a measurement with `bytes`, until the association ends. Returns how long it took,
/// seconds.
pub async fn serve(association: &Association, bytes: u64) -> f64 {
    let clock = association.clock();
    let began = clock.now();
    association.enable_probes();
    let granted = bytes.min(BYTES_LIMIT);
    if reply(association, &Message::Open { bytes: granted }).await {
        let mut server = Server { budget: granted, ..Server::default() };
        server.run(association, clock).await;
    }
    association.abort();
    clock.now().since(began).as_secs_f64()
}

async fn reply(association: &Association, message: &Message) -> bool {
    association.send(CONTROL, 0, message.encode()).await.is_ok()
}

#[derive(Debug, Default)]
struct Server {
    /// Bytes that the server may still send.
    budget: u64,
    pacers: Vec<Pacer>,
    logs: Logs,
}

impl Server {
    async fn run(&mut self, association: &Association, clock: Clock) {
        let mut probes = Vec::new();
        let mut heard = clock.now();
        loop {
            let wait = if self.pacers.is_empty() { 20 * TICK } else { TICK };
            tokio::select! {
                message = association.receive() => {
                    let Some(message) = message else { return };
                    heard = clock.now();
                    let valid = message.stream == CONTROL;
                    match Message::decode(&message.bytes).filter(|_| valid) {
                        Some(Message::Train(train)) => self.start(train, association, clock).await,
                        Some(Message::Sent { id, count }) => self.logs.end(id, count, clock.now()),
                        Some(Message::Open { .. } | Message::Log { .. }) | None => return,
                    }
                }
                () = association.receive_probes(&mut probes) => {
                    if probes.is_empty() {
                        return;
                    }
                    heard = clock.now();
                    probes.drain(..).for_each(|probe| self.logs.push(&probe));
                }
                () = tokio::time::sleep(wait) => {}
            }
            if !self.advance(association, clock).await
                || clock.now().since(heard).as_nanos() > IDLE_LIMIT.as_nanos() as u64
            {
                return;
            }
        }
    }

    /// Starts a train, if the limits permit it; otherwise none of its probes is sent.
    async fn start(&mut self, train: Train, association: &Association, clock: Clock) {
        let permitted = train.count <= TRAIN_LIMIT
            && train.seconds() <= SECONDS_LIMIT
            && train.total_bytes() <= self.budget
            && self.pacers.len() < PACERS_LIMIT;
        if permitted {
            self.budget -= train.total_bytes();
            self.pacers.push(Pacer::new(train, clock.now()));
        } else {
            reply(association, &Message::Sent { id: train.id, count: 0 }).await;
        }
    }

    /// Sends the probes that are due, and reports trains that are over. Returns false once the client is gone.
    async fn advance(&mut self, association: &Association, clock: Clock) -> bool {
        for pacer in &mut self.pacers {
            pacer.advance(association, clock.now());
        }
        while let Some(at) = self.pacers.iter().position(Pacer::is_over) {
            let pacer = self.pacers.swap_remove(at);
            let count = pacer.sent_ns().len() as u32;
            if !reply(association, &Message::Sent { id: pacer.id(), count }).await {
                return false;
            }
        }
        while let Some((id, log)) = self.logs.take_complete(clock.now()) {
            if !send_log(association, id, &log).await {
                return false;
            }
        }
        true
    }
}

async fn send_log(association: &Association, id: u32, log: &Log) -> bool {
    let mut parts = log.arrivals().chunks(LOG_PART).peekable();
    loop {
        let arrivals = parts.next().unwrap_or_default().to_vec();
        let last = parts.peek().is_none();
        if !reply(association, &Message::Log { id, last, arrivals }).await {
            return false;
        }
        if last {
            return true;
        }
    }
}
