//! The position of a turn in a chain of messages between agents. Never decides what the turn may do.

use super::Turn;
use ironclaw_contract::ids::{MessageId, PersonId};
use ironclaw_state::{Error, ReadTx};
use ironclaw_store::tables::agent_messages::{self, AgentMessage};
use ironclaw_store::tables::messages;

/// The position of a turn in its chain.
#[derive(Debug, Clone)]
pub struct Position {
    /// The message at which the turn works: the one that began its task.
    pub message: MessageId,
    /// The number of agents that the messages of the turn passed through at most.
    pub hop: u32,
    /// The message at the start of the chain.
    pub chain: MessageId,
    /// The person at the start of the chain.
    pub person: PersonId,
    /// The message of an agent that opened the turn.
    pub opened_by: Option<AgentMessage>,
}

impl Position {
    /// Returns the position of a turn.
    ///
    /// # Errors
    /// Errors of the record; a turn without a message is one.
    pub fn find(tx: &ReadTx<'_>, turn: &Turn) -> Result<Self, Error> {
        let mut position: Option<Self> = None;
        for message in messages::that_asked(tx, turn.id)? {
            let root = messages::root_of(tx, message)?;
            let opened_by = agent_messages::find(tx, root)?;
            let hop = opened_by.as_ref().map_or(0, |of_agent| of_agent.hop);
            let chain = opened_by.as_ref().map_or(root, |of_agent| of_agent.chain);
            if position.as_ref().is_none_or(|before| hop > before.hop) {
                position = Some(Self { message: root, hop, chain, person: turn.person()?, opened_by });
            }
        }
        position.ok_or_else(|| Error::Stored(format!("{} answers no message", turn.id)))
    }
}
