//! Says which person a message is from, by the full identity that an operator linked.
//!
//! Never by a prefix, a display name, or anything that the message says. Next: `routing`.

use crate::channel::Received;
use crate::refusal::{Fault, Refusal};
use crate::registry::{self, Person};
use crate::state::{self, Tx};

/// A message whose sender is a known person. Made by [`authenticate`] alone.
#[derive(Debug, Clone)]
pub struct Authenticated {
    received: Received,
    person: Person,
}

impl Authenticated {
    /// What was received.
    pub const fn received(&self) -> &Received {
        &self.received
    }

    /// Who sent it.
    pub const fn person(&self) -> &Person {
        &self.person
    }
}

/// Looks up the sender.
///
/// # Errors
/// The inner error refuses a sender who is linked to nobody.
pub fn authenticate(tx: &Tx<'_>, received: Received) -> Result<Result<Authenticated, Refusal>, state::Error> {
    let Some(person) = registry::person_of(tx, received.channel, &received.sender)? else {
        let who = format!("{}:{}", received.channel, received.sender);
        return Ok(Err(Refusal::new(Fault::Sender, "sender_unknown", format!("{who} is linked to no person"))));
    };
    Ok(Ok(Authenticated { received, person }))
}
