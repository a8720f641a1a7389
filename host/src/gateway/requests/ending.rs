//! The end of a request without its call, and of one whose call ran.
//!
//! Opens no turn: the session gets a notice, if the model was told that the call waits and no equal call took its place. See
//! [`crate::channels::inbound::inbox::notify`].

use super::notice;
use crate::channels::inbound::inbox;
use crate::channels::notifications;
use crate::channels::outbound::delivery::sent_files;
use crate::registry::{self, Identity};
use crate::sessions::store as sessions;
use ironclaw_contract::ids::{MessageId, PersonId, SessionId};
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::tables::requests::{self, Row, Status};
use ironclaw_store::tables::{messages, turns};
use ironclaw_text::lookalike;

/// Ends an open request, voids its approvals, and informs its session.
pub fn end(
    tx: &mut WriteTx<'_>,
    record: &Record,
    row: &Row,
    status: Status,
    by: Option<PersonId>,
    outcome: &str,
) -> Result<(), Error> {
    if !close(tx, row, status, by, outcome)? {
        return Ok(());
    }
    end_call(tx, row, status)?;
    if row.status == Status::Approved {
        return notice::notify_unused(tx, record, row, outcome);
    }
    let who = by.map(|by| registry::person_name(tx, by)).transpose()?;
    let who = who.map_or_else(String::new, |name| format!(" by {name}"));
    let what = match status {
        Status::Rejected if outcome.is_empty() => format!("was rejected{who}; it did not run"),
        Status::Rejected => format!("was rejected{who}; it did not run. The given reason: {outcome:?}"),
        Status::Expired => "was not decided in time; it did not run".to_owned(),
        _ => format!("can no longer be decided: {outcome}. It did not run"),
    };
    inform(tx, record, row, &format!("Your call of {} that waited as {} {what}.", row.tool, row.id))
}

/// Withdraws an approved request because another one takes its place: its call waits for people again.
pub(super) fn end_before_another(tx: &mut WriteTx<'_>, record: &Record, row: &Row, why: &str) -> Result<(), Error> {
    match close(tx, row, Status::Withdrawn, None, why)? {
        true => notice::notify_replaced(tx, record, row, why),
        false => Ok(()),
    }
}

/// Withdraws a pending request because an equal call of its task runs without people. The model reads the result of that call.
pub(super) fn end_for_permitted(tx: &mut WriteTx<'_>, row: &Row) -> Result<(), ironclaw_state::Error> {
    if close(tx, row, Status::Withdrawn, None, "an equal call of its task needs no person now, and took its place")? {
        end_call(tx, row, Status::Withdrawn)?;
    }
    Ok(())
}

/// Refuses the call of a request that ended so, and drops its copy of a file.
fn end_call(tx: &mut WriteTx<'_>, row: &Row, status: Status) -> Result<(), ironclaw_state::Error> {
    sent_files::end(tx, row.call)?;
    if let Some(code) = code_of_call(status)
        && turns::refuse_late_call(tx, row.call, code)?
    {
        let refused = Entry::new(LedgerEvent::CallRefused).session(row.session).turn(row.turn).with("call", row.call);
        refused.with("tool", row.tool.clone()).reason(code.name()).append(tx)?;
    }
    Ok(())
}

/// Ends an open request with its ledger entry, and voids its approvals. Returns whether it was open.
fn close(
    tx: &mut WriteTx<'_>,
    row: &Row,
    status: Status,
    by: Option<PersonId>,
    outcome: &str,
) -> Result<bool, ironclaw_state::Error> {
    if !requests::end(tx, row.id, status, by, outcome)? {
        return Ok(false);
    }
    requests::void_approvals(tx, row.id)?;
    notifications::withdraw(tx, row.id)?;
    let event = match status {
        Status::Rejected => LedgerEvent::RequestRejected,
        Status::Expired => LedgerEvent::RequestExpired,
        Status::Withdrawn
        | Status::Pending
        | Status::Approved
        | Status::Running
        | Status::Done
        | Status::Failed
        | Status::Queued
        | Status::Unknown => LedgerEvent::RequestWithdrawn,
    };
    let entry = Entry::new(event).session(row.session).turn(row.turn).with("request", row.id).reason(outcome);
    match by {
        Some(by) => entry.with("by", by).append(tx)?,
        None => entry.append(tx)?,
    };
    Ok(true)
}

/// Returns the code of a call whose request ended so; `None` for a request that did not end.
const fn code_of_call(status: Status) -> Option<DenialCode> {
    match status {
        Status::Rejected => Some(DenialCode::CallRejected),
        Status::Expired => Some(DenialCode::CallExpired),
        Status::Withdrawn => Some(DenialCode::CallWithdrawn),
        Status::Pending | Status::Approved | Status::Running => None,
        Status::Done | Status::Failed | Status::Queued | Status::Unknown => None,
    }
}

/// Informs the session of a request whose call has a result already: the model knows that it waits.
pub fn inform(tx: &mut WriteTx<'_>, record: &Record, row: &Row, text: &str) -> Result<(), Error> {
    let is_told = turns::find_call(tx, row.call)?.is_some_and(|call| call.result.is_some());
    if !is_told {
        return Ok(());
    }
    let Some(session) = sessions::find(tx, row.session)?.filter(|session| session.wrapped.is_some()) else {
        return Ok(());
    };
    let notice = inbox::notify(tx, &session, &lookalike::neutralise(text), &record.wrapping, &record.sealer)?;
    // In place of the text that the call waits.
    Ok(turns::set_late_result(tx, row.call, notice.item())?)
}

/// Withdraws the open requests of the task of a message, in whichever turn they were made.
pub fn end_of_task(
    tx: &mut WriteTx<'_>,
    record: &Record,
    session: SessionId,
    message: MessageId,
    why: &str,
) -> Result<(), Error> {
    let root = messages::root_of(tx, message)?;
    for row in requests::list_for_task(tx, session, root)? {
        end(tx, record, &row, Status::Withdrawn, None, why)?;
    }
    Ok(())
}

/// Withdraws the approved calls of a session that have not begun.
pub fn withdraw_approved(tx: &mut WriteTx<'_>, record: &Record, session: SessionId, why: &str) -> Result<(), Error> {
    for row in requests::approved_of_session(tx, session)? {
        end(tx, record, &row, Status::Withdrawn, None, why)?;
    }
    Ok(())
}

/// Withdraws the open requests whose task began with a message of this sender, because the identity is no longer linked.
pub fn end_of_sender(tx: &mut WriteTx<'_>, record: &Record, identity: &Identity) -> Result<(), Error> {
    for row in requests::open_of_sender(tx, &identity.channel, &identity.sender)? {
        end(tx, record, &row, Status::Withdrawn, None, "the identity of its person was unlinked")?;
    }
    Ok(())
}

/// Withdraws every open request of this host.
pub fn end_all(tx: &mut WriteTx<'_>, record: &Record, why: &str) -> Result<usize, Error> {
    let open = requests::every_open(tx)?;
    for row in &open {
        end(tx, record, row, Status::Withdrawn, None, why)?;
    }
    Ok(open.len())
}
