//! The health of the host for monitoring: liveness, readiness and metrics.
//!
//! The first two need no token, so they only answer yes, or no with a code and a sentence. Nothing runs on a timer. See
//! `ironclaw_state::Metrics`.

pub(super) mod probed;

use super::handler::{Answer, Api, Reply};
use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use ironclaw_ledger::chain;
use ironclaw_operator::DenialCode;
use ironclaw_operator::{Health, Readiness};
use ironclaw_state::metrics::{Metrics, Now};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::Refusal;
use ironclaw_store::tables::facts::{self, Fact};
use ironclaw_store::tables::{deliveries, messages, sessions, turns};
use std::time::Duration;
use tokio::time::Instant;

/// Longest time of a healthy record for one group of changes, or for an answer.
const PROBE_TIME_MAX: Duration = Duration::from_secs(3);

/// `GET /healthz`: the process answers.
pub async fn healthz() -> Reply<Health> {
    Ok(Json(Health { alive: true }))
}

/// `GET /readyz`: the host accepts messages and works on them.
pub async fn readyz(api: State<Api>) -> Reply<Readiness> {
    match unready(&api).await {
        None => Ok(Json(Readiness { ready: true })),
        Some((code, message)) => Err(Refusal::new(code, message).into()),
    }
}

/// Returns the reason that the host is not ready, without any data of a person.
async fn unready(api: &Api) -> Option<(DenialCode, &'static str)> {
    if api.about.shutdown.is_stopping() {
        return Some((DenialCode::Stopping, "the host is stopping"));
    }
    if api.stops.is_on() {
        return Some((DenialCode::Panicked, "everything is stopped: `ironctl resume` ends the stop"));
    }
    let state = api.state();
    let unwritable =
        Some((DenialCode::StateUnwritable, "the record cannot be written: is the disk full? `ironctl logs` has more"));
    if is_hung(state.metrics()) {
        return unwritable;
    }
    if state.metrics().failing_commits() > 0 && api.callers.probed.is_due(Instant::now()) {
        // Only a successful commit resets the count of failures.
        let probe = state.write(|tx: &mut WriteTx<'_>| {
            let now = tx.now().to_string();
            facts::set(tx, Fact::Probed, now)
        });
        // The count shows the result.
        if tokio::time::timeout(PROBE_TIME_MAX, probe).await.is_err() {
            return unwritable;
        }
    }
    if state.metrics().failing_commits() > 0 {
        return unwritable;
    }
    api.sessions.shortage().map(|shortage| (shortage.code(), shortage.words()))
}

/// Returns true if a group of changes hangs.
fn is_hung(metrics: &Metrics) -> bool {
    metrics.group_runs_for().is_some_and(|runs| runs > PROBE_TIME_MAX)
}

/// Metrics in the text format of Prometheus.
pub struct Exposition(String);

impl IntoResponse for Exposition {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], self.0).into_response()
    }
}

/// `GET /metrics`
pub async fn metrics(State(api): State<Api>) -> Result<Exposition, Answer> {
    let state = api.state();
    let mut now = state.read(recorded).await?;
    let room = api.sessions.occupancy();
    now.fingerprint = ironclaw_contract::seam::fingerprint();
    now.started_at = api.about.started_at / 1000;
    (now.awake, now.awake_max, now.waiting) = (room.awake, room.awake_max, room.waiting);
    now.head_age_seconds = api.about.head_publisher.head_age_seconds();
    now.panicked = api.stops.is_on();
    now.ready = unready(&api).await.is_none();
    now.write_queue = state.write_queue();
    now.state_bytes = state.bytes();
    now.home_free_bytes = api.about.home.free_space().map(|room| room.free_bytes);
    Ok(Exposition(state.metrics().text(&now)))
}

/// Reads the metrics of the record. Each comes from an index, a short table, or the rows of the sessions.
fn recorded(tx: &ReadTx<'_>) -> Result<Now, ironclaw_state::Error> {
    Ok(Now {
        sessions: sessions::count_by_state(tx)?,
        messages_waiting: messages::unfinished_count(tx)?,
        turns_open: turns::open_count(tx)?,
        deliveries_open: deliveries::open_and_lost_count_by_state(tx)?,
        ledger_seq: chain::last_seq(tx)?,
        ..Now::default()
    })
}
