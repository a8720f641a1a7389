//! Calls that concern the host's own record alone; they run in the transaction that records them.
//!
//! Never waits and never acts outside the transaction, so such a call either happened completely or not. A search takes time, so it ends
//! before the transaction begins. See [`crate::turns::memories`].

use super::{Call, Judgement, ResultBody, TurnFacts, judge};
use crate::refusal::Denied;
use crate::registry::Agent;
use crate::tools::RECALLED_MAX;
use crate::turns::memories::{self, Found, Kept, NewMemory, Note};
use crate::turns::turn::Turn;
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::Label;
use ironclaw_model::WantedCall;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_text::lookalike;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Notes that `recall` returns if the model gives no number.
const RECALLED_DEFAULT: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remember {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recall {
    query: String,
    max: Option<usize>,
}

/// The result of a call that ran in the host.
pub struct HostResult {
    /// The body for the model.
    pub body: ResultBody,
    /// `External`, as for any result, and the inherited labels.
    pub labels: Vec<Label>,
}

impl HostResult {
    fn new(ok: bool, text: String) -> Self {
        Self { body: ResultBody { ok, text }, labels: vec![Label::External] }
    }

    /// Inherits the label of notes that came from a model: a note does not lose it in the memory, and a person who wrote the note
    /// endorses nothing here.
    fn inherit(&mut self, notes: &[Note]) {
        if notes.iter().any(|note| note.labels.contains(&Label::LlmDerived)) {
            self.labels.push(Label::LlmDerived);
        }
    }
}

/// Returns the query and the number of notes of a `recall` call, if the agent may make it. The search takes time, so the caller runs it
/// before the transaction that records the call.
pub fn recall_query(agent: &Agent, turn: &TurnFacts, call: &WantedCall) -> Option<(String, usize)> {
    let judged = (call.tool == "recall").then(|| judge(agent, turn, call, true))?;
    if !matches!(judged.judgement, Judgement::Permitted { .. }) {
        return None;
    }
    let recall: Recall = serde_json::from_str(&judged.call.arguments).ok()?;
    Some((recall.query, recall.max.unwrap_or(RECALLED_DEFAULT).clamp(1, RECALLED_MAX)))
}

/// Runs a permitted call; `labels` are the labels of its output, and `found` is the result of its search.
pub fn run(
    tx: &mut WriteTx<'_>,
    agent: &Agent,
    (turn, labels): (&Turn, &[Label]),
    call: &Call,
    found: Option<&Found>,
) -> Result<HostResult, ironclaw_state::Error> {
    match call.tool.as_str() {
        "remember" => match arguments::<Remember>(call) {
            Ok(wanted) => remember(tx, agent, turn, labels, wanted),
            Err(ran) => Ok(ran),
        },
        "recall" => match arguments::<Recall>(call) {
            Ok(_) => recall(tx, agent, found),
            Err(ran) => Ok(ran),
        },
        other => Err(ironclaw_state::Error::Stored(format!("the tool {other:?} does not run in the host"))),
    }
}

fn arguments<T: DeserializeOwned>(call: &Call) -> Result<T, HostResult> {
    serde_json::from_str(&call.arguments).map_err(|error| {
        HostResult::new(
            false,
            format!("cannot read the arguments of {}: {}", call.tool, lookalike::neutralise(&error.to_string())),
        )
    })
}

fn remember(
    tx: &mut WriteTx<'_>,
    agent: &Agent,
    turn: &Turn,
    labels: &[Label],
    wanted: Remember,
) -> Result<HostResult, ironclaw_state::Error> {
    let new = NewMemory {
        author: Author::Model,
        principal: turn.person()?,
        source: Some((turn.session, turn.id)),
        labels: labels.to_vec(),
        text: wanted.text,
    };
    match memories::keep(tx, agent.id, new) {
        Ok(Kept::New(id)) => Ok(HostResult::new(true, format!("kept as {id}"))),
        Ok(Kept::Existing(id)) => {
            Ok(HostResult::new(true, format!("a note with the same text exists already, as {id}")))
        }
        Err(Denied::Refused(refusal)) => Ok(HostResult::new(false, refusal.message)),
        Err(Denied::Failed(error)) => Err(error),
    }
}

fn recall(tx: &ReadTx<'_>, agent: &Agent, found: Option<&Found>) -> Result<HostResult, ironclaw_state::Error> {
    let Some(found) = found else {
        return Ok(HostResult::new(false, "the notes cannot be searched now".to_owned()));
    };
    let notes = memories::notes(tx, agent.id, found)?;
    if !found.is_whole {
        let shown: Vec<_> = notes.iter().map(shown).collect();
        let whole = "the search took too long, and there may be more notes: look for fewer or longer words";
        let mut ran = HostResult::new(
            true,
            ironclaw_contract::canonical::to_string(&json!({ "notes": shown, "cut_short": whole })),
        );
        ran.inherit(&notes);
        return Ok(ran);
    }
    if notes.is_empty() {
        return Ok(HostResult::new(true, "no note has any of these words".to_owned()));
    }
    let shown: Vec<_> = notes.iter().map(shown).collect();
    let mut ran = HostResult::new(true, ironclaw_contract::canonical::to_string(&json!({ "notes": shown })));
    ran.inherit(&notes);
    Ok(ran)
}

fn shown(note: &Note) -> serde_json::Value {
    let author = match note.author {
        Author::Model => "you, an agent",
        Author::Person { .. } => "a person",
        Author::Quoted | Author::File { .. } | Author::Agent { .. } | Author::Tool { .. } | Author::Host => {
            "another author"
        }
    };
    json!({
        "id": note.id,
        "kept_at": ironclaw_ledger::rfc3339(note.created_at),
        "author": author,
        "on_behalf_of": note.principal,
        "labels": note.labels,
        "text": lookalike::neutralise(&note.text),
    })
}
