//! The rules of a chain: who may send to which agent, how far, how often, and with which tools.
//!
//! Each rule is read anew at each call, so that a removed agent, a changed group or a lost right counts at once. A chain never has more
//! tools than at the step before.

use super::Config;
use crate::registry::destinations::{Destination, State};
use crate::registry::{self, groups, roles};
use crate::tables::agent_messages::{self as table, AgentMessage, AgentMessageKind};
use crate::tables::messages;
use crate::turns::turn::{self, Turn};
use ironclaw_contract::ids::{AgentId, MessageId, PersonId};
use ironclaw_contract::operator::DenialCode;
use ironclaw_judge::Principal;
use ironclaw_state::{Error, ReadTx};
use std::collections::BTreeSet;

pub use crate::tables::agent_messages::Link;

/// The window of the bound on sends, milliseconds.
pub(super) const MINUTE_MS: i64 = 60_000;

/// The position of a turn in its chain.
#[derive(Debug, Clone)]
pub struct Position {
    /// The number of agents that the messages of the turn passed through at most.
    pub hop: u32,
    /// The message at the start of the chain.
    pub chain: MessageId,
    /// The person at the start of the chain.
    pub person: PersonId,
    /// The message of an agent that opened the turn.
    pub opened_by: Option<AgentMessage>,
}

/// Returns the position of a turn.
///
/// # Errors
/// Errors of the record; a turn without a message is one.
pub fn position(tx: &ReadTx<'_>, turn: &Turn) -> Result<Position, Error> {
    let mut position: Option<Position> = None;
    for message in turn::messages_of(tx, turn.id)? {
        let root = messages::root_of(tx, message)?;
        let opened_by = table::find(tx, root)?;
        let hop = opened_by.as_ref().map_or(0, |of_agent| of_agent.hop);
        let chain = opened_by.as_ref().map_or(root, |of_agent| of_agent.chain);
        if position.as_ref().is_none_or(|before| hop > before.hop) {
            position = Some(Position { hop, chain, person: turn.person()?, opened_by });
        }
    }
    position.ok_or_else(|| Error::Stored(format!("{} answers no message", turn.id)))
}

/// Returns the tools that the turn of an agent may use at the message of another agent; none if a turn of the chain is gone.
///
/// # Errors
/// Errors of the record.
pub fn tools(tx: &ReadTx<'_>, turn: &Turn, agent: AgentId) -> Result<Vec<String>, Error> {
    let mut permitted: Option<BTreeSet<String>> = None;
    let (mut turn, mut agent) = (Some(turn.clone()), agent);
    while let Some(at) = turn.take() {
        if at.principal_kind != Principal::Agent {
            break;
        }
        let Some(of_agent) = position(tx, &at)?.opened_by else { return Ok(Vec::new()) };
        let shared = groups::shared_tools(tx, of_agent.source_agent, agent)?.unwrap_or_default();
        permitted = Some(match permitted {
            Some(before) => before.intersection(&shared).cloned().collect(),
            None => shared,
        });
        let before = match of_agent.kind {
            AgentMessageKind::Request => {
                agent = of_agent.source_agent;
                Some(of_agent.source_turn)
            }
            // The turn that asked, of the same agent.
            AgentMessageKind::Answer => of_agent.asked_in,
        };
        turn = before.map(|before| turn::find(tx, before)).transpose()?.flatten();
        if turn.is_none() {
            return Ok(Vec::new());
        }
    }
    Ok(permitted.unwrap_or_default().into_iter().collect())
}

/// Returns the reason why an agent may not send to a destination in a turn; `None` if it may.
///
/// # Errors
/// Errors of the record.
pub fn denial(
    tx: &ReadTx<'_>,
    config: &Config,
    (position, from): (&Position, AgentId),
    to: &Destination,
) -> Result<Option<DenialCode>, Error> {
    let Some(receiver) = to.to_agent else {
        let is_ended = to.state != State::Active;
        return match is_ended {
            true => Ok(Some(DenialCode::CallDestinationEnded)),
            false => over_rate(tx, config, from),
        };
    };
    if let Some(code) = standing(tx, position.person, from, receiver)? {
        return Ok(Some(code));
    }
    if position.hop >= config.hops_max {
        return Ok(Some(DenialCode::CallHops));
    }
    over_rate(tx, config, from)
}

/// Returns the reason why an agent may no longer write to another one for this person.
pub(super) fn standing(
    tx: &ReadTx<'_>,
    person: PersonId,
    from: AgentId,
    to: AgentId,
) -> Result<Option<DenialCode>, Error> {
    let Some(receiver) = registry::agent_by_id(tx, to)? else { return Ok(Some(DenialCode::CallDestinationEnded)) };
    if groups::shared_tools(tx, from, to)?.is_none() {
        return Ok(Some(DenialCode::CallGroup));
    }
    let Some(person) = registry::person_by_id(tx, person)? else { return Ok(Some(DenialCode::CallRootPerson)) };
    let may_talk = roles::role_for(tx, &person, &receiver)?.may_talk();
    Ok((!may_talk).then_some(DenialCode::CallRootPerson))
}

fn over_rate(tx: &ReadTx<'_>, config: &Config, from: AgentId) -> Result<Option<DenialCode>, Error> {
    let sent = table::sends_since(tx, from, tx.wall() - MINUTE_MS)?;
    Ok((sent >= u64::from(config.sends_per_minute)).then_some(DenialCode::CallSends))
}

/// Returns the messages of the chain of a message, in order; none if no agent sent one in it.
///
/// # Errors
/// Errors of the record.
pub fn links(tx: &ReadTx<'_>, message: MessageId) -> Result<Vec<Link>, Error> {
    let root = messages::root_of(tx, message)?;
    let chain = table::find(tx, root)?.map_or(root, |of_agent| of_agent.chain);
    table::chain(tx, chain)
}
