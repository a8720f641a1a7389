//! The words about an unanswered message: the message, the decision or the model for which it waits.
//!
//! Never names a message or a request of another person. See [`super::why`].

use crate::registry::Person;
use crate::sessions::store;
use crate::turns::turn;
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_contract::seam::message::Status;
use ironclaw_operator::{LedgerEvent, MessageView, Stage};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::messages;
use ironclaw_store::tables::waiting::requests;

/// Returns what an unanswered message of a person waits for; `None` for any other message, and if the record does not say it.
pub(super) fn words(
    tx: &ReadTx<'_>,
    person: &Person,
    view: &MessageView,
    stages: &[Stage],
) -> Result<Option<String>, Error> {
    if view.reason.is_some() {
        return Ok(None);
    }
    match (view.status, view.turn_id) {
        (Status::Processing, Some(turn)) => working(tx, view, turn, stages),
        (Status::Queued, _) => queued(tx, person, view),
        _ => Ok(None),
    }
}

fn working(tx: &ReadTx<'_>, view: &MessageView, turn: TurnId, stages: &[Stage]) -> Result<Option<String>, Error> {
    if let Some(waiting) = decisions(tx, view.session_id, turn)? {
        return Ok(Some(format!("The agent works on it, and {waiting}.")));
    }
    let asks_model = stages.last().is_some_and(|last| last.stage == LedgerEvent::ModelAsked.name());
    if !asks_model {
        return Ok(None);
    }
    let agent = store::agent_of(tx, view.session_id)?;
    Ok(Some(format!("The agent works on it, and waits for its model, the endpoint {}.", agent.model)))
}

fn queued(tx: &ReadTx<'_>, person: &Person, view: &MessageView) -> Result<Option<String>, Error> {
    let Some(open) = turn::open_of(tx, view.session_id)? else { return Ok(None) };
    let first = match turn::messages_of(tx, open.id)?.into_iter().next() {
        Some(first) => messages::find(tx, first)?,
        None => None,
    };
    let Some(first) = first.filter(|first| first.is_of(person.id)) else {
        return Ok(Some("It waits for its turn: the agent answers a message of another person first.".to_owned()));
    };
    let waiting =
        decisions(tx, view.session_id, open.id)?.map_or_else(String::new, |waiting| format!(", and there {waiting}"));
    Ok(Some(format!("It waits for its turn: the agent answers your message {} first{waiting}.", first.id)))
}

/// Returns the words about the calls of a turn that wait for people.
fn decisions(tx: &ReadTx<'_>, session: SessionId, turn: TurnId) -> Result<Option<String>, Error> {
    let waiting = requests::list_for_turn(tx, session, turn)?;
    let waiting: Vec<String> = waiting
        .iter()
        .filter(|request| request.status.is_open())
        .map(|request| format!("{} ({})", request.id, request.tool))
        .collect();
    Ok((!waiting.is_empty()).then(|| format!("a person has to decide on {}: `ironctl inbox`", waiting.join(", "))))
}
