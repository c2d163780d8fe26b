//! The server of measurements: does what the client asks for.

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Association, Received};

use super::meter::Meter;
use super::words::{Direction, Plan};
use super::{BLOCK, BULK, CONTROL, ECHO, OVERTIME};

/// Serves one client until it has gone. Returns what it asked for, if that made sense.
pub async fn serve(association: &Association) -> Option<Plan> {
    let question = tokio::time::timeout(OVERTIME, asked(association)).await.ok().flatten();
    let Some(plan) = question.and_then(|question| Plan::decode(&question)) else {
        // Of another version, or no client of ours: an answer that it can tell from figures.
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
    if tokio::time::timeout(plan.time() + OVERTIME, serving).await.is_err() {
        association.abort();
    }
    Some(plan)
}

/// What the client wants. If that was lost on its way, bulk and questions come before.
async fn asked(association: &Association) -> Option<Bytes> {
    loop {
        let message = association.receive().await?;
        if message.stream == CONTROL {
            return Some(message.bytes);
        }
    }
}

/// Counts what comes, answers questions, and tells what was found when it is time.
async fn receive(association: &Association, plan: Plan) {
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

/// Sends until the association has gone.
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
