//! Delivers answers durably: the intent is a row, then the sending, then the receipt.
//!
//! Never sends what was not intended in the record. The loopback is delivered to by its session's actor, as nothing leaves the host; what
//! goes out by a network goes through the journal. Next: `outbound::delivery::journal`.

pub mod journal;

pub use crate::tables::deliveries::{Delivery, of_turn, open_of, received_of, sessions_with_open};

use crate::session::store::Session;
use crate::tables::deliveries::{self, NewDelivery};
use crate::tables::messages;
use crate::turns::context::OutputBody;
use crate::turns::items::{self, BodyError, NewItem, Recorded};
use ironclaw_contract::ids::{DeliveryId, ItemId, MessageId, TurnId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::outbound::EndReason;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_ledger::Entry;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx};

/// Writes the intent to deliver an item to the origin of its session.
pub fn intend(
    tx: &mut WriteTx<'_>,
    session: &Session,
    turn: Option<TurnId>,
    item: ItemId,
    row: Option<MessageId>,
) -> Result<Delivery, ironclaw_state::Error> {
    let new = NewDelivery {
        id: DeliveryId::new(),
        session: session.id,
        turn,
        item,
        row_id: row,
        channel: &session.origin.channel,
        platform_id: &session.origin.platform_id,
        thread_id: &session.origin.thread_id,
    };
    let delivery = deliveries::insert(tx, new)?;
    let entry =
        Entry::new(LedgerEvent::DeliveryIntended).session(session.id).with("delivery", delivery.id).with("item", item);
    match turn {
        Some(turn) => entry.turn(turn).append(tx)?,
        None => entry.append(tx)?,
    };
    Ok(delivery)
}

/// How the state of a delivery is shown: `pending sent received unknown dead dropped`.
pub fn shown(state: &str) -> &'static str {
    match state {
        "intent" => "pending",
        "sending" => "sent",
        "received" => "received",
        "dead" => "dead",
        "dropped" => "dropped",
        _ => "unknown",
    }
}

/// Notes the receipt: the answered messages are delivered.
pub fn receive(tx: &mut WriteTx<'_>, delivery: &Delivery) -> Result<(), ironclaw_state::Error> {
    let now = tx.now();
    if !deliveries::mark_received(tx, delivery.id, now)? {
        return Ok(());
    }
    let entry = Entry::new(LedgerEvent::DeliveryReceived).session(delivery.session).with("delivery", delivery.id);
    match delivery.turn {
        Some(turn) => {
            messages::mark_delivered(tx, turn)?;
            entry.turn(turn).append(tx)?
        }
        None => entry.append(tx)?,
    };
    Ok(())
}

/// What is known of a delivery that came to an end, in the words of the contract, and since when; `None` while it is on its way.
pub fn receipt(tx: &ReadTx<'_>, id: DeliveryId) -> Result<Option<(&'static str, i64)>, ironclaw_state::Error> {
    let found = deliveries::progress(tx, id)?;
    Ok(found.and_then(|progress| Some((ended(&progress.state)?, progress.settled_at?))))
}

/// The contract's word for a delivery in this state.
fn ended(state: &str) -> Option<&'static str> {
    match state {
        "received" => Some("delivered"),
        "unknown" => Some("unknown"),
        "dead" | "dropped" => Some("failed"),
        _ => None,
    }
}

/// What a person reads of an item: the text of an output, or the whole of a notice.
pub fn text_of(tx: &ReadTx<'_>, item: &Recorded, key: &ContentKey) -> Result<String, BodyError> {
    let body = items::body(tx, item, key)?;
    if item.tuple.kind != ItemKind::Output {
        return Ok(body);
    }
    let output: OutputBody = serde_json::from_str(&body)
        .map_err(|_| ironclaw_state::Error::Stored("an output's body has another shape".to_owned()))?;
    Ok(output.text)
}

/// Records a notice that the host writes in place of an answer, and the intent to deliver it.
pub fn notify(
    tx: &mut WriteTx<'_>,
    session: &Session,
    turn: Option<TurnId>,
    text: &str,
    key: &ContentKey,
    sealer: &Sealer,
) -> Result<Delivery, crate::session::store::NewError> {
    let spans = vec![Span { author: Author::Host, bytes: text.len() }];
    let draft = NewItem::new(ItemId::new(), ItemKind::Notice, text, spans, Vec::new(), key)?;
    let draft = match turn {
        Some(turn) => draft.turn(turn),
        None => draft,
    };
    let id = draft.id();
    draft.record(tx, session.id, sealer)?;
    Ok(intend(tx, session, turn, id, None)?)
}

/// Who ended the last attempt at a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ender {
    /// The host itself: it was stopped, killed, or lost its power.
    Host,
    /// The agent's process.
    Sandbox,
}

impl Ender {
    /// Why the turn is closed whose message waits again.
    pub const fn requeued(self) -> &'static str {
        match self {
            Self::Host => "the host ended",
            Self::Sandbox => "its sandbox went away",
        }
    }

    /// Why the turn is closed whose message is given up.
    pub const fn given_up(self) -> &'static str {
        match self {
            Self::Host => "given up: the host ended",
            Self::Sandbox => "given up: its sandbox went away",
        }
    }
}

/// The words of the notice for a message that is given up after so many attempts.
pub fn notice_of_given_up(ender: Ender, attempts: u32, message: MessageId) -> String {
    let who = match ender {
        Ender::Host => "the host itself ended",
        Ender::Sandbox => "the agent's process ended",
    };
    format!(
        "I gave this message up: {attempts} attempts at it were cut short, the last one because {who}. What was begun may be done in \
         part: look before you ask for it again. {}",
        kept(message)
    )
}

/// The words of the notice for a turn whose request to a model came to nothing, for this reason.
pub fn notice_of_model(why: &str, message: MessageId) -> String {
    let mut letters = why.chars();
    let why: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    format!("{why}. So there is no answer, and what was done so far stays done. {}", kept(message))
}

/// The words of the notice for a turn that ended without a reply; `message` is the newest that it was to answer.
pub fn notice_for(reason: EndReason, limits: &crate::turns::turn::Config, message: MessageId) -> String {
    match reason {
        EndReason::ToolCalls => {
            format!(
                "I stopped: this turn reached its limit of {} tool calls without coming to an answer. What was done so far stays done.",
                limits.tool_calls_max
            )
        }
        EndReason::ModelCalls => {
            format!(
                "I stopped: this turn reached its limit of {} requests to the model without coming to an answer. What was done so far stays done.",
                limits.model_calls_max
            )
        }
        EndReason::Bytes => "I stopped: the results of this turn's tools were larger than a turn may use.".to_owned(),
        EndReason::Time => format!("I stopped: this turn took longer than its {} seconds.", limits.seconds_max),
        EndReason::Model => {
            format!("The model's endpoint failed, so there is no answer. {}", kept(message))
        }
        EndReason::Empty => "The model answered with nothing at all.".to_owned(),
        EndReason::Failed => format!(
            "The agent's process failed while it worked on this. What it began may be done in part: look before you ask for it \
             again. {}",
            kept(message)
        ),
    }
}

fn kept(message: MessageId) -> String {
    format!("Your message is kept: `ironctl message retry {message}` has it answered once more.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipt_is_projected_only_once_there_is_one() {
        let words = ["intent", "sending", "received", "unknown", "dead", "dropped"].map(ended);
        assert_eq!(words, [None, None, Some("delivered"), Some("unknown"), Some("failed"), Some("failed")]);
    }

    #[test]
    fn notice_of_given_up_message_names_who_ended_and_retry() {
        let message = MessageId::new();
        let of = |ender| notice_of_given_up(ender, 3, message);
        for (ender, who) in [(Ender::Host, "the host itself"), (Ender::Sandbox, "the agent's process")] {
            let text = of(ender);
            assert!(text.contains(who) && text.contains("may be done in part"), "{text}");
            assert!(text.contains(&format!("`ironctl message retry {message}`")), "{text}");
        }
        let limits = crate::turns::turn::Config::default();
        for reason in [EndReason::Failed, EndReason::Model] {
            let text = notice_for(reason, &limits, message);
            assert!(text.contains(&format!("`ironctl message retry {message}`")), "{text}");
            assert!(!text.contains("write again"), "{text}");
        }
    }
}
