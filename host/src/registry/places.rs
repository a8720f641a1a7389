//! The places where people are told: for each person at most one of their identities on a channel.
//!
//! A place ends with its identity, its channel or its person. Sends nothing. See [`crate::channels::notifications`].

pub mod ending;

use super::channels;
use ending::{end, identity_entry};
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::notifications as table;
use ironclaw_store::tables::people::LOOPBACK;
use ironclaw_store::tables::people::{self, Identity, Person};

pub use ironclaw_store::tables::notifications::{place_of, places};

/// The word for no place.
const NONE: &str = "none";

/// Sets or removes the place of a person. `wanted` is a channel, an identity of the person as `CHANNEL:ID`, or `none`.
///
/// # Errors
/// Refuses an unknown channel, the loopback, and a channel on which the person has no identity, has another one, or has several.
pub fn set(tx: &mut WriteTx<'_>, person: &Person, by: &Person, wanted: &str) -> Result<(), Denied> {
    if wanted == NONE {
        return Ok(end(tx, person.id, by.id, "set to none")?);
    }
    let identity = identity(tx, person, by, wanted)?;
    if place_of(tx, person.id)?.is_some_and(|place| place.identity == identity) {
        return Ok(());
    }
    table::set_place(tx, person.id, &identity)?;
    identity_entry(LedgerEvent::PlaceSet, person.id, &identity, by.id).append(tx)?;
    Ok(())
}

/// Returns the identity that these words name.
fn identity(tx: &ReadTx<'_>, person: &Person, by: &Person, wanted: &str) -> Result<Identity, Denied> {
    let (channel, sender) = match wanted.split_once(':') {
        Some((channel, sender)) => (channel, Some(sender)),
        None => (wanted, None),
    };
    if channel == LOOPBACK {
        let refusal = Refusal::new(DenialCode::PlaceUnsuitable, "the loopback sends nothing by itself");
        return Err(refusal.hint("name a channel of `ironctl channel list`, or none").into());
    }
    let channel = channels::known(tx, Some(by), channel)?.name;
    let mut own = people::identities_of(tx, person.id)?;
    own.retain(|identity| identity.channel == channel && sender.is_none_or(|sender| identity.sender == sender));
    match own.len() {
        1 => Ok(own.remove(0)),
        0 => {
            let message = format!("{} is not known as {wanted}", person.name);
            let hint = format!("link the account first: `ironctl person link PERSON {channel}:ID`");
            Err(Refusal::new(DenialCode::IdentityUnknown, message).hint(hint).into())
        }
        count => {
            let message = format!("{} has {count} identities on the channel {channel}", person.name);
            let hint = format!("name one of them: `ironctl person set PERSON --notify {channel}:ID`");
            Err(Refusal::new(DenialCode::PlaceAmbiguous, message).hint(hint).into())
        }
    }
}
