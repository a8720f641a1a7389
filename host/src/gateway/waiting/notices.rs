//! Tells the people who can decide that something waits, or that it ends soon.
//!
//! Decides nothing, and sends nothing itself. See [`crate::channels::notifications`].

use super::gateway::Gateway;
use super::steps::entry;
use super::words::Step;
use crate::channels::notifications::{self, About, Notification};
use crate::registry;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::waiting::{self, Waiting, WaitingId};

/// Milliseconds before others are told about what a person asked for: the same person often decides at once.
const OWN_WAIT_MS: i64 = 60_000;

/// The bound on those about which one pass reminds people.
const AT_ONCE_MAX: usize = 64;

/// Tells people that this waits from now on.
pub fn asked(tx: &mut WriteTx<'_>, all: &Gateway, id: WaitingId) -> Result<(), Error> {
    waiting::find(tx, id)?.map_or(Ok(()), |of| notify_deciders(tx, all, &of, About::Waits))
}

/// Tells everyone who can decide, except for a person who asked for it.
fn notify_deciders(tx: &mut WriteTx<'_>, all: &Gateway, of: &Waiting, about: About) -> Result<(), Error> {
    let (now, kind) = (tx.wall(), all.kind(of.id));
    let wait_ms = if of.session.is_none() { OWN_WAIT_MS } else { 0 };
    for person in registry::people(tx)? {
        let is_asker = of.session.is_none() && person.id == of.principal;
        if !is_asker && kind.rights(tx, all, &person, of)?.decides {
            notifications::add_later(tx, person.id, Notification::new(about, of.id), now, wait_ms)?;
        }
    }
    Ok(())
}

/// Tells people about what ends soon, once. Returns whether there is more.
pub(super) fn remind(tx: &mut WriteTx<'_>, all: &Gateway) -> Result<bool, Error> {
    let due = waiting::to_remind(tx, tx.wall(), AT_ONCE_MAX)?;
    for of in &due {
        waiting::mark_reminded(tx, of.id)?;
        entry(of, Step::Reminded).append(tx)?;
        notify_deciders(tx, all, of, About::EndsSoon)?;
    }
    Ok(due.len() == AT_ONCE_MAX)
}
