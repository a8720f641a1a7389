//! The reload of the settings over the API.
//!
//! Only passes requests on. See `daemon::reload`.

use super::handler::{Answer, Caller, Reply};
use axum::Json;
use ironclaw_contract::operator::Reloaded;
use std::sync::Arc;

/// `POST /v1/config/reload`. Runs in a task of its own, so that a client that leaves does not interrupt it.
pub async fn reload(Caller { api, person, .. }: Caller) -> Reply<Reloaded> {
    let reloading = tokio::spawn(Arc::clone(&api.about.reload).reload(person.id));
    let reloaded = reloading.await.map_err(|error| Answer::task_ended(&error))?;
    Ok(Json(reloaded.map_err(Answer::denied)?))
}
