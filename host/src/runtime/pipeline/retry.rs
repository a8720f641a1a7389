//! The retry of a message whose turn ended with a notice of the host instead of an answer.
//!
//! Never changes a message that has an answer or still waits for one, so repeated retries give one answer. See
//! [`crate::turns::turn::open_next`].

use crate::channels::inbound::inbox::{self, Message, Recorded};
use crate::channels::inbound::routing;
use crate::channels::outbound::delivery;
use crate::registry::{self, Person};
use crate::runtime::pipeline::Inbound;
use crate::sessions;
use crate::turns::items;
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::seam::message::Status;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_store::tables::messages;

impl Inbound {
    /// Queues a message again, and wakes its session.
    ///
    /// # Errors
    /// Refuses a message that waits, that has an answer, or whose text is no longer kept.
    pub async fn retry(&self, id: MessageId, by: Person) -> Result<Recorded, Denied<Error>> {
        let queued = self.record.state.decide(move |tx| queue_again(tx, id, &by)).await?;
        self.wake.wake(queued.session);
        Ok(queued)
    }
}

fn queue_again(tx: &mut WriteTx<'_>, id: MessageId, by: &Person) -> Result<Recorded, Denied> {
    let refuse = |code, words: &str| Err(Refusal::new(code, format!("{id} {words}")).into());
    let Some(message) = inbox::find(tx, id)?.filter(|message| message.trigger) else {
        return Err(Refusal::new(DenialCode::MessageUnknown, format!("there is no message {id}")).into());
    };
    if let Some(refusal) = lost_access(tx, &message)? {
        return Err(refusal.into());
    }
    if !matches!(message.status, Status::Completed | Status::Delivered) {
        return refuse(DenialCode::MessageWaits, "has no answer yet, and waits for one");
    }
    if is_answered(tx, &message)? {
        return refuse(DenialCode::MessageAnswered, "is answered");
    }
    if items::find(tx, id.item())?.is_none() {
        return refuse(DenialCode::MessageDropped, "is no longer kept: send it again");
    }
    messages::ask_again(tx, id)?;
    let entry = Entry::new(LedgerEvent::MessageRetried).session(message.session).message(id);
    entry.with("by", by.id).append(tx)?;
    Ok(Recorded { message: id, session: message.session, again: true })
}

/// Refuses a message whose author may no longer talk to the agent, even if another person requests the retry.
fn lost_access(tx: &ReadTx<'_>, message: &Message) -> Result<Option<Refusal>, ironclaw_state::Error> {
    let session = sessions::store::find(tx, message.session)?;
    let agent = session.map(|session| registry::agent_by_id(tx, session.agent)).transpose()?.flatten();
    let person = registry::find_person(tx, &message.principal)?;
    let (Some(agent), Some(person)) = (agent, person) else { return Ok(None) };
    let talks = registry::roles::role_for(tx, &person, &agent)?.may_talk();
    Ok((!talks).then(|| routing::not_yours(&agent)))
}

/// Returns whether the delivery of the message, sent or not, is an answer of the agent.
fn is_answered(tx: &ReadTx<'_>, message: &Message) -> Result<bool, ironclaw_state::Error> {
    let delivery = message.turn.map(|turn| delivery::for_turn(tx, turn)).transpose()?.flatten();
    let item = delivery.map(|delivery| delivery::item(tx, &delivery)).transpose()?;
    // A delivery whose item is no longer kept counts as an answer. Only a notice that is still kept does not.
    Ok(item.is_some_and(|item| item.is_none_or(|item| item.tuple.kind != ItemKind::Notice)))
}
