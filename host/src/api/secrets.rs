//! Secrets over the API: set, listed, given another value, removed.
//!
//! A value comes in and never goes out: no answer has a field for one. Next: `secrets`.

use super::{Api, Body, Reply};
use crate::ledger;
use crate::pipeline::Error;
use crate::registry::people::refuse;
use crate::registry::{self, Person};
use crate::secrets::{self, SecretName};
use crate::state::{self, Tx};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use ironclaw_contract::operator::{LedgerEvent, NewSecret, NewSecretValue, Secret};

/// What the ledger calls a refusal of a change.
const REFUSED: LedgerEvent = LedgerEvent::SecretRefused;

/// `GET /v1/secrets`
pub async fn list(State(api): State<Api>) -> Reply<Vec<Secret>> {
    let list = |tx: &mut Tx<'_>| {
        let found = secrets::list(tx)?;
        found.iter().map(|secret| view(tx, secret)).collect::<Result<_, state::Error>>()
    };
    Ok(Json(api.state().read(list).await?))
}

/// `POST /v1/secrets`
pub async fn set(
    State(api): State<Api>,
    Extension(by): Extension<Person>,
    Body(new): Body<NewSecret>,
) -> Reply<Secret> {
    let name: SecretName = new.name.parse()?;
    let value = secrets::value(new.value.take())?;
    let pipeline = api.pipeline.clone();
    let set = api.state().write(move |tx| match secrets::set(tx, &pipeline.core().wrapping, &name, &value, by.id)? {
        Ok(()) => Ok::<_, secrets::Error>(Ok(shown(tx, &name)?)),
        Err(refusal) => Ok(refuse(tx, REFUSED, by.id, refusal)?),
    });
    Ok(Json(set.await??))
}

/// `POST /v1/secrets/{secret}/rotate`
pub async fn rotate(
    State(api): State<Api>,
    Extension(by): Extension<Person>,
    Path(secret): Path<String>,
    Body(new): Body<NewSecretValue>,
) -> Reply<Secret> {
    let name: SecretName = secret.parse()?;
    let value = secrets::value(new.value.take())?;
    let pipeline = api.pipeline.clone();
    let rotate =
        api.state().write(move |tx| match secrets::rotate(tx, &pipeline.core().wrapping, &name, &value, by.id)? {
            Ok(()) => Ok::<_, secrets::Error>(Ok(shown(tx, &name)?)),
            Err(refusal) => Ok(refuse(tx, REFUSED, by.id, refusal)?),
        });
    let rotated = rotate.await??;
    forget(&api).await?;
    Ok(Json(rotated))
}

/// `DELETE /v1/secrets/{secret}`
pub async fn remove(
    State(api): State<Api>,
    Extension(by): Extension<Person>,
    Path(secret): Path<String>,
) -> Reply<Secret> {
    let name: SecretName = secret.parse()?;
    let remove = api.state().write(move |tx| {
        let before = shown(tx, &name);
        match secrets::remove(tx, &name, &users(tx, &name)?, by.id)? {
            Ok(()) => Ok::<_, state::Error>(Ok(before?)),
            Err(refusal) => refuse(tx, REFUSED, by.id, refusal),
        }
    });
    let removed = remove.await??;
    forget(&api).await?;
    Ok(Json(removed))
}

/// What an old value was stored as goes from the log of the database, too, and from what was kept before a change of the schema.
async fn forget(api: &Api) -> Result<(), Error> {
    api.state().checkpoint().await?;
    api.pipeline.core().forget_snapshots().await
}

/// What refers to a secret, in words: everything that can, and nothing else, stands here.
fn users(tx: &Tx<'_>, name: &SecretName) -> Result<Vec<String>, state::Error> {
    let mut users = registry::models::using_secret(tx, name)?;
    users.extend(registry::mcp::using_secret(tx, name)?);
    Ok(users)
}

fn shown(tx: &Tx<'_>, name: &SecretName) -> Result<Secret, state::Error> {
    let found = secrets::find(tx, name)?;
    view(tx, &found.ok_or_else(|| state::Error::Stored(format!("{name} vanished while it was looked at")))?)
}

fn view(tx: &Tx<'_>, secret: &secrets::Secret) -> Result<Secret, state::Error> {
    Ok(Secret {
        name: secret.name.as_str().to_owned(),
        source: secret.source.name().to_owned(),
        created_at: secret.stored.map(|(created_at, _)| ledger::rfc3339(created_at)),
        changed_at: secret.stored.map(|(_, changed_at)| ledger::rfc3339(changed_at)),
        used_by: users(tx, &secret.name)?,
    })
}
