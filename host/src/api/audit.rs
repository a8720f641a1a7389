//! The ledger over the API: its signed head, and rotating it.
//!
//! Verifying is never asked of the host that is to be verified: `ironclaw-host audit` does that. Next: `ledger::keeper`.

use super::{Answer, Api, Reply};
use crate::ledger::archive::{Error, Why};
use crate::refusal::Refusal;
use crate::registry::Person;
use axum::extract::State;
use axum::{Extension, Json};
use ironclaw_contract::operator::{LedgerHead, Rotated};

/// `GET /v1/audit/head`
pub async fn head(State(api): State<Api>) -> Reply<LedgerHead> {
    Ok(Json(api.about.keeper.head().await?))
}

/// `POST /v1/audit/rotate`
pub async fn rotate(State(api): State<Api>, Extension(person): Extension<Person>) -> Reply<Rotated> {
    let rotated = api.about.keeper.rotate(Why::Asked(Some(person.id.to_string()))).await;
    rotated.map(Json).map_err(|error| match error {
        Error::Empty(_) => Refusal::operator("ledger_empty", error.to_string()).into(),
        Error::Broken(_) => Refusal::host("ledger_broken", error.to_string()).into(),
        Error::Io { .. } => Refusal::host("archive_failed", error.to_string()).into(),
        Error::State(error) => Answer::from(error),
    })
}
