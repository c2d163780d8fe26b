//! The client of measurements.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::{Association, CloseReason, SendError, Stats};

use super::meter::Meter;
use super::protocol::{Direction, Figures, MeasurementPlan};
use super::server::send;
use super::{BULK, CONTROL, ECHO, RESULT_TIMEOUT};

/// Interval of latency probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of round-trip times that are kept: those of a day. A server that sends more answers than probes is
/// not trusted.
const LATENCY_LIMIT: usize = 1 << 20;

/// Results of a measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Figures of the receiver of bulk data.
    pub figures: Figures,
    /// Statistics of this end, at the end.
    pub stats: Option<Stats>,
    /// Round-trip times of the latency probes during the bulk transfer, seconds, in the order of their answers.
    pub latencies_s: Vec<f64>,
    /// How long bulk data of this end takes to its delivery in order. `None` if the server sends it.
    pub delivery: Option<DeliveryDelay>,
}

/// Delays from the first transmission of bulk data to its delivery in order, seconds, as the sender measures them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeliveryDelay {
    /// Median.
    pub p50_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
}

impl DeliveryDelay {
    /// The delays of an association that measures them. `None` if nothing was acknowledged.
    fn of(association: &Association) -> Option<Self> {
        let delays = association.delivery_delays()?;
        if delays.quantile(1.0) == 0 {
            return None;
        }
        let [p50_s, p99_s] = [0.5, 0.99].map(|share| delays.quantile(share) as f64 * 1e-9);
        Some(Self { p50_s, p99_s })
    }
}

/// Why a measurement failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MeasureError {
    /// The server does not support this version.
    Version,
    /// The association ended.
    Ended(Option<CloseReason>),
    /// The plan could not be sent.
    Send(SendError),
    /// The server sent no result in time.
    Overdue,
    /// Measuring links requires sealed datagrams, and the association is not encrypted.
    NotSealed,
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version => {
                f.write_str("the server rejected the request: it has a different version")
            }
            Self::NotSealed => f.write_str("links are measured over an encrypted association only"),
            Self::Ended(None) => f.write_str("the server has disconnected"),
            Self::Ended(Some(reason)) => write!(f, "connection to the server lost: {reason}"),
            Self::Send(error) => error.fmt(f),
            Self::Overdue => {
                write!(
                    f,
                    "the server sent no result within {} s after the end",
                    RESULT_TIMEOUT.as_secs()
                )
            }
        }
    }
}

/// Performs the measurement, and ends the association.
///
/// # Errors
/// [`MeasureError`].
pub async fn run(
    association: &Association,
    plan: MeasurementPlan,
) -> Result<Measurement, MeasureError> {
    association.send(CONTROL, 0, plan.encode()).await.map_err(MeasureError::Send)?;
    let mut latencies_s = Vec::new();
    let clock = Clock::start();
    let work = async {
        match plan.direction {
            Direction::Up => upload(association, plan, clock, &mut latencies_s).await,
            Direction::Down => download(association, plan, clock, &mut latencies_s).await,
        }
    };
    let figures = tokio::select! {
        found = work => found,
        () = send_probes(association, clock) => Err(ended(association).await),
        () = begin_delays(association, plan) => Err(ended(association).await),
        () = tokio::time::sleep(plan.time() + RESULT_TIMEOUT) => {
            association.abort();
            Err(MeasureError::Overdue)
        }
    }?;
    let stats = association.stats();
    let delivery = DeliveryDelay::of(association);
    association.abort();
    Ok(Measurement { figures, stats, latencies_s, delivery })
}

/// Measures delivery delays after the warm-up, which starts about now. Returns once the association has ended.
async fn begin_delays(association: &Association, plan: MeasurementPlan) {
    if plan.direction == Direction::Up {
        tokio::time::sleep(Duration::from_secs_f64(plan.warmup_s)).await;
        association.measure_delivery_delays();
    }
    association.ended().await;
}

async fn upload(
    association: &Association,
    plan: MeasurementPlan,
    clock: Clock,
    latencies_s: &mut Vec<f64>,
) -> Result<Figures, MeasureError> {
    let answers = async {
        while let Some(message) = association.receive().await {
            match message.stream {
                CONTROL => return Figures::decode(&message.bytes).ok_or(MeasureError::Version),
                ECHO => record_answer(latencies_s, clock, &message.bytes),
                _ => {}
            }
        }
        Err(ended(association).await)
    };
    tokio::select! {
        found = answers => found,
        () = send(association, plan.in_order) => Err(ended(association).await),
    }
}

async fn download(
    association: &Association,
    plan: MeasurementPlan,
    clock: Clock,
    latencies_s: &mut Vec<f64>,
) -> Result<Figures, MeasureError> {
    let (mut meter, mut messages) = (Meter::new(plan), Vec::new());
    loop {
        association.receive_all(&mut messages).await;
        if messages.is_empty() {
            return Err(ended(association).await);
        }
        let mut bulk = 0;
        for message in messages.drain(..) {
            match message.stream {
                BULK => bulk += message.bytes.len() as u64,
                ECHO => record_answer(latencies_s, clock, &message.bytes),
                _ => return Err(MeasureError::Version),
            }
        }
        if bulk > 0 && meter.take(bulk) {
            return Ok(meter.figures(association));
        }
    }
}

/// Sends latency probes until the association has ended.
async fn send_probes(association: &Association, clock: Clock) {
    loop {
        tokio::time::sleep(PROBE_INTERVAL).await;
        let question = Bytes::copy_from_slice(&clock.now().as_nanos().to_be_bytes());
        if association.send_unordered(ECHO, 0, question).await.is_err() {
            return;
        }
    }
}

fn record_answer(latencies_s: &mut Vec<f64>, clock: Clock, answer: &[u8]) {
    if latencies_s.len() < LATENCY_LIMIT {
        latencies_s.extend(since(clock, answer));
    }
}

fn since(clock: Clock, answer: &[u8]) -> Option<f64> {
    let sent = u64::from_be_bytes(answer.try_into().ok()?);
    Some(clock.now().as_nanos().checked_sub(sent)? as f64 * 1e-9)
}

async fn ended(association: &Association) -> MeasureError {
    MeasureError::Ended(association.ended().await)
}
