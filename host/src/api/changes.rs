//! Changes over the API: the list, the review page, and the votes of people.
//!
//! Decides nothing: an approval goes to the gateway with the digest of the shown page, and a rejection with its reason. See
//! `gateway::decide`.

use super::agents;
use super::auth::{Current, check_still_valid};
use super::handler::{Answer, Api, Body, Caller, Reply};
use super::named::{self, id};
use crate::gateway::changes::{Shown, shown_to};
use crate::gateway::store::{self, Filter, Row, Status};
use crate::gateway::{Requester, decide};
use crate::registry::policy::Policy;
use crate::registry::{self, Person, Role, roles};
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId};
use ironclaw_operator::DenialCode;
use ironclaw_operator::{
    Approvals, Change, ChangeOrigin, ChangeSummary, ChangedAgent, Changes, Decision, EntryId, EntryType, InboxEntry,
    NewChange, Rejection, Requester as Asker, RequesterId, RequesterKind, SubmittedChange, Topic,
};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::requests::ApprovalState;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// Changes in one answer.
const CHANGES_AT_ONCE: usize = 200;

/// More changes than can wait at once.
const EVERY_WAITING: usize = 1 << 20;

/// The statuses of a change that waits for people.
const WAITING: [Status; 2] = [Status::Pending, Status::Unknown];

/// Milliseconds of the longest wait for the outcome of a change.
const WAIT_MS_MAX: u64 = 60_000;

/// Query of `GET /v1/changes`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListQuery {
    /// `pending approved applied rejected expired withdrawn failed unknown`, several with commas between, or `all`. Without it, the changes
    /// that wait for a decision.
    #[serde(default)]
    status: Option<String>,
    /// An agent by name or id; only its changes.
    #[serde(default)]
    agent: Option<String>,
    /// True for only the changes that the caller asked for, in person or through an agent.
    #[serde(default)]
    own: bool,
    /// The number of changes; at most 200.
    #[serde(default = "usual_limit")]
    #[cfg_attr(test, schema(required = false))]
    limit: usize,
}

const fn usual_limit() -> usize {
    CHANGES_AT_ONCE
}

/// `GET /v1/changes?status=S&agent=A&own=B&limit=N`: an operator sees all, a member those that they asked for or may decide; newest first.
/// With `own`, only those that the caller asked for. Without both: those that wait and that the caller may decide or asked for, oldest
/// first.
pub async fn list(Caller { api, person, .. }: Caller, Query(query): Query<ListQuery>) -> Reply<Changes> {
    // Without a status and `own`, only the changes that the caller may decide or withdraw.
    let waits = query.status.is_none() && !query.own;
    let statuses = named::statuses(query.status.as_deref(), &WAITING, &Status::ALL)?;
    let agent = agents::find_by_filter(&api, &person, query.agent).await?;
    let limit = query.limit.clamp(1, CHANGES_AT_ONCE);
    // The filter for the caller comes before the limit; few changes of each agent wait.
    let looked_at = if waits { EVERY_WAITING } else { limit + 1 };
    let changes = Arc::clone(&api.changes);
    let found = api.state().read(move |tx| {
        let filter = Filter { statuses, agent, principal: None, limit: looked_at };
        let rows = match person.role {
            _ if query.own => store::list(tx, &Filter { principal: Some(person.id), ..filter })?,
            Role::Owner | Role::Admin => store::list(tx, &filter)?,
            Role::Member => list_for_member(tx, &person, &filter)?,
        };
        let settings = changes.settings();
        let mut listed = Vec::with_capacity(rows.len());
        for row in rows {
            let rights = Rights::find(tx, &settings.policy, &person, &row)?;
            if !waits || rights.yours || rights.may_reject {
                listed.push((row, rights));
            }
        }
        if waits {
            // The oldest comes first.
            listed.reverse();
        }
        let more = listed.len() > limit;
        listed.truncate(limit);
        let shown = listed.iter().map(|(row, rights)| summary(tx, row, changes.approvals_needed(row), *rights));
        Ok::<_, ironclaw_state::Error>(Changes { changes: shown.collect::<Result<_, _>>()?, more })
    });
    Ok(Json(found.await?))
}

/// `POST /v1/changes`
pub async fn submit(Caller { api, person, .. }: Caller, Body(new): Body<NewChange>) -> Reply<SubmittedChange> {
    let NewChange { kind, agent, payload, reason } = new;
    let submitted = api.changes.submit(&person, kind, agent, payload, reason).await?;
    let (yours, waits_for) = api.changes.approvers(&person, submitted.id).await?;
    let status = Status::Pending;
    Ok(Json(SubmittedChange { id: submitted.id, status, again: submitted.again, yours, waits_for }))
}

/// Query of `GET /v1/changes/{id}`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Wait {
    /// The longest wait until an approved change is applied, in milliseconds; at most 60000.
    #[serde(default)]
    wait_ms: u64,
}

/// `GET /v1/changes/{id}?wait_ms=N`: answers at once, unless the change is approved and not applied yet.
pub async fn show(
    Caller { api, person, current }: Caller,
    Path(named): Path<String>,
    Query(wait): Query<Wait>,
) -> Reply<Change> {
    let change = known(&named)?;
    let mut events = api.state().events();
    let until = Instant::now() + Duration::from_millis(wait.wait_ms.min(WAIT_MS_MAX));
    let found = whole(&api, &person, change).await?;
    if found.status != Status::Approved {
        return Ok(Json(found));
    }
    while Instant::now() < until {
        let row = api.state().read(move |tx| store::find(tx, change)).await?;
        if row.is_none_or(|row| row.status != Status::Approved) {
            break;
        }
        loop {
            match tokio::time::timeout_at(until, events.recv()).await {
                Ok(Ok(event)) if event.event.topic() != Topic::Change => {}
                Ok(Ok(_) | Err(RecvError::Lagged(_))) | Err(_) => break,
                // The host is stopping: no further events.
                Ok(Err(RecvError::Closed)) => return Ok(Json(found)),
            }
        }
    }
    // The token may have ended during the wait.
    check_still_valid(&api, &current).await?;
    Ok(Json(whole(&api, &person, change).await?))
}

/// `POST /v1/changes/{id}/approve`: approves exactly the shown page.
pub async fn approve(
    Caller { api, person, current: Current(token) }: Caller,
    Path(named): Path<String>,
    Body(decision): Body<Decision>,
) -> Reply<Change> {
    let change = known(&named)?;
    api.changes.approve(&person, token.to_string(), change, decision.shown).await?;
    Ok(Json(whole(&api, &person, change).await?))
}

/// `POST /v1/changes/{id}/reject`
pub async fn reject(
    Caller { api, person, .. }: Caller,
    Path(named): Path<String>,
    Body(rejection): Body<Rejection>,
) -> Reply<Change> {
    let change = known(&named)?;
    api.changes.reject(&person, change, rejection.reason).await?;
    Ok(Json(whole(&api, &person, change).await?))
}

fn known(named: &str) -> Result<ChangeId, Answer> {
    id(named, DenialCode::ChangeUnknown, "change")
}

/// Returns the changes on behalf of a member, and those of the agents that they administer; newest first.
fn list_for_member(tx: &ReadTx<'_>, person: &Person, filter: &Filter) -> Result<Vec<Row>, ironclaw_state::Error> {
    let mut rows = store::list(tx, &Filter { principal: Some(person.id), ..filter.clone() })?;
    for agent in roles::administered(tx, person.id)? {
        if filter.agent.is_none_or(|wanted| wanted == agent) {
            rows.extend(store::list(tx, &Filter { agent: Some(agent), ..filter.clone() })?);
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.id));
    rows.dedup_by(|a, b| a.id == b.id);
    Ok(rows)
}

/// The rights of a person about a change that waits.
#[derive(Debug, Clone, Copy, Default)]
struct Rights {
    yours: bool,
    /// A requester may withdraw what others decide.
    may_reject: bool,
}

impl Rights {
    fn find(tx: &ReadTx<'_>, policy: &Policy, by: &Person, row: &Row) -> Result<Self, ironclaw_state::Error> {
        let yours = row.status.is_open() && decide::may_decide(tx, policy, by, row)?;
        Ok(Self { yours, may_reject: yours || decide::may_withdraw(by, row) })
    }
}

/// Returns the changes that wait for this person, and those that wait for others and that this person asked for, each with its end.
pub(super) async fn inbox(api: &Api, person: &Person) -> Result<Vec<(i64, InboxEntry)>, Answer> {
    let (changes, by) = (Arc::clone(&api.changes), person.clone());
    let found = api.state().read(move |tx| {
        let filter = Filter { statuses: WAITING.to_vec(), agent: None, principal: None, limit: EVERY_WAITING };
        let settings = changes.settings();
        let mut entries = Vec::new();
        for row in store::list(tx, &filter)? {
            let Rights { yours, may_reject } = Rights::find(tx, &settings.policy, &by, &row)?;
            if !may_reject {
                continue;
            }
            let Some(Shown { row, digest, .. }) = shown_to(tx, &settings.policy, &by, row)? else { continue };
            let entry = InboxEntry {
                id: EntryId::Change(row.id),
                entry_type: EntryType::Change,
                agent: row.agent.map(|agent| changed_agent(tx, agent)).transpose()?.map(|agent| agent.name),
                status: row.status.name().to_owned(),
                effect: row.kind.name().to_owned(),
                arguments: None,
                origins: Vec::new(),
                reasons: Vec::new(),
                shown_digest: digest,
                created_at: ironclaw_ledger::rfc3339(row.created_at),
                expires_at: ironclaw_ledger::rfc3339(row.expires_at),
                told: Vec::new(),
                yours,
                may_reject,
                session_id: None,
                question: None,
                options: None,
                free_text: None,
            };
            entries.push((row.expires_at, entry));
        }
        Ok::<_, ironclaw_state::Error>(entries)
    });
    Ok(found.await?)
}

/// Returns a change with its review page.
async fn whole(api: &Api, person: &Person, change: ChangeId) -> Result<Change, Answer> {
    let shown = api.changes.show(person, change).await?;
    let needed = api.changes.approvals_needed(&shown.row);
    Ok(api.state().read(move |tx| view(tx, shown, needed)).await?)
}

fn view(tx: &ReadTx<'_>, shown: Shown, needed: u32) -> Result<Change, Error> {
    let Shown { row, text, digest, .. } = shown;
    let ChangeSummary { id, kind, agent, status, requested_by, created_at, expires_at, approvals, .. } =
        summary(tx, &row, needed, Rights::default())?;
    let origin = match &row.requester {
        Requester::Agent { principal: _, origin } => Some(ChangeOrigin {
            session: origin.session,
            turn: origin.turn,
            message: origin.message,
            call: origin.call,
        }),
        Requester::Person(_) => None,
    };
    Ok(Change {
        id,
        kind,
        agent,
        status,
        before: row.before,
        after: row.change.payload().into(),
        requested_by,
        origin,
        reason: row.reason,
        shown_digest: row.shown.filter(|_| !row.status.is_open()).unwrap_or(digest),
        decided_by: row.decided_by,
        decided_at: row.decided_at.map(ironclaw_ledger::rfc3339),
        applied_at: row.applied_at.map(ironclaw_ledger::rfc3339),
        outcome: row.outcome,
        shown: text,
        approvals,
        created_at,
        expires_at,
    })
}

fn summary(tx: &ReadTx<'_>, row: &Row, needed: u32, rights: Rights) -> Result<ChangeSummary, ironclaw_state::Error> {
    let given = store::approvals(tx, row.id)?;
    // While the change waits, valid approvals count; afterwards those that decided it, whatever the policy says by now.
    let counts = |state: ApprovalState| match row.status {
        Status::Pending | Status::Unknown | Status::Approved => state == ApprovalState::Live,
        Status::Applied => state == ApprovalState::Used,
        Status::Failed => true,
        Status::Rejected | Status::Expired | Status::Withdrawn => false,
    };
    let by: Vec<PersonId> = given.iter().filter(|given| counts(given.state)).map(|given| given.person).collect();
    let needed = match row.status {
        Status::Applied | Status::Approved | Status::Failed => u32::try_from(by.len()).unwrap_or(needed).max(1),
        Status::Pending | Status::Unknown | Status::Rejected | Status::Expired | Status::Withdrawn => needed,
    };
    Ok(ChangeSummary {
        id: row.id,
        kind: row.kind,
        agent: row.agent.map(|agent| changed_agent(tx, agent)).transpose()?,
        status: row.status,
        requested_by: asker(tx, row)?,
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        expires_at: ironclaw_ledger::rfc3339(row.expires_at),
        approvals: Approvals { by, needed },
        yours: rights.yours,
        may_reject: rights.may_reject,
    })
}

fn changed_agent(tx: &ReadTx<'_>, id: AgentId) -> Result<ChangedAgent, ironclaw_state::Error> {
    let name = registry::name_or_id(registry::agent_by_id(tx, id)?.map(|agent| agent.name), id);
    Ok(ChangedAgent { id, name })
}

fn asker(tx: &ReadTx<'_>, row: &Row) -> Result<Asker, ironclaw_state::Error> {
    let by_person = |id: PersonId| {
        let name = registry::person_name(tx, id)?;
        Ok::<_, ironclaw_state::Error>(Asker {
            kind: RequesterKind::Person,
            id: RequesterId::Person(id),
            name,
            on_behalf_of: None,
        })
    };
    match (&row.requester, row.agent) {
        (Requester::Person(person), _) => by_person(*person),
        (Requester::Agent { principal, origin: _ }, Some(agent)) => {
            let ChangedAgent { id, name } = changed_agent(tx, agent)?;
            let on_behalf_of = Some(*principal);
            Ok(Asker { kind: RequesterKind::Agent, id: RequesterId::Agent(id), name, on_behalf_of })
        }
        // The agent that asked was removed; the person behind it is known.
        (Requester::Agent { principal, origin: _ }, None) => by_person(*principal),
    }
}
