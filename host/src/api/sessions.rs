//! Sessions over the API: list, show, stop, release, erase, self-test.
//!
//! The actor of each session does the work. See `runtime::actor`.

use super::{Answer, Api, Reply, id, status};
use crate::refusal::Refusal;
use crate::registry::Person;
use crate::runtime::command::Command;
use crate::session::store;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use ironclaw_contract::ids::SessionId;
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::operator::{Proof, Session};

/// `GET /v1/sessions`
pub async fn list(State(api): State<Api>) -> Reply<Vec<Session>> {
    Ok(Json(status::sessions(&api).await?))
}

/// `GET /v1/sessions/{id}`
pub async fn show(State(api): State<Api>, Path(session): Path<String>) -> Reply<Session> {
    let id = known(&api, &session).await?;
    view(&api, id).await
}

/// `POST /v1/sessions/{id}/stop`: puts it to sleep now; its messages wait.
pub async fn stop(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Path(session): Path<String>,
) -> Reply<Session> {
    let id = known(&api, &session).await?;
    api.sessions.ask(id, |done| Command::Stop(person.id, done)).await?;
    view(&api, id).await
}

/// `POST /v1/sessions/{id}/release`: ends the parked or quarantined state.
pub async fn release(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Path(session): Path<String>,
) -> Reply<Session> {
    let id = known(&api, &session).await?;
    let released = api.sessions.ask(id, |done| Command::Release(person.id, done)).await?;
    released.map_err(|message| Answer::from(Refusal::new(DenialCode::SessionNotReleased, message)))?;
    view(&api, id).await
}

/// `DELETE /v1/sessions/{id}`: erases it.
pub async fn remove(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Path(session): Path<String>,
) -> Reply<Session> {
    let id = known(&api, &session).await?;
    let before = view(&api, id).await?;
    let removed = api.sessions.ask(id, |done| Command::Remove(person.id, done)).await?;
    removed.map_err(|message| Answer::from(Refusal::new(DenialCode::SessionNotRemoved, message)))?;
    Ok(before)
}

/// `POST /v1/sessions/{id}/prove`: runs the self-test inside the walls of this session.
pub async fn prove(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Path(session): Path<String>,
) -> Reply<Proof> {
    let id = known(&api, &session).await?;
    let proof = api.sessions.ask(id, |done| Command::Prove(person.id, done)).await?;
    proof.map(Json).map_err(|message| Answer::from(Refusal::new(DenialCode::ProveFailed, message)))
}

/// Returns the id of a known session, or refuses it.
pub(super) async fn known(api: &Api, session: &str) -> Result<SessionId, Answer> {
    let id: SessionId = id(session, DenialCode::SessionUnknown, "session")?;
    let found = api.record.state.read(move |tx| store::find(tx, id)).await?;
    match found {
        Some(_) => Ok(id),
        None => Err(Refusal::new(DenialCode::SessionUnknown, format!("there is no session {id}")).into()),
    }
}

async fn view(api: &Api, id: SessionId) -> Reply<Session> {
    let row =
        api.record.state.read(move |tx| store::find(tx, id)?.map(|row| status::described(tx, row)).transpose()).await?;
    match row {
        Some(row) => Ok(Json(status::with_kernel(api, row))),
        None => Err(Refusal::new(DenialCode::SessionUnknown, format!("there is no session {id}")).into()),
    }
}
