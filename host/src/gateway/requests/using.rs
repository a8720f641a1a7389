//! The use of approvals, in the transaction that marks a call as running.
//!
//! Makes the only proof that a call may run: of the permit of a judgement, of approvals, or of an allowance. Each approval and each use of
//! an allowance counts once. See [`super::decide`] for the decisions.

use super::allowance::{self, Calling};
use super::decide::{Open, why_stale};
use super::facts::Facts;
use super::facts::read::Reading;
use super::{Calls, again, ending, page};
use crate::gateway::waiting::{self, Ending, Gateway, Kind, Status, ValidApproval};
use crate::registry::policy::Policy;
use crate::turns::calls::{Call, CallRow};
use crate::turns::turn::{self, Turn};
use ironclaw_contract::ids::{AgentId, CallId, PersonId};
use ironclaw_judge::Principal;
use ironclaw_judge::call::{Judgement, Permit};
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::messages;
use ironclaw_store::tables::turns::CallState;
use ironclaw_store::tables::waiting::requests::{self, Row};
use serde_json::{Map, Value};

/// The proof that a call may run now. Only this module makes it: of the permit of a judgement, or of approvals that it used up.
#[derive(Debug)]
pub struct Permitted {
    call: CallId,
    /// A proof, which no effect reads.
    _permit: Permit,
    facts: Facts,
}

impl Permitted {
    /// Returns the call that may run.
    pub const fn call(&self) -> CallId {
        self.call
    }

    /// Returns the facts of the call: those that people approved, if they were asked. The effect is made from them.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// Returns whether a request asks for exactly this call, made on behalf of this person.
fn is_of_call(row: &Row, made: &CallRow, principal: Option<PersonId>) -> bool {
    let is_same = row.digest == made.digest && row.tool == made.tool && row.output == made.output;
    is_same && row.session == made.session && row.turn == made.turn && Some(row.principal) == principal
}

/// Checks that a request is approved and that its approvals are in time.
///
/// # Errors
/// Refuses any other request by its status.
fn check_unused(tx: &mut WriteTx<'_>, all: &Gateway, open: &Open) -> Result<(), Denied<Error>> {
    let refuse = |code: DenialCode, words: &str| Err(Refusal::new(code, words.to_owned()).into());
    match open.row.status {
        Status::Approved if open.row.expires_at <= tx.wall() => {
            let why = "its approvals were not used in time";
            let ending = Ending { status: Status::Expired, by: None, outcome: why };
            waiting::end_active(tx, all, open.row.waiting_id(), &ending)?;
            refuse(DenialCode::CallExpired, why)
        }
        Status::Approved => Ok(()),
        Status::Rejected => refuse(DenialCode::CallRejected, "a person rejected it"),
        Status::Expired => refuse(DenialCode::CallExpired, "it was not decided in time"),
        Status::Withdrawn => refuse(DenialCode::CallWithdrawn, "its request was withdrawn"),
        Status::Pending | Status::Doubtful => refuse(DenialCode::CallNeedsPerson, "it waits for people"),
        Status::Running | Status::Done | Status::Failed | Status::Queued | Status::Unknown => {
            refuse(DenialCode::CallRepeated, "its approvals are used up")
        }
    }
}

/// The place of a call that is about to run.
#[derive(Debug, Clone, Copy)]
pub struct Running<'a> {
    pub turn: &'a Turn,
    pub agent: AgentId,
    pub call: &'a Call,
    /// The recorded arguments of the call.
    pub arguments: &'a Map<String, Value>,
    pub row: &'a CallRow,
}

/// Uses up one use of the allowance that covers a call without a request.
fn count_allowance(
    tx: &mut WriteTx<'_>,
    policy: &Policy,
    running: &Running<'_>,
    judgement: &Judgement,
    facts: Facts,
) -> Result<Permitted, Denied<Error>> {
    let Running { turn, agent, call, arguments, .. } = running;
    let root = messages::root_of(tx, turn::newest_message(tx, turn.id)?)?;
    let calling = Calling {
        person: turn.person()?,
        agent: *agent,
        root: Some(root),
        call,
        arguments,
        is_plain_read: judgement.is_plain_read,
    };
    let Some(permit) = judgement.permit(|reason| allowance::is_lifted_by_any(reason.code)) else {
        return Err(Refusal::new(DenialCode::CallNeedsPerson, "no person was asked").into());
    };
    if turn.principal_kind != Principal::Person {
        return Err(Refusal::new(DenialCode::CallNeedsPerson, "an allowance is for requests of its person").into());
    }
    let place = Entry::new(LedgerEvent::AllowanceUsed).session(turn.session).turn(turn.id);
    if !allowance::count_use(tx, policy, &calling, judgement, place)? {
        let words = "its allowance was used up, expired or was removed; an equal call in a later message asks a person";
        return Err(Refusal::new(DenialCode::AllowanceLost, words).into());
    }
    Ok(Permitted { call: call.call_id, _permit: permit, facts })
}

/// Returns the facts of a call that runs without a request.
fn facts_of_running(tx: &WriteTx<'_>, all: &Gateway, running: &Running<'_>) -> Result<Facts, Error> {
    let Running { turn, agent, call, arguments, .. } = running;
    let reading = Reading {
        session: turn.session,
        agent: *agent,
        call: call.call_id,
        tool: &call.tool,
        arguments,
        loopback: all.settings.now().host_policy.egress.loopback(),
        is_without_grant: false,
    };
    Ok(Facts::read(tx, &reading)?)
}

/// Uses up the approvals of a call that is judged again at the moment of its effect, in the transaction that marks it as running.
///
/// A call with a request needs its approvals, even if a later grant would permit it without them. So a person finds each approval used.
///
/// # Errors
/// Refuses, by the code of the cause, a call that is neither permitted by its judgement nor approved for each of its reasons, and as
/// [`DenialCode::ShownDiffers`] one that people approved for other facts. If people can be asked, such a call waits again then.
pub fn use_approvals(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    running: &Running<'_>,
    judgement: &Judgement,
) -> Result<Permitted, Denied<Error>> {
    let call = running.call.call_id;
    let refuse = |code: DenialCode, words: &str| Err(Refusal::new(code, words.to_owned()).into());
    let alone = judgement.permit(|_| false);
    let Some(row) = requests::find_by_call(tx, call)? else {
        // Only a call that waited for people can be without its request: an equal later call has it.
        if running.row.state == CallState::Asked {
            return refuse(DenialCode::CallRepeated, "an equal later call took its place");
        }
        let facts = facts_of_running(tx, all, running)?;
        return match alone {
            Some(permit) => Ok(Permitted { call, _permit: permit, facts }),
            None => count_allowance(tx, &all.settings.now().policy, running, judgement, facts),
        };
    };
    let open = Open::from(row);
    check_unused(tx, all, &open)?;
    let policy = &all.settings.now().policy;
    let is_approved = |reason: &_| open.row.own.reasons.iter().any(|stored| stored.covers(reason));
    let stale = match is_of_call(&open.row, running.row, running.turn.person().ok()) {
        true => why_stale(tx, &open.row)?,
        false => Some("it is the request of another call".to_owned()),
    };
    if let Some(why) = stale {
        ending::withdraw(tx, all, &open.row, &why)?;
        return refuse(DenialCode::CallWithdrawn, &why);
    }
    let facts = page::facts_of_row(tx, all, &open.row)?;
    if open.is_approved_for_other(tx, all, facts.digest())? {
        let why = again::withdraw_and_ask(tx, all, &open.row, judgement)?;
        return refuse(DenialCode::ShownDiffers, &why);
    }
    let Some(permit) = judgement.permit(is_approved) else {
        let why = "the call needs other people now, or it is denied";
        ending::withdraw(tx, all, &open.row, why)?;
        return refuse(DenialCode::CallWithdrawn, why);
    };
    let page = page::show(tx, all, &open.row)?;
    let ballot = open.ballot(tx, policy, &page)?;
    let of = waiting::decide::known(tx, open.row.waiting_id())?;
    let valid = waiting::count(tx, all, &of, &ballot)?;
    // A grant can lower the class. If the call needs no approval now, what people approved covers it.
    let is_of_class = permit.class() == open.row.own.class || alone.is_some();
    if !is_of_class || !Calls.is_approved(tx, &of, &ballot, &valid)? {
        let why = "its approvals are no longer valid: a role, a token, the policy, the manifest or the page changed";
        ending::withdraw(tx, all, &open.row, why)?;
        return refuse(DenialCode::ApprovalLost, why);
    }
    mark_used(tx, &open.row, &valid)?;
    Ok(Permitted { call, _permit: permit, facts })
}

/// Uses up approvals that count, and marks their request as running.
fn mark_used(tx: &mut WriteTx<'_>, row: &Row, valid: &[ValidApproval]) -> Result<(), Denied<Error>> {
    let used = waiting::decide::use_up(tx, row.waiting_id(), valid)?;
    requests::mark_running(tx, row.id)?;
    Entry::new(LedgerEvent::RequestUsed)
        .session(row.session)
        .with("request", row.id)
        .with("call", row.call)
        .with("approvals", used)
        .append(tx)?;
    Ok(())
}
