//! The server of measurements, which performs the client's plan.

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Association, Received};

use super::links::{self, Message};
use super::meter::Meter;
use super::protocol::{Direction, MeasurementPlan};
use super::{BLOCK, BULK, CONTROL, ECHO, RESULT_TIMEOUT};

/// Serves one client until the association ends. Returns how long the measurement took, seconds. `None` if the
/// client's request was invalid.
pub async fn serve(association: &Association) -> Option<f64> {
    let question =
        tokio::time::timeout(RESULT_TIMEOUT, on_request(association)).await.ok().flatten();
    if let Some(Message::Open { bytes }) = question.as_deref().and_then(Message::decode) {
        return Some(links::serve(association, bytes).await);
    }
    let Some(plan) = question.and_then(|question| MeasurementPlan::decode(&question)) else {
        // The client has another version or another protocol. The answer is not a valid result.
        let _ = association.send(CONTROL, 0, Bytes::from_static(&[0])).await;
        association.abort();
        return None;
    };
    let serving = async {
        match plan.direction {
            Direction::Up => receive(association, plan).await,
            Direction::Down => {
                tokio::select! {
                    () = echo_only(association) => {}
                    () = send(association, plan.in_order) => {}
                }
            }
        }
    };
    if tokio::time::timeout(plan.time() + RESULT_TIMEOUT, serving).await.is_err() {
        association.abort();
    }
    Some(plan.seconds)
}

/// Receives the client's plan. If it was lost and retransmitted, bulk data and probes arrive before it.
async fn on_request(association: &Association) -> Option<Bytes> {
    loop {
        let message = association.receive().await?;
        if message.stream == CONTROL {
            return Some(message.bytes);
        }
    }
}

/// Counts bulk data, echoes probes, and sends the results when the time is over.
async fn receive(association: &Association, plan: MeasurementPlan) {
    let (mut meter, mut messages) = (Some(Meter::new(plan)), Vec::new());
    loop {
        association.receive_all(&mut messages).await;
        if messages.is_empty() {
            return;
        }
        let mut bulk = 0;
        for message in messages.drain(..) {
            match message.stream {
                BULK => bulk += message.bytes.len() as u64,
                ECHO => echo(association, message).await,
                _ => {}
            }
        }
        if bulk > 0 && meter.as_mut().is_some_and(|meter| meter.take(bulk)) {
            let figures = meter.take().map(|meter| meter.figures(association)).unwrap_or_default();
            if association.send(CONTROL, 0, figures.encode()).await.is_err() {
                return;
            }
        }
    }
}

async fn echo_only(association: &Association) {
    while let Some(message) = association.receive().await {
        if message.stream == ECHO {
            echo(association, message).await;
        }
    }
}

async fn echo(association: &Association, question: Received) {
    let _ = association.send_unordered(ECHO, 0, question.bytes).await;
}

/// Sends bulk data until the association has ended.
pub(super) async fn send(association: &Association, in_order: bool) {
    let message = Bytes::from(vec![0x5a; association.message_size()]);
    loop {
        let mut block = std::iter::repeat_n(message.clone(), BLOCK);
        let sent = if in_order {
            association.send_all(BULK, 0, &mut block).await
        } else {
            association.send_all_unordered(BULK, &mut block.map(|message| (0, message))).await
        };
        if sent.is_err() {
            return;
        }
    }
}
