//! Approval requests over the API: the inbox of calls, questions and changes, the page of a request, and the decisions of people.
//!
//! Decides nothing: a decision goes to [`crate::gateway::requests`] with the digest of the shown page.

use super::auth::Current;
use super::handler::{Answer, Api, Body, Caller, Reply};
use super::named::{self, id};
use super::{agents, changes, questions};
use crate::gateway::requests::{self, Requests, Row, Shown, Status};
use crate::gateway::review_page::{self, Page};
use crate::reach::git_push::{self, Diff};
use crate::registry::tools::GIT_PUSH;
use crate::registry::{self, Person, Role};
use crate::sessions::store;
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::ids::{AgentId, RequestId};
use ironclaw_operator::{
    CallRequest, CallRequests, Decision, DenialCode, EntryId, EntryType, Inbox, InboxEntry, MessageView,
    NewRequestReset, PushDiff, Rejection, RequestReset,
};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Requests in one answer.
const AT_ONCE_MAX: usize = 200;

/// Entries of the inbox in one answer.
const INBOX_MAX: usize = 200;

/// Lines of a diff in one answer, and in all parts.
const DIFF_LINES_AT_ONCE: usize = 4_000;
const DIFF_LINES_MAX: usize = 40_000;

/// Requests of one status that a list looks at.
const READ_MAX: usize = 5000;

/// Query of `GET /v1/requests`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListQuery {
    /// `pending approved running done rejected expired withdrawn unknown`, several with commas between, or `all`; without it, the pending
    /// ones.
    #[serde(default)]
    status: Option<String>,
    /// An agent by name or id; only its requests.
    #[serde(default)]
    agent: Option<String>,
}

/// `GET /v1/inbox`: the calls, questions and changes that wait and that the caller may decide, answer, reject or withdraw, those that end
/// soonest first.
pub async fn inbox(Caller { api, person, .. }: Caller) -> Reply<Inbox> {
    let (all, by) = (Arc::clone(&api.requests), person.clone());
    let calls = api.state().read(move |tx| {
        let Visible { found, more } = visible(tx, &all, &by, &[Status::Pending], None)?;
        let entries = found.into_iter().map(|(row, shown)| Ok((row.expires_at, entry(tx, &all, &by, &row, shown)?)));
        Ok::<_, Error>((entries.collect::<Result<Vec<_>, Error>>()?, more))
    });
    let (mut entries, of_calls) = calls.await?;
    let (of_questions, questions) = questions::inbox(&api, &person).await?;
    entries.extend(questions);
    entries.extend(changes::inbox(&api, &person).await?);
    // What the caller can decide comes before what other people decide.
    entries.sort_by_key(|(ends_at, entry)| (!entry.yours, *ends_at));
    let more = of_calls || of_questions || entries.len() > INBOX_MAX;
    entries.truncate(INBOX_MAX);
    Ok(Json(Inbox { entries: entries.into_iter().map(|(_, entry)| entry).collect(), more }))
}

/// `GET /v1/requests?status=S&agent=A`: the requests that the caller may see, first those that wait.
pub async fn list(Caller { api, person, .. }: Caller, Query(query): Query<ListQuery>) -> Reply<CallRequests> {
    let statuses = named::statuses(query.status.as_deref(), &[Status::Pending], &Status::ALL)?;
    let agent = agents::find_by_filter(&api, &person, query.agent).await?;
    let all = Arc::clone(&api.requests);
    let found = api.state().read(move |tx| {
        let Visible { found, more } = visible(tx, &all, &person, &statuses, agent)?;
        let requests = found.into_iter().map(|(row, shown)| view(tx, &all, &person, &row, shown));
        Ok::<_, Error>(CallRequests { requests: requests.collect::<Result<_, _>>()?, more })
    });
    Ok(Json(found.await?))
}

/// `POST /v1/agents/{agent}/requests/reset`
pub async fn reset(
    Caller { api, person, .. }: Caller,
    Path(agent): Path<String>,
    Body(asked): Body<NewRequestReset>,
) -> Reply<RequestReset> {
    let agent = agents::find(&api, &person, agent).await?;
    let by = person.clone();
    let of = match asked.person {
        Some(named) => Some(api.state().read(move |tx| registry::known_person(tx, &by, &named)).await?),
        None if by.role.covers(Role::Admin) => None,
        None => Some(by),
    };
    let requests = api.requests.reset(&person, &agent, of.as_ref().map(|of| of.id)).await?;
    Ok(Json(RequestReset { agent: agent.name, person: of.map(|of| of.name), requests }))
}

/// `GET /v1/requests/{id}`
pub async fn show(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<CallRequest> {
    Ok(Json(whole(&api, &person, known(&named)?).await?))
}

/// Query of `GET /v1/requests/{id}/diff`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct DiffQuery {
    /// The first line; 0 without it.
    #[serde(default)]
    from: u64,
}

/// `GET /v1/requests/{id}/diff?from=N`: a part of the diff of a push, read again from the workspace and compared with the digest of the call.
pub async fn diff(
    Caller { api, person, .. }: Caller,
    Path(named): Path<String>,
    Query(DiffQuery { from }): Query<DiffQuery>,
) -> Reply<PushDiff> {
    let (request, all) = (known(&named)?, Arc::clone(&api.requests));
    let found = api.state().read(move |tx| {
        let row = seen(tx, &all, &person, request)?;
        if row.tool != GIT_PUSH {
            return Err(no_diff("the call is no push").into());
        }
        let session =
            store::find(tx, row.session).map_err(Error::from)?.ok_or_else(|| no_diff("its conversation was erased"))?;
        Ok::<_, Denied<Error>>((requests::arguments(tx, &all.record, &row)?, session))
    });
    let (arguments, session) = found.await?;
    let diff = git_push::diff(&*api.command_jails, &session, &arguments).await.map_err(|why| no_diff(&why))?;
    Ok(Json(part(&diff, from)))
}

fn no_diff(why: &str) -> Refusal {
    Refusal::new(DenialCode::RequestDiff, format!("there is no diff to show: {why}"))
}

/// Returns the lines of a part of a diff, each safe to read.
fn part(diff: &Diff, from: u64) -> PushDiff {
    let mut page = Page::default();
    for line in diff.text.lines() {
        let (sign, words) = line.split_at(line.len().min(1));
        review_page::put_text(&mut page, &format!("  {sign} "), words);
    }
    let text = page.finish();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let end = lines.len().min(DIFF_LINES_MAX);
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(end);
    let to = (from + DIFF_LINES_AT_ONCE).min(end);
    PushDiff {
        digest: diff.digest,
        text: lines[from..to].concat(),
        next: (to < end).then_some(to as u64),
        left_off: (lines.len() - end) as u64,
    }
}

/// `POST /v1/requests/{id}/approve`: approves exactly the shown page.
pub async fn approve(
    Caller { api, person, current: Current(token) }: Caller,
    Path(named): Path<String>,
    Body(decision): Body<Decision>,
) -> Reply<CallRequest> {
    let request = known(&named)?;
    api.requests.approve(&person, token.to_string(), request, decision.shown).await?;
    Ok(Json(whole(&api, &person, request).await?))
}

/// `POST /v1/requests/{id}/reject`
pub async fn reject(
    Caller { api, person, .. }: Caller,
    Path(named): Path<String>,
    Body(rejection): Body<Rejection>,
) -> Reply<CallRequest> {
    let request = known(&named)?;
    api.requests.reject(&person, request, rejection.reason).await?;
    Ok(Json(whole(&api, &person, request).await?))
}

fn known(named: &str) -> Result<RequestId, Answer> {
    id(named, DenialCode::RequestUnknown, "approval request")
}

/// A part of the requests that a person may see, each with its page.
struct Visible {
    found: Vec<(Row, Shown)>,
    /// True if there are more.
    more: bool,
}

/// Returns the requests with these statuses that a person may see: those that wait, first what the person decides and what ends soonest,
/// and the newest others.
fn visible(
    tx: &ReadTx<'_>,
    all: &Requests,
    by: &Person,
    statuses: &[Status],
    agent: Option<AgentId>,
) -> Result<Visible, Error> {
    let policy = &all.settings.now().policy;
    let read = requests::list(tx, statuses, READ_MAX)?;
    let is_cut = read.len() >= READ_MAX;
    let (mut waiting, mut of_others, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    for row in read {
        if agent.is_some_and(|agent| agent != row.agent) || !requests::may_read(policy, by, &row)? {
            continue;
        }
        match row.status {
            Status::Pending if requests::may_decide(policy, by, &row)? => waiting.push(row),
            Status::Pending => of_others.push(row),
            _ => ended.push(row),
        }
    }
    waiting.append(&mut of_others);
    let more = is_cut || waiting.len() + ended.len() > AT_ONCE_MAX;
    waiting.truncate(AT_ONCE_MAX);
    // The newest of the others.
    waiting.extend(ended.split_off((ended.len() + waiting.len()).saturating_sub(AT_ONCE_MAX).min(ended.len())));
    Ok(Visible { found: with_pages(tx, all, by, waiting)?, more })
}

/// Returns the requests among these that a person may see, each with its page.
fn with_pages(tx: &ReadTx<'_>, all: &Requests, by: &Person, rows: Vec<Row>) -> Result<Vec<(Row, Shown)>, Error> {
    let policy = &all.settings.now().policy;
    let mut found = Vec::new();
    for row in rows {
        if requests::may_read(policy, by, &row)? {
            let shown = requests::show_or_damage(tx, all, &row)?;
            found.push((row, shown));
        }
    }
    Ok(found)
}

async fn whole(api: &Api, person: &Person, request: RequestId) -> Result<CallRequest, Answer> {
    let (all, person) = (Arc::clone(&api.requests), person.clone());
    let found = api.state().read(move |tx| read_view(tx, &all, &person, request));
    Ok(found.await?)
}

/// Returns a request that a person may see.
///
/// # Errors
/// Refuses any other one as unknown.
fn read_view(
    tx: &ReadTx<'_>,
    all: &Requests,
    person: &Person,
    request: RequestId,
) -> Result<CallRequest, Denied<Error>> {
    let row = seen(tx, all, person, request)?;
    let shown = requests::show_or_damage(tx, all, &row)?;
    Ok(view(tx, all, person, &row, shown)?)
}

/// Returns the row of a request that a person may see.
///
/// # Errors
/// Refuses any other one as unknown.
fn seen(tx: &ReadTx<'_>, all: &Requests, person: &Person, request: RequestId) -> Result<Row, Denied<Error>> {
    let row = requests::known(tx, request)?;
    match requests::may_read(&all.settings.now().policy, person, &row)? {
        true => Ok(row),
        false => Err(requests::unknown(request).into()),
    }
}

/// Returns the requests of a message's task and of its turn in the view for this person, without those that they may not see. Those of
/// interrupted attempts and of follow-up turns are among them.
pub(super) fn for_message(
    tx: &ReadTx<'_>,
    all: &Requests,
    person: &Person,
    message: &MessageView,
) -> Result<Vec<CallRequest>, Error> {
    let mut rows = requests::list_for_task(tx, message.session_id, message.message_id)?;
    // A turn asks for its newest message, which may be another one.
    for row in message.turn_id.map(|turn| requests::list_for_turn(tx, turn)).transpose()?.unwrap_or_default() {
        if rows.iter().all(|other| other.id != row.id) {
            rows.push(row);
        }
    }
    let found = with_pages(tx, all, person, rows)?;
    found.into_iter().map(|(row, shown)| view(tx, all, person, &row, shown)).collect()
}

fn agent_name(tx: &ReadTx<'_>, row: &Row) -> Result<String, Error> {
    Ok(registry::name_or_id(registry::agent_by_id(tx, row.agent)?.map(|agent| agent.name), row.agent))
}

fn is_theirs(all: &Requests, person: &Person, row: &Row) -> Result<bool, Error> {
    let may = requests::may_decide(&all.settings.now().policy, person, row)?;
    Ok(may && row.status == Status::Pending)
}

fn told(row: &Row) -> Vec<String> {
    row.told.split_ascii_whitespace().map(str::to_owned).collect()
}

fn entry(tx: &ReadTx<'_>, all: &Requests, person: &Person, row: &Row, shown: Shown) -> Result<InboxEntry, Error> {
    Ok(InboxEntry {
        id: EntryId::Call(row.id),
        entry_type: EntryType::Call,
        agent: Some(agent_name(tx, row)?),
        status: row.status.name().to_owned(),
        effect: shown.effect,
        arguments: Some(Value::Object(shown.arguments)),
        origins: shown.origins.iter().map(requests::origin_view).collect(),
        reasons: shown.reasons.iter().map(requests::StoredReason::view).collect(),
        shown_digest: shown.digest,
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        expires_at: ironclaw_ledger::rfc3339(row.expires_at),
        told: told(row),
        yours: is_theirs(all, person, row)?,
        may_reject: requests::may_reject(&all.settings.now().policy, person, row)?,
        session_id: None,
        question: None,
        options: None,
        free_text: None,
    })
}

fn view(tx: &ReadTx<'_>, all: &Requests, person: &Person, row: &Row, shown: Shown) -> Result<CallRequest, Error> {
    Ok(CallRequest {
        id: row.id,
        agent: agent_name(tx, row)?,
        status: row.status,
        call_id: row.call,
        tool: row.tool.clone(),
        class: row.class,
        session_id: row.session,
        turn_id: row.turn,
        message_id: row.root,
        requested_by: registry::person_name(tx, row.principal)?,
        effect: shown.effect,
        arguments: Some(Value::Object(shown.arguments)),
        origins: shown.origins.iter().map(requests::origin_view).collect(),
        reasons: shown.reasons.iter().map(requests::StoredReason::view).collect(),
        shown: shown.text,
        shown_digest: shown.digest,
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        expires_at: ironclaw_ledger::rfc3339(row.expires_at),
        told: told(row),
        yours: is_theirs(all, person, row)?,
        outcome: row.outcome.clone(),
        position: shown.position.0,
        of: shown.position.1,
    })
}
