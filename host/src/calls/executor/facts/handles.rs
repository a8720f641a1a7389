//! The values that a person typed in the task of a turn, for calls that take them by reference.
//!
//! Never has a value of another person or of another session. See [`ironclaw_judge::inputs`].

use super::TaskText;
use crate::registry::tools::RECALL;
use crate::registry::{Agent, destinations};
use crate::turns::calls::ResultBody;
use crate::turns::items;
use crate::turns::turn::Turn;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::Principal;
use ironclaw_judge::inputs::{Handles, Task};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::items as stored;
use serde_json::Value;

/// Messages among which the person's earlier one is looked for. In a conversation of many people it may be further back.
const EARLIER_MAX: usize = 16;

/// Adds the handles of a task to an empty list: of its own messages, and of the message of its person before them.
pub(super) fn for_task(
    tx: &ReadTx<'_>,
    turn: &Turn,
    texts: &[TaskText],
    agent: &Agent,
    mut handles: Handles,
    key: &ContentKey,
) -> Result<Handles, Error> {
    let Some(first) = texts.iter().map(|text| text.seq).min() else { return Ok(handles) };
    let names = destinations::known_names(tx, agent)?;
    if turn.principal_kind == Principal::Person
        && let Some(earlier) = earlier(tx, turn, first, key)?
    {
        handles.add(&earlier.message(Task::Earlier), &names);
    }
    for text in texts {
        handles.add(&text.message(Task::This), &names);
    }
    Ok(handles)
}

/// Returns the message of a turn's person before a number.
fn earlier(tx: &ReadTx<'_>, turn: &Turn, before: u64, key: &ContentKey) -> Result<Option<TaskText>, Error> {
    let person: PersonId = turn.person()?;
    let is_own = |item: &items::Recorded| item.spans().iter().any(|span| span.author == Author::Person { person });
    let found = stored::messages_before(tx, turn.session, before, EARLIER_MAX)?.into_iter().find(is_own);
    found.map(|item| TaskText::read(tx, &item, person, false, key)).transpose()
}

/// Results of searches of notes that one judgement reads.
const RECALLS_MAX: usize = 16;

/// Returns whether a conversation holds a note that was kept for another person than that of the turn. With more results than are read, it
/// may.
pub(super) fn has_notes_of_others(tx: &ReadTx<'_>, turn: &Turn, key: &ContentKey) -> Result<bool, Error> {
    let results = stored::results_of_tool(tx, turn.session, RECALL, RECALLS_MAX)?;
    if results.len() >= RECALLS_MAX {
        return Ok(true);
    }
    let person = turn.person()?.to_string();
    for result in results {
        let body: ResultBody = items::parse_body(&items::body(tx, &result, key)?)?;
        let told: Value = serde_json::from_str(&body.text).unwrap_or_default();
        let notes = told["notes"].as_array().into_iter().flatten();
        if notes.into_iter().any(|note| note["on_behalf_of"].as_str() != Some(&person)) {
            return Ok(true);
        }
    }
    Ok(false)
}
