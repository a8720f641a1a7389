//! Secrets over the API: set, list, rotate, remove.
//!
//! A value comes in and never goes out: no answer has a field for one. See `secrets`.

use super::handler::{Api, Body, Caller, Reply};
use crate::registry::secret_users::users;
use crate::registry::secrets::{self, SecretName};
use axum::Json;
use axum::extract::{Path, State};
use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::Entry;
use ironclaw_operator::{LedgerEvent, NewSecret, NewSecretValue, Secret};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use std::sync::Arc;

/// `GET /v1/secrets`
pub async fn list(State(api): State<Api>) -> Reply<Vec<Secret>> {
    let list = |tx: &ReadTx<'_>| {
        let found = secrets::list(tx)?;
        found.iter().map(|secret| view(tx, secret)).collect::<Result<_, ironclaw_state::Error>>()
    };
    Ok(Json(api.state().read(list).await?))
}

/// `POST /v1/secrets`
pub async fn set(Caller { api, person: by, .. }: Caller, Body(new): Body<NewSecret>) -> Reply<Secret> {
    let name = secrets::named(&new.name)?;
    let value = secrets::value(new.value.take())?;
    let record = Arc::clone(&api.record);
    let set = api.state().decide(move |tx| -> Result<_, Denied<secrets::Error>> {
        let set = secrets::set(tx, &record.wrapping, &name, &value, by.id);
        set.map_err(|denied| denied.noted(|refusal| Ok(note(tx, by.id, refusal)?)))?;
        Ok(shown(tx, &name)?)
    });
    Ok(Json(set.await?))
}

/// `POST /v1/secrets/{secret}/rotate`
pub async fn rotate(
    Caller { api, person: by, .. }: Caller,
    Path(secret): Path<String>,
    Body(new): Body<NewSecretValue>,
) -> Reply<Secret> {
    let name = secrets::named(&secret)?;
    let value = secrets::value(new.value.take())?;
    let record = Arc::clone(&api.record);
    let rotate = api.state().decide(move |tx| -> Result<_, Denied<secrets::Error>> {
        let rotated = secrets::rotate(tx, &record.wrapping, &name, &value, by.id);
        rotated.map_err(|denied| denied.noted(|refusal| Ok(note(tx, by.id, refusal)?)))?;
        Ok(shown(tx, &name)?)
    });
    let rotated = rotate.await?;
    forget(&api).await?;
    Ok(Json(rotated))
}

/// `DELETE /v1/secrets/{secret}`
pub async fn remove(Caller { api, person: by, .. }: Caller, Path(secret): Path<String>) -> Reply<Secret> {
    let name = secrets::named(&secret)?;
    let remove = api.state().decide(move |tx| {
        let before = shown(tx, &name);
        let removed = secrets::remove(tx, &name, &users(tx, &name)?, by.id);
        removed.map_err(|denied| denied.noted(|refusal| note(tx, by.id, refusal)))?;
        Ok::<_, Denied>(before?)
    });
    let removed = remove.await?;
    forget(&api).await?;
    Ok(Json(removed))
}

/// Erases the stored form of an old value from the write-ahead log and the snapshots.
async fn forget(api: &Api) -> Result<(), Error> {
    api.state().checkpoint().await?;
    Ok(api.record.forget_snapshots().await?)
}

/// Records the refusal of a change.
fn note(tx: &mut WriteTx<'_>, by: PersonId, refusal: &Refusal) -> Result<(), ironclaw_state::Error> {
    Entry::new(LedgerEvent::SecretRefused).with("code", refusal.code).with("by", by).append(tx)?;
    Ok(())
}

fn shown(tx: &ReadTx<'_>, name: &SecretName) -> Result<Secret, ironclaw_state::Error> {
    let found = secrets::find(tx, name)?;
    view(tx, &found.ok_or_else(|| ironclaw_state::Error::Stored(format!("{name} vanished while it was looked at")))?)
}

fn view(tx: &ReadTx<'_>, secret: &secrets::Secret) -> Result<Secret, ironclaw_state::Error> {
    Ok(Secret {
        name: secret.name.as_str().to_owned(),
        source: secret.source,
        created_at: secret.stored.map(|(created_at, _)| ironclaw_ledger::rfc3339(created_at)),
        changed_at: secret.stored.map(|(_, changed_at)| ironclaw_ledger::rfc3339(changed_at)),
        used_by: users(tx, &secret.name)?,
    })
}
