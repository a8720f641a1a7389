//! The agent's view of its inbound queue: the open turn, the refs of messages, the destination of a reply.
//!
//! It keeps no text of a message: the model sees the items that the host sealed, not these rows. See [`crate::agent::context`].

use super::context::{Entry, KnownItems};
use ironclaw_contract::ids::ItemId;
use ironclaw_contract::seam::crypt::Error;
use ironclaw_contract::seam::inbound::{InboundReader, Routing, Turn};

/// Messages that one query reads. Each may have a body of 256 KiB, of which only the ref is kept.
const MESSAGES_AT_ONCE: usize = 8;

/// The sandbox's end of the inbound queue, and the number up to which it was read.
pub(super) struct Inbox {
    queue: InboundReader,
    seen: u64,
}

impl Inbox {
    pub(super) const fn new(queue: InboundReader) -> Self {
        Self { queue, seen: 0 }
    }

    /// Returns the open turn, if there is one.
    pub(super) fn open_turn(&self) -> Result<Option<Turn>, Error> {
        self.queue.open_turn()
    }

    /// Returns the destination of replies; empty until the host has set it.
    pub(super) fn routing(&self) -> Result<Routing, Error> {
        Ok(self.queue.routing()?.unwrap_or_default())
    }

    /// Adds the messages that arrived since the last call.
    ///
    /// A waiting message is projected when its turn opens, and may then have a lower number than messages that were read before. So if
    /// one is missing, the whole queue is read once more.
    pub(super) fn gather(&mut self, known: &mut KnownItems, own: &[ItemId]) -> Result<(), Error> {
        self.read_on(known, own)?;
        if !known.hold_all(own) {
            self.seen = 0;
            self.read_on(known, own)?;
        }
        Ok(())
    }

    fn read_on(&mut self, known: &mut KnownItems, own: &[ItemId]) -> Result<(), Error> {
        loop {
            let messages = self.queue.messages(self.seen, MESSAGES_AT_ONCE)?;
            let Some(last) = messages.last() else { return Ok(()) };
            self.seen = last.seq;
            for message in messages {
                let bytes = message.content.len() as u64;
                known.add_if_new(Entry { reference: message.seal, bytes, turn: None });
            }
            known.drop_oldest(own);
        }
    }
}
