//! The creation of an approval request, in the transaction that records its call.
//!
//! An equal call of the same task is the same request, also in a later try at the message. Bounds keep an agent from asking too often.

use super::allowance::{self, Calling};
use super::reasons::origins;
use super::{bounds, decide, ending};
use crate::channels::notifications;
use crate::gateway::waiting::{self, Gateway, Status};
use crate::registry::live_settings::LiveSettings;
use crate::registry::{self, Agent, mcp, tools};
use crate::turns::calls::{self, Call};
use crate::turns::items;
use crate::turns::turn::{self, Turn};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{ItemId, MessageId, PersonId, RequestId};
use ironclaw_judge::Class;
use ironclaw_judge::Principal;
use ironclaw_judge::call::Reason;
use ironclaw_judge::inputs::{Handles, Inputs, OutputOf};
use ironclaw_judge::provenance::Labels;
use ironclaw_judge::provenance::typed::Typed;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, Decider, DenialCode, LedgerEvent};
use ironclaw_state::keys::ContentKey;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::waiting::requests::{self, Own, Row, StoredReason};
use ironclaw_store::tables::{facts, messages};
use ironclaw_store::times::HOUR_MS;
use serde_json::{Map, Value};

/// The call that needs people, with its turn.
pub struct Asking<'a> {
    pub turn: &'a Turn,
    /// The agent that calls.
    pub agent: &'a Agent,
    /// The output that names the call.
    pub output: ItemId,
    /// The items of the prompt of that output.
    pub prompt: &'a [ItemId],
    /// The labels of the output.
    pub labels: Labels,
    /// The values that the turn's person typed.
    pub typed: &'a Typed,
    /// The values of its control fields.
    pub inputs: &'a Inputs,
    /// The values that the turn's person typed, with their ids.
    pub handles: &'a Handles,
    /// The key of the session's contents.
    pub key: &'a ContentKey,
    pub call: &'a Call,
    pub arguments: &'a Map<String, Value>,
    pub class: Class,
    /// The digest of tool and arguments.
    pub digest: Digest,
    pub reasons: &'a [Reason],
    /// True if the call does nothing but read, and sends a third party no value that the model chose.
    pub is_plain_read: bool,
}

/// The answer to a call that needs people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// The call waits for this request.
    Waits(RequestId),
    /// The allowance of this number covers the call. Its use is counted once the call runs.
    Allowed(i64),
    /// No person is asked.
    Refused(DenialCode),
    /// No person is asked, because this bound is reached.
    Over(Box<Bound>),
}

/// Records the request of a call, or finds the request of an equal call of the same task.
pub fn ask(tx: &mut WriteTx<'_>, all: &Gateway, asking: &Asking<'_>) -> Result<Asked, Error> {
    let Asking { turn, output, call, class, digest, reasons, .. } = asking;
    let principal = turn.person()?;
    let root = messages::root_of(tx, turn::newest_message(tx, turn.id)?)?;
    let found: &[Reason] = reasons;
    let reasons: Vec<StoredReason> = found.iter().map(StoredReason::from).collect();
    if let Some(equal) = requests::equal(tx, turn.session, root, *digest)? {
        match equal.status {
            Status::Pending | Status::Approved if is_current(tx, &equal, found)? => {
                requests::move_to(tx, equal.id, turn.id, call.call_id, *output)?;
                return Ok(Asked::Waits(equal.id));
            }
            Status::Pending | Status::Approved => {
                ending::withdraw(tx, all, &equal, "the call needs other people now")?;
            }
            Status::Running | Status::Unknown => return Ok(Asked::Refused(DenialCode::CallRepeated)),
            Status::Rejected | Status::Expired => return Ok(Asked::Refused(DenialCode::CallRejected)),
            Status::Done | Status::Failed | Status::Queued if is_outcome_unread(tx, asking, &equal)? => {
                return Ok(Asked::Refused(DenialCode::CallRepeated));
            }
            // The model knows the outcome, so a second call is another one.
            Status::Done | Status::Failed | Status::Queued | Status::Withdrawn | Status::Doubtful => {}
        }
    }
    let calling = Calling {
        person: principal,
        agent: asking.agent.id,
        root: Some(root),
        call,
        arguments: asking.arguments,
        is_plain_read: asking.is_plain_read,
    };
    let of_person = asking.turn.principal_kind == Principal::Person;
    let (settings, agent) = (all.settings.now(), asking.agent);
    let needing = Needing { calling, agent, class: *class, reasons: found, of_person };
    if let Some(answer) = answer_at_once(tx, &settings, &needing)? {
        return Ok(answer);
    }
    insert(tx, all, asking, root, principal, reasons).map(Asked::Waits)
}

/// A call that needs people, in or outside of the record.
pub struct Needing<'a> {
    pub calling: Calling<'a>,
    pub agent: &'a Agent,
    pub class: Class,
    pub reasons: &'a [Reason],
    /// True if it is made at a message of the person, and false at one of another agent on behalf of the person.
    pub of_person: bool,
}

/// Returns the answer to a call for which no person is asked; `None` if it waits for people. Records nothing.
pub fn answer_at_once(
    tx: &ReadTx<'_>,
    settings: &LiveSettings,
    needing: &Needing<'_>,
) -> Result<Option<Asked>, ironclaw_state::Error> {
    let Needing { calling, class, reasons, of_person, .. } = needing;
    // A person gave an allowance for their own requests, and not for messages of agents.
    if *of_person && let Some(allowance) = allowance::usable(tx, &settings.policy, calling, *class, reasons)? {
        return Ok(Some(Asked::Allowed(allowance.id)));
    }
    let Some(person) = registry::person_by_id(tx, calling.person)? else {
        return Ok(Some(Asked::Refused(DenialCode::CallNeedsPerson)));
    };
    let rule = settings.policy.call_rule(*class, &calling.call.tool);
    let needs_principal = reasons.iter().any(|reason| reason.decider() == Decider::Principal);
    if needs_principal && !decide::principal_may(rule, *class, &person) {
        return Ok(Some(Asked::Refused(DenialCode::CallNeedsPerson)));
    }
    let bound = bounds::reached(tx, needing, &person, &settings.approval)?;
    Ok(bound.map(|bound| Asked::Over(Box::new(bound))))
}

/// Finds what the request of an equal call of the same task means for a call that needs no person now. So no act happens twice: once
/// without people, and once with the approvals of its request. Returns `None` if the call may run.
pub fn follow_equal(tx: &mut WriteTx<'_>, asking: &Asking<'_>) -> Result<Option<Asked>, Error> {
    let Asking { turn, output, call, class, digest, .. } = asking;
    let root = messages::root_of(tx, turn::newest_message(tx, turn.id)?)?;
    let Some(equal) = requests::equal(tx, turn.session, root, *digest)? else { return Ok(None) };
    // The scope of a follow-up turn does not bind contained calls, so a call that people were asked about keeps its request.
    let keeps_request = tools::is_made_again(&call.tool) && root != turn::newest_message(tx, turn.id)?;
    match equal.status {
        // A person finds each approval used.
        Status::Approved if is_in_time(tx, &equal)? => {
            requests::move_to(tx, equal.id, turn.id, call.call_id, *output)?;
            Ok(Some(Asked::Waits(equal.id)))
        }
        Status::Pending if keeps_request && is_in_time(tx, &equal)? => {
            requests::move_to(tx, equal.id, turn.id, call.call_id, *output)?;
            Ok(Some(Asked::Waits(equal.id)))
        }
        Status::Expired if keeps_request => Ok(Some(Asked::Refused(DenialCode::CallRejected))),
        Status::Withdrawn if keeps_request => Ok(Some(Asked::Refused(DenialCode::CallWithdrawn))),
        Status::Pending | Status::Approved => {
            ending::end_for_permitted(tx, &equal)?;
            Ok(None)
        }
        // A second reading changes nothing.
        Status::Running | Status::Unknown if *class == Class::Read => Ok(None),
        Status::Running | Status::Unknown => Ok(Some(Asked::Refused(DenialCode::CallRepeated))),
        Status::Rejected => Ok(Some(Asked::Refused(DenialCode::CallRejected))),
        Status::Done | Status::Failed | Status::Queued
            if *class != Class::Read && is_outcome_unread(tx, asking, &equal)? =>
        {
            Ok(Some(Asked::Refused(DenialCode::CallRepeated)))
        }
        Status::Expired | Status::Done | Status::Failed | Status::Queued | Status::Withdrawn | Status::Doubtful => {
            Ok(None)
        }
    }
}

/// Returns whether a model made a call without the outcome of the equal one that ran: its prompt has neither the item of the outcome nor
/// a summary in its place. A call can run while the model works on a prompt that says that it waits.
fn is_outcome_unread(tx: &ReadTx<'_>, asking: &Asking<'_>, equal: &Row) -> Result<bool, ironclaw_state::Error> {
    let Some(outcome) = calls::find(tx, equal.call)?.and_then(|call| call.result) else { return Ok(true) };
    Ok(!asking.prompt.contains(&outcome) && !items::summary::is_covered(tx, asking.turn.session, outcome)?)
}

/// Records a new request of a call.
fn insert(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    asking: &Asking<'_>,
    root: MessageId,
    principal: PersonId,
    reasons: Vec<StoredReason>,
) -> Result<RequestId, Error> {
    let Asking { turn, agent, output, labels, key, call, class, digest, .. } = asking;
    let terms = mcp::terms(tx, agent.id, &call.tool)?
        .ok_or_else(|| ironclaw_state::Error::Stored(format!("{}: its manifest", call.call_id)))?;
    let (inputs, handles, is_typed) = (asking.inputs, asking.handles, &|text: &str| asking.typed.has(text));
    let of_output = OutputOf { output: *output, labels: *labels, inputs, handles, is_typed };
    let origins = origins(&terms, asking.arguments, of_output);
    let id = RequestId::new();
    let row = Row {
        id,
        tool: call.tool.clone(),
        session: turn.session,
        agent: agent.id,
        turn: turn.id,
        call: call.call_id,
        output: *output,
        root,
        principal,
        digest: *digest,
        arguments: key.seal(id.item(), call.arguments.as_bytes())?,
        labels: *labels,
        own: Own { class: *class, scope: turn.scope, reasons, origins },
        generation: facts::generation(tx)?,
        status: Status::Pending,
        created_at: 0,
        expires_at: 0,
        ends_at: None,
        remind_at: None,
        asked_seq: 0,
        decided_by: None,
        outcome: None,
    };
    wait_for_people(tx, all, row)?;
    Ok(id)
}

/// Records a request as one that waits from now on, with its ledger entry, and tells the people who can decide. Sets the times of the
/// row, and its status.
pub(super) fn wait_for_people(tx: &mut WriteTx<'_>, all: &Gateway, new: Row) -> Result<(), Error> {
    let (now, class) = (tx.wall(), new.own.class);
    let expires_at = now + i64::from(all.now().policy.call_rule(class, &new.tool).expires_hours) * HOUR_MS;
    let codes: Vec<&str> = new.own.reasons.iter().map(|reason| reason.code.name()).collect();
    let asked_seq = Entry::new(LedgerEvent::CallAsked)
        .session(new.session)
        .turn(new.turn)
        .with("call", new.call)
        .with("request", new.id)
        .with("tool", new.tool.clone())
        .with("class", class.name())
        .with("arguments_digest", new.digest)
        .with("reasons", codes.join(" "))
        .with("principal", new.principal)
        .with("expires", expires_at)
        .append(tx)?;
    let row = Row {
        status: Status::Pending,
        created_at: now,
        expires_at,
        ends_at: Some(expires_at),
        remind_at: Some(notifications::remind_at(now, expires_at)),
        asked_seq,
        decided_by: None,
        outcome: None,
        ..new
    };
    requests::insert(tx, &row)?;
    waiting::asked(tx, all, row.waiting_id())
}

/// Returns whether a waiting request is for the same reasons, in this generation of the record, and in time. A call that its model makes
/// again can have fewer reasons: the scope of a follow-up turn does not bind it.
fn is_current(tx: &WriteTx<'_>, row: &Row, reasons: &[Reason]) -> Result<bool, ironclaw_state::Error> {
    let is_covered = match tools::is_made_again(&row.tool) {
        true => reasons.iter().all(|reason| row.own.reasons.iter().any(|stored| stored.covers(reason))),
        false => row.own.reasons == reasons.iter().map(StoredReason::from).collect::<Vec<_>>(),
    };
    Ok(is_covered && is_in_time(tx, row)?)
}

/// Returns whether a request is of this generation of the record, and has not expired.
fn is_in_time(tx: &WriteTx<'_>, row: &Row) -> Result<bool, ironclaw_state::Error> {
    Ok(row.generation == facts::generation(tx)? && row.expires_at > tx.wall())
}
