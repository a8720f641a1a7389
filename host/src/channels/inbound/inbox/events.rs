//! The link from events of a channel to their messages, so that a repeated event is the same message.
//!
//! Never takes another event under a used id: an id that comes again with other content is refused. See [`crate::channels::inbound::inbox`].

use super::Recorded;
use crate::channels::inbound::channel::Received;
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::sessions;

/// The time for which an event is remembered. A replay is refused by its age long before; this is for senders that retry for days.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// An event that its channel received as a whole.
#[derive(Debug)]
pub struct Event {
    channel: String,
    id: String,
    digest: Digest,
}

impl Event {
    /// Returns the event of a received message, if the channel has it as a whole.
    pub fn from_received(received: &Received) -> Option<Self> {
        let (id, digest) = received.event_id.as_ref().zip(received.event_digest)?;
        Some(Self { channel: received.channel.clone(), id: id.clone(), digest })
    }

    /// Makes the event that came on a channel under this id.
    pub const fn new(channel: String, id: String, digest: Digest) -> Self {
        Self { channel, id, digest }
    }

    /// Returns the message of this event if it came before.
    ///
    /// # Errors
    /// Refuses another event under this id.
    pub fn seen(&self, tx: &ReadTx<'_>) -> Result<Option<Recorded>, Denied> {
        let Some(found) = sessions::find_event(tx, &self.channel, &self.id)? else { return Ok(None) };
        // After the erasure of a session there is no digest to compare with.
        if found.digest.is_empty() || found.digest == self.digest.to_string() {
            return Ok(Some(Recorded { message: found.message, session: found.session, again: true }));
        }
        let refusal = Refusal::new(DenialCode::EventReused, "another event already used this id");
        Err(refusal.hint("use a new id for each event, and repeat an event with the same bytes").into())
    }

    /// Records the message of the event, in the transaction that recorded the message; deletes the oldest events.
    pub fn note(self, tx: &mut WriteTx<'_>, recorded: &Recorded) -> Result<(), ironclaw_state::Error> {
        let (now, kept_from) = (tx.wall(), tx.prune_time() - KEPT_MS);
        let Recorded { message, session, .. } = *recorded;
        let event = sessions::Event { digest: self.digest.to_string(), message, session };
        sessions::insert_event(tx, &self.channel, &self.id, &event, now)?;
        sessions::delete_events_before(tx, kept_from)
    }
}
