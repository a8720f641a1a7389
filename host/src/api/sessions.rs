//! Sessions over the API: list, show, stop, release, erase, self-test.
//!
//! The actor of each session does the work. See `runtime::actor`.

use super::handler::{Answer, Api, Caller, Reply};
use super::status;
use crate::registry::{self, Person, Role};
use crate::runtime::command::Command;
use crate::sessions::store;
use crate::turns::items;
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::ids::{PersonId, SessionId};
use ironclaw_operator::DenialCode;
use ironclaw_operator::{Proof, Session, SessionStatus};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::{Denied, Refusal};
use serde::Deserialize;
use std::sync::Arc;

/// Query of `GET /v1/sessions`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListQuery {
    /// A person by name or id; only the sessions that this person began. A member can name only themselves.
    #[serde(default)]
    person: Option<String>,
}

/// `GET /v1/sessions?person=P`: an operator sees all, a member their own.
pub async fn list(Caller { api, person, .. }: Caller, Query(query): Query<ListQuery>) -> Reply<Vec<Session>> {
    let (by, record) = (person.clone(), Arc::clone(&api.record));
    let look = move |tx: &ReadTx<'_>| {
        let rows = match query.person {
            None => store::seen_by(tx, &by)?,
            Some(named) => list_for_named(tx, &by, &named)?,
        };
        rows.into_iter().map(|row| Ok(titled(tx, &record, &by, row)?)).collect::<Result<Vec<_>, Denied<Error>>>()
    };
    let found = api.state().read(look).await.map_err(Answer::denied)?;
    Ok(Json(found.into_iter().map(|session| shown_to(&api, &person, session)).collect()))
}

/// `GET /v1/sessions/{id}`: a member gets only their own.
pub async fn show(Caller { api, person, .. }: Caller, Path(session): Path<String>) -> Reply<Session> {
    let id = known(&api, &person, &session).await?;
    view(&api, &person, id).await
}

/// `POST /v1/sessions/{id}/stop`: puts it to sleep now; its messages wait.
pub async fn stop(Caller { api, person, .. }: Caller, Path(session): Path<String>) -> Reply<Session> {
    let id = known(&api, &person, &session).await?;
    api.sessions.ask(id, |done| Command::Stop(person.id, done)).await?;
    view(&api, &person, id).await
}

/// `POST /v1/sessions/{id}/release`: ends the parked or quarantined state.
pub async fn release(Caller { api, person, .. }: Caller, Path(session): Path<String>) -> Reply<Session> {
    let id = known(&api, &person, &session).await?;
    let released = api.sessions.ask(id, |done| Command::Release(person.id, done)).await?;
    released.map_err(|message| Answer::from(Refusal::new(DenialCode::SessionNotReleased, message)))?;
    view(&api, &person, id).await
}

/// `DELETE /v1/sessions/{id}`: erases it.
pub async fn remove(Caller { api, person, .. }: Caller, Path(session): Path<String>) -> Reply<Session> {
    let id = known(&api, &person, &session).await?;
    let before = view(&api, &person, id).await?;
    let removed = api.sessions.ask(id, |done| Command::Remove(person.id, done)).await?;
    removed.map_err(|message| Answer::from(Refusal::new(DenialCode::SessionNotRemoved, message)))?;
    Ok(before)
}

/// `POST /v1/sessions/{id}/prove`: runs the self-test inside the walls of this session.
pub async fn prove(Caller { api, person, .. }: Caller, Path(session): Path<String>) -> Reply<Proof> {
    let id = known(&api, &person, &session).await?;
    let proof = api.sessions.ask(id, |done| Command::Prove(person.id, done)).await?;
    proof.map(Json).map_err(|message| Answer::from(Refusal::new(DenialCode::ProveFailed, message)))
}

/// Returns the id of a session that this person may see, or refuses it.
pub(super) async fn known(api: &Api, person: &Person, session: &str) -> Result<SessionId, Answer> {
    let Ok(id) = session.parse::<SessionId>() else { return Err(Answer::noted(store::unknown(session))) };
    let person = person.clone();
    match api.state().read(move |tx| store::find_seen_by(tx, &person, id)).await? {
        Some(_) => Ok(id),
        None => Err(Answer::noted(store::unknown(session))),
    }
}

/// Returns the sessions of a named person. A member can name only themselves, and learns of no other person.
fn list_for_named(tx: &ReadTx<'_>, by: &Person, named: &str) -> Result<Vec<store::Session>, Denied<Error>> {
    if by.role.covers(Role::Admin) {
        let person = registry::known_person(tx, by, named)?;
        return Ok(store::list_for_person(tx, person.id)?);
    }
    let is_own = named == by.name || named.parse::<PersonId>().is_ok_and(|named| named == by.id);
    if !is_own {
        let message = format!("{} is {} and sees only their own sessions", by.name, by.role);
        return Err(Refusal::new(DenialCode::RoleTooLow, message).hint("leave out the person").into());
    }
    Ok(store::seen_by(tx, by)?)
}

async fn view(api: &Api, person: &Person, id: SessionId) -> Reply<Session> {
    let (by, record) = (person.clone(), Arc::clone(&api.record));
    let look =
        move |tx: &ReadTx<'_>| store::find_seen_by(tx, &by, id)?.map(|row| titled(tx, &record, &by, row)).transpose();
    match api.state().read(look).await? {
        Some(row) => Ok(Json(shown_to(api, person, row))),
        None => Err(Answer::noted(store::unknown(id))),
    }
}

/// The title of the session in which each run of a schedule begins anew.
const TITLE_OF_RUNS: &str = "(schedules)";

/// Returns a session with its title, if it is this person's own: the transcript is the way to the words of others.
fn titled(tx: &ReadTx<'_>, record: &Record, by: &Person, row: store::Session) -> Result<Session, Error> {
    let title = match store::find_own(tx, by.id, row.id)? {
        // One session has the runs of several schedules, and the words of none of them name it.
        _ if row.origin.runs == store::ScheduleRuns::Fresh => Some(TITLE_OF_RUNS.to_owned()),
        Some(own) => items::title(tx, &own, &record.wrapping)?,
        None => None,
    };
    Ok(Session { title, ..status::described(tx, row)? })
}

/// Adds the present state. Only an operator sees the processes and their jails.
fn shown_to(api: &Api, person: &Person, session: Session) -> Session {
    let session = status::with_kernel(api, session);
    match person.role {
        Role::Owner | Role::Admin => session,
        Role::Member => {
            Session { status: SessionStatus { pid: None, jail: None, reader: None, ..session.status }, ..session }
        }
    }
}
