//! The agent's view of its inbound queue: the open turn, the refs of messages, the destination of a reply.
//!
//! Keeps no text of a message: the model is shown what the host sealed, not what is here. See [`crate::agent::context`].

use super::context::{Entry, Known};
use ironclaw_contract::ids::ItemId;
use ironclaw_contract::seam::crypt::Error;
use ironclaw_contract::seam::inbound::{InboundReader, Routing, Turn};

/// Messages that one query reads; each may have a body of 256 KiB, and only its ref is kept.
const MESSAGES_AT_ONCE: usize = 8;

/// The sandbox's end of the inbound queue, and how far it was read.
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

    /// Returns the destination of replies; none in particular until the host has said so.
    pub(super) fn routing(&self) -> Result<Routing, Error> {
        Ok(self.queue.routing()?.unwrap_or_default())
    }

    /// Learns the messages that came since the last time; returns whether all of `own` are known then.
    ///
    /// A message that waited is projected when its turn opens, and may then be below what was read before: when one is missing,
    /// everything is read once more.
    pub(super) fn gather(&mut self, known: &mut Known, own: &[ItemId]) -> Result<bool, Error> {
        self.read_on(known, own)?;
        if !known.hold_all(own) {
            self.seen = 0;
            self.read_on(known, own)?;
        }
        Ok(known.hold_all(own))
    }

    fn read_on(&mut self, known: &mut Known, own: &[ItemId]) -> Result<(), Error> {
        loop {
            let messages = self.queue.messages(self.seen, MESSAGES_AT_ONCE)?;
            let Some(last) = messages.last() else { return Ok(()) };
            self.seen = last.seq;
            for message in messages {
                let bytes = message.content.len() as u64;
                known.learn_if_new(Entry { reference: message.seal, bytes, turn: None });
            }
            known.forget_oldest(own);
        }
    }
}
