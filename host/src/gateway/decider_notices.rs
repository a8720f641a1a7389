//! Tells the people who can decide on a change that it waits, or that it expires soon.
//!
//! Decides nothing, and sends nothing itself. See [`crate::channels::notifications`].

use super::store::{self, AT_ONCE_MAX, Row};
use super::{Requester, decide};
use crate::channels::notifications::{self, About, Notification};
use crate::registry;
use crate::registry::policy::Policy;
use ironclaw_contract::ids::ChangeId;
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::changes;

/// Milliseconds before others are told about a change that a person asked for: the same person often decides at once.
const OWN_WAIT_MS: i64 = 60_000;

/// Tells people about a new change that waits.
pub(super) fn waits(tx: &mut WriteTx<'_>, policy: &Policy, id: ChangeId) -> Result<(), Error> {
    match store::find(tx, id)? {
        Some(row) => notify(tx, policy, &row, About::ChangeWaits),
        None => Ok(()),
    }
}

/// Returns the next time at which people are told that a change expires soon, milliseconds since the epoch.
pub fn next(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    changes::next_reminder(tx)
}

/// Returns whether people have to be told now about a change that expires soon.
pub fn is_due(tx: &ReadTx<'_>) -> Result<bool, Error> {
    Ok(next(tx)?.is_some_and(|at| at <= tx.wall()))
}

/// Tells people about the changes that expire soon, once for each change.
pub fn expires_soon(tx: &mut WriteTx<'_>, policy: &Policy) -> Result<(), Error> {
    let now = tx.wall();
    let due = changes::to_remind(tx, now, AT_ONCE_MAX)?;
    for row in &due {
        changes::mark_reminded(tx, row.id)?;
        notify(tx, policy, row, About::ChangeExpires)?;
    }
    if due.is_empty() {
        // The changes that remain were written by another version, and cannot be read.
        changes::mark_all_reminded(tx, now)?;
    }
    Ok(())
}

/// Tells everyone who can decide on a change, except for a person who asked for it.
fn notify(tx: &mut WriteTx<'_>, policy: &Policy, row: &Row, about: About) -> Result<(), Error> {
    let now = tx.wall();
    let rule = store::rule(row, policy);
    for person in registry::people(tx)? {
        let is_principal = person.id == row.principal();
        let is_of_person = matches!(row.requester, Requester::Person(_));
        let may_approve = rule.requester_may_approve || !is_principal;
        if (is_principal && is_of_person) || !may_approve || !decide::may_decide(tx, policy, &person, row)? {
            continue;
        }
        let wait_ms = if is_of_person { OWN_WAIT_MS } else { 0 };
        notifications::add_later(tx, person.id, Notification::new(about, row.id), now, wait_ms)?;
    }
    Ok(())
}
