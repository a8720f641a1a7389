//! Records every tool call of a model output and judges it: permitted, or refused with a reason.
//!
//! A call that is not recorded here does not exist; a class beyond reading and writing the workspace is refused until its judgement lands. Next: `context`.

use crate::custody::ContentKey;
use crate::integrity::seal::Sealer;
use crate::items::{BodyError, Draft, Recorded};
use crate::ledger::Entry;
use crate::model::WantedCall;
use crate::registry::Agent;
use crate::state::{self, Tx, stored, stored_option};
use crate::tools::{self, Class, Runs};
use crate::turn;
use ironclaw_contract::canonical::{self, Digest, Limits};
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use ironclaw_contract::seam::action::Action;
use ironclaw_contract::seam::limits::ARGUMENTS_BYTES_MAX;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::{ItemKind, Label};
use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call as it stands in an output's body: the arguments are exactly the canonical bytes that were hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its id, minted by the host.
    pub call_id: CallId,
    /// The tool, as the model named it.
    pub tool: String,
    /// Canonical JSON text.
    pub arguments: String,
}

/// What was found about a call.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The call.
    pub call: Call,
    /// Of its arguments, with the recipe's name and the tool.
    pub digest: Digest,
    /// What may be done.
    pub judgement: Judgement,
}

/// What may be done about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It may run, where the tool runs.
    Permitted {
        /// Its class.
        class: Class,
        /// Where.
        runs: Runs,
    },
    /// It will not run; the model is told why.
    Refused {
        /// Why, in the host's own words.
        reason: &'static str,
        /// What exactly, which may quote what the model wrote: for the model alone, never for the ledger or a person.
        detail: String,
    },
}

impl Judgement {
    /// A refusal that its reason says all about.
    const fn refused(reason: &'static str) -> Self {
        Self::Refused { reason, detail: String::new() }
    }
}

/// The digest of a call's arguments.
pub fn digest(tool: &str, arguments: &str) -> Digest {
    Digest::of(&canonical::to_vec(&[canonical::RECIPE, tool, arguments]))
}

/// Judges one call that a model wants. Pure. `room` says whether the turn has room for it.
pub fn judge(agent: &Agent, wanted: &WantedCall, room: bool) -> Judged {
    let parsed = canonical::parse(wanted.arguments.as_bytes(), Limits::bytes(ARGUMENTS_BYTES_MAX));
    let (arguments, judgement) = match parsed {
        Err(error) => {
            let reason = "its arguments are no strict JSON";
            ("{}".to_owned(), Judgement::Refused { reason, detail: error.to_string() })
        }
        Ok(value) if !value.is_object() => ("{}".to_owned(), Judgement::refused("its arguments are no JSON object")),
        Ok(value) if !room => {
            (canonical::to_string(&value), Judgement::refused("the turn has no room for another call"))
        }
        Ok(value) => (canonical::to_string(&value), judge_tool(agent, &wanted.tool)),
    };
    let tool: String = wanted.tool.chars().take(TOOL_NAME_MAX).collect();
    let call = Call { call_id: CallId::new(), tool, arguments };
    // A row has to hold an action: a call that stands for none is refused before there is a row.
    let judgement = match judgement {
        Judgement::Permitted { runs: Runs::Row, .. } => match action_of(&call) {
            Ok(_) => judgement,
            Err(detail) => Judgement::Refused { reason: "its arguments make no action", detail },
        },
        Judgement::Permitted { runs: Runs::Local, .. } | Judgement::Refused { .. } => judgement,
    };
    Judged { digest: digest(&call.tool, &call.arguments), call, judgement }
}

/// Characters of a tool's name that are kept when there is no such tool.
const TOOL_NAME_MAX: usize = 64;

fn judge_tool(agent: &Agent, name: &str) -> Judgement {
    let Some(tool) = tools::find(name) else {
        return Judgement::refused("there is no such tool");
    };
    let enabled = tool.runs == Runs::Row || agent.enabled_tools.iter().any(|enabled| enabled == tool.name);
    if !enabled {
        return Judgement::refused("the tool is not enabled for this agent");
    }
    match tool.class {
        // To ask is harmless: a question or a proposal is put to a person by whoever handles its row.
        Class::Read | Class::Write | Class::Ask => Judgement::Permitted { class: tool.class, runs: tool.runs },
        Class::Send | Class::Exec | Class::Trade => Judgement::Refused {
            reason: "its class is beyond what this version judges: reading and writing the workspace",
            detail: format!("{} is of class {}", tool.name, tool.class),
        },
    }
}

/// Records a judged call, in its output's order.
pub fn record(
    tx: &mut Tx<'_>,
    session: SessionId,
    turn: TurnId,
    output: ItemId,
    position: usize,
    judged: &Judged,
) -> Result<(), state::Error> {
    let (class, runs, state) = match &judged.judgement {
        Judgement::Permitted { class, runs } => (class.name(), runs_name(*runs), CallState::Permitted),
        Judgement::Refused { .. } => ("", "", CallState::Refused),
    };
    let call = &judged.call;
    tx.db()
        .prepare_cached(
            "INSERT INTO calls (id, session_id, turn_id, output_item, position, tool, class, runs, digest, state) \
             VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
        )?
        .execute(params![
            call.call_id.to_string(),
            session.to_string(),
            turn.to_string(),
            output.to_string(),
            position as i64,
            call.tool,
            class,
            runs,
            judged.digest.to_string(),
            state.name()
        ])?;
    let entry = |entry: Entry| {
        entry
            .session(session)
            .turn(turn)
            .with("call", call.call_id.to_string())
            .with("tool", known_name(&call.tool))
            .with("arguments_digest", judged.digest.to_string())
    };
    match &judged.judgement {
        Judgement::Permitted { class, .. } => {
            entry(Entry::claim("call.recorded")).with("class", class.name()).append(tx)?
        }
        Judgement::Refused { reason, .. } => entry(Entry::retract("call.refused")).reason(reason).append(tx)?,
    };
    Ok(())
}

/// The name of a tool that there is; what a model made up stands in no ledger.
fn known_name(tool: &str) -> &'static str {
    tools::find(tool).map_or("(unknown)", |tool| tool.name)
}

const fn runs_name(runs: Runs) -> &'static str {
    match runs {
        Runs::Local => "local",
        Runs::Row => "row",
    }
}

/// Where a recorded call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// It may have its one result.
    Permitted,
    /// It was refused.
    Refused,
    /// It has its result.
    Done,
    /// It had left the sandbox when its turn ended.
    Unknown,
    /// Its turn ended before it was used.
    Void,
}

impl CallState {
    /// As stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permitted => "permitted",
            Self::Refused => "refused",
            Self::Done => "done",
            Self::Unknown => "unknown",
            Self::Void => "void",
        }
    }
}

impl std::str::FromStr for CallState {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Permitted, Self::Refused, Self::Done, Self::Unknown, Self::Void]
            .into_iter()
            .find(|s| s.name() == text)
            .ok_or(())
    }
}

/// A recorded call's row.
#[derive(Debug, Clone)]
pub struct CallRow {
    /// Its id.
    pub id: CallId,
    /// Its session.
    pub session: SessionId,
    /// Its turn.
    pub turn: TurnId,
    /// The output that it stands in.
    pub output: ItemId,
    /// The tool.
    pub tool: String,
    /// Where it runs; refused calls nowhere.
    pub runs: Option<Runs>,
    /// Of its arguments.
    pub digest: Digest,
    /// Where it stands.
    pub state: CallState,
    /// Its result, once there is one.
    pub result: Option<ItemId>,
}

fn call_row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    Ok(CallRow {
        id: stored(row, "id")?,
        session: stored(row, "session_id")?,
        turn: stored(row, "turn_id")?,
        output: stored(row, "output_item")?,
        tool: row.get("tool")?,
        runs: [Runs::Local, Runs::Row]
            .into_iter()
            .find(|runs| row.get_ref("runs").is_ok_and(|text| text.as_str() == Ok(runs_name(*runs)))),
        digest: stored(row, "digest")?,
        state: stored(row, "state")?,
        result: stored_option(row, "result_item")?,
    })
}

/// The call of this id.
pub fn find(tx: &Tx<'_>, id: CallId) -> Result<Option<CallRow>, state::Error> {
    Ok(tx.db().prepare_cached("SELECT * FROM calls WHERE id = ?1")?.query_row([id.to_string()], call_row).optional()?)
}

/// Gives a permitted call its one result.
///
/// Returns false when the call has one already or is no longer good for one: then nothing changed.
pub fn settle(tx: &mut Tx<'_>, id: CallId, result: ItemId) -> Result<bool, state::Error> {
    let sql = "UPDATE calls SET state = 'done', result_item = ?2 WHERE id = ?1 AND state = 'permitted' AND result_item IS NULL";
    Ok(tx.db().prepare_cached(sql)?.execute(params![id.to_string(), result.to_string()])? == 1)
}

/// Notes the sealed refusal of a refused call.
pub fn set_refusal(tx: &mut Tx<'_>, id: CallId, result: ItemId) -> Result<(), state::Error> {
    tx.db()
        .prepare_cached("UPDATE calls SET result_item = ?2 WHERE id = ?1 AND state = 'refused'")?
        .execute(params![id.to_string(), result.to_string()])?;
    Ok(())
}

/// The body of a result item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultBody {
    /// Whether the tool did what was asked.
    pub ok: bool,
    /// What it says.
    pub text: String,
}

/// Where a result belongs, and what seals it.
pub struct Place<'a> {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Encrypts its body.
    pub key: &'a ContentKey,
    /// Seals it.
    pub sealer: &'a Sealer,
}

/// Records a result of a call. Whoever says it, it is `External`: a result never carries authority by itself.
pub fn record_result(
    tx: &mut Tx<'_>,
    place: &Place<'_>,
    call: CallId,
    tool: &str,
    author: Author,
    result: &ResultBody,
) -> Result<Recorded, BodyError> {
    let body = canonical::to_string(result);
    let spans = vec![Span { author, bytes: body.len() }];
    let draft = Draft::new(ItemId::new(), ItemKind::Result, &body, spans, vec![Label::External], place.key)?;
    turn::count_result(tx, place.turn, result.text.len())?;
    Ok(draft.turn(place.turn).call(call, tool).record(tx, place.session, place.sealer)?)
}

/// The action that a recorded call stands for: the same text that its row has to hold.
///
/// # Errors
/// When its arguments are no such action; the message says why.
pub fn action_of(call: &Call) -> Result<Action, String> {
    let mut arguments: Value = serde_json::from_str(&call.arguments).map_err(|error| error.to_string())?;
    let object = arguments.as_object_mut().ok_or("the arguments are no object")?;
    let name = match call.tool.as_str() {
        "request_capability_change" => {
            let kind = object.remove("kind").and_then(|kind| kind.as_str().map(str::to_owned));
            kind.ok_or("kind is missing: it names what would change")?
        }
        other => other.to_owned(),
    };
    if object.contains_key("action") {
        return Err("unknown field `action`".to_owned());
    }
    object.insert("action".to_owned(), name.into());
    Action::parse(&arguments.to_string()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Mode;
    use ironclaw_contract::ids::AgentId;

    fn agent(tools: &[&str]) -> Agent {
        Agent {
            id: AgentId::new(),
            name: "a".into(),
            model: "scripted".into(),
            persona: String::new(),
            enabled_tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            mode: Mode::Enforce,
            created_at: 0,
        }
    }

    fn judgement(agent: &Agent, tool: &str, arguments: &str) -> Judgement {
        judge(agent, &WantedCall { tool: tool.into(), arguments: arguments.into() }, true).judgement
    }

    #[test]
    fn what_is_unknown_disabled_malformed_or_beyond_the_workspace_is_refused() {
        let agent = agent(&["read_file"]);
        for (tool, arguments, why) in [
            ("rm", "{}", "no such tool"),
            ("write_file", "{}", "not enabled"),
            ("send_message", "{}", "class send"),
            ("read_file", r#"{"path":"a","path":"b"}"#, "stands twice"),
            ("read_file", r#"{"offset":9007199254740993}"#, "2^53"),
            ("read_file", "[]", "no JSON object"),
            ("read_file", "path", "no strict JSON"),
        ] {
            match judgement(&agent, tool, arguments) {
                Judgement::Refused { reason, detail } => {
                    assert!(format!("{reason} {detail}").contains(why), "{tool}: {reason} {detail}")
                }
                Judgement::Permitted { .. } => panic!("{tool} {arguments} must be refused"),
            }
        }
        assert!(matches!(
            judgement(&agent, "read_file", r#"{"path":"a"}"#),
            Judgement::Permitted { runs: Runs::Local, .. }
        ));
    }

    #[test]
    fn another_tool_or_spelling_of_a_value_has_another_digest_and_another_order_has_the_same() {
        let of = |tool: &str, arguments: &str| {
            judge(&agent(&[tool]), &WantedCall { tool: tool.into(), arguments: arguments.into() }, true).digest
        };
        assert_eq!(of("read_file", r#"{"a":1,"b":2}"#), of("read_file", r#"{ "b": 2.0, "a": 1 }"#));
        assert_ne!(of("read_file", r#"{"a":1}"#), of("write_file", r#"{"a":1}"#));
        assert_ne!(of("read_file", r#"{"a":1}"#), of("read_file", r#"{"a":"1"}"#));
    }

    #[test]
    fn a_call_that_is_no_action_says_why() {
        let call = |tool: &str, arguments: &str| Call {
            call_id: CallId::new(),
            tool: tool.into(),
            arguments: arguments.into(),
        };
        assert!(action_of(&call("schedule_task", r#"{"prompt":"p"}"#)).is_ok());
        let change = r#"{"kind":"persona","payload":{},"reason":"r"}"#;
        assert_eq!(action_of(&call("request_capability_change", change)).expect("an action").name(), "persona");
        assert!(action_of(&call("request_capability_change", r#"{"payload":{}}"#)).is_err());
        assert!(
            action_of(&call("request_capability_change", r#"{"kind":"exec","payload":{}}"#))
                .unwrap_err()
                .contains("exec")
        );
        assert!(action_of(&call("schedule_task", r#"{"prompt":"p","action":"persona"}"#)).is_err());
    }
}
