//! Calls that concern the host's own record alone; they run in the transaction that records them.
//!
//! Never waits and never acts outside the transaction, so such a call either happened completely or not. A search takes time, so it ends
//! before the transaction begins. See [`crate::turns::memories`].

use super::judge::{Judged, Judgement, TurnFacts, judge};
use super::read_call::ReadCall;
use super::result_body::ResultBody;
use crate::registry::schedules::{self, By, Schedule, names, next_time};
use crate::registry::tools::catalogue::Catalogue;
use crate::registry::tools::levels::Room;
use crate::registry::tools::{self, Place, RECALLED_MAX, RecordTool, levels};
use crate::registry::{Agent, mcp, skills};
use crate::turns::memories::{self, Kept, Matches, NewMemory, Note};
use crate::turns::turn::Turn;
use ironclaw_contract::ids::{PersonId, ScheduleId};
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::inputs::with_references;
use ironclaw_judge::provenance::{Labelled, Labels, Provenance};
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::lookalike;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;

/// The description of a found tool for which the result has no room.
const TOO_LONG: &str = "(its definition has no room here: search for it alone)";

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

#[derive(Serialize)]
struct Definition<'a> {
    name: &'a str,
    description: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Cow<'a, serde_json::Value>>,
}

/// Paths of a skill in one refusal.
const PATHS_SHOWN_MAX: u32 = 32;

/// The text that a skill has for its agent.
const INSTRUCTIONS: &str = "SKILL.md";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadSkill {
    skill: String,
    path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindTools {
    query: String,
    max: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManageSchedules {
    verb: String,
    id: Option<String>,
}

/// A schedule as its agent sees it.
#[derive(Serialize)]
struct Shown<'a> {
    id: ScheduleId,
    name: &'a str,
    prompt: &'a str,
    recurrence: String,
    zone: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The result of a call that ran in the host.
pub type HostResult = Labelled<ResultBody>;

fn result(ok: bool, text: String) -> HostResult {
    Labelled::new(ResultBody::new(ok, text), Provenance::Tool)
}

/// Returns the query and the number of notes of a `recall` call, if the agent may make it. The search takes time, so the caller runs it
/// before the transaction that records the call.
pub fn recall_query(agent: &Agent, turn: &TurnFacts, call: &ReadCall) -> Option<(String, usize)> {
    let is_recall = tools::find(&call.tool).is_some_and(|tool| tool.place == Place::Record(RecordTool::Recall));
    let judged = is_recall.then(|| judge(agent, turn, call.clone(), true))?;
    // A call that waits for people may be the one that they approved, which runs now.
    if !matches!(judged.judgement, Judgement::Permitted { .. } | Judgement::NeedsPerson { .. }) {
        return None;
    }
    let recall = Recall::deserialize(&judged.arguments).ok()?;
    Some((recall.query, recall.max.unwrap_or(RECALLED_DEFAULT).clamp(1, RECALLED_MAX)))
}

/// Runs a permitted call; `output` are the labels of its output, and `found` is the result of its search.
pub fn run(
    tx: &mut WriteTx<'_>,
    agent: &Agent,
    turn: &Turn,
    output: Labels,
    judged: &Judged,
    found: Option<&Matches>,
    room: Room,
) -> Result<HostResult, ironclaw_state::Error> {
    let Some(Place::Record(tool)) = tools::find(&judged.call.tool).map(|tool| tool.place) else {
        return Err(ironclaw_state::Error::Stored(format!(
            "the tool {:?} does not run in the record",
            judged.call.tool
        )));
    };
    match tool {
        RecordTool::Remember => match arguments::<Remember>(judged) {
            Ok(wanted) => remember(tx, agent, turn, output, wanted),
            Err(ran) => Ok(ran),
        },
        RecordTool::Recall => match arguments::<Recall>(judged) {
            Ok(_) => recall(tx, agent, found),
            Err(ran) => Ok(ran),
        },
        RecordTool::ManageSchedules => match arguments::<ManageSchedules>(judged) {
            Ok(wanted) => manage_schedules(tx, agent, turn, &wanted),
            Err(ran) => Ok(ran),
        },
        RecordTool::ReadSkill => match arguments::<ReadSkill>(judged) {
            Ok(wanted) => Ok(Labelled::new(read_skill(tx, agent, &wanted)?, Provenance::HostAbout { output })),
            Err(ran) => Ok(ran),
        },
        RecordTool::FindTools => match arguments::<FindTools>(judged) {
            Ok(wanted) => {
                let catalogue = mcp::catalogue(tx, agent)?.with_room(room);
                Ok(Labelled::new(find_tools(&catalogue, &wanted), Provenance::HostAbout { output }))
            }
            Err(ran) => Ok(ran),
        },
    }
}

fn arguments<T: DeserializeOwned>(judged: &Judged) -> Result<T, HostResult> {
    T::deserialize(&judged.arguments).map_err(|error| {
        let (tool, why) = (&judged.call.tool, error.to_string());
        result(false, format!("cannot read the arguments of {tool}: {}", lookalike::neutralise(&why)))
    })
}

/// Returns the definitions of the tools that fit the words of a model. People confirmed them, as those in each prompt.
fn find_tools(catalogue: &Catalogue, wanted: &FindTools) -> ResultBody {
    let all = catalogue.server_tools();
    let found = tools::find::find(&all, &wanted.query, wanted.max.unwrap_or(tools::find::FOUND_USUAL));
    if found.is_empty() {
        let servers = levels::servers(&all);
        return ResultBody::done(format!("no tool has any of these words; the servers are:\n{servers}"));
    }
    let is_alone = found.len() == 1;
    let (mut left, mut shown) = (catalogue.room().found(), Vec::new());
    for tool in &found {
        // A description that a prompt cuts is whole here, if the model asks for its tool alone.
        let definition = match is_alone {
            true => Some(levels::Definition::new(tool, usize::MAX)),
            false => levels::Definition::within(tool, left),
        };
        left = left.saturating_sub(definition.as_ref().map_or(0, levels::Definition::bytes));
        let (description, parameters) = match definition {
            Some(definition) => (definition.description, Some(with_references(&tool.manifest, &tool.parameters))),
            None => (TOO_LONG.into(), None),
        };
        shown.push(Definition { name: &tool.manifest.name, description, parameters });
    }
    ResultBody::done(ironclaw_contract::canonical::to_string(&json!({ "tools": shown })))
}

/// Returns a text of a skill. People approved the skill with exactly this text, so it adds no label.
fn read_skill(tx: &mut WriteTx<'_>, agent: &Agent, wanted: &ReadSkill) -> Result<ResultBody, ironclaw_state::Error> {
    let held = skills::trusted(tx, agent.id)?;
    let Some(skill) = held.iter().find(|held| held.package.name == wanted.skill) else {
        let names: Vec<&str> = held.iter().map(|held| held.package.name.as_str()).collect();
        return Ok(ResultBody::failed(format!("you have no such skill; yours are {}", names.join(", "))));
    };
    let path = wanted.path.as_deref().unwrap_or(INSTRUCTIONS);
    let prefix = format!("/skills/{}/", wanted.skill);
    let path = path.strip_prefix(&prefix).or_else(|| path.strip_prefix("./")).unwrap_or(path);
    match skills::text(tx, skill.package.digest, path)? {
        Some(text) => {
            skills::record_use(tx, agent.id, &wanted.skill)?;
            Ok(ResultBody::done(lookalike::neutralise(&text).into_owned()))
        }
        None => {
            let paths = skills::text_paths(tx, skill.package.digest, PATHS_SHOWN_MAX)?;
            let paths = lookalike::neutralise(&paths.join(", ")).into_owned();
            let text = format!(
                "it has no such text; its texts are {paths}. Read other files below {prefix} with your file tools."
            );
            Ok(ResultBody::failed(text))
        }
    }
}

/// Lists or changes the schedules that the agent asked for on behalf of the person of its turn.
fn manage_schedules(
    tx: &mut WriteTx<'_>,
    agent: &Agent,
    turn: &Turn,
    wanted: &ManageSchedules,
) -> Result<HostResult, ironclaw_state::Error> {
    let person = turn.person()?;
    let done = match (wanted.verb.as_str(), &wanted.id) {
        ("list", _) => {
            let mut own = schedules::list_for_creator(tx, agent.id, person)?;
            own.retain(schedules::is_by_agent);
            let shown = own.iter().map(|row| shown_schedule(tx, row)).collect::<Result<Vec<_>, _>>()?;
            Ok(ironclaw_contract::canonical::to_string(&json!({ "schedules": shown })))
        }
        (verb, Some(id)) => change_schedule(tx, agent, person, verb, id),
        (_, None) => Err(Refusal::new(DenialCode::CallMalformed, "id is missing: name the schedule").into()),
    };
    match done {
        Ok(text) => Ok(result(true, text)),
        Err(Denied::Refused(refusal)) => {
            let text = format!("refused: {} ({})", refusal.message, refusal.code);
            Ok(result(false, lookalike::neutralise(&text).into_owned()))
        }
        Err(Denied::Failed(error)) => Err(error),
    }
}

fn change_schedule(
    tx: &mut WriteTx<'_>,
    agent: &Agent,
    person: PersonId,
    verb: &str,
    id: &str,
) -> Result<String, Denied> {
    let row = names::asked_for(tx, agent, person, id)?;
    let by = By::Agent(agent.id);
    match verb {
        "pause" => schedules::pause(tx, &row, by, schedules::PAUSED_BY_AGENT).map(|()| format!("paused {}", row.id)),
        "resume" if row.reason.as_deref() != Some(schedules::PAUSED_BY_AGENT) => {
            Err(schedules::wrong_state(&row, "only a person may resume it, because you did not pause it").into())
        }
        "resume" => {
            let next = schedules::resume(tx, &row, by)?;
            Ok(format!("resumed {}; its next time is {}", row.id, ironclaw_ledger::rfc3339(next)))
        }
        "remove" => schedules::remove(tx, &row, by).map(|()| format!("removed {}", row.id)),
        _ => Err(Refusal::new(DenialCode::CallMalformed, "verb is list, pause, resume or remove").into()),
    }
}

fn shown_schedule<'a>(tx: &ReadTx<'_>, row: &'a Schedule) -> Result<Shown<'a>, ironclaw_state::Error> {
    let next = next_time::shown(tx, row, &schedules::series(row)?)?;
    Ok(Shown {
        id: row.id,
        name: &row.name,
        prompt: &row.prompt,
        recurrence: format!("{} {}", row.kind, row.recurrence),
        zone: &row.zone,
        state: row.state.name(),
        reason: row.reason.as_deref(),
        next: next.map(ironclaw_ledger::rfc3339),
    })
}

fn remember(
    tx: &mut WriteTx<'_>,
    agent: &Agent,
    turn: &Turn,
    output: Labels,
    wanted: Remember,
) -> Result<HostResult, ironclaw_state::Error> {
    let new = NewMemory {
        author: Author::Model,
        principal: turn.person()?,
        source: Some((turn.session, turn.id)),
        text: Labelled::new(wanted.text, Provenance::HostAbout { output }),
    };
    match memories::keep(tx, agent.id, new) {
        Ok(Kept::New(id)) => Ok(result(true, format!("kept as {id}"))),
        Ok(Kept::Existing(id)) => Ok(result(true, format!("a note with the same text exists already, as {id}"))),
        Err(Denied::Refused(Refusal { message, hint, .. })) => {
            let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
            Ok(result(false, format!("{message}{hint}")))
        }
        Err(Denied::Failed(error)) => Err(error),
    }
}

fn recall(tx: &ReadTx<'_>, agent: &Agent, found: Option<&Matches>) -> Result<HostResult, ironclaw_state::Error> {
    let Some(found) = found else {
        return Ok(result(false, "the notes cannot be searched now".to_owned()));
    };
    let notes = memories::notes(tx, agent.id, found)?;
    if found.is_whole && notes.is_empty() {
        return Ok(result(true, "no note has any of these words".to_owned()));
    }
    let shown: Vec<_> = notes.iter().map(shown).collect();
    let cut = "the search took too long, and there may be more notes: look for fewer or longer words";
    let told = match found.is_whole {
        true => json!({ "notes": shown }),
        false => json!({ "notes": shown, "cut_short": cut }),
    };
    // A note does not lose the label of a model in the memory, and a person who wrote one endorses nothing here.
    let by_model = notes.iter().any(|note| note.labels.has_model());
    let body = ResultBody::done(ironclaw_contract::canonical::to_string(&told));
    Ok(Labelled::new(body, Provenance::Notes { by_model }))
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
