//! The end of a run, read from the record: *done* means that the reply has its receipt and that no call was refused or left in doubt.
//!
//! A settled occurrence never changes. The first failure of a series opens one incident, and the next success closes it.

use crate::channels::inbound::inbox::{self, Message};
use crate::channels::notifications::{self, About, Notification};
use crate::channels::outbound::delivery;
use crate::registry::schedules::{self, Occurrence, OccurrenceState, Schedule};
use crate::sessions::store::{self, SessionState};
use crate::turns::turn;
use crate::turns::turn::TurnEnd;
use ironclaw_contract::ids::{DeliveryId, TurnId};
use ironclaw_contract::seam::message::Status;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Fault, LedgerEvent, Receipt};
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::deliveries;
use ironclaw_store::tables::schedules as table;
use ironclaw_store::tables::turns::{self, CallState};

/// The end of an occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub state: OccurrenceState,
    /// The reason, one word.
    pub reason: Option<&'static str>,
    /// The delivery of the reply, if it has its receipt.
    pub receipt: Option<DeliveryId>,
}

impl Outcome {
    const fn failed(reason: &'static str) -> Self {
        Self { state: OccurrenceState::Failed, reason: Some(reason), receipt: None }
    }

    const fn unknown(reason: &'static str) -> Self {
        Self { state: OccurrenceState::Unknown, reason: Some(reason), receipt: None }
    }
}

/// Returns the end of a started occurrence; `None` while it has none.
pub fn find(tx: &ReadTx<'_>, started: &Occurrence) -> Result<Option<Outcome>, Error> {
    let Some(message) = started.message else { return Ok(None) };
    let Some(message) = inbox::find(tx, message)? else { return Ok(Some(Outcome::unknown("message_erased"))) };
    if matches!(message.status, Status::Completed | Status::Delivered) {
        return match message.turn {
            Some(turn) => turn_outcome(tx, turn, &message),
            None => Ok(Some(Outcome::failed("no_answer"))),
        };
    }
    let state = store::find(tx, message.session)?.map(|session| session.standing);
    Ok(match state {
        Some(SessionState::Active) => None,
        Some(SessionState::Parked) => Some(Outcome::failed("session_parked")),
        Some(SessionState::Quarantined) => Some(Outcome::failed("session_quarantined")),
        Some(SessionState::Removed) | None => Some(Outcome::unknown("session_removed")),
    })
}

/// Returns the end of an occurrence by the turn that answered its message.
fn turn_outcome(tx: &ReadTx<'_>, id: TurnId, message: &Message) -> Result<Option<Outcome>, Error> {
    let end = turn::end_of(tx, id)?;
    if end != Some(TurnEnd::Replied) {
        let reason = match (turn::coded_failure(tx, id)?, end) {
            (Some(failure), _) if failure.code == "budget" => "limits",
            (Some(_), _) => "model",
            (None, Some(TurnEnd::Deadline)) => "limits",
            (None, Some(TurnEnd::Cancelled)) => "cancelled",
            (None, _) => "no_answer",
        };
        return Ok(Some(Outcome::failed(reason)));
    }
    let Some(reply) = delivery::for_turn(tx, id)? else { return Ok(Some(Outcome::unknown("delivery_unknown"))) };
    Ok(match delivery::shown(reply.state) {
        Receipt::Received => {
            let (state, reason) = run_state(tx, message)?;
            Some(Outcome { state, reason, receipt: Some(reply.id) })
        }
        Receipt::Pending | Receipt::Sent => None,
        Receipt::Unknown => Some(Outcome::unknown("delivery_unknown")),
        Receipt::Dead | Receipt::Dropped | Receipt::Unsaid => Some(Outcome::failed("delivery")),
    })
}

/// Returns the state of a run whose reply arrived, by the calls of all its attempts: a run that was not allowed or not able to do a part
/// of its work is not plainly done.
fn run_state(tx: &ReadTx<'_>, message: &Message) -> Result<(OccurrenceState, Option<&'static str>), Error> {
    let (mut unknown, mut refused, mut failed) = (false, false, false);
    for attempt in turn::attempts_at(tx, message)? {
        for (call, judgement) in turns::calls_of(tx, attempt)? {
            unknown |= call.state == CallState::Unknown;
            failed |= call.state == CallState::Failed;
            // The model mends a call that is malformed.
            let code = judgement.code;
            refused |= call.state == CallState::Refused && code.is_some_and(|code| code.fault() != Fault::Sandbox);
        }
    }
    Ok(match (unknown, refused, failed) {
        (true, _, _) => (OccurrenceState::Unknown, Some("call_unknown")),
        (false, true, _) => (OccurrenceState::Failed, Some("call_refused")),
        (false, false, true) => (OccurrenceState::Done, Some("call_failed")),
        (false, false, false) => (OccurrenceState::Done, None),
    })
}

/// Settles an open occurrence with its ledger entry, and opens or closes the incident of its series.
pub fn settle(
    tx: &mut WriteTx<'_>,
    row: &Schedule,
    open: &Occurrence,
    state: OccurrenceState,
    reason: Option<&str>,
    receipt: Option<DeliveryId>,
) -> Result<(), Error> {
    if !table::settle(tx, open.ordinal, state, reason, receipt)? {
        return Ok(());
    }
    let event = match state {
        OccurrenceState::Done => LedgerEvent::ScheduleDone,
        OccurrenceState::Skipped => return super::record_skipped(tx, row, open.due, 1, reason.unwrap_or_default()),
        OccurrenceState::Unknown => LedgerEvent::ScheduleUnknown,
        OccurrenceState::Failed | OccurrenceState::Scheduled | OccurrenceState::Started => LedgerEvent::ScheduleFailed,
    };
    let mut entry = Entry::new(event).with("schedule", row.id).with("due", ironclaw_ledger::rfc3339(open.due));
    if let Some(message) = open.message {
        entry = entry.message(message);
    }
    if let Some(receipt) = receipt {
        entry = entry.with("delivery", receipt);
    }
    match reason {
        Some(reason) => entry.reason(reason).append(tx)?,
        None => entry.append(tx)?,
    };
    record_series(tx, row, state)?;
    match receipt {
        Some(reply) if state == OccurrenceState::Done => notify_reply(tx, row, reply),
        Some(_) | None => Ok(()),
    }
}

/// Tells the creator of a schedule that a run answered on this host, where no client waits for it: once, until its replies are read. The
/// reply on a channel reaches its person by itself.
fn notify_reply(tx: &mut WriteTx<'_>, row: &Schedule, reply: DeliveryId) -> Result<(), Error> {
    let Some(creator) = schedules::creator(tx, row)? else { return Ok(()) };
    if deliveries::find(tx, reply)?.is_none_or(|reply| reply.over_network) {
        return Ok(());
    }
    let (notification, now) = (Notification::new(About::ScheduleReply, row.id), tx.wall());
    match table::has_unread(tx, row.id, reply)? {
        true => notifications::add_unless_told(tx, creator.id, notification, now),
        false => notifications::add(tx, creator.id, notification, now),
    }
}

/// Opens the incident of a series with its first failure, and closes it with the next success.
fn record_series(tx: &mut WriteTx<'_>, row: &Schedule, state: OccurrenceState) -> Result<(), Error> {
    // Read again: one transaction may settle several occurrences.
    let failing = schedules::find(tx, row.id)?.and_then(|row| row.failing_since);
    match (state, failing) {
        (OccurrenceState::Failed | OccurrenceState::Unknown, None) => {
            let now = tx.wall();
            table::set_failing(tx, row.id, Some(now))?;
            notify(tx, row, About::ScheduleIncident)
        }
        (OccurrenceState::Done, Some(_)) => {
            table::set_failing(tx, row.id, None)?;
            notify(tx, row, About::ScheduleRecovery)
        }
        _ => Ok(()),
    }
}

/// Pauses a schedule whose creator lost a right, and tells of it.
pub(super) fn pause(tx: &mut WriteTx<'_>, row: &Schedule, reason: &str) -> Result<(), Error> {
    super::pause(tx, row, reason)?;
    notify(tx, row, About::ScheduleIncident)
}

/// Tells the creator of a schedule; if the creator was removed, the owners and admins.
fn notify(tx: &mut WriteTx<'_>, row: &Schedule, about: About) -> Result<(), Error> {
    let (notification, now) = (Notification::new(about, row.id), tx.wall());
    match schedules::creator(tx, row)? {
        Some(creator) => notifications::add(tx, creator.id, notification, now),
        None => notifications::add_for_operators(tx, &notification, now),
    }
}
