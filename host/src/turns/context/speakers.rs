//! The names of the people whose words a prompt quotes, so that a model can tell them apart.
//!
//! Never uses a name that a sender chose: a guest has the last digits of an id that is made of the whole identity, so they are the same
//! guest in each prompt, and no other sender gets them. See [`super::parts`].

use crate::registry;
use ironclaw_contract::ids::{MessageId, PersonId};
use ironclaw_state::ReadTx;
use ironclaw_store::tables::messages;

/// Digits of an id in a name, with 5 bits each.
const DIGITS: usize = 8;

/// Returns the name of the sender of a message. Names of people differ, and the first word says that it is one.
pub(super) fn name(tx: &ReadTx<'_>, message: MessageId, sender: PersonId) -> Result<String, ironclaw_state::Error> {
    if let Some(person) = registry::person_by_id(tx, sender)? {
        return Ok(format!("person {}", person.name));
    }
    let is_guest = messages::is_of_guest(tx, message)?;
    Ok(if is_guest { guest(sender) } else { format!("removed person {}", digits(sender)) })
}

/// Returns the name of a guest.
pub(super) fn guest(sender: PersonId) -> String {
    format!("guest {}", digits(sender))
}

fn digits(sender: PersonId) -> String {
    let id = sender.to_string();
    id[id.len().saturating_sub(DIGITS)..].to_owned()
}
