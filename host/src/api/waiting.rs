//! What waits for people over the API: the one list, the page of each, and the decisions of people.
//!
//! Decides nothing: a decision goes to [`crate::gateway::waiting`], and a yes has the digest of the shown page.

use super::agents;
use super::auth::check_still_valid;
use super::handler::{Answer, Api, Body, Caller, Reply};
use super::named;
use crate::gateway::questions::Given;
use crate::gateway::requests;
use crate::gateway::review_page::{self, Page};
use crate::gateway::waiting::decide::{is_confirmed, seen};
use crate::gateway::waiting::{Filter, Gateway, Rights, Shown, Sight, Status, Waiting, WaitingId, words_of};
use crate::reach::git_push::{self, Diff};
use crate::registry::tools::GIT_PUSH;
use crate::registry::{self, Person, Role};
use crate::sessions::store;
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::ids::{PersonId, RequestId, SessionId};
use ironclaw_operator::{
    Approvals, Decision, DenialCode, Details, MessageView, NamedPerson, NewRequestReset, Origin, PushDiff,
    RequestReset, Requester, RequesterId, RequesterKind, Topic, Waiting as View, WaitingEntry, WaitingKind,
    WaitingList, WaitingTogether,
};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::approvals::{self, ApprovalState};
use ironclaw_store::tables::waiting as table;
use ironclaw_store::tables::waiting::requests as calls;
use ironclaw_text::excerpt::quoted;
use serde::Deserialize;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Entries in one answer.
const AT_ONCE_MAX: usize = 200;

/// Entries of one status that a list looks at; more than can wait at once.
const READ_MAX: usize = 5000;

/// Milliseconds of the longest wait for an effect.
const WAIT_MS_MAX: u64 = 60_000;

/// Lines of a diff in one answer, and in all parts.
const DIFF_LINES_AT_ONCE: usize = 4_000;
const DIFF_LINES_MAX: usize = 40_000;

/// Query of `GET /v1/waiting`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListQuery {
    /// `call`, `question` or `change`; without it, every type.
    #[serde(default, rename = "type")]
    kind: Option<WaitingKind>,
    /// `pending doubtful approved running done queued failed rejected expired withdrawn unknown`, several with commas between, or `all`.
    /// Without it, what waits for people.
    #[serde(default)]
    status: Option<String>,
    /// An agent by name or id; only what it asked, or what concerns it.
    #[serde(default)]
    agent: Option<String>,
    /// True for only what the caller asked for, in person or through an agent.
    #[serde(default)]
    own: bool,
    /// The number of entries; at most 200.
    #[serde(default = "usual_limit")]
    #[cfg_attr(test, schema(required = false))]
    limit: usize,
    /// The number of entries before the first one. Default: 0.
    #[serde(default)]
    skip: usize,
    /// Only what an agent asked in this conversation.
    #[serde(skip)]
    #[cfg_attr(test, schema(ignore))]
    session: Option<SessionId>,
}

impl ListQuery {
    /// Returns the query of an inbox: what waits, without the first `skip` entries.
    pub(super) const fn inbox(limit: usize, skip: usize) -> Self {
        Self { kind: None, status: None, agent: None, own: false, limit, skip, session: None }
    }

    /// Returns the query of what waits in a conversation.
    pub(super) fn in_session(session: SessionId) -> Self {
        Self { session: Some(session), ..Self::inbox(AT_ONCE_MAX, 0) }
    }
}

const fn usual_limit() -> usize {
    AT_ONCE_MAX
}

/// `GET /v1/waiting?type=T&status=S&agent=A&own=B&limit=N&skip=N`: what the caller may see. Without a status and `own`: what waits and what the
/// caller may decide, answer, reject or withdraw. First what waits, what the caller may decide before the rest, the soonest end first; then
/// the others, the newest first.
pub async fn list(Caller { api, person, .. }: Caller, Query(query): Query<ListQuery>) -> Reply<WaitingList> {
    let is_inbox = query.status.is_none() && !query.own;
    let statuses = named::statuses(query.status.as_deref(), &Status::OPEN, &Status::ALL)?;
    let agent = agents::find_by_filter(&api, &person, query.agent).await?;
    let principal = query.own.then_some(person.id);
    let filter = Filter { statuses, kind: query.kind, agent, principal, limit: READ_MAX };
    let session = query.session;
    let (all, limit, skip) = (Arc::clone(&api.gateway), query.limit.clamp(1, AT_ONCE_MAX), query.skip);
    let found = api.state().read(move |tx| {
        let read = table::list(tx, &filter)?;
        let is_cut =
            filter.statuses.iter().any(|status| read.iter().filter(|of| of.status == *status).count() == READ_MAX);
        let mut listed = Vec::new();
        for of in read.into_iter().filter(|of| session.is_none() || of.session == session) {
            match all.kind(of.id).rights(tx, &all, &person, &of) {
                Ok(rights) if rights.sight.is_some() && (!is_inbox || rights.decides || rights.rejects) => {
                    listed.push((of, rights));
                }
                Ok(_) => {}
                // Another version wrote it. It hides no other.
                Err(error) => tracing::error!(id = %of.id, %error, "cannot read what waits for people; it is skipped"),
            }
        }
        listed.sort_by_key(|(of, rights)| match of.status.is_open() {
            true => (false, !rights.decides, of.expires_at, Reverse(0)),
            false => (true, false, 0, Reverse(of.created_at)),
        });
        let more = is_cut || listed.len() > skip.saturating_add(limit);
        let listed: Vec<_> = listed.into_iter().skip(skip).take(limit).collect();
        let entries = listed.iter().map(|(of, rights)| in_list(tx, &all, of, *rights));
        Ok::<_, Error>(WaitingList { entries: entries.collect::<Result<_, Error>>()?, more })
    });
    Ok(Json(found.await?))
}

/// Query of `GET /v1/waiting/{id}`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Wait {
    /// The longest wait for the effect of what is approved, in milliseconds; at most 60000.
    #[serde(default)]
    wait_ms: u64,
}

impl Wait {
    /// Returns a wait of at most this number of milliseconds.
    pub(super) const fn up_to_ms(wait_ms: u64) -> Self {
        Self { wait_ms }
    }
}

/// Returns whether an approval of one of these needs a fresh code, because the session of the caller was confirmed too long ago.
pub(super) async fn needs_code(caller: &Caller, ids: &[WaitingId]) -> Result<bool, Answer> {
    let by = caller.signer();
    let (all, ids) = (Arc::clone(&caller.api.gateway), ids.to_vec());
    let needed = caller.api.state().read(move |tx| {
        if is_confirmed(tx, &by)? {
            return Ok(false);
        }
        for id in ids {
            if let Some(of) = table::find(tx, id)?
                && all.kind(id).is_grave(tx, &of)?
            {
                return Ok::<_, Error>(true);
            }
        }
        Ok(false)
    });
    Ok(needed.await?)
}

/// `GET /v1/waiting/{id}?wait_ms=N`: answers at once, unless it is approved and its effect is not made yet.
pub async fn show(
    Caller { api, person, current, .. }: Caller,
    Path(named): Path<String>,
    Query(wait): Query<Wait>,
) -> Reply<View> {
    let id = known(&named)?;
    let (mut events, mut changed) = (api.state().events(), api.gateway.watch());
    let until = Instant::now() + Duration::from_millis(wait.wait_ms.min(WAIT_MS_MAX));
    let found = whole(&api, &person, id).await?;
    if !found.entry.status.is_underway() || wait.wait_ms == 0 {
        return Ok(Json(found));
    }
    while Instant::now() < until {
        let now = api.state().read(move |tx| table::find(tx, id)).await?;
        if now.is_none_or(|of| !of.status.is_underway()) {
            break;
        }
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Ok(event) if event.event.topic() != Topic::Change => {}
                    Ok(_) | Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => break,
                    // The host is stopping: no further events.
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => return Ok(Json(found)),
                },
                _ = changed.changed() => break,
                () = tokio::time::sleep_until(until) => break,
            }
        }
    }
    // The token may have ended during the wait.
    check_still_valid(&api, &current).await?;
    Ok(Json(whole(&api, &person, id).await?))
}

/// `POST /v1/waiting/{id}/decision`: approves exactly the shown page, rejects or withdraws, or answers. An answer is recorded as a message of
/// the conversation, which opens a turn.
pub async fn decide(caller: Caller, Path(named): Path<String>, Body(decision): Body<Decision>) -> Reply<View> {
    let (id, by, api) = (known(&named)?, caller.signer(), caller.api);
    let all = &api.gateway;
    match decision {
        Decision::Approve(shown) => all.approve(&by, id, shown).await?,
        Decision::ApproveUntilAnswer(shown) => all.approve_until_answer(&by, call(id)?, shown).await?,
        Decision::ApproveTogether(shown) => all.approve_together(&by, call(id)?, shown).await?,
        Decision::Reject(reason) => all.reject(&by, id, reason).await?,
        Decision::RejectTogether(reason) => all.reject_together(&by, call(id)?, reason).await?,
        Decision::Answer(answer) => {
            let WaitingId::Question(question) = id else {
                let refusal = Refusal::new(DenialCode::QuestionAnswerInvalid, format!("{id} is no question"));
                return Err(refusal.hint(format!("decide on it: `ironctl approve {id}`")).into());
            };
            let recorded = all.answer(&by, question, Given::try_from(answer)?).await?;
            api.inbound.wake.wake(recorded.session);
        }
    }
    Ok(Json(whole(&api, &by.person, id).await?))
}

/// `GET /v1/waiting/{id}/together`: the page of the calls of one output that wait together with this one.
pub async fn together(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<WaitingTogether> {
    let (id, all) = (call(known(&named)?)?, Arc::clone(&api.gateway));
    let found = api.state().read(move |tx| requests::together::show(tx, &all, &person, id)).await?;
    Ok(Json(WaitingTogether {
        calls: found.calls.iter().map(|call| call.id).collect(),
        shown: found.text,
        shown_digest: found.digest,
        until_answer: found.reads.map(Into::into),
    }))
}

/// Returns the id of a call, for what only calls have.
fn call(id: WaitingId) -> Result<RequestId, Refusal> {
    let WaitingId::Call(call) = id else {
        let refusal = Refusal::new(DenialCode::RequestAlone, format!("{id} is no call of a tool"));
        return Err(refusal.hint(format!("decide on it alone: `ironctl inbox show {id}`")));
    };
    Ok(call)
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
    let requests = api.gateway.reset(&person, &agent, of.as_ref().map(|of| of.id)).await?;
    Ok(Json(RequestReset { agent: agent.name, person: of.map(|of| of.name), requests }))
}

/// Query of `GET /v1/waiting/{id}/diff`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct DiffQuery {
    /// The first line; 0 without it.
    #[serde(default)]
    from: u64,
}

/// `GET /v1/waiting/{id}/diff?from=N`: a part of the diff of a push, read again from the workspace and compared with the digest of the call.
pub async fn diff(
    Caller { api, person, .. }: Caller,
    Path(named): Path<String>,
    Query(DiffQuery { from }): Query<DiffQuery>,
) -> Reply<PushDiff> {
    let (id, all) = (known(&named)?, Arc::clone(&api.gateway));
    let found = api.state().read(move |tx| {
        let (of, _) = seen(tx, &all, &person, id)?;
        let row = match of.id {
            WaitingId::Call(request) if of.subject == GIT_PUSH => calls::find(tx, request)?,
            _ => None,
        };
        let row = row.ok_or_else(|| no_diff("it is no push"))?;
        let session = store::find(tx, row.session)?.ok_or_else(|| no_diff("its conversation was erased"))?;
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

/// Parses the id of a path, or refuses it as unknown.
fn known(named: &str) -> Result<WaitingId, Answer> {
    named.parse().map_err(|_| {
        let code = match named.split_once('_') {
            Some(("chg", _)) => DenialCode::ChangeUnknown,
            Some(("qst", _)) => DenialCode::QuestionUnknown,
            _ => DenialCode::RequestUnknown,
        };
        let refusal = Refusal::new(code, format!("nothing that waits has the id {}", quoted(named)));
        refusal.hint("`ironctl inbox list` shows the ids").into()
    })
}

async fn whole(api: &Api, person: &Person, id: WaitingId) -> Result<View, Answer> {
    let (all, person) = (Arc::clone(&api.gateway), person.clone());
    let found = api.state().read(move |tx| {
        let (of, rights) = seen(tx, &all, &person, id)?;
        Ok::<_, Denied<Error>>(view(tx, &all, &of, rights)?)
    });
    Ok(found.await?)
}

/// Returns the calls of a message's task and of its turn that wait or waited, in the view for this person, without those that they may not
/// see. Those of interrupted attempts and of follow-up turns are among them.
pub(super) fn calls_for_message(
    tx: &ReadTx<'_>,
    all: &Gateway,
    person: &Person,
    message: &MessageView,
) -> Result<Vec<View>, Error> {
    let session = message.session_id;
    let ids = |rows: Vec<calls::Row>| rows.into_iter().map(|row| row.id).collect::<Vec<RequestId>>();
    let mut requests = ids(requests::list_for_task(tx, session, message.message_id)?);
    // A turn asks for its newest message, which may be another one.
    if let Some(turn) = message.turn_id {
        requests.extend(ids(requests::list_for_turn(tx, session, turn)?));
    }
    requests.sort_unstable();
    requests.dedup();
    let mut views = Vec::new();
    for request in requests {
        match seen(tx, all, person, request.into()) {
            Ok((of, rights)) => views.push(view(tx, all, &of, rights)?),
            Err(Denied::Refused(_)) => {}
            Err(Denied::Failed(error)) => return Err(error),
        }
    }
    Ok(views)
}

/// Returns the page for a person with these rights.
fn shown_to(tx: &ReadTx<'_>, all: &Gateway, of: &Waiting, rights: Rights) -> Result<Shown, Error> {
    let shown = all.kind(of.id).show(tx, all, of)?;
    Ok(match rights.sight {
        Some(Sight::Whole) => shown,
        Some(Sight::Status) | None => Shown::new(review_page::status_page(of), shown.effect, None),
    })
}

fn in_list(tx: &ReadTx<'_>, all: &Gateway, of: &Waiting, rights: Rights) -> Result<WaitingEntry, Error> {
    let View { entry, .. } = view(tx, all, of, rights)?;
    // The values of a change can be large; its page has them.
    let details = entry.details.filter(|details| !matches!(details, Details::Change(_)));
    Ok(WaitingEntry { details, ..entry })
}

fn view(tx: &ReadTx<'_>, all: &Gateway, of: &Waiting, rights: Rights) -> Result<View, Error> {
    let Shown { text, digest, effect, question, reasons, details, .. } = shown_to(tx, all, of, rights)?;
    let origin = match (of.session, of.turn, of.call) {
        (Some(session), Some(turn), Some(call)) => {
            Some(Origin { session, turn, message: of.root.or(of.message), call })
        }
        _ => None,
    };
    let is_open = of.status.is_open();
    let entry = WaitingEntry {
        id: of.id,
        kind: of.id.kind(),
        status: of.status,
        agent: of.agent.map(|agent| registry::agent_name(tx, agent)).transpose()?,
        subject: of.subject.clone(),
        effect,
        question,
        reasons,
        requested_by: requester(tx, of)?,
        origin,
        shown_digest: of.shown.filter(|_| !is_open).unwrap_or(digest),
        approvals: given(tx, all, of)?,
        created_at: ironclaw_ledger::rfc3339(of.created_at),
        expires_at: ironclaw_ledger::rfc3339(of.expires_at),
        decided_by: of.decided_by.map(|by| named_person(tx, by)).transpose()?,
        decided_at: of.decided_at.map(ironclaw_ledger::rfc3339),
        ended_at: of.ended_at.map(ironclaw_ledger::rfc3339),
        outcome: of.outcome.clone(),
        told: of.told.split_ascii_whitespace().map(str::to_owned).collect(),
        yours: is_open && rights.decides,
        may_reject: is_open && rights.rejects,
        details,
    };
    Ok(View { summary: summary(&entry), entry, shown: text })
}

/// Returns a sentence about the status.
fn summary(WaitingEntry { id, status, yours, may_reject, approvals, outcome, .. }: &WaitingEntry) -> String {
    let outcome = outcome.as_deref().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let outcome = if outcome.is_empty() { String::new() } else { format!(": {outcome}") };
    match status {
        Status::Pending if *yours && approvals.needed > 1 => {
            let (count, needed) = (approvals.by.len(), approvals.needed);
            format!("{id} waits for you, with {count} of {needed} approvals: `ironctl inbox`")
        }
        Status::Pending if *yours => format!("{id} waits for you: `ironctl inbox`"),
        Status::Pending if *may_reject => format!("{id} waits for other people; `ironctl reject {id}` ends it"),
        Status::Pending => format!("{id} waits for other people"),
        Status::Doubtful => format!("{id} is in doubt{outcome}"),
        Status::Approved => format!("{id} is approved; its effect is not made yet: `ironctl why {id}`"),
        Status::Running => format!("{id} is approved, and the call runs: `ironctl why {id}`"),
        Status::Queued => format!("{id} is made; its message waits for its delivery: `ironctl why {id}`"),
        Status::Unknown => format!("{id} was approved, and nothing shows if the call had its effect{outcome}"),
        Status::Done => format!("{id} {}{outcome}", words_of(*id).done),
        Status::Failed => format!("{id} {}{outcome}", words_of(*id).failed),
        Status::Rejected | Status::Expired | Status::Withdrawn => format!("{id} is {status}{outcome}"),
    }
}

/// Returns the approvals so far, and the number of approvals that it needs.
fn given(tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<Approvals, Error> {
    // While it waits, valid approvals count; afterwards those that decided it, whatever the policy says by now.
    let counts = |state: ApprovalState| match of.status {
        Status::Pending | Status::Doubtful | Status::Approved => state == ApprovalState::Live,
        Status::Running | Status::Done | Status::Queued | Status::Unknown => state == ApprovalState::Used,
        Status::Failed => true,
        Status::Rejected | Status::Expired | Status::Withdrawn => false,
    };
    let given = approvals::list(tx, of.id)?;
    let by: Vec<PersonId> = given.iter().filter(|given| counts(given.state)).map(|given| given.person).collect();
    let needed = match of.status.is_open() || by.is_empty() {
        true => all.kind(of.id).approvals_needed(tx, all, of)?,
        false => u32::try_from(by.len()).unwrap_or(u32::MAX),
    };
    Ok(Approvals { by, needed })
}

fn named_person(tx: &ReadTx<'_>, id: PersonId) -> Result<NamedPerson, ironclaw_state::Error> {
    Ok(NamedPerson { id, name: registry::person_name(tx, id)? })
}

fn requester(tx: &ReadTx<'_>, of: &Waiting) -> Result<Requester, ironclaw_state::Error> {
    let NamedPerson { id, name } = named_person(tx, of.principal)?;
    Ok(match of.agent.filter(|_| of.session.is_some()) {
        Some(agent) => Requester {
            kind: RequesterKind::Agent,
            id: RequesterId::Agent(agent),
            name: registry::agent_name(tx, agent)?,
            on_behalf_of: Some(NamedPerson { id, name }),
        },
        None => Requester { kind: RequesterKind::Person, id: RequesterId::Person(id), name, on_behalf_of: None },
    })
}
