//! The answers to other agents: each is recorded as a message of the session that asked, and never leaves the host.

use super::Dispatch;
use crate::channels::agent_messages::{self, Keys, answer};
use crate::channels::outbound::delivery::journal::Outcome;
use crate::channels::outbound::delivery::{self, Delivery};
use crate::registry;
use crate::sessions::store::Session;
use crate::turns::items;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;

/// The reason for a failed answer to an agent.
const ASKING_REMOVED: &str = "the session that asked was removed";

impl Dispatch {
    /// Records the answer of an agent in the session that asked. Settles an answer that can never get there as failed.
    pub(super) fn answer(&self, tx: &mut WriteTx<'_>, delivery: &Delivery, session: &Session) -> Result<(), Error> {
        let failed = |tx: &mut WriteTx<'_>, why: &str| self.settle(tx, delivery, &Outcome::Failed(why.to_owned()));
        let (Some(agent), Some(item)) = (registry::agent_by_id(tx, session.agent)?, items::find(tx, delivery.item)?)
        else {
            return failed(tx, "its agent or its text is no longer there");
        };
        let Ok(key) = session.content_key(&self.record.wrapping) else {
            return failed(tx, "cannot open the session's key");
        };
        let text = match delivery::text_of(tx, &item, &key) {
            Ok(text) => text,
            Err(Error::Key(_) | Error::State(ironclaw_state::Error::Stored(_))) => {
                return failed(tx, "cannot read its text");
            }
            Err(error) => return Err(error),
        };
        let keys = Keys { wrapping: &self.record.wrapping, sealer: &self.record.sealer };
        let is_notice = item.tuple.kind == ItemKind::Notice;
        match answer::route(tx, delivery, &agent, &text, is_notice, keys)? {
            true => Ok(()),
            false => failed(tx, ASKING_REMOVED),
        }
    }

    /// Settles the answers in a session that is removed and that no turn took as failed, and ends the requests that it has not answered.
    pub fn end_of_session(&self, tx: &mut WriteTx<'_>, session: &Session) -> Result<(), Error> {
        for delivery in answer::untaken(tx, session.id)? {
            self.settle(tx, &delivery, &Outcome::Failed(ASKING_REMOVED.to_owned()))?;
        }
        let keys = Keys { wrapping: &self.record.wrapping, sealer: &self.record.sealer };
        agent_messages::request::end_of_session(tx, session, keys)
    }
}
