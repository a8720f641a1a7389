//! The agent's view of its inbound queue: the open turn, and the refs of its messages.
//!
//! The queue has no text: the model sees the items that the host sealed. See [`crate::agent::context`].

use super::context::{Entry, KnownItems};
use ironclaw_contract::ids::ItemId;
use ironclaw_contract::seam::crypt::Error;
use ironclaw_contract::seam::inbound::{InboundReader, Turn};

/// The sandbox's end of the inbound queue.
pub(super) struct Inbox(InboundReader);

impl Inbox {
    pub(super) const fn new(queue: InboundReader) -> Self {
        Self(queue)
    }

    /// Returns the open turn, if there is one.
    pub(super) fn open_turn(&self) -> Result<Option<Turn>, Error> {
        self.0.open_turn()
    }

    /// Adds the messages of the open turn and of its context.
    pub(super) fn gather(&self, known: &mut KnownItems, own: &[ItemId]) -> Result<(), Error> {
        for message in self.0.messages()? {
            known.add_if_new(Entry { reference: message.seal, bytes: message.bytes, turn: None });
        }
        known.drop_oldest(own);
        Ok(())
    }
}
