//! Senders on channels whose text a person calls theirs.
//!
//! Such a sender is linked to no person. Its messages keep the rights of a guest, and only in turns of this person is their text not text
//! of others, from the declaration on. Never a prefix, and never a whole channel. See [`crate::turns::context`].

use super::{Channel, OwnSender, find, guest_id, table};
use crate::registry::people::{person_behind, refuse};
use crate::registry::places::ending::{self, sender_entry};
use ironclaw_contract::ids::PersonId;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::people::{Identity, Person};
use std::collections::HashMap;

/// Senders that one person calls theirs.
const OWN_SENDERS_MAX: usize = 64;

/// Returns the guests that a person calls theirs, each with the time of the declaration, in milliseconds since the epoch.
pub fn guests_of(tx: &ReadTx<'_>, person: PersonId) -> Result<HashMap<PersonId, i64>, ironclaw_state::Error> {
    let mut guests = HashMap::new();
    for own in table::own_senders_of(tx, person)? {
        // The row ends with its channel.
        if let Some(channel) = find(tx, &own.channel)? {
            guests.insert(guest_id(&channel, &own.sender), own.since);
        }
    }
    Ok(guests)
}

/// Checks that a person can call this sender theirs.
///
/// # Errors
/// Refuses a sender who is linked to a person, and a channel without an agent, and records the refusal in the ledger.
pub fn check(tx: &mut WriteTx<'_>, person: &Person, channel: &Channel, identity: &Identity) -> Result<(), Denied> {
    if let Some(holder) = person_behind(tx, identity)? {
        let message = format!("{identity} is linked to {} ({})", holder.name, holder.id);
        let hint = "only an account of no person can be called yours; the words of a person are that person's";
        let refusal = Refusal::new(DenialCode::IdentityInUse, message).hint(hint);
        return refuse(tx, LedgerEvent::IdentityRefused, person.id, refusal);
    }
    if channel.agent.is_none() {
        let refusal = Refusal::new(DenialCode::WiringUnknown, format!("no agent hears channel {}", channel.name));
        let refusal = refusal.hint("connect one first: `ironctl agent connect AGENT CHANNEL`; another agent ends it");
        return refuse(tx, LedgerEvent::IdentityRefused, person.id, refusal);
    }
    let held = table::own_senders_of(tx, person.id)?;
    let is_new = !held.iter().any(|own| own.channel == identity.channel && own.sender == identity.sender);
    if is_new && held.len() >= OWN_SENDERS_MAX {
        let remedy = "end one: `ironctl channel list`, `ironctl channel disown CHANNEL:SENDER`";
        let bound =
            Bound::new(format!("senders that {} calls theirs", person.name), OWN_SENDERS_MAX, held.len(), remedy);
        let refusal = Refusal::over(DenialCode::IdentitiesTooMany, bound);
        return refuse(tx, LedgerEvent::IdentityRefused, person.id, refusal);
    }
    Ok(())
}

/// Records that a person calls a sender theirs, from now on. The caller has checked it. The sender no longer waits for a person.
pub fn declare(tx: &mut WriteTx<'_>, person: &Person, identity: Identity) -> Result<(), ironclaw_state::Error> {
    table::delete_waiting_sender(tx, &identity.channel, &identity.sender)?;
    sender_entry(LedgerEvent::SenderDeclared, &identity, person.id).append(tx)?;
    let (Identity { channel, sender }, since) = (identity, tx.wall());
    table::insert_own_sender(tx, &OwnSender { channel, sender, person: person.id, since })
}

/// Ends that people call a sender theirs, also for its earlier messages.
///
/// # Errors
/// Refuses a sender that no person calls theirs.
pub fn end(tx: &mut WriteTx<'_>, identity: &Identity, by: PersonId) -> Result<(), Denied> {
    if !ending::end_own_sender(tx, identity, by)? {
        let refusal = Refusal::new(DenialCode::SenderNotOwn, format!("no person calls {identity} theirs"));
        return Err(refusal.hint("`ironctl channel list` shows the senders that people call theirs").into());
    }
    Ok(())
}
