//! The host's action for a call that goes out as a row, read from the arguments of the recorded call.
//!
//! Strict: no unknown field, no near match. Never judges a call and never acts: see [`super::judge`] and `runtime::accept`.

use super::output_body::Call;
use super::read_call::ReadCall;
use super::schedule;
use crate::registry::tools;
use ironclaw_contract::canonical;
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use ironclaw_contract::seam::limits::{NAME_BYTES_MAX, REASON_BYTES_MAX};
use ironclaw_text::excerpt::quoted;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Options of a question that is read. [`crate::gateway::questions`] takes fewer.
const OPTIONS_MAX: usize = 16;

/// The host's action for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "an action is read from one call and used at once; no list holds many")]
pub enum Action {
    /// Proposes a change, for the reason that the agent gives.
    Propose { change: Change, reason: String },
    /// Proposes a skill by its name, which the host resolves.
    Install { skill: SkillInstall, reason: String },
    /// Asks the person of the turn.
    Ask(AskUserQuestion),
}

/// A question for the person; never a command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskUserQuestion {
    pub question: String,
    /// Answers to choose from.
    #[serde(default)]
    pub options: Vec<String>,
    /// True if the person may type another answer.
    #[serde(default)]
    pub allow_freeform: bool,
}

/// The name and the version of a skill, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillInstall {
    pub skill: String,
    pub version: String,
}

/// Arguments with a payload.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<P> {
    payload: P,
    #[serde(default)]
    reason: String,
}

impl Action {
    /// Reads the action of a tool with these arguments.
    ///
    /// # Errors
    /// The reason why they make no action, for the model.
    pub fn read(tool: &str, mut arguments: Map<String, Value>) -> Result<Self, String> {
        match tool {
            tools::SCHEDULE_TASK => Ok(Self::Propose { change: schedule::read(arguments)?, reason: String::new() }),
            tools::ASK_USER_QUESTION => question(arguments),
            tools::SKILL_INSTALL => skill(arguments),
            tools::REQUEST_CHANGE => {
                let kind = arguments.remove("kind").and_then(|kind| kind.as_str().map(str::to_owned));
                match kind.ok_or("kind is missing: name the kind of change")?.as_str() {
                    tools::SKILL_INSTALL => skill(arguments),
                    kind => change(kind, arguments),
                }
            }
            other => Err(format!("{} makes no action", quoted(other))),
        }
    }

    /// Reads the action of a recorded call.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn recorded(call: Call) -> Result<Self, String> {
        let ReadCall { tool, arguments, .. } = ReadCall::recorded(call);
        Self::read(&tool, arguments?)
    }
}

fn change(kind: &str, arguments: Map<String, Value>) -> Result<Action, String> {
    let Some(kind) = kind.parse().ok().filter(|kind: &ChangeKind| kind.is_for_agents()) else {
        let kinds: Vec<_> = ChangeKind::for_agents().map(ChangeKind::name).chain([tools::SKILL_INSTALL]).collect();
        let (shown, kinds) = (quoted(kind), kinds.join(", "));
        return Err(format!("kind {shown} is not a kind of change that an agent may request: use one of {kinds}"));
    };
    let Envelope::<Payload> { payload, reason } = shaped(arguments)?;
    let change = Change::parse(kind, &payload).map_err(|error| error.to_string())?;
    check_reason(kind.name(), &reason)?;
    Ok(Action::Propose { change, reason })
}

fn skill(arguments: Map<String, Value>) -> Result<Action, String> {
    let Envelope::<SkillInstall> { payload: skill, reason } = shaped(arguments)?;
    check_reason(tools::SKILL_INSTALL, &reason)?;
    let within = |field, text: &str| check_bound(tools::SKILL_INSTALL, field, text.len(), 1, NAME_BYTES_MAX);
    within("skill", &skill.skill)?;
    within("version", &skill.version)?;
    Ok(Action::Install { skill, reason })
}

fn question(arguments: Map<String, Value>) -> Result<Action, String> {
    let question: AskUserQuestion = shaped(arguments)?;
    let within = |field, length, min, max| check_bound(tools::ASK_USER_QUESTION, field, length, min, max);
    within("question", question.question.len(), 1, REASON_BYTES_MAX)?;
    within("options", question.options.len(), 0, OPTIONS_MAX)?;
    question.options.iter().try_for_each(|option| within("options", option.len(), 1, NAME_BYTES_MAX))?;
    Ok(Action::Ask(question))
}

fn check_reason(action: &str, reason: &str) -> Result<(), String> {
    check_bound(action, "reason", reason.len(), 0, REASON_BYTES_MAX)
}

/// Refuses a field that has fewer or more bytes or entries.
pub(super) fn check_bound(action: &str, field: &str, length: usize, min: usize, max: usize) -> Result<(), String> {
    match (min..=max).contains(&length) {
        true => Ok(()),
        false => Err(format!("action {action}: field {field} must be {min} to {max} bytes (or entries)")),
    }
}

/// Reads arguments of a shape. The reason quotes no long value, because a person may see it.
pub(super) fn shaped<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, String> {
    let shape = |error| canonical::Error::Shape(canonical::said(&error));
    serde_json::from_value(Value::Object(arguments)).map_err(|error| format!("malformed action: {}", shape(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(tool: &str, arguments: &str) -> Result<Action, String> {
        let wanted = ironclaw_model::WantedCall { tool: tool.to_owned(), arguments: arguments.to_owned() };
        let read = ReadCall::read(wanted);
        Action::read(tool, read.arguments?)
    }

    #[test]
    fn arguments_that_are_not_exactly_an_action_are_refused() {
        for (tool, arguments) in [
            ("exec", r#"{"command":"rm"}"#),
            ("persona", r#"{"payload":{"instructions":"i"}}"#),
            ("Schedule_Task", r#"{"prompt":"p","recurrence":"daily"}"#),
            ("schedule_task", r#"{"recurrence":"daily"}"#),
            ("schedule_task", r#"{"prompt":"p"}"#),
            ("schedule_task", r#"{"prompt":"","recurrence":"daily"}"#),
            ("schedule_task", r#"{"prompt":"p","recurrence":"banana"}"#),
            ("schedule_task", r#"{"prompt":"p","recurrence":"daily","action":"persona"}"#),
            ("schedule_task", r#"{"prompt":"p","recurrence":"daily","command":"c"}"#),
            ("schedule_task", r#"["p"]"#),
            ("ask_user_question", "{}"),
            ("ask_user_question", r#"{"question":""}"#),
            ("ask_user_question", r#"{"question":"q","question":"r"}"#),
            ("ask_user_question", r#"{"question":"q","options":[1]}"#),
            ("ask_user_question", r#"{"question":"q","options":[""]}"#),
            ("skill_install", r#"{"skill":"s","version":"1"}"#),
            ("skill_install", r#"{"payload":{"skill":"","version":"1"}}"#),
            ("skill_install", r#"{"payload":{"skill":"a","version":"1","persona":"evil"}}"#),
            ("request_capability_change", r#"{"payload":{"instructions":"i"}}"#),
            ("request_capability_change", r#"{"kind":"exec","payload":{}}"#),
            ("request_capability_change", r#"{"kind":"Persona","payload":{"instructions":"i"}}"#),
            ("request_capability_change", r#"{"kind":"persona ","payload":{"instructions":"i"}}"#),
            ("request_capability_change", r#"{"kind":"persona","payload":"text"}"#),
            ("request_capability_change", r#"{"kind":"persona","payload":{"instructions":"i"},"approved":true}"#),
            ("request_capability_change", r#"{"kind":"persona","payload":{"instructions":"i","mounts":[]}}"#),
            ("request_capability_change", r#"{"kind":"mounts","payload":[{"source":"/srv","read_only":"true"}]}"#),
            ("request_capability_change", r#"{"kind":"enabled_tools","payload":["a",9007199254740993]}"#),
            ("request_capability_change", r#"{"kind":"skill_install","payload":{}}"#),
        ] {
            assert!(read(tool, arguments).is_err(), "{tool} {arguments}");
        }
        let long = format!(r#"{{"question":"{}"}}"#, "x".repeat(REASON_BYTES_MAX + 1));
        let refused = read("ask_user_question", &long).expect_err("too long");
        assert_eq!(refused, "action ask_user_question: field question must be 1 to 2048 bytes (or entries)");
    }

    #[test]
    fn kind_of_change_that_agents_may_not_request_is_refused() {
        for kind in ["ask_user_question", "schedule_task", "schedule", "settings", "skills", "groups", "mcp_confirm"] {
            let refused = read("request_capability_change", &format!(r#"{{"kind":"{kind}","payload":{{}}}}"#));
            assert!(refused.expect_err(kind).contains("is not a kind of change"), "{kind}");
        }
    }

    #[test]
    fn parameters_that_a_model_sees_make_an_action() {
        let change = json!({ "kind": "persona", "payload": { "instructions": "i" }, "reason": "r" });
        let first = "2030-01-01T00:00:00Z";
        for (tool, arguments) in [
            (
                "schedule_task",
                json!({ "prompt": "p", "run_at": first, "recurrence": "daily", "zone": "UTC", "may": ["send"] }),
            ),
            ("ask_user_question", json!({ "question": "q", "options": ["a"], "allow_freeform": true })),
            ("skill_install", json!({ "payload": { "skill": "s", "version": "1" }, "reason": "r" })),
            ("request_capability_change", change),
        ] {
            let shown = tools::find(tool).expect("built in").parameters["properties"].clone();
            let names = |object: &Value| object.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&arguments), names(&shown), "{tool}");
            assert!(read(tool, &arguments.to_string()).is_ok(), "{tool}");
        }
    }

    #[test]
    fn each_tool_has_its_action() {
        let change = r#"{"kind":"persona","payload":{"instructions":"i"},"reason":"r"}"#;
        match read("request_capability_change", change) {
            Ok(Action::Propose { change: Change::Persona(persona), reason }) => {
                assert_eq!((persona.instructions.as_str(), reason.as_str()), ("i", "r"));
            }
            other => panic!("{other:?}"),
        }
        let scheduled = read("schedule_task", r#"{"prompt":"p","recurrence":"daily"}"#);
        assert!(matches!(scheduled, Ok(Action::Propose { change: Change::Schedule(_), .. })), "{scheduled:?}");
        let payload = r#"{"payload":{"skill":"s","version":"1.0.0"}}"#;
        let by_kind = r#"{"kind":"skill_install","payload":{"skill":"s","version":"1.0.0"}}"#;
        assert!(matches!(read("skill_install", payload), Ok(Action::Install { .. })));
        assert_eq!(read("request_capability_change", by_kind), read("skill_install", payload));
        let question = AskUserQuestion { question: "q".to_owned(), options: Vec::new(), allow_freeform: true };
        let asked = read("ask_user_question", r#"{"question":"q","allow_freeform":true}"#);
        assert_eq!(asked, Ok(Action::Ask(question)));
    }
}
