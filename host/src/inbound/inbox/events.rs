//! Which events of a channel became which messages, so that the same one again is the same message.
//!
//! Never takes another event under an id that was used: whoever repeats an id with other words is refused. Next: `inbox`.

use super::Recorded;
use crate::inbound::channel::Received;
use crate::refusal::{Denied, Refusal};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::operator::DenialCode;
use ironclaw_state::ReadTx;
use rusqlite::{OptionalExtension, Row, params};

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
        let sql = "SELECT digest, message_id, session_id FROM events WHERE channel = ?1 AND event_id = ?2";
        let read = |row: &Row<'_>| {
            let recorded = Recorded { message: row.get("message_id")?, session: row.get("session_id")?, again: true };
            Ok((row.get::<_, String>("digest")?, recorded))
        };
        let found = tx.db().prepare_cached(sql)?.query_row([&self.channel, &self.id], read).optional()?;
        let Some((digest, recorded)) = found else { return Ok(None) };
        // Of a session that was erased, nothing is left to compare with.
        if digest.is_empty() || digest == self.digest.to_string() {
            return Ok(Some(recorded));
        }
        let refusal = Refusal::new(DenialCode::EventReused, "another event came under this id before");
        Err(refusal.hint("give each event an id of its own; send the same event again with the same bytes").into())
    }

    /// Notes what became of it, in the transaction that recorded the message; the oldest are forgotten.
    pub fn note(self, tx: &ReadTx<'_>, recorded: &Recorded) -> Result<(), ironclaw_state::Error> {
        let (now, kept_from) = (tx.wall(), tx.prune_time() - KEPT_MS);
        tx.db()
            .prepare_cached(
                "INSERT INTO events (channel, event_id, digest, message_id, session_id, received_at) VALUES (?1,?2,?3,?4,?5,?6)",
            )?
            .execute(params![
                self.channel,
                self.id,
                self.digest,
                recorded.message,
                recorded.session,
                now
            ])?;
        tx.db().prepare_cached("DELETE FROM events WHERE received_at < ?1")?.execute([kept_from])?;
        Ok(())
    }
}
