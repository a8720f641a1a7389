//! Durable delivery of answers: first the row of the intent, then the sending, then the receipt.
//!
//! Never sends without a recorded intent. The actor of a session delivers on the loopback, because nothing leaves the host; the
//! journal delivers over a network. See [`crate::channels::outbound::delivery::journal`].

pub mod journal;
pub mod notifications;
pub mod sent_files;

pub use ironclaw_store::tables::deliveries::{
    Delivery, for_turn, is_any_open_here, open_of, received_of, sessions_with_open,
};

use crate::channels::inbound::channel;
use crate::registry::LOOPBACK;
use crate::registry::tools::SEND_FILE;
use crate::sessions::store::{OriginKind, Session};
use crate::turns::context::OutputBody;
use crate::turns::items::{self, NewItem, Recorded};
use ironclaw_contract::ids::{CallId, DeliveryId, ItemId, MessageId, SessionId, TurnId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::outbound::EndReason;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_ledger::Entry;
use ironclaw_operator::{LedgerEvent, Receipt};
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::agent_messages::{self, AgentMessageKind};
use ironclaw_store::tables::deliveries::{self, DeliveryState, NewDelivery};
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
    row: Option<MessageId>,
) -> Result<Delivery, ironclaw_state::Error> {
    intend_reply(tx, session, turn, item, row, false)
}

/// Records the intent to deliver a reply to its address. With `receives_here`, a delivery that stays on this host gets the state
/// `received` at once, and the caller records the receipt in the same transaction with [`record_receipt`].
pub fn intend_reply(
    tx: &mut WriteTx<'_>,
    session: &Session,
    turn: Option<TurnId>,
    item: ItemId,
    row: Option<MessageId>,
    receives_here: bool,
) -> Result<Delivery, ironclaw_state::Error> {
    let to = reply_address(tx, session, turn)?;
    let over_network = channel::is_over_network(&to.channel);
    let new = NewDelivery {
        id: DeliveryId::new(),
        session: session.id,
        turn,
        item,
        row_id: row,
        call: None,
        channel: &to.channel,
        platform_id: &to.sender,
        thread_id: &to.thread,
        group_id: &to.group,
        over_network,
        is_received: receives_here && !over_network,
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

/// A message that an agent sends to a destination.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// The call, whose text is sent.
    pub call: CallId,
    /// The output that has the call.
    pub output: ItemId,
    /// The approved channel of the destination.
    pub channel: &'a str,
    pub address: &'a str,
    /// The approved thread; empty for none.
    pub thread: &'a str,
}

/// Records the intent to send the text of a call to a destination.
pub fn intend_message(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    turn: TurnId,
    sent: &Sent<'_>,
) -> Result<Delivery, ironclaw_state::Error> {
    let new = NewDelivery {
        id: DeliveryId::new(),
        session,
        // The turn has a delivery of its own: its answer.
        turn: None,
        item: sent.output,
        row_id: None,
        call: Some(sent.call),
        channel: sent.channel,
        platform_id: sent.address,
        thread_id: sent.thread,
        group_id: "",
        over_network: channel::is_over_network(sent.channel),
        is_received: false,
    };
    let delivery = deliveries::insert(tx, new)?;
    Entry::new(LedgerEvent::SendIntended)
        .session(session)
        .turn(turn)
        .with("delivery", delivery.id)
        .with("call", sent.call)
        .with("channel", sent.channel)
        .append(tx)?;
    if sent.channel == LOOPBACK {
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
        DeliveryState::Dead => Receipt::Dead,
        DeliveryState::Dropped => Receipt::Dropped,
    }
}

/// Records the receipt, and marks the answered messages as delivered.
pub fn receive(tx: &mut WriteTx<'_>, delivery: &Delivery) -> Result<(), ironclaw_state::Error> {
    let now = tx.now();
    if deliveries::mark_received(tx, delivery.id, now)? { record_receipt(tx, delivery) } else { Ok(()) }
}

/// Adds the receipt of a received delivery to the ledger, and marks the answered messages as delivered.
pub fn record_receipt(tx: &mut WriteTx<'_>, delivery: &Delivery) -> Result<(), ironclaw_state::Error> {
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

/// Returns the outcome of a settled delivery in the words of the contract, with its time; `None` while it is open.
pub fn receipt(tx: &ReadTx<'_>, id: DeliveryId) -> Result<Option<(&'static str, i64)>, ironclaw_state::Error> {
    let found = deliveries::progress(tx, id)?;
    Ok(found.and_then(|progress| Some((contract_status(progress.state)?, progress.settled_at?))))
}

/// Returns the contract's word for a settled delivery in this state.
const fn contract_status(state: DeliveryState) -> Option<&'static str> {
    match state {
        DeliveryState::Received => Some("delivered"),
        DeliveryState::Unknown => Some("unknown"),
        DeliveryState::Dead | DeliveryState::Dropped => Some("failed"),
        DeliveryState::Intent | DeliveryState::Sending => None,
    }
}

/// Returns the text of a delivery: that of its call, or that of its item.
pub fn text_to_send(tx: &ReadTx<'_>, delivery: &Delivery, item: &Recorded, key: &ContentKey) -> Result<String, Error> {
    let Some(call) = delivery.call else { return text_of(tx, item, key) };
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
    Ok(intend(tx, session, turn, id, None)?)
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
    fn only_settled_deliveries_have_a_receipt() {
        let words = DeliveryState::ALL.map(contract_status);
        assert_eq!(words, [None, None, Some("delivered"), Some("unknown"), Some("failed"), Some("failed")]);
    }

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
                let reply = intend(tx, session, None, ItemId::new(), None).expect("intended");
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
