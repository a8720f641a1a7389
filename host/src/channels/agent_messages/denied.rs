//! The notice to the other side of a denied message between agents. The sender has the refusal as the result of its call.

use super::Keys;
use crate::channels::inbound::inbox;
use crate::registry::tools::SEND_MESSAGE;
use crate::registry::{Agent, destinations};
use crate::sessions::store::{self, Origin, Session, SessionState};
use crate::turns::calls::Call;
use crate::turns::turn::{Position, Turn};
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use serde_json::Value;

/// Tells the other side that the host denied a message of an agent: at the end of a chain the session that waits for the answer, and
/// otherwise the session of the receiver, if there is one. `position` is the one by which the message was judged.
pub fn notify(
    tx: &mut WriteTx<'_>,
    turn: &Turn,
    position: Option<&Position>,
    agent: &Agent,
    call: &Call,
    code: DenialCode,
    keys: Keys<'_>,
) -> Result<(), Error> {
    let is_told = matches!(code, DenialCode::CallHops | DenialCode::CallGroup | DenialCode::CallRootPerson);
    if call.tool != SEND_MESSAGE || !is_told {
        return Ok(());
    }
    let Some(position) = position else { return Ok(()) };
    let Some(session) = other_side(tx, turn, position, agent, call, code)? else { return Ok(()) };
    let text = format!("The host denied a message of agent {}: {} ({code}).", agent.name, code.meaning());
    inbox::notify(tx, &session, &text, keys.wrapping, keys.sealer)?;
    inbox::bound_context(tx, session.id)?;
    Ok(())
}

fn other_side(
    tx: &ReadTx<'_>,
    turn: &Turn,
    position: &Position,
    agent: &Agent,
    call: &Call,
    code: DenialCode,
) -> Result<Option<Session>, ironclaw_state::Error> {
    let found = if code == DenialCode::CallHops {
        let upstream = position.opened_by.as_ref().map(|of_agent| of_agent.source_session);
        upstream.map(|session| store::find(tx, session)).transpose()?.flatten()
    } else {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let held = destinations::find(tx, agent.id, arguments["to"].as_str().unwrap_or_default())?;
        let origin = Origin::from_agent(turn.session, position.person);
        let receiver = held.and_then(|held| held.to_agent);
        receiver.map(|receiver| store::find_by_origin(tx, receiver, &origin)).transpose()?.flatten()
    };
    Ok(found.filter(|session| session.standing != SessionState::Removed))
}
