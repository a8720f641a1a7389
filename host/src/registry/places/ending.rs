//! The end of the places of people, and of the senders that they call theirs, with their identities and channels.

use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::tables::channels::{self, OwnSender};
use ironclaw_store::tables::notifications::{self as table, place_of, places};
use ironclaw_store::tables::people::Identity;

/// Ends the place of a person, if there is one.
pub(super) fn end(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    by: PersonId,
    reason: &str,
) -> Result<(), ironclaw_state::Error> {
    let Some(place) = place_of(tx, person)? else { return Ok(()) };
    table::remove_place(tx, person)?;
    identity_entry(LedgerEvent::PlaceEnded, person, &place.identity, by).reason(reason).append(tx)?;
    Ok(())
}

/// Ends the place of a person if it is this identity, which is being unlinked.
pub fn end_of_identity(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    identity: &Identity,
    by: PersonId,
) -> Result<(), ironclaw_state::Error> {
    match place_of(tx, person)? {
        Some(place) if place.identity == *identity => end(tx, person, by, "the identity was unlinked"),
        Some(_) | None => Ok(()),
    }
}

/// Ends the places on a channel, which is being removed.
pub fn end_of_channel(tx: &mut WriteTx<'_>, channel: &str, by: PersonId) -> Result<(), ironclaw_state::Error> {
    for (person, identity) in places(tx)? {
        if identity.channel == channel {
            end(tx, person, by, "the channel was removed")?;
        }
    }
    Ok(())
}

/// Ends that people call this sender theirs. Returns whether one did.
pub fn end_own_sender(tx: &mut WriteTx<'_>, sender: &Identity, by: PersonId) -> Result<bool, ironclaw_state::Error> {
    let was_own = channels::delete_own_sender(tx, &sender.channel, &sender.sender)? > 0;
    if was_own {
        sender_entry(LedgerEvent::SenderDisowned, sender, by).append(tx)?;
    }
    Ok(was_own)
}

/// Ends that a person calls senders theirs, because they no longer have the role for it.
pub fn end_own_senders_of(tx: &mut WriteTx<'_>, person: PersonId) -> Result<(), ironclaw_state::Error> {
    let ended = channels::own_senders_of(tx, person)?;
    channels::delete_own_senders_of(tx, person)?;
    disowned(tx, ended, "the person has no role for it any longer")
}

/// Ends that people call senders of a channel theirs, because another agent hears it, or none.
pub fn end_own_senders_on(tx: &mut WriteTx<'_>, channel: &str) -> Result<(), ironclaw_state::Error> {
    let ended = channels::own_senders(tx, channel)?;
    channels::delete_own_senders_on(tx, channel)?;
    disowned(tx, ended, "the channel has another agent, or none")
}

fn disowned(tx: &mut WriteTx<'_>, ended: Vec<OwnSender>, reason: &str) -> Result<(), ironclaw_state::Error> {
    for OwnSender { channel, sender, .. } in ended {
        let identity = Identity { channel: channel.clone(), sender };
        let entry = Entry::new(LedgerEvent::SenderDisowned).with("channel", channel);
        entry.with("identity_digest", identity.digest()).reason(reason).append(tx)?;
    }
    Ok(())
}

/// Returns the entry of an event about a sender who is linked to no person.
pub fn sender_entry(event: LedgerEvent, sender: &Identity, by: PersonId) -> Entry {
    let entry = Entry::new(event).with("channel", sender.channel.clone());
    entry.with("identity_digest", sender.digest()).with("by", by)
}

/// Returns the entry of an event about an identity of a person.
pub fn identity_entry(event: LedgerEvent, person: PersonId, identity: &Identity, by: PersonId) -> Entry {
    Entry::new(event)
        .with("person", person)
        .with("channel", identity.channel.clone())
        .with("identity_digest", identity.digest())
        .with("by", by)
}
