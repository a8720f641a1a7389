//! Which events of a channel became which messages, so that the same one again is the same message.
//!
//! Never takes another event under an id that was used: an id that comes again with other words is refused. Next: `inbound::inbox`.

use super::Recorded;
use crate::inbound::channel::Received;
use crate::refusal::{Denied, Refusal};
use crate::tables::sessions;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};

/// So long an event is remembered. A replay is refused by its age long before; this is for senders that try again for days.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// An event that its channel has as a whole.
#[derive(Debug)]
pub struct Event {
    channel: String,
    id: String,
    digest: Digest,
}

impl Event {
    /// The event of what was received, where the channel has it as a whole.
    pub fn of(received: &Received) -> Option<Self> {
        let (id, digest) = received.event_id.as_ref().zip(received.event_digest)?;
        Some(Self { channel: received.channel.clone(), id: id.clone(), digest })
    }

    /// The event that came on a channel under this id.
    pub const fn new(channel: String, id: String, digest: Digest) -> Self {
        Self { channel, id, digest }
    }

    /// Returns the message that it became when it came before.
    ///
    /// # Errors
    /// Refuses another event under this id.
    pub fn seen(&self, tx: &ReadTx<'_>) -> Result<Option<Recorded>, Denied> {
        let Some(found) = sessions::find_event(tx, &self.channel, &self.id)? else { return Ok(None) };
        // Of a session that was erased, nothing is left to compare with.
        if found.digest.is_empty() || found.digest == self.digest.to_string() {
            return Ok(Some(Recorded { message: found.message, session: found.session, again: true }));
        }
        let refusal = Refusal::new(DenialCode::EventReused, "another event came under this id before");
        Err(refusal.hint("give each event an id of its own; send the same event again with the same bytes").into())
    }

    /// Notes what became of it, in the transaction that recorded the message; the oldest are forgotten.
    pub fn note(self, tx: &mut WriteTx<'_>, recorded: &Recorded) -> Result<(), ironclaw_state::Error> {
        let (now, kept_from) = (tx.wall(), tx.prune_time() - KEPT_MS);
        let Recorded { message, session, .. } = *recorded;
        let event = sessions::Event { digest: self.digest.to_string(), message, session };
        sessions::insert_event(tx, &self.channel, &self.id, &event, now)?;
        sessions::delete_events_before(tx, kept_from)
    }
}
