//! The values for calls that take them by reference: those that a person typed in the task of a turn, and those that servers returned.
//!
//! Never has a value of another person or of another session. See [`ironclaw_judge::inputs`].

use super::TaskText;
use crate::registry::tools::RECALL;
use crate::registry::{Agent, destinations, mcp};
use crate::turns::calls::ResultBody;
use crate::turns::items::{self, OfAnswer};
use crate::turns::turn::{Task, Turn};
use ironclaw_contract::ids::{CallId, ItemId, PersonId};
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::Principal;
use ironclaw_judge::inputs::{self, Answer, Handles, Holder};
use ironclaw_operator::InputType;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::turns::UsedHandle;
use ironclaw_store::tables::{items as stored, turns};
use serde_json::Value;
use std::collections::BTreeSet;

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
        handles.add(&earlier.message(inputs::Task::Earlier), &names);
    }
    for text in texts {
        handles.add(&text.message(inputs::Task::This), &names);
    }
    Ok(handles)
}

/// A recorded call that is judged, and the values that calls of its session used.
#[derive(Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) call: Option<CallId>,
    pub(super) used: &'a [UsedHandle],
}

/// Results with values that one judgement reads.
const RESULTS_MAX: usize = 32;

/// The values of an answer.
pub(super) struct Found {
    item: ItemId,
    seq: u64,
    task: inputs::Task,
    of_answer: OfAnswer,
}

impl Found {
    /// Makes the names in it known.
    pub(super) fn add_names(&self, handles: &mut Handles) {
        let names =
            self.of_answer.values.iter().filter(|value| value.kind == InputType::Name && !value.labels.is_empty());
        names.for_each(|name| handles.add_name(&self.of_answer.server, &name.text));
    }

    pub(super) fn add(self, handles: &mut Handles) {
        let Self { item, seq, task, of_answer: OfAnswer { server, values, .. } } = self;
        handles.add_returned(Answer { item, seq, server: &server, task }, values);
    }
}

/// Returns the values that servers returned to calls of the turn's person, before the output of a recorded call. Those of another task are
/// earlier ones.
pub(super) fn returned(
    tx: &ReadTx<'_>,
    turn: &Turn,
    judged: Judged<'_>,
    key: &ContentKey,
) -> Result<Vec<Found>, Error> {
    let Judged { call, used } = judged;
    let output = call.map(|call| turns::find_call(tx, call)).transpose()?.flatten().map(|row| row.output);
    let before = output.map(|output| items::find(tx, output)).transpose()?.flatten().map(|item| item.tuple.seq);
    let mut results = stored::with_returned(tx, turn.session, before.unwrap_or(u64::MAX), RESULTS_MAX)?;
    if results.is_empty() {
        return Ok(Vec::new());
    }
    // An earlier result whose value a call used counts however many came after it.
    let oldest = results.last().map_or(0, |result| result.tuple.seq);
    let used: BTreeSet<u64> =
        used.iter().map(|used| used.id).filter(|id| id.holder == Holder::Result).map(|id| id.seq).collect();
    for seq in used.into_iter().rev().filter(|seq| *seq < oldest) {
        results.extend(stored::with_returned(tx, turn.session, seq + 1, 1)?);
    }
    let task = Task::find(tx, turn.id)?.turns;
    let mut found = Vec::with_capacity(results.len());
    for result in results.into_iter().rev() {
        let Some(row) = turns::find_call_by_result(tx, turn.session, result.tuple.item)? else { continue };
        let is_own = turns::find(tx, row.turn)?.is_some_and(|of_call| of_call.principal == turn.principal);
        let Some(of_answer) = items::returned(tx, result.tuple.item, key)?.filter(|_| is_own) else { continue };
        let now = mcp::find(tx, &of_answer.server)?.map(|server| mcp::service(&server.described));
        if now != Some(of_answer.service) {
            continue;
        }
        let task = if task.contains(&row.turn) { inputs::Task::This } else { inputs::Task::Earlier };
        found.push(Found { item: result.tuple.item, seq: result.tuple.seq, task, of_answer });
    }
    Ok(found)
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
