//! The answer to a request of an agent: its message in the session that asked.
//!
//! An answer is delivered when a turn takes it, and not before. Each turn at a request answers once: by a reply, or by a notice of the host
//! in its place. A request without a turn gets words of the host.

use super::{Draft, Keys, record};
use crate::channels::outbound::journal;
use crate::registry::Agent;
use crate::sessions::store::{self, Session, SessionState};
use crate::turns::turn::{self, Position};
use ironclaw_contract::ids::{DeliveryId, MessageId, SessionId, TurnId};
use ironclaw_contract::seam::message::Author;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::agent_messages::{self as table, AgentMessage, AgentMessageKind};
use ironclaw_store::tables::deliveries::{self, Delivery, SentItem};
use ironclaw_store::tables::messages;

/// Returns the request that a turn answers, and the session that asked; `None` if either is gone.
///
/// An agent that passed a request on answers it again once the answer to its own request opens a turn.
fn asked(tx: &ReadTx<'_>, turn: TurnId) -> Result<Option<(AgentMessage, Session)>, ironclaw_state::Error> {
    let Some(first) = messages::asking_of_turn(tx, turn)?.into_iter().next() else { return Ok(None) };
    let mut message = messages::root_of(tx, first)?;
    while let Some(of_agent) = table::find(tx, message)? {
        if of_agent.kind == AgentMessageKind::Request {
            let session = live(tx, of_agent.source_session)?;
            return Ok(session.map(|session| (of_agent, session)));
        }
        message = of_agent.source_message;
    }
    Ok(None)
}

/// Returns the number of agents that the messages of a turn passed through at most.
fn hop_of(tx: &ReadTx<'_>, turn: TurnId) -> Result<u32, ironclaw_state::Error> {
    let found = turn::find(tx, turn)?.map(|turn| Position::find(tx, &turn)).transpose()?;
    Ok(found.map_or(0, |position| position.hop))
}

fn live(tx: &ReadTx<'_>, session: SessionId) -> Result<Option<Session>, ironclaw_state::Error> {
    Ok(store::find(tx, session)?.filter(|session| session.standing != SessionState::Removed))
}

/// Records an answer in the session that asked; returns false if that session is gone.
pub fn route(
    tx: &mut WriteTx<'_>,
    id: DeliveryId,
    answer: &SentItem,
    agent: &Agent,
    text: &str,
    is_notice: bool,
    keys: Keys<'_>,
) -> Result<bool, Error> {
    let Some(turn) = answer.turn else { return Ok(false) };
    let Some((request, session)) = asked(tx, turn)? else { return Ok(false) };
    let author = if is_notice { Author::Host } else { Author::Agent { agent: agent.id } };
    let notice = format!("Agent {} gave no answer. The notice of the host: {text}", agent.name);
    let of_agent = AgentMessage {
        message: MessageId::new(),
        kind: AgentMessageKind::Answer,
        source_agent: agent.id,
        source_session: answer.session,
        hop: hop_of(tx, turn)? + 1,
        chain: request.chain,
        source_message: request.source_message,
        delivery: Some(id),
    };
    let (message, hop, chain) = (of_agent.message, of_agent.hop, of_agent.chain);
    add(tx, &session, &request, if is_notice { &notice } else { text }, author, of_agent, keys)?;
    deliveries::take_up(tx, id)?;
    Entry::new(LedgerEvent::AgentAnswered)
        .session(session.id)
        .message(message)
        .with("delivery", id)
        .with("from", answer.session)
        .with("hop", hop)
        .with("chain", chain)
        .append(tx)?;
    Ok(true)
}

/// Records the words of the host that a request in this session gets no answer, if the session that asked still exists.
pub(super) fn record_no_answer(
    tx: &mut WriteTx<'_>,
    receiver: &Session,
    request: &AgentMessage,
    words: &str,
    why: &str,
    keys: Keys<'_>,
) -> Result<(), Error> {
    let Some(session) = live(tx, request.source_session)? else { return Ok(()) };
    let of_agent = AgentMessage {
        message: MessageId::new(),
        kind: AgentMessageKind::Answer,
        source_agent: receiver.agent,
        source_session: receiver.id,
        hop: request.hop + 1,
        ..request.clone()
    };
    let message = of_agent.message;
    add(tx, &session, request, words, Author::Host, of_agent, keys)?;
    Entry::new(LedgerEvent::AgentRefused)
        .session(session.id)
        .message(message)
        .with("agent", receiver.agent)
        .with("from", receiver.id)
        .reason(why)
        .append(tx)?;
    Ok(())
}

fn add(
    tx: &mut WriteTx<'_>,
    session: &Session,
    request: &AgentMessage,
    text: &str,
    author: Author,
    of_agent: AgentMessage,
    keys: Keys<'_>,
) -> Result<(), Error> {
    let damaged = || ironclaw_state::Error::Stored(format!("{} has no person", request.message));
    let row = messages::find(tx, request.message)?.ok_or_else(damaged)?;
    let person = row.principal.parse().map_err(|_| damaged())?;
    let sender = of_agent.source_agent;
    table::mark_answered(tx, request.message)?;
    record(tx, session, Draft { text, author, person, sender, of_agent }, keys)
}

/// Records the receipts of the answers among the messages that a turn took.
pub fn receive(tx: &mut WriteTx<'_>, taken: &[MessageId]) -> Result<(), ironclaw_state::Error> {
    for message in taken {
        let Some(delivery) = table::find(tx, *message)?.and_then(|of_agent| of_agent.delivery) else { continue };
        if let Some(delivery) = deliveries::find(tx, delivery)? {
            journal::receive(tx, &delivery)?;
        }
    }
    Ok(())
}

/// Returns the deliveries of the answers in a session that no turn took.
pub fn untaken(tx: &ReadTx<'_>, session: SessionId) -> Result<Vec<Delivery>, ironclaw_state::Error> {
    let ids = table::untaken_answers_of(tx, session)?;
    Ok(ids
        .into_iter()
        .map(|id| deliveries::find(tx, id))
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect())
}
