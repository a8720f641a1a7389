//! Questions of agents over the API: the list, one question, its origin and end, the answer and the cancellation.
//!
//! Decides nothing: see [`crate::gateway::questions`]. The text is the agent's own; a client marks it as such.

use super::handler::{Answer, Api, Body, Caller, Reply};
use super::named::{self, id};
use super::{agents, chat};
use crate::gateway::questions::{self, Given, Questions, Row, Status};
use crate::registry::{self, Person};
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::QuestionId;
use ironclaw_operator::{
    DenialCode, EntryId, EntryType, Inbox, InboxEntry, NewAnswer, QuestionWhy, Recorded, Rejection,
};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;
use ironclaw_text::visible;
use serde::Deserialize;
use std::sync::Arc;

/// Questions in one answer.
const AT_ONCE_MAX: usize = 200;

/// Questions of one status that a list looks at.
const READ_MAX: usize = 5000;

/// The statuses of questions that concern a person now.
const OPEN: [Status; 2] = [Status::Waiting, Status::Unknown];

/// Query of `GET /v1/questions`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListQuery {
    /// `waiting answered cancelled expired unknown`, several with commas between, or `all`; without it, the waiting and unknown ones.
    #[serde(default)]
    status: Option<String>,
    /// An agent by name or id; only its questions.
    #[serde(default)]
    agent: Option<String>,
}

/// `GET /v1/questions?status=S&agent=A`: the questions that the caller may see, first those that wait.
pub async fn list(Caller { api, person, .. }: Caller, Query(query): Query<ListQuery>) -> Reply<Inbox> {
    let statuses = named::statuses(query.status.as_deref(), &OPEN, &Status::ALL)?;
    let agent = agents::find_by_filter(&api, &person, query.agent).await?;
    let all = Arc::clone(&api.questions);
    let found = api.state().read(move |tx| {
        let is_seen = |row: &Row| questions::may_read(&person, row) && agent.is_none_or(|agent| agent == row.agent);
        let (rows, more) = cut(questions::list(tx, &statuses, READ_MAX)?, is_seen);
        let entries = rows.iter().map(|row| entry(tx, &all, &person, row)).collect::<Result<_, Error>>()?;
        Ok::<_, Error>(Inbox { entries, more })
    });
    Ok(Json(found.await?))
}

/// Returns the first of these questions that are seen, and whether there are more.
fn cut(rows: Vec<Row>, is_seen: impl Fn(&Row) -> bool) -> (Vec<Row>, bool) {
    let is_cut = rows.len() >= READ_MAX;
    let mut rows: Vec<Row> = rows.into_iter().filter(is_seen).collect();
    let more = is_cut || rows.len() > AT_ONCE_MAX;
    rows.truncate(AT_ONCE_MAX);
    (rows, more)
}

/// Returns the questions to a person for the inbox, each with its end, and whether there are more.
pub(super) async fn inbox(api: &Api, person: &Person) -> Result<(bool, Vec<(i64, InboxEntry)>), Answer> {
    let (all, by) = (Arc::clone(&api.questions), person.clone());
    let found = api.state().read(move |tx| {
        let (rows, more) = cut(questions::list(tx, &OPEN, READ_MAX)?, |row| row.principal == by.id);
        let entries = rows.iter().map(|row| Ok((row.expires_at, entry(tx, &all, &by, row)?)));
        Ok::<_, Error>((more, entries.collect::<Result<Vec<_>, Error>>()?))
    });
    Ok(found.await?)
}

/// `GET /v1/questions/{id}`
pub async fn show(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<InboxEntry> {
    Ok(Json(whole(&api, &person, known(&named)?).await?))
}

/// `GET /v1/questions/{id}/why`
pub async fn why(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<QuestionWhy> {
    let question = known(&named)?;
    let found =
        api.state().read(move |tx| Ok::<_, Denied<Error>>(origin_and_end(tx, &readable(tx, &person, question)?)?));
    Ok(Json(found.await?))
}

/// `POST /v1/questions/{id}/answer`: records the answer as a message of the conversation, which opens a turn.
pub async fn answer(
    Caller { api, person, .. }: Caller,
    Path(named): Path<String>,
    Body(new): Body<NewAnswer>,
) -> Result<(StatusCode, Json<Recorded>), Answer> {
    let question = known(&named)?;
    let recorded = api.questions.answer(&person, question, Given::try_from(new)?).await?;
    api.inbound.wake.wake(recorded.session);
    Ok((StatusCode::ACCEPTED, Json(chat::recorded(recorded))))
}

/// `POST /v1/questions/{id}/reject`
pub async fn reject(
    Caller { api, person, .. }: Caller,
    Path(named): Path<String>,
    Body(rejection): Body<Rejection>,
) -> Reply<InboxEntry> {
    let question = known(&named)?;
    api.questions.reject(&person, question, rejection.reason).await?;
    Ok(Json(whole(&api, &person, question).await?))
}

fn known(named: &str) -> Result<QuestionId, Answer> {
    id(named, DenialCode::QuestionUnknown, "question")
}

async fn whole(api: &Api, person: &Person, question: QuestionId) -> Result<InboxEntry, Answer> {
    let (all, person) = (Arc::clone(&api.questions), person.clone());
    let found = api.state().read(move |tx| {
        let row = readable(tx, &person, question)?;
        Ok::<_, Denied<Error>>(entry(tx, &all, &person, &row)?)
    });
    Ok(found.await?)
}

/// Returns a question that the person may see.
fn readable(tx: &ReadTx<'_>, person: &Person, question: QuestionId) -> Result<Row, Denied<Error>> {
    let row = questions::known(tx, question)?;
    if questions::may_read(person, &row) { Ok(row) } else { Err(questions::unknown(question).into()) }
}

fn origin_and_end(tx: &ReadTx<'_>, row: &Row) -> Result<QuestionWhy, ironclaw_state::Error> {
    Ok(QuestionWhy {
        id: row.id,
        agent: agent_name(tx, row)?,
        person: registry::person_name(tx, row.principal)?,
        session_id: row.session,
        message_id: row.asked_for,
        turn_id: row.turn,
        call_id: row.call,
        status: row.status,
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        expires_at: ironclaw_ledger::rfc3339(row.expires_at),
        ended_at: row.ended_at.map(ironclaw_ledger::rfc3339),
        ended_by: row.ended_by.map(|by| registry::person_name(tx, by)).transpose()?,
        reason: row.outcome.clone().filter(|outcome| !outcome.is_empty()),
        answer: row.answer,
        summary: summary(row.status).to_owned(),
    })
}

const fn summary(status: Status) -> &'static str {
    match status {
        Status::Waiting => "The question waits for its person.",
        Status::Answered => "The person answered, and the answer opened a turn.",
        Status::Cancelled => "The question was cancelled. The agent learns of it at its next turn.",
        Status::Expired => "The question was not answered in time. The agent learns of it at its next turn.",
        Status::Unknown => {
            "The record was restored, so the question may have been answered before. It takes no answer."
        }
    }
}

fn agent_name(tx: &ReadTx<'_>, row: &Row) -> Result<String, ironclaw_state::Error> {
    Ok(registry::name_or_id(registry::agent_by_id(tx, row.agent)?.map(|agent| agent.name), row.agent))
}

/// Returns the view of a question. A text that cannot be read is left out.
fn entry(tx: &ReadTx<'_>, all: &Questions, person: &Person, row: &Row) -> Result<InboxEntry, Error> {
    let body = match questions::body(tx, &all.record, row) {
        Ok(body) => Some(body),
        Err(Error::Key(_) | Error::State(ironclaw_state::Error::Stored(_))) => None,
        Err(error) => return Err(error),
    };
    let agent = agent_name(tx, row)?;
    let to = registry::person_name(tx, row.principal)?;
    Ok(InboxEntry {
        id: EntryId::Question(row.id),
        entry_type: EntryType::Question,
        effect: format!("Agent {} asks {} a question.", visible::name(&agent), visible::name(&to)),
        agent: Some(agent),
        status: row.status.name().to_owned(),
        arguments: None,
        origins: Vec::new(),
        reasons: Vec::new(),
        shown_digest: body.as_ref().map_or_else(|| Digest::of(b""), questions::Body::digest),
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        expires_at: ironclaw_ledger::rfc3339(row.expires_at),
        told: Vec::new(),
        yours: body.is_some() && questions::may_answer(person, row),
        may_reject: person.id == row.principal || person.role == registry::Role::Owner,
        session_id: Some(row.session),
        free_text: body.as_ref().map(|body| body.free_text),
        options: body.as_ref().map(|body| body.options.clone()),
        question: body.map(|body| body.question),
    })
}
