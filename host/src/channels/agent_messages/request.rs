//! A request of an agent to another one: its message in the session of the receiver.
//!
//! Each session that asks has a session of its own at the receiver, for each person at the start of a chain, so that no receiver mixes
//! the texts of two people.

use super::{AGENT, Draft, Keys, chain, record};
use crate::channels::inbound::inbox;
use crate::registry::quota;
use crate::registry::{self, Agent};
use crate::sessions::store::{self, Origin, Session};
use crate::turns::turn::Position;
use ironclaw_contract::ids::{AgentId, CallId, MessageId, SessionId};
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use ironclaw_contract::seam::message::Author;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::agent_messages::{self as table, AgentMessage, AgentMessageKind};
use ironclaw_store::tables::messages;

/// A judged call that sends to another agent.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub from: (SessionId, CallId),
    pub sender: AgentId,
    pub receiver: AgentId,
    /// The position of the turn.
    pub position: &'a Position,
    pub text: &'a str,
}

/// Records a send in the bound of the sender.
pub fn count(tx: &mut WriteTx<'_>, sender: AgentId, call: CallId) -> Result<(), ironclaw_state::Error> {
    let now = tx.wall();
    table::add_send(tx, sender, call, now, now - chain::MINUTE_MS)
}

/// Records the message of a request, and returns it.
///
/// # Errors
/// Refuses a text that is too long, and one beyond the quotas of the person or the numbers of sessions.
pub fn send(
    tx: &mut WriteTx<'_>,
    request: &Request<'_>,
    quota: &quota::Config,
    sessions_max: u32,
    keys: Keys<'_>,
) -> Result<MessageId, Denied<Error>> {
    let Request { from: (session, call), sender, receiver, position, text } = request.clone();
    if text.len() > BODY_BYTES_MAX {
        return Err(inbox::too_long(text.len()).into());
    }
    let person = position.person;
    quota.admit_message(tx, person, AGENT, text.len() as u64)?;
    let agent = registry::agent_by_id(tx, receiver)?.ok_or_else(|| registry::unknown_agent(&receiver.to_string()))?;
    let target = session_of(tx, &agent, session, position, quota, sessions_max, keys)?;
    let (message, hop) = (MessageId::new(), position.hop + 1);
    let of_agent = AgentMessage {
        message,
        kind: AgentMessageKind::Request,
        source_agent: sender,
        source_session: session,
        source_message: position.message,
        hop,
        chain: position.chain,
        delivery: None,
    };
    let draft = Draft { text, author: Author::Agent { agent: sender }, person, sender, of_agent };
    record(tx, &target, draft, keys).map_err(Denied::Failed)?;
    Entry::new(LedgerEvent::AgentSent)
        .session(target.id)
        .message(message)
        .with("call", call)
        .with("from", session)
        .with("agent", receiver)
        .with("hop", hop)
        .with("chain", position.chain)
        .append(tx)?;
    Ok(message)
}

/// Returns the session of the receiver for the session that asks.
fn session_of(
    tx: &mut WriteTx<'_>,
    agent: &Agent,
    asking: SessionId,
    position: &Position,
    quota: &quota::Config,
    sessions_max: u32,
    keys: Keys<'_>,
) -> Result<Session, Denied<Error>> {
    let person = position.person;
    let origin = Origin::from_agent(asking, person);
    if store::find_by_origin(tx, agent.id, &origin)?.is_none() {
        quota.admit_conversation(tx, person, AGENT)?;
    }
    store::find_or_create(tx, agent, &origin, person, sessions_max, keys.wrapping)
}

/// Ends the waiting requests of a session whose sender may no longer write to its agent. Both sessions are told.
pub fn end_lost(tx: &mut WriteTx<'_>, session: &Session, keys: Keys<'_>) -> Result<(), Error> {
    if session.origin.channel != AGENT {
        return Ok(());
    }
    // Also one that has an answer and was queued again for a retry.
    for of_agent in table::waiting_requests_of(tx, session.id)? {
        let Some(row) = messages::find(tx, of_agent.message)? else { continue };
        let Ok(person) = row.principal.parse() else { continue };
        let Some(code) = chain::standing(tx, person, of_agent.chain, of_agent.source_agent, session.agent)? else {
            continue;
        };
        if !messages::complete_waiting(tx, of_agent.message)? {
            continue;
        }
        let name = registry::agent_by_id(tx, session.agent)?.map(|agent| agent.name).unwrap_or_default();
        let words = format!("The host did not give your message to agent {name}: {} ({code}).", code.meaning());
        super::answer::record_no_answer(tx, session, &of_agent, &words, code.name(), keys)?;
        let own = format!("The host withdrew a message of another agent to you: {} ({code}).", code.meaning());
        inbox::notify(tx, session, &own, keys.wrapping, keys.sealer)?;
    }
    Ok(())
}

/// Ends the unanswered requests of a session that is removed. The sessions that asked are told.
pub fn end_of_session(tx: &mut WriteTx<'_>, session: &Session, keys: Keys<'_>) -> Result<(), Error> {
    let name = registry::agent_by_id(tx, session.agent)?.map(|agent| agent.name).unwrap_or_default();
    for of_agent in table::unanswered_of(tx, session.id)? {
        let words = format!("The conversation of agent {name} was removed before an answer to your message.");
        super::answer::record_no_answer(tx, session, &of_agent, &words, "session_removed", keys)?;
    }
    Ok(())
}
