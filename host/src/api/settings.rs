//! The reload of the settings over the API.
//!
//! Only passes requests on. See `daemon::reload`.

use super::{Answer, Caller, Reply};
use crate::store::error::Error;
use crate::store::refusal::Denied;
use axum::Json;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::operator::Reloaded;
use std::pin::Pin;
use std::sync::Arc;

/// The result of a reload, later.
pub type Reloading = Pin<Box<dyn Future<Output = Result<Reloaded, Denied<Error>>> + Send>>;

/// The part of the daemon that reads the settings again.
pub trait Reload: Send + Sync {
    /// Reads `config.toml` and `policy.toml`, and applies the settings that need no restart.
    ///
    /// # Errors
    /// Refuses a file that is not valid; the running settings do not change then.
    fn reload(self: Arc<Self>, by: PersonId) -> Reloading;
}

/// `POST /v1/config/reload`. Runs in a task of its own, so that a client that leaves does not interrupt it.
pub async fn reload(Caller { api, person, .. }: Caller) -> Reply<Reloaded> {
    let reloading = tokio::spawn(Arc::clone(&api.about.reload).reload(person.id));
    let reloaded = reloading.await.map_err(|error| Answer::broken(&error))?;
    Ok(Json(reloaded.map_err(Answer::denied)?))
}
