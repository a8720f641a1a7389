//! All of one model endpoint, and its settings: `GET` and `PATCH /v1/models/{model}`.
//!
//! See [`crate::registry::models::settings`].

use super::{REFUSED, add_faults, change, check_may_set, one};
use crate::api::handler::{Api, Body, Caller, Reply};
use crate::api::small_contexts;
use crate::registry::models::{self, settings};
use crate::registry::people::record_refusal;
use crate::turns::endpoint_words;
use axum::Json;
use axum::extract::{Path, State};
use ironclaw_model::endpoint::Endpoints;
use ironclaw_model::endpoint_quirks::InUse;
use ironclaw_model::profile;
use ironclaw_operator::{Model, ModelDetails, ModelQuirk, SettingsOfModel};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;
use std::sync::Arc;

/// `GET /v1/models/{model}`
pub async fn show(State(api): State<Api>, Path(model): Path<String>) -> Reply<ModelDetails> {
    Ok(Json(read_details(&api, model).await?))
}

async fn read_details(api: &Api, model: String) -> Result<ModelDetails, Denied<Error>> {
    let (record, endpoints) = (Arc::clone(&api.record), api.models.current());
    let look = move |tx: &ReadTx<'_>| {
        models::known(tx, &model).map_err(Denied::<Error>::from)?;
        let shown = details(one(tx, &model).map_err(Error::from)?, &endpoints);
        let small_context = endpoints.get(&model).map(|open| small_contexts::learned(tx, &open.spec)).transpose()?;
        let last_words = endpoint_words::for_endpoint(tx, &record.wrapping, &model)?;
        Ok(ModelDetails { small_context: small_context.flatten(), last_words, ..shown })
    };
    api.state().read(look).await
}

/// Returns all of one endpoint of the record, as it is open.
fn details(mut model: Model, endpoints: &Endpoints) -> ModelDetails {
    add_faults(endpoints, std::slice::from_mut(&mut model));
    let open = endpoints.get(&model.name);
    let profile = open.and_then(|open| profile::used_by(&open.spec)).map(|profile| profile.name.clone());
    let quirk = |quirk: InUse| ModelQuirk {
        name: quirk.quirk.name().to_owned(),
        value: quirk.value.to_owned(),
        source: quirk.source.name().to_owned(),
        learned_at: quirk.learned_at.map(ironclaw_ledger::rfc3339),
        expires_at: quirk.expires_at().map(ironclaw_ledger::rfc3339),
    };
    let quirks = open.map(|open| open.quirks()).unwrap_or_default().into_iter().map(quirk).collect();
    ModelDetails { model, profile, quirks, small_context: None, last_words: Vec::new() }
}

/// `PATCH /v1/models/{model}`: sets or clears settings of an endpoint, which apply from the next request on.
pub async fn set(
    Caller { api, person: by, .. }: Caller,
    Path(model): Path<String>,
    Body(wanted): Body<SettingsOfModel>,
) -> Reply<ModelDetails> {
    let (gateway, named) = (Arc::clone(&api.gateway), model.clone());
    let set = change(&api, move |tx| {
        let set = models::known(tx, &model).and_then(|()| {
            check_may_set(tx, &gateway.now().policy, &by, &model, true, false)?;
            settings::set(tx, &model, wanted, by.id)
        });
        set.map_err(|denied| denied.noted(|refusal| record_refusal(tx, REFUSED, by.id, refusal)).widen())
    });
    set.await?;
    Ok(Json(read_details(&api, named).await?))
}
