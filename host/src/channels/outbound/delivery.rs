//! Durable delivery of answers: first the row of the intent, then the sending, then the receipt.
//!
//! Never sends without a recorded intent. The actor of a session delivers on the loopback, because nothing leaves the host; the
//! worker of the outbox delivers over a network. See [`super::dispatch`].

pub mod sent_files;

pub use super::journal::{receive, record_receipt};
pub use ironclaw_store::tables::deliveries::{
    Delivery, for_turn, is_any_open_here, open_of, received_of, sessions_with_open,
};

use super::journal;
use crate::channels::inbound::channel;
use crate::registry::LOOPBACK;
use crate::registry::tools::SEND_FILE;
use crate::sessions::store::{OriginKind, Session};
use crate::turns::context::OutputBody;
use crate::turns::items::{self, NewItem, Recorded};
use ironclaw_contract::ids::{ItemId, MessageId, TurnId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::outbound::EndReason;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_operator::Receipt;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::agent_messages::{self, AgentMessageKind};
use ironclaw_store::tables::deliveries::{self, DeliveryState, NewDelivery, Payload, SentItem};
use ironclaw_store::tables::destinations::{self, ReplyAddress};
use ironclaw_store::tables::messages;
use ironclaw_store::tables::turns::TurnEnd;

/// Returns the message at which this session asked another agent, for a turn that the answer opened.
fn asked_at(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<MessageId>, ironclaw_state::Error> {
    let Some(first) = messages::asking_of_turn(tx, turn)?.into_iter().next() else { return Ok(None) };
    let mut message = messages::root_of(tx, first)?;
    let mut asked = None;
    while let Some(answer) = agent_messages::find(tx, message)?.filter(|found| found.kind == AgentMessageKind::Answer) {
        message = answer.source_message;
        asked = Some(message);
    }
    Ok(asked)
}

/// Returns the address of the reply to a turn: that of the messages that it answers, or the origin of the session.
fn reply_address(
    tx: &ReadTx<'_>,
    session: &Session,
    turn: Option<TurnId>,
) -> Result<ReplyAddress, ironclaw_state::Error> {
    let of_turn = match turn.map(|turn| asked_at(tx, turn)).transpose()?.flatten() {
        Some(message) => destinations::reply_address_of_message(tx, message)?,
        None => turn.map(|turn| destinations::reply_address_of_turn(tx, turn)).transpose()?.flatten(),
    };
    let origin = session.origin.clone();
    let found = match (of_turn, origin.kind) {
        (Some(found), _) => Some(found),
        (None, OriginKind::Agent) => destinations::reply_address_of_session(tx, session.id)?,
        (None, OriginKind::Sender | OriginKind::Guest | OriginKind::Group) => None,
    };
    let is_group = origin.kind == OriginKind::Group;
    let (sender, group) =
        if is_group { (String::new(), origin.platform_id) } else { (origin.platform_id, String::new()) };
    Ok(found.unwrap_or(ReplyAddress { channel: origin.channel, sender, group, thread: origin.thread_id }))
}

/// Records the intent to deliver an item to the address of the reply.
pub fn intend(
    tx: &mut WriteTx<'_>,
    session: &Session,
    turn: Option<TurnId>,
    item: ItemId,
) -> Result<Delivery, ironclaw_state::Error> {
    intend_reply(tx, session, turn, item, false)
}

/// Records the intent to deliver a reply to its address. With `receives_here`, a delivery that stays on this host gets the state
/// `received` at once, and the caller records the receipt in the same transaction with [`record_receipt`].
pub fn intend_reply(
    tx: &mut WriteTx<'_>,
    session: &Session,
    turn: Option<TurnId>,
    item: ItemId,
    receives_here: bool,
) -> Result<Delivery, ironclaw_state::Error> {
    let to = reply_address(tx, session, turn)?;
    let over_network = channel::is_over_network(&to.channel);
    let new = NewDelivery {
        payload: Payload::Item(SentItem { session: session.id, turn, item, call: None }),
        to: &to,
        over_network,
        state: if receives_here && !over_network { DeliveryState::Received } else { DeliveryState::Intent },
        not_before: None,
    };
    journal::intend(tx, new, turn)
}

/// Records the intent to send the text of a call of this turn to a destination.
pub fn intend_message(
    tx: &mut WriteTx<'_>,
    turn: TurnId,
    message: SentItem,
    to: &ReplyAddress,
) -> Result<Delivery, ironclaw_state::Error> {
    let new = NewDelivery {
        payload: Payload::Item(message),
        to,
        over_network: channel::is_over_network(&to.channel),
        state: DeliveryState::Intent,
        not_before: None,
    };
    let delivery = journal::intend(tx, new, Some(turn))?;
    if to.channel == LOOPBACK {
        // Nothing leaves the host. The person finds the file at the call.
        let now = tx.wall();
        receive(tx, &delivery)?;
        deliveries::mark_seen(tx, delivery.id, now)?;
    }
    Ok(delivery)
}

/// Returns the receipt of a delivery in this state.
pub const fn shown(state: DeliveryState) -> Receipt {
    match state {
        DeliveryState::Intent => Receipt::Pending,
        DeliveryState::Sending => Receipt::Sent,
        DeliveryState::Received => Receipt::Received,
        DeliveryState::Unknown => Receipt::Unknown,
        DeliveryState::Dead | DeliveryState::Withdrawn | DeliveryState::Unplaced => Receipt::Dead,
        DeliveryState::Dropped => Receipt::Dropped,
    }
}

/// Returns the item of a delivery; `None` if it has none, or if the item is no longer kept.
pub fn item(tx: &ReadTx<'_>, delivery: &Delivery) -> Result<Option<Recorded>, ironclaw_state::Error> {
    delivery.sent().map_or(Ok(None), |sent| items::find(tx, sent.item))
}

/// Returns the text of a delivery: that of its call, or that of its item.
pub fn text_to_send(tx: &ReadTx<'_>, sent: &SentItem, item: &Recorded, key: &ContentKey) -> Result<String, Error> {
    let Some(call) = sent.call else { return text_of(tx, item, key) };
    let damaged = || ironclaw_state::Error::Stored(format!("{call} has no text"));
    let output: OutputBody = serde_json::from_str(&items::body(tx, item, key)?).map_err(|_| damaged())?;
    let wanted = output.calls.into_iter().find(|wanted| wanted.call_id == call).ok_or_else(damaged)?;
    let arguments: serde_json::Value = serde_json::from_str(&wanted.arguments).map_err(|_| damaged())?;
    match arguments["text"].as_str() {
        Some(text) => Ok(text.to_owned()),
        None if wanted.tool == SEND_FILE => Ok(String::new()),
        None => Err(damaged().into()),
    }
}

/// Returns the text of an item for a person: the text of an output, or the whole body of a notice.
pub fn text_of(tx: &ReadTx<'_>, item: &Recorded, key: &ContentKey) -> Result<String, Error> {
    let body = items::body(tx, item, key)?;
    if item.tuple.kind != ItemKind::Output {
        return Ok(body);
    }
    let output: OutputBody = serde_json::from_str(&body)
        .map_err(|_| ironclaw_state::Error::Stored("an output's body has another shape".to_owned()))?;
    Ok(output.shown())
}

/// Records a notice that the host writes in place of an answer, and the intent to deliver it.
pub fn notify(
    tx: &mut WriteTx<'_>,
    session: &Session,
    turn: Option<TurnId>,
    text: &str,
    key: &ContentKey,
    sealer: &Sealer,
) -> Result<Delivery, Error> {
    let spans = vec![Span { author: Author::Host, bytes: text.len() }];
    let draft = NewItem::new(ItemId::new(), ItemKind::Notice, Labelled::new(text, Provenance::Host), spans, key)?;
    let draft = match turn {
        Some(turn) => draft.turn(turn),
        None => draft,
    };
    let id = draft.id();
    draft.record(tx, session.id, sealer)?;
    Ok(intend(tx, session, turn, id)?)
}

/// The process that ended the last attempt at a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The host: it was stopped or killed, or the machine lost power.
    Host,
    /// The sandbox of the agent.
    Sandbox,
}

impl EndedBy {
    /// Returns the reason for closing a turn whose message is retried.
    pub const fn requeue_reason(self) -> TurnEnd {
        match self {
            Self::Host => TurnEnd::HostEnded,
            Self::Sandbox => TurnEnd::SandboxEnded,
        }
    }

    /// Returns the reason for closing a turn whose message is given up.
    pub const fn give_up_reason(self) -> TurnEnd {
        match self {
            Self::Host => TurnEnd::GivenUpAfterHost,
            Self::Sandbox => TurnEnd::GivenUpAfterSandbox,
        }
    }
}

/// Returns the text of the notice for a message that is given up after this many attempts.
pub fn notice_of_given_up(ended_by: EndedBy, attempts: u32, message: MessageId) -> String {
    let who = match ended_by {
        EndedBy::Host => "the host itself ended",
        EndedBy::Sandbox => "the agent's process ended",
    };
    format!(
        "I gave up on this message after {attempts} interrupted attempts. The last one was interrupted because {who}. Parts of the work \
         may be done: check before you ask again. {}",
        retry_hint(message)
    )
}

/// Returns the text of the notice for a turn whose model request failed for this reason.
pub fn notice_of_model(why: &str, message: MessageId) -> String {
    let mut letters = why.chars();
    let why: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    format!("{why}. There is no answer; completed work is kept. {}", retry_hint(message))
}

/// Returns the text of the notice for a turn that ended without a reply; `message` is the newest of its messages.
pub fn notice_for(reason: EndReason, limits: &crate::turns::turn::Config, message: MessageId) -> String {
    match reason {
        EndReason::ToolCalls => stopped(&format!("{} tool calls", limits.tool_calls_max), "tool_calls_max"),
        EndReason::ModelCalls => {
            stopped(&format!("{} requests to the model", limits.model_calls_max), "model_calls_max")
        }
        EndReason::Bytes => stopped(&format!("{} bytes of tool results", limits.result_bytes_max), "result_bytes_max"),
        EndReason::Time => stopped(&format!("{} seconds", limits.seconds_max), "seconds_max"),
        EndReason::Model => {
            format!("The model endpoint failed, so there is no answer. {}", retry_hint(message))
        }
        EndReason::Empty => "The model returned an empty answer.".to_owned(),
        EndReason::Failed => format!(
            "The agent's process failed during this turn. Parts of the work may be done: check before you ask \
             again. {}",
            retry_hint(message)
        ),
    }
}

/// Returns the text of the notice for a turn that reached a limit of the table `[turn]`.
fn stopped(limit: &str, setting: &str) -> String {
    format!(
        "I stopped: this turn reached its limit of {limit} before an answer. Completed work is kept. Say `continue` to go on. \
         The setting is turn.{setting} in config.toml."
    )
}

fn retry_hint(message: MessageId) -> String {
    format!("Your message is kept. Retry it with `ironctl message retry {message}`.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::store::tests::with_session;
    use ironclaw_contract::ids::ItemId;
    use ironclaw_store::tables::deliveries::{UNSEEN_BLOCK, mark_seen, unseen, unseen_by_session};

    #[test]
    fn notice_of_given_up_message_names_who_ended_and_retry() {
        let message = MessageId::new();
        let of = |ended_by| notice_of_given_up(ended_by, 3, message);
        for (ended_by, who) in [(EndedBy::Host, "the host itself"), (EndedBy::Sandbox, "the agent's process")] {
            let text = of(ended_by);
            assert!(text.contains(who) && text.contains("the work may be done"), "{text}");
            assert!(text.contains(&format!("`ironctl message retry {message}`")), "{text}");
        }
        let limits = crate::turns::turn::Config::default();
        for reason in [EndReason::Failed, EndReason::Model] {
            let text = notice_for(reason, &limits, message);
            assert!(text.contains(&format!("`ironctl message retry {message}`")), "{text}");
            assert!(!text.contains("write again"), "{text}");
        }
    }

    #[test]
    fn unseen_replies_of_each_block_are_found_once() {
        with_session(|tx, owner, session| {
            let count = |tx: &WriteTx<'_>| -> u64 {
                unseen_by_session(tx, owner).expect("read").iter().map(|unseen| unseen.count).sum()
            };
            let mut replies = Vec::new();
            for number in 1..=(2 * UNSEEN_BLOCK + 10) {
                let reply = intend(tx, session, None, ItemId::new()).expect("intended");
                receive(tx, &reply).expect("received");
                if number % 2 == 0 {
                    mark_seen(tx, reply.id, 1).expect("seen");
                }
                replies.push(reply.id);
            }
            assert_eq!(count(tx), (UNSEEN_BLOCK + 5) as u64);
            let oldest = unseen(tx, owner, session.agent, 2).expect("read");
            assert_eq!(oldest.iter().map(|reply| reply.id).collect::<Vec<_>>(), [replies[0], replies[2]]);
            mark_seen(tx, replies[0], 1).expect("seen");
            mark_seen(tx, replies[2 * UNSEEN_BLOCK as usize], 1).expect("seen");
            assert_eq!(count(tx), (UNSEEN_BLOCK + 3) as u64);
        });
    }
}
