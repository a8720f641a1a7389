//! The ledger over the API: its signed head, and rotating it.
//!
//! The host does not verify itself: `ironclaw-host audit` does that. See [`crate::upkeep::maintenance`].

use super::handler::{Answer, Api, Body, Caller, Reply};
use crate::upkeep::maintenance::AcceptError;
use axum::Json;
use axum::extract::State;
use ironclaw_ledger::archive::{Error, RotationReason};
use ironclaw_operator::DenialCode;
use ironclaw_operator::{AcceptBreak, BreakAccepted, LedgerHead, Rotated};
use ironclaw_store::refusal::Refusal;

/// `GET /v1/audit/head`
pub async fn head(State(api): State<Api>) -> Reply<LedgerHead> {
    Ok(Json(api.about.head_publisher.head().await?))
}

/// `POST /v1/audit/rotate`
pub async fn rotate(Caller { api, person, .. }: Caller) -> Reply<Rotated> {
    let rotated = api.about.head_publisher.rotate(RotationReason::Asked(Some(person.id))).await;
    rotated.map(Json).map_err(|error| match error {
        Error::Empty(_) => Refusal::new(DenialCode::LedgerEmpty, error.to_string()).into(),
        Error::Broken(_) => Refusal::new(DenialCode::LedgerBroken, error.to_string()).into(),
        Error::Io { .. } | Error::Home(_) => Refusal::new(DenialCode::ArchiveFailed, error.to_string()).into(),
        Error::State(error) => Answer::from(error),
    })
}

/// Characters of a reason, the bound of a ledger entry.
const REASON_CHARACTERS_MAX: usize = 400;

/// `POST /v1/audit/accept`
pub async fn accept(Caller { api, person, .. }: Caller, Body(asked): Body<AcceptBreak>) -> Reply<BreakAccepted> {
    let reason = asked.reason.trim().to_owned();
    if reason.is_empty() || reason.chars().count() > REASON_CHARACTERS_MAX || reason.chars().any(char::is_control) {
        let why = "the reason has 1 to 400 characters, and no control characters";
        return Err(Refusal::new(DenialCode::ReasonInvalid, why).into());
    }
    let accepted = api.about.head_publisher.accept(person.id, reason).await;
    accepted.map(Json).map_err(|error| match error {
        AcceptError::Nothing => Refusal::new(DenialCode::NothingToAccept, error.to_string())
            .hint("`ironctl audit verify` says whether the ledger is whole")
            .into(),
        AcceptError::Io(_) => Refusal::new(DenialCode::HeadsUnreadable, error.to_string()).into(),
        AcceptError::Archive(_) => Refusal::new(DenialCode::ArchiveFailed, error.to_string()).into(),
        AcceptError::State(error) => Answer::from(error),
    })
}
