//! The end of a request without its call: the call is refused, and its session gets a notice if the model was told that the call waits and
//! no equal call took its place.

use super::notice;
use crate::channels::outbound::delivery::sent_files;
use crate::gateway::waiting::{self, Ending, Gateway, Status, Waiting};
use crate::registry::Identity;
use ironclaw_contract::ids::{MessageId, SessionId};
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent, WaitingKind};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::tables::waiting::requests::{self, Row};
use ironclaw_store::tables::{messages, turns, waiting as table};

/// Makes the effects of the end of a request: `row` is as it was before.
pub(super) fn end(
    tx: &mut WriteTx<'_>,
    record: &Record,
    of: &Waiting,
    row: &Row,
    ending: &Ending<'_>,
) -> Result<(), Error> {
    end_call(tx, row, ending.status)?;
    if of.status == Status::Approved {
        return notice::notify_unused(tx, record, row, ending.outcome);
    }
    let what = waiting::outcome(tx, of, ending)?;
    inform(tx, record, of, row, &format!("Your call of {} that waited as {} {what}.", row.tool, row.id))
}

/// Withdraws a request that waits or is approved.
pub fn withdraw(tx: &mut WriteTx<'_>, all: &Gateway, row: &Row, why: &str) -> Result<(), Error> {
    let ending = Ending { status: Status::Withdrawn, by: None, outcome: why };
    waiting::end_active(tx, all, row.waiting_id(), &ending).map(drop)
}

/// Withdraws an approved request because another one takes its place: its call waits for people again.
pub(super) fn end_before_another(tx: &mut WriteTx<'_>, record: &Record, row: &Row, why: &str) -> Result<(), Error> {
    match close(tx, row, why)? {
        true => notice::notify_replaced(tx, record, row, why),
        false => Ok(()),
    }
}

/// Withdraws a pending request because an equal call of its task runs without people. The model reads the result of that call.
pub(super) fn end_for_permitted(tx: &mut WriteTx<'_>, row: &Row) -> Result<(), ironclaw_state::Error> {
    if close(tx, row, "an equal call of its task needs no person now, and took its place")? {
        end_call(tx, row, Status::Withdrawn)?;
    }
    Ok(())
}

/// Withdraws a request without the effects of its end. Returns whether it did.
fn close(tx: &mut WriteTx<'_>, row: &Row, why: &str) -> Result<bool, ironclaw_state::Error> {
    let Some(of) = waiting::find(tx, row.waiting_id())? else { return Ok(false) };
    waiting::close(tx, &of, &Ending { status: Status::Withdrawn, by: None, outcome: why })
}

/// Refuses the call of a request that ended so, and drops its copy of a file.
fn end_call(tx: &mut WriteTx<'_>, row: &Row, status: Status) -> Result<(), ironclaw_state::Error> {
    sent_files::end(tx, row.call)?;
    let code = match status {
        Status::Rejected => DenialCode::CallRejected,
        Status::Expired => DenialCode::CallExpired,
        _ => DenialCode::CallWithdrawn,
    };
    if turns::refuse_late_call(tx, row.call, code)? {
        let refused = Entry::new(LedgerEvent::CallRefused).session(row.session).turn(row.turn).with("call", row.call);
        refused.with("tool", row.tool.clone()).reason(code.name()).append(tx)?;
    }
    Ok(())
}

/// Informs the session of a request whose call has a result already: the model knows that it waits.
pub fn inform(tx: &mut WriteTx<'_>, record: &Record, of: &Waiting, row: &Row, text: &str) -> Result<(), Error> {
    let is_told = turns::find_call(tx, row.call)?.is_some_and(|call| call.result.is_some());
    if !is_told {
        return Ok(());
    }
    match waiting::inform(tx, record, of, text)? {
        // In place of the text that the call waits.
        Some(notice) => Ok(turns::set_late_result(tx, row.call, notice)?),
        None => Ok(()),
    }
}

/// Withdraws the open requests of the task of a message, in whichever turn they were made.
pub fn end_of_task(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    session: SessionId,
    message: MessageId,
    why: &str,
) -> Result<(), Error> {
    let root = messages::root_of(tx, message)?;
    requests::list_for_task(tx, session, root)?.iter().try_for_each(|row| withdraw(tx, all, row, why))
}

/// Withdraws the approved calls of a session that have not begun.
pub fn withdraw_approved(tx: &mut WriteTx<'_>, all: &Gateway, session: SessionId, why: &str) -> Result<(), Error> {
    requests::approved_in_session(tx, session)?.iter().try_for_each(|row| withdraw(tx, all, row, why))
}

/// Withdraws the open requests whose task began with a message of this sender, because the identity is no longer linked.
pub fn end_of_sender(tx: &mut WriteTx<'_>, all: &Gateway, identity: &Identity) -> Result<(), Error> {
    let why = "the identity of its person was unlinked";
    let open = requests::open_of_sender(tx, &identity.channel, &identity.sender)?;
    open.iter().try_for_each(|row| withdraw(tx, all, row, why))
}

/// Withdraws every request of this host that waits or is approved.
pub fn end_all(tx: &mut WriteTx<'_>, all: &Gateway, why: &str) -> Result<(), Error> {
    let ending = Ending { status: Status::Withdrawn, by: None, outcome: why };
    for of in table::every_active(tx)?.iter().filter(|of| of.id.kind() == WaitingKind::Call) {
        waiting::end(tx, all, of, &ending)?;
    }
    Ok(())
}
