//! The end of a request without its call, and of one whose call ran.
//!
//! Opens no turn: the session gets a notice, if the model was told that the call waits. See [`crate::inbound::inbox::notify`].

use super::{Row, Status};
use crate::error::Error;
use crate::inbound::inbox;
use crate::notifications;
use crate::outbound::delivery::sent_files;
use crate::record::Record;
use crate::registry::{self, Identity};
use crate::session::store as sessions;
use crate::tables::{requests, turns};
use ironclaw_contract::ids::{CallId, PersonId, TurnId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_ledger::Entry;
use ironclaw_state::WriteTx;
use ironclaw_text::lookalike;

/// Ends an open request, voids its approvals, and informs its session.
///
/// # Errors
/// Errors of the record.
pub fn end(
    tx: &mut WriteTx<'_>,
    record: &Record,
    row: &Row,
    status: Status,
    by: Option<PersonId>,
    outcome: &str,
) -> Result<(), Error> {
    if !requests::end(tx, row.id, status, by, outcome)? {
        return Ok(());
    }
    requests::void_approvals(tx, row.id)?;
    notifications::withdraw(tx, row.id)?;
    sent_files::end(tx, row.call)?;
    let event = match status {
        Status::Rejected => LedgerEvent::RequestRejected,
        Status::Expired => LedgerEvent::RequestExpired,
        Status::Withdrawn | Status::Pending | Status::Approved | Status::Running | Status::Done | Status::Unknown => {
            LedgerEvent::RequestWithdrawn
        }
    };
    let entry = Entry::new(event).session(row.session).turn(row.turn).with("request", row.id).reason(outcome);
    match by {
        Some(by) => entry.with("by", by).append(tx)?,
        None => entry.append(tx)?,
    };
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

/// Informs the session of a request whose call has a result already: the model knows that it waits.
///
/// # Errors
/// Errors of the record.
pub fn inform(tx: &mut WriteTx<'_>, record: &Record, row: &Row, text: &str) -> Result<(), Error> {
    let is_told = turns::find_call(tx, row.call)?.is_some_and(|call| call.result.is_some());
    if !is_told {
        return Ok(());
    }
    let Some(session) = sessions::find(tx, row.session)?.filter(|session| session.wrapped.is_some()) else {
        return Ok(());
    };
    inbox::notify(tx, &session, &lookalike::neutralise(text), &record.wrapping, &record.sealer)?;
    Ok(())
}

/// Withdraws the open requests of a turn.
///
/// # Errors
/// Errors of the record.
pub fn end_of_turn(tx: &mut WriteTx<'_>, record: &Record, turn: TurnId, why: &str) -> Result<(), Error> {
    for row in requests::of_turn(tx, turn)? {
        end(tx, record, &row, Status::Withdrawn, None, why)?;
    }
    Ok(())
}

/// Withdraws the open requests whose task began with a message of this sender, because the identity is no longer linked.
///
/// # Errors
/// Errors of the record.
pub fn end_of_sender(tx: &mut WriteTx<'_>, record: &Record, identity: &Identity) -> Result<(), Error> {
    for row in requests::open_of_sender(tx, &identity.channel, &identity.sender)? {
        end(tx, record, &row, Status::Withdrawn, None, "the identity of its person was unlinked")?;
    }
    Ok(())
}

/// Withdraws every open request of this host.
///
/// # Errors
/// Errors of the record.
pub fn end_all(tx: &mut WriteTx<'_>, record: &Record, why: &str) -> Result<usize, Error> {
    let open = requests::every_open(tx)?;
    for row in &open {
        end(tx, record, row, Status::Withdrawn, None, why)?;
    }
    Ok(open.len())
}

/// Records that the call of a running request has its outcome.
///
/// # Errors
/// Errors of the record.
pub fn finish(tx: &mut WriteTx<'_>, call: CallId, is_known: bool) -> Result<(), ironclaw_state::Error> {
    requests::finish(tx, call, if is_known { Status::Done } else { Status::Unknown })
}
