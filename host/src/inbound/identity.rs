//! Says which person a message is from, by the full identity that an operator linked.
//!
//! Never by a prefix, a display name, or anything that the message says. Next: `inbound::routing`.

use crate::inbound::channel::Received;
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, Person};
use ironclaw_contract::operator::DenialCode;
use ironclaw_state::ReadTx;

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
/// Refuses a sender who is linked to no person, and one who is linked to another person than the speaker.
pub fn authenticate(tx: &ReadTx<'_>, received: Received) -> Result<Authenticated, Denied> {
    let who = || format!("{}:{}", received.channel, received.sender);
    let found = registry::person_of(tx, &received.channel, &received.sender)?;
    if received.speaker.is_some_and(|speaker| found.as_ref().is_none_or(|person| person.id != speaker)) {
        return Err(not_yours(&who()).into());
    }
    let Some(person) = found else {
        return Err(Refusal::new(DenialCode::SenderUnknown, format!("{} is linked to no person", who())).into());
    };
    Ok(Authenticated { received, person })
}

/// Whoever speaks has another's name, or nobody's; it is not said whose.
pub fn not_yours(who: &str) -> Refusal {
    let shown: String = who.chars().take(64).collect();
    let refusal = Refusal::new(DenialCode::IdentityNotYours, format!("{shown:?} is no identity of yours"));
    refusal.hint("everybody speaks as themselves, owners too; an owner links identities: `ironctl person link`")
}
