//! The use of approvals, in the transaction that marks a call as running.
//!
//! Makes the only proof that a call may run: of the permit of a judgement, of approvals, or of an allowance. Each approval and each use of
//! an allowance counts once. See [`super::decide`] for the decisions.

use super::allowance::{self, Calling};
use super::decide::{Open, why_stale};
use super::reasons::is_for_grant;
use super::{Requests, Row, Status, ending, page};
use crate::error::Error;
use crate::gateway::store;
use crate::refusal::{Denied, Refusal};
use crate::tables::requests;
use crate::turns::calls::{Call, CallRow};
use crate::turns::turn::Turn;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{AgentId, ApprovalId, CallId, PersonId};
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_judge::Principal;
use ironclaw_judge::call::{Judgement, Permit};
use ironclaw_ledger::Entry;
use ironclaw_state::WriteTx;

/// The proof that a call may run now. Only this module makes it: of the permit of a judgement, or of approvals that it used up.
#[derive(Debug)]
pub struct Permitted {
    call: CallId,
    permit: Permit,
    is_without_grant: bool,
}

impl Permitted {
    /// Returns the call that may run.
    pub const fn call(&self) -> CallId {
        self.call
    }

    /// Returns the permit of the judgement.
    pub const fn permit(&self) -> Permit {
        self.permit
    }

    /// Returns whether people approved the call as one that no grant covers. It gets nothing of a grant that came later.
    pub const fn is_without_grant(&self) -> bool {
        self.is_without_grant
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
fn check_unused(tx: &mut WriteTx<'_>, all: &Requests, open: &Open) -> Result<(), Denied<Error>> {
    let refuse = |code: DenialCode, words: &str| Err(Refusal::new(code, words.to_owned()).into());
    match open.row.status {
        Status::Approved if open.row.expires_at <= tx.wall() => {
            ending::end(tx, &all.record, &open.row, Status::Expired, None, "its approvals were not used in time")?;
            refuse(DenialCode::CallExpired, "its approvals were not used in time")
        }
        Status::Approved => Ok(()),
        Status::Rejected => refuse(DenialCode::CallRejected, "a person rejected it"),
        Status::Expired => refuse(DenialCode::CallExpired, "it was not decided in time"),
        Status::Withdrawn => refuse(DenialCode::CallWithdrawn, "its request was withdrawn"),
        Status::Pending => refuse(DenialCode::CallNeedsPerson, "it waits for people"),
        Status::Running | Status::Done | Status::Failed | Status::Queued | Status::Unknown => {
            refuse(DenialCode::CallRepeated, "its approvals are used up")
        }
    }
}

/// The place of a call that is about to run.
#[derive(Debug, Clone, Copy)]
pub struct Running<'a> {
    /// Its turn.
    pub turn: &'a Turn,
    /// The agent.
    pub agent: AgentId,
    /// The call.
    pub call: &'a Call,
    /// Its row.
    pub row: &'a CallRow,
}

/// Uses up one use of the allowance that covers a call without a request.
fn count_allowance(
    tx: &mut WriteTx<'_>,
    running: &Running<'_>,
    judgement: &Judgement,
) -> Result<Permitted, Denied<Error>> {
    let Running { turn, agent, call, .. } = running;
    let calling = Calling { person: turn.person()?, agent: *agent, call };
    let Some(permit) = judgement.permit(|reason| allowance::is_lifted(reason.code)) else {
        return Err(Refusal::new(DenialCode::CallNeedsPerson, "no person was asked").into());
    };
    if turn.principal_kind != Principal::Person {
        return Err(Refusal::new(DenialCode::CallNeedsPerson, "an allowance is for requests of its person").into());
    }
    let place = Entry::new(LedgerEvent::AllowanceUsed).session(turn.session).turn(turn.id);
    if !allowance::count_use(tx, &calling, judgement, place)? {
        let words = "its allowance was used up, expired or was removed; an equal call in a later message asks a person";
        return Err(Refusal::new(DenialCode::AllowanceLost, words).into());
    }
    Ok(Permitted { call: call.call_id, permit, is_without_grant: false })
}

/// Uses up the approvals of a call that is judged again at the moment of its effect, in the transaction that marks it as running.
///
/// A call with a request needs its approvals, even if a later grant would permit it without them. So a person finds each approval used.
///
/// # Errors
/// Refuses, by the code of the cause, a call that is neither permitted by its judgement nor approved for each of its reasons.
pub fn use_approvals(
    tx: &mut WriteTx<'_>,
    all: &Requests,
    running: &Running<'_>,
    judgement: &Judgement,
) -> Result<Permitted, Denied<Error>> {
    let call = running.call.call_id;
    let refuse = |code: DenialCode, words: &str| Err(Refusal::new(code, words.to_owned()).into());
    let alone = judgement.permit(|_| false);
    let Some(row) = requests::of_call(tx, call)? else {
        return match alone {
            Some(permit) => Ok(Permitted { call, permit, is_without_grant: false }),
            None => count_allowance(tx, running, judgement),
        };
    };
    let open = Open::of(row)?;
    check_unused(tx, all, &open)?;
    let policy = &all.settings.now().policy;
    let is_approved = |reason: &_| open.reasons.iter().any(|stored| stored.covers(reason));
    let stale = match is_of_call(&open.row, running.row, running.turn.person().ok()) {
        true => why_stale(tx, &open)?,
        false => Some("it is the request of another call".to_owned()),
    };
    let Some(permit) = judgement.permit(is_approved).filter(|_| stale.is_none()) else {
        let why = stale.unwrap_or_else(|| "the call needs other people now, or it is denied".to_owned());
        ending::end(tx, &all.record, &open.row, Status::Withdrawn, None, &why)?;
        return refuse(DenialCode::CallWithdrawn, &why);
    };
    let page = page::show(tx, &all.record, policy, &open.row)?;
    let valid = open.count(tx, all, policy, page.digest)?;
    // A grant can lower the class. A call that needs no people now is no more than what they approved.
    let is_of_class = permit.class() == open.class || alone.is_some();
    if !is_of_class || !open.is_approved(tx, policy, &valid)? {
        let why = "its approvals are no longer valid: a role, a token, the policy, the manifest or the page changed";
        ending::end(tx, &all.record, &open.row, Status::Withdrawn, None, why)?;
        return refuse(DenialCode::ApprovalLost, why);
    }
    for approval in &valid {
        if !store::use_approval(tx, approval.given.id)? {
            return refuse(DenialCode::ApprovalUsed, "an approval is already used");
        }
    }
    requests::mark_running(tx, open.row.id)?;
    let ids: Vec<ApprovalId> = valid.iter().map(|approval| approval.given.id).collect();
    Entry::new(LedgerEvent::RequestUsed)
        .session(open.row.session)
        .with("request", open.row.id)
        .with("call", call)
        .with("approvals", canonical::to_string(&ids))
        .append(tx)?;
    let is_without_grant = open.reasons.iter().any(|reason| is_for_grant(reason.code));
    Ok(Permitted { call, permit, is_without_grant })
}
