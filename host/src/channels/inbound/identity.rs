//! Identification of the sender of a message, by the full identity that an operator linked. The message of a schedule has the identity of
//! its creator.
//!
//! Never uses a prefix, a display name, or the content of the message. See [`crate::channels::inbound::routing`].

use crate::channels::inbound::channel::Received;
use crate::channels::notifications::{self, About, Notification};
use crate::registry::channels;
use crate::registry::{self, Person};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{UnknownSenders, WrittenBy};
use ironclaw_judge::Principal;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::{ReadTx, WriteTx, failpoint};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::sessions::ScheduleRuns;
use ironclaw_text::excerpt::quoted;

/// The sender of a message that the host accepts.
#[derive(Debug, Clone)]
pub enum Sender {
    /// A person of the host.
    Person(Person),
    /// A sender who is linked to no person: of a public channel, or one that a person calls theirs. The id tells guests apart, and no row
    /// has it: it is made of the channel and of the sender's id, so a guest is the same guest again.
    Guest {
        id: PersonId,
        /// `true` if a person calls exactly this sender theirs.
        is_own: bool,
    },
}

/// A message whose sender is a known person or a guest. Made by [`authenticate`] and [`from_schedule`] alone.
#[derive(Debug, Clone)]
pub struct Authenticated {
    received: Received,
    sender: Sender,
    principal: Principal,
    written_by: Option<WrittenBy>,
    runs: ScheduleRuns,
}

impl Authenticated {
    /// Returns the received message.
    pub const fn received(&self) -> &Received {
        &self.received
    }

    /// Returns the sender, if it is a person.
    pub const fn person(&self) -> Option<&Person> {
        match &self.sender {
            Sender::Person(person) => Some(person),
            Sender::Guest { .. } => None,
        }
    }

    /// Returns the id of the sender: of a person or of a guest.
    pub const fn sender_id(&self) -> PersonId {
        match &self.sender {
            Sender::Person(person) => person.id,
            Sender::Guest { id, .. } => *id,
        }
    }

    /// Returns whether a person calls exactly this sender theirs.
    pub const fn is_own(&self) -> bool {
        matches!(self.sender, Sender::Guest { is_own: true, .. })
    }

    /// Returns the kind of principal that its turn works for, on behalf of the sender.
    pub const fn principal(&self) -> Principal {
        self.principal
    }

    /// Returns the author of the prompt of a schedule; `None` for any other message. The host reads no scope from such a prompt.
    pub const fn written_by(&self) -> Option<WrittenBy> {
        self.written_by
    }

    /// Returns the runs of schedules whose session gets the message; none for any other message.
    pub const fn runs(&self) -> ScheduleRuns {
        self.runs
    }
}

/// The origin of the prompt of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct PromptOrigin {
    pub written_by: WrittenBy,
    /// The runs whose session gets it.
    pub runs: ScheduleRuns,
}

/// Looks up the sender of a message: a person, or a guest if the rules of the channel accept strangers.
///
/// # Errors
/// Refuses a sender that is linked to no person if the channel is not public, and one that is linked to another person than the speaker.
pub fn authenticate(tx: &ReadTx<'_>, received: Received) -> Result<Authenticated, Denied> {
    let who = || format!("{}:{}", received.channel, received.sender);
    let found = registry::person_of(tx, &received.channel, &received.sender)?;
    if received.speaker.is_some_and(|speaker| found.as_ref().is_none_or(|person| person.id != speaker)) {
        return Err(not_yours(&who()).into());
    }
    let stub = failpoint::stub_principal(&received.channel, &received.sender);
    // A test that misspells its stub gets the strictest principal.
    let stub = stub.map(|kind| kind.parse().unwrap_or(Principal::Unsigned));
    let (sender, principal) = match found {
        Some(person) => (Sender::Person(person), stub.unwrap_or(Principal::Person)),
        None => (guest(tx, &received)?, Principal::Guest),
    };
    Ok(Authenticated { received, sender, principal, written_by: None, runs: ScheduleRuns::None })
}

/// Returns the sender of a message that is linked to no person.
///
/// # Errors
/// Refuses a sender that no person calls theirs, if the channel is not public.
fn guest(tx: &ReadTx<'_>, received: &Received) -> Result<Sender, Denied> {
    let who = || format!("{}:{}", received.channel, received.sender);
    let unlinked = || format!("{} is linked to no person", who());
    let is_own = channels::is_own_sender(tx, &received.channel, &received.sender)?;
    match channels::find(tx, &received.channel)? {
        Some(channel) if is_own || channel.rules.unknown == UnknownSenders::Public => {
            Ok(Sender::Guest { id: channels::guest_id(&channel, &received.sender), is_own })
        }
        Some(channel) if channel.rules.unknown == UnknownSenders::Request => {
            if let Some(bound) = channels::full(tx, &received.channel, &received.sender)? {
                let unlinked = Bound { remedy: format!("{}: {}", unlinked(), bound.remedy), ..bound };
                return Err(Refusal::over(DenialCode::SendersTooMany, unlinked).into());
            }
            let refusal = Refusal::new(DenialCode::SenderWaits, unlinked());
            Err(refusal
                .hint("owners and admins of this host were told; write again after one of them linked you")
                .into())
        }
        Some(_) | None => Err(Refusal::new(DenialCode::SenderUnknown, unlinked()).into()),
    }
}

/// Notes a stranger who waits for a person, and tells the owners and admins. They get the name of the channel, and no text of the stranger.
pub fn record_stranger(tx: &mut WriteTx<'_>, channel: &str, sender: &str) -> Result<(), ironclaw_state::Error> {
    if !channels::add_waiting_sender(tx, channel, sender)? {
        return Ok(());
    }
    let now = tx.wall();
    notifications::add_for_operators(tx, &Notification::new(About::SenderWaits, channel), now)
}

/// Returns the message of a schedule, which works on behalf of its creator.
///
/// # Errors
/// Refuses a creator without the identity of the message.
pub fn from_schedule(tx: &ReadTx<'_>, received: Received, prompt: PromptOrigin) -> Result<Authenticated, Denied> {
    let authenticated = authenticate(tx, received)?;
    let PromptOrigin { written_by, runs } = prompt;
    Ok(Authenticated { principal: Principal::Schedule, written_by: Some(written_by), runs, ..authenticated })
}

/// Returns the refusal for an identity that is not the speaker's. It does not tell whether another person has it.
pub fn not_yours(who: &str) -> Refusal {
    let refusal = Refusal::new(DenialCode::IdentityNotYours, format!("{} is no identity of yours", quoted(who)));
    refusal.hint("people can use only their own identities, owners too; an owner links them: `ironctl person link`")
}
