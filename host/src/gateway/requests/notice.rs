//! The words of the host to the person of an approved call that was not made, whose outcome is unknown, or whose task stops.
//!
//! A notice goes to the conversation, where the model reads it too, and a line to the place of each person concerned. Decides nothing. See
//! [`crate::channels::notifications`].

use crate::channels::notifications::{self, About, Notification};
use crate::channels::outbound::delivery;
use crate::sessions::store::{self, Session};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::tables::turns;
use ironclaw_store::tables::waiting::requests::Row;
use ironclaw_text::lookalike;
use std::collections::BTreeSet;

/// Tells the people of an approved request that its call was not made.
pub(super) fn notify_unused(tx: &mut WriteTx<'_>, record: &Record, row: &Row, why: &str) -> Result<(), Error> {
    let words = format!(
        "The call of {} that was approved as {} was not made: {why}. Ask again if you still want it.",
        row.tool, row.id
    );
    notify_conversation(tx, record, row, &words)?;
    Ok(note(tx, About::ApprovalUnused, row)?)
}

/// Tells the people of an approved request that its call was not made and waits for them again.
pub(super) fn notify_replaced(tx: &mut WriteTx<'_>, record: &Record, row: &Row, why: &str) -> Result<(), Error> {
    let words = format!("The call of {} that was approved as {} was not made: {why}.", row.tool, row.id);
    notify_conversation(tx, record, row, &words)
}

/// Tells the people of an approved request that the outcome of its call is unknown.
pub fn notify_unknown(tx: &mut WriteTx<'_>, record: &Record, row: &Row) -> Result<(), Error> {
    let words = format!(
        "The call of {} that was approved as {} was interrupted: it is unknown if it had its effect, and it does not run again. Check \
         that before you ask for it again.",
        row.tool, row.id
    );
    notify_conversation(tx, record, row, &words)?;
    record_unknown(tx, row)
}

/// Tells the people of an approved request at their places that the outcome of its call is unknown.
pub fn record_unknown(tx: &mut WriteTx<'_>, row: &Row) -> Result<(), Error> {
    Ok(note(tx, About::CallUnknown, row)?)
}

/// Tells the person of a task that it stops after this many follow-up turns, and how it continues.
pub fn notify_stopped(
    tx: &mut WriteTx<'_>,
    record: &Record,
    session: &Session,
    row: &Row,
    follow_ups: u64,
) -> Result<(), Error> {
    let words = format!(
        "The call of {} that was approved as {} has its result. The task of {} stops here: it had {follow_ups} turns after approvals, the \
         most that one message may have. Say \"continue\" to go on.",
        row.tool, row.id, row.root
    );
    let key = session.content_key(&record.wrapping)?;
    delivery::notify(tx, session, None, &words, &key, &record.sealer)?;
    let now = tx.wall();
    Ok(notifications::add(tx, row.principal, Notification::new(About::TaskStopped, row.root), now)?)
}

/// Records a notice in the conversation of a request, unless the conversation was removed.
fn notify_conversation(tx: &mut WriteTx<'_>, record: &Record, row: &Row, words: &str) -> Result<(), Error> {
    let Some(session) = store::find(tx, row.session)?.filter(|session| session.wrapped.is_some()) else {
        return Ok(());
    };
    let key = session.content_key(&record.wrapping)?;
    let notice = delivery::notify(tx, &session, None, &lookalike::neutralise(words), &key, &record.sealer)?;
    // In place of the text that the call waits.
    if let Some(sent) = notice.sent()
        && turns::find_call(tx, row.call)?.is_some_and(|call| call.result.is_some())
    {
        turns::set_late_result(tx, row.call, sent.item)?;
    }
    Ok(())
}

/// Records a notification of the person of a request, and of the person who approved it.
fn note(tx: &mut WriteTx<'_>, about: About, row: &Row) -> Result<(), ironclaw_state::Error> {
    let now = tx.wall();
    let people: BTreeSet<_> = [Some(row.principal), row.decided_by].into_iter().flatten().collect();
    for person in people {
        notifications::add(tx, person, Notification::new(about, row.id), now)?;
    }
    Ok(())
}
