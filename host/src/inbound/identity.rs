//! Identification of the sender of a message, by the full identity that an operator linked. The message of a schedule has the identity of
//! its creator.
//!
//! Never uses a prefix, a display name, or the content of the message. See [`crate::inbound::routing`].

use crate::inbound::channel::Received;
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, Person};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::WrittenBy;
use ironclaw_judge::Principal;
use ironclaw_state::{ReadTx, failpoint};

/// A message whose sender is a known person. Made by [`authenticate`] and [`of_schedule`] alone.
#[derive(Debug, Clone)]
pub struct Authenticated {
    received: Received,
    person: Person,
    principal: Principal,
    written_by: Option<WrittenBy>,
}

impl Authenticated {
    /// Returns the received message.
    pub const fn received(&self) -> &Received {
        &self.received
    }

    /// Returns the sender.
    pub const fn person(&self) -> &Person {
        &self.person
    }

    /// Returns the kind of principal that its turn works for, on behalf of the sender.
    pub const fn principal(&self) -> Principal {
        self.principal
    }

    /// Returns the author of the prompt of a schedule; `None` for any other message. The host reads no scope from such a prompt.
    pub const fn written_by(&self) -> Option<WrittenBy> {
        self.written_by
    }
}

/// Looks up the person who sent a message.
///
/// # Errors
/// Refuses a sender that is linked to no person, or to another person than the speaker.
pub fn authenticate(tx: &ReadTx<'_>, received: Received) -> Result<Authenticated, Denied> {
    let who = || format!("{}:{}", received.channel, received.sender);
    let found = registry::person_of(tx, &received.channel, &received.sender)?;
    if received.speaker.is_some_and(|speaker| found.as_ref().is_none_or(|person| person.id != speaker)) {
        return Err(not_yours(&who()).into());
    }
    let Some(person) = found else {
        return Err(Refusal::new(DenialCode::SenderUnknown, format!("{} is linked to no person", who())).into());
    };
    let stub = failpoint::stub_principal(&received.channel, &received.sender);
    // A test that misspells its stub gets the strictest principal.
    let principal = stub.map_or(Principal::Person, |kind| kind.parse().unwrap_or(Principal::Unsigned));
    Ok(Authenticated { received, person, principal, written_by: None })
}

/// Returns the message of a schedule, which works on behalf of its creator.
///
/// # Errors
/// Refuses a creator without the identity of the message.
pub fn of_schedule(tx: &ReadTx<'_>, received: Received, written_by: WrittenBy) -> Result<Authenticated, Denied> {
    let authenticated = authenticate(tx, received)?;
    Ok(Authenticated { principal: Principal::Schedule, written_by: Some(written_by), ..authenticated })
}

/// Returns the refusal for an identity that is not the speaker's. It does not tell whether another person has it.
pub fn not_yours(who: &str) -> Refusal {
    let shown: String = who.chars().take(64).collect();
    let refusal = Refusal::new(DenialCode::IdentityNotYours, format!("{shown:?} is no identity of yours"));
    refusal.hint("people can use only their own identities, owners too; an owner links them: `ironctl person link`")
}
