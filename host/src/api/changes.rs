//! Proposals of changes over the API. [`super::waiting`] has what becomes of them.

use super::handler::{Api, Body, Caller, Reply};
use crate::gateway::changes::Submitted;
use crate::registry::Person;
use axum::Json;
use ironclaw_operator::{NewChange, SubmittedChange, WaitingStatus};

/// `POST /v1/changes`
pub async fn submit(Caller { api, person, .. }: Caller, Body(new): Body<NewChange>) -> Reply<SubmittedChange> {
    let NewChange { kind, agent, payload, reason } = new;
    let submitted = api.gateway.submit(&person, kind, agent, payload, reason).await?;
    answer(&api, &person, submitted).await
}

/// Returns the answer to a proposal that waits from now on.
pub(super) async fn answer(api: &Api, by: &Person, Submitted { id, again }: Submitted) -> Reply<SubmittedChange> {
    let (yours, waits_for) = api.gateway.approvers(by, id).await?;
    Ok(Json(SubmittedChange { id, status: WaitingStatus::Pending, again, yours, waits_for }))
}
