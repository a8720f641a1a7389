//! The end of a question without an answer.
//!
//! Opens no turn: the session gets a notice, which its next turn shows. See [`crate::channels::inbound::inbox::notify`].

use crate::channels::inbound::inbox;
use crate::channels::notifications;
use crate::registry;
use crate::sessions::store;
use crate::turns::turn::Turn;
use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::tables::questions::{self, Row, Status};
use ironclaw_text::lookalike;

/// Ends a question that waits or is unknown, and informs its session.
pub(super) fn end(
    tx: &mut WriteTx<'_>,
    record: &Record,
    row: &Row,
    status: Status,
    by: Option<PersonId>,
    outcome: &str,
) -> Result<(), Error> {
    if !questions::end(tx, row.id, status, by, outcome)? {
        return Ok(());
    }
    notifications::withdraw(tx, row.id)?;
    let event = match status {
        Status::Expired => LedgerEvent::QuestionExpired,
        Status::Unknown => LedgerEvent::QuestionUnknown,
        Status::Cancelled | Status::Waiting | Status::Answered => LedgerEvent::QuestionCancelled,
    };
    let entry = Entry::new(event).session(row.session).with("question", row.id);
    let entry = if event == LedgerEvent::QuestionCancelled { entry.reason(outcome) } else { entry };
    match by {
        Some(by) => entry.with("by", by).append(tx)?,
        None => entry.append(tx)?,
    };
    let Some(session) = store::find(tx, row.session)?.filter(|session| session.wrapped.is_some()) else {
        return Ok(());
    };
    let who = by.map(|by| registry::person_name(tx, by)).transpose()?;
    let who = who.map_or_else(String::new, |name| format!(" by {name}"));
    let what = match status {
        Status::Expired => "was not answered in time".to_owned(),
        Status::Unknown => "can no longer be answered: the record was restored to an earlier state".to_owned(),
        _ if outcome.is_empty() => format!("was cancelled{who}; there is no answer"),
        _ => format!("was cancelled{who}; there is no answer. The given reason: {outcome:?}"),
    };
    let text = format!("Your question {} {what}.", row.id);
    inbox::notify(tx, &session, &lookalike::neutralise(&text), &record.wrapping, &record.sealer)?;
    Ok(())
}

/// Cancels the waiting questions of a turn.
pub fn end_of_turn(tx: &mut WriteTx<'_>, record: &Record, turn: &Turn) -> Result<(), Error> {
    let waiting = questions::waiting_of_session(tx, turn.session)?;
    for row in waiting.into_iter().filter(|row| row.turn == turn.id) {
        end(tx, record, &row, Status::Cancelled, None, "its turn was cancelled")?;
    }
    Ok(())
}

/// Cancels the waiting questions to a person, who is removed.
pub fn end_of_person(tx: &mut WriteTx<'_>, record: &Record, person: PersonId) -> Result<(), Error> {
    for row in questions::waiting_of_person(tx, person)? {
        end(tx, record, &row, Status::Cancelled, None, "the person was removed")?;
    }
    Ok(())
}

/// Marks every waiting question as unknown, because the record was restored.
pub fn doubt_all(tx: &mut WriteTx<'_>, record: &Record) -> Result<(), Error> {
    for row in questions::every_waiting(tx)? {
        end(tx, record, &row, Status::Unknown, None, "")?;
    }
    Ok(())
}
