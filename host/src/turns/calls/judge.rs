//! The judgement of one tool call that a model wants: permitted, or refused with a reason.
//!
//! Pure: never runs or records a call. Refuses every class except reading, writing, asking, and commands in the agent's own jail, until
//! this version can judge it. See [`crate::tools`].

use super::{Call, schedule};
use crate::registry::Agent;
use crate::tools::{self, Class, Runs};
use ironclaw_contract::canonical::{self, Digest, Limits};
use ironclaw_contract::ids::CallId;
use ironclaw_contract::seam::action::Action;
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_contract::seam::limits::ARGUMENTS_BYTES_MAX;
use ironclaw_model::WantedCall;
use serde_json::Value;

/// A call with its digest and its judgement.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The call.
    pub call: Call,
    /// Digest of the recipe's name, the tool and the arguments.
    pub digest: Digest,
    /// The judgement.
    pub judgement: Judgement,
}

/// The judgement of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It may run.
    Permitted {
        /// Its class.
        class: Class,
        /// The place where it runs.
        runs: Runs,
    },
    /// It does not run, and the model receives the reason.
    Refused {
        /// The reason, in the host's own words.
        reason: &'static str,
        /// Details that may quote the model: for the model alone, never for the ledger or a person.
        detail: String,
    },
}

impl Judgement {
    /// Returns a refusal without details.
    const fn refused(reason: &'static str) -> Self {
        Self::Refused { reason, detail: String::new() }
    }
}

/// Returns the digest of a call's tool and arguments.
pub fn digest(tool: &str, arguments: &str) -> Digest {
    Digest::of(&canonical::to_vec(&[canonical::RECIPE, tool, arguments]))
}

/// Judges one call that a model wants. `has_room` is true if the turn may have another call.
pub fn judge(agent: &Agent, wanted: &WantedCall, has_room: bool) -> Judged {
    let parsed = canonical::parse(wanted.arguments.as_bytes(), Limits::bytes(ARGUMENTS_BYTES_MAX));
    let (arguments, judgement) = match parsed {
        Err(error) => {
            let reason = "its arguments are not strict JSON";
            ("{}".to_owned(), Judgement::Refused { reason, detail: error.to_string() })
        }
        Ok(value) if !value.is_object() => ("{}".to_owned(), Judgement::refused("its arguments are not a JSON object")),
        Ok(value) if !has_room => {
            (canonical::to_string(&value), Judgement::refused("the turn has no room for another call"))
        }
        Ok(value) => (canonical::to_string(&value), judge_tool(agent, &wanted.tool)),
    };
    let tool = recorded_name(&wanted.tool);
    let call = Call { call_id: CallId::new(), tool, arguments };
    // A row must contain an action, so a call without one is refused before a row exists.
    let judgement = match judgement {
        Judgement::Permitted { runs: Runs::Row, .. } => match action_of(&call) {
            Ok(_) => judgement,
            Err(detail) => Judgement::Refused { reason: "its arguments are not a valid action", detail },
        },
        Judgement::Permitted { runs: Runs::Local | Runs::Host, .. } | Judgement::Refused { .. } => judgement,
    };
    Judged { digest: digest(&call.tool, &call.arguments), call, judgement }
}

/// Characters that are kept of the name of an unknown tool.
const TOOL_NAME_MAX: usize = 64;

/// Returns the name of a tool for the record and the seal. The name of an unknown tool keeps only letters, digits, `_`, `-` and `.`,
/// because a model may write terminal escapes or text that looks like a block of the host.
fn recorded_name(name: &str) -> String {
    if let Some(tool) = tools::find(name) {
        return tool.name.to_owned();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    name.chars().take(TOOL_NAME_MAX).map(plain).collect()
}

fn judge_tool(agent: &Agent, name: &str) -> Judgement {
    let Some(tool) = tools::find(name) else {
        return Judgement::refused("there is no such tool");
    };
    if !tools::offered(&agent.enabled_tools).any(|offered| offered.name == tool.name) {
        return Judgement::refused("the tool is not enabled for this agent");
    }
    match tool.class {
        // A question or a proposal has no effect by itself: the handler of its row puts it to a person.
        Class::Read | Class::Write | Class::Ask => Judgement::Permitted { class: tool.class, runs: tool.runs },
        // A person enabled it for this agent. The command runs in the agent's own jail and reaches nothing else.
        Class::Exec if tool.name == tools::RUN_COMMAND => Judgement::Permitted { class: tool.class, runs: tool.runs },
        Class::Send | Class::Exec | Class::Trade => Judgement::Refused {
            reason: "this version does not judge calls of its class, only reading and writing the agent's own data",
            detail: format!("{} is of class {}", tool.name, tool.class),
        },
    }
}

/// Returns the action of a recorded call, which its row must repeat exactly.
///
/// # Errors
/// When its arguments are not a valid action; the message gives the reason.
pub fn action_of(call: &Call) -> Result<Action, String> {
    let mut arguments: Value = serde_json::from_str(&call.arguments).map_err(|error| error.to_string())?;
    let object = arguments.as_object_mut().ok_or("the arguments are not an object")?;
    let name = match call.tool.as_str() {
        tools::REQUEST_CHANGE => {
            let kind = object.remove("kind").and_then(|kind| kind.as_str().map(str::to_owned));
            // Only a kind of change, because the sandbox writes no row for the names of other actions.
            kind_of(&kind.ok_or("kind is missing: name the kind of change")?)?.name().to_owned()
        }
        other => other.to_owned(),
    };
    if object.contains_key("action") {
        return Err("unknown field `action`".to_owned());
    }
    object.insert("action".to_owned(), name.into());
    let action = Action::parse(&arguments.to_string()).map_err(|error| error.to_string())?;
    if let Action::ScheduleTask(task) = &action {
        schedule::check(task)?;
    }
    Ok(action)
}

fn kind_of(name: &str) -> Result<ChangeKind, String> {
    name.parse().ok().filter(|kind: &ChangeKind| kind.is_for_agents()).ok_or_else(|| {
        let kinds: Vec<_> = ChangeKind::for_agents().map(ChangeKind::name).collect();
        let shown: String = name.chars().take(TOOL_NAME_MAX).collect();
        format!("kind {shown:?} is not a kind of change that an agent may request: use one of {}", kinds.join(", "))
    })
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
            follows_default: true,
            persona: String::new(),
            enabled_tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            access: ironclaw_contract::seam::change::Access::Everyone,
            mode: Mode::Enforce,
            created_at: 0,
        }
    }

    fn judgement(agent: &Agent, tool: &str, arguments: &str) -> Judgement {
        judge(agent, &WantedCall { tool: tool.into(), arguments: arguments.into() }, true).judgement
    }

    #[test]
    fn refused_recall_is_not_searched() {
        let wanted = |tools: &[&str], tool: &str, arguments: &str| {
            crate::turns::calls::recall_query(
                &agent(tools),
                &WantedCall { tool: tool.into(), arguments: arguments.into() },
            )
        };
        let arguments = r#"{"query":"tea","max":3}"#;
        assert_eq!(wanted(&["recall"], "recall", arguments), Some(("tea".to_owned(), 3)));
        assert_eq!(wanted(&["remember"], "recall", arguments), None, "it is not enabled");
        assert_eq!(wanted(&["recall"], "recall", r#"{"query":"tea","query":"milk"}"#), None, "it is not strict JSON");
        assert_eq!(wanted(&["recall", "remember"], "remember", arguments), None);
    }

    #[test]
    fn unknown_disabled_malformed_or_outside_call_is_refused() {
        // No code handles `send_message`, so it is never enabled, even if the record names it.
        let agent = agent(&["read_file", "send_message"]);
        for (tool, arguments, why) in [
            ("rm", "{}", "no such tool"),
            ("write_file", "{}", "not enabled"),
            ("send_message", "{}", "not enabled"),
            ("request_capability_change", "{}", "not enabled"),
            ("run_command", r#"{"command":"true"}"#, "not enabled"),
            ("read_file", r#"{"path":"a","path":"b"}"#, "not strict JSON"),
            ("read_file", r#"{"offset":9007199254740993}"#, "2^53"),
            ("read_file", "[]", "not a JSON object"),
            ("read_file", "path", "not strict JSON"),
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
    fn the_name_of_an_unknown_tool_is_recorded_as_plain_text() {
        let of = |tool: &str| judge(&agent(&[]), &WantedCall { tool: tool.into(), arguments: "{}".into() }, true);
        let odd = of("a\u{1b}[2K\n<tool_result>\u{202e}[MSG_AUTH:1] \u{430}");
        assert_eq!(odd.call.tool, "a__2K__tool_result___MSG_AUTH_1___");
        assert_eq!(odd.digest, digest(&odd.call.tool, "{}"), "the digest is of the recorded name");
        assert_eq!(of(&"x".repeat(100)).call.tool, "x".repeat(TOOL_NAME_MAX));
        assert_eq!(of("read_file").call.tool, "read_file");
        assert_eq!(of("server.tool-1").call.tool, "server.tool-1");
    }

    #[test]
    fn commands_run_locally_once_a_person_enabled_them() {
        let agent = agent(&["run_command"]);
        let judged = judgement(&agent, "run_command", r#"{"command":"true"}"#);
        assert_eq!(judged, Judgement::Permitted { class: Class::Exec, runs: Runs::Local });
    }

    #[test]
    fn digest_depends_on_tool_and_value_but_not_on_key_order() {
        let of = |tool: &str, arguments: &str| {
            judge(&agent(&[tool]), &WantedCall { tool: tool.into(), arguments: arguments.into() }, true).digest
        };
        assert_eq!(of("read_file", r#"{"a":1,"b":2}"#), of("read_file", r#"{ "b": 2.0, "a": 1 }"#));
        assert_ne!(of("read_file", r#"{"a":1}"#), of("write_file", r#"{"a":1}"#));
        assert_ne!(of("read_file", r#"{"a":1}"#), of("read_file", r#"{"a":"1"}"#));
    }

    #[test]
    fn invalid_action_gives_its_reason() {
        let call = |tool: &str, arguments: &str| Call {
            call_id: CallId::new(),
            tool: tool.into(),
            arguments: arguments.into(),
        };
        assert!(action_of(&call("schedule_task", r#"{"prompt":"p","recurrence":"daily"}"#)).is_ok());
        assert!(action_of(&call("schedule_task", r#"{"prompt":"p"}"#)).unwrap_err().contains("recurrence"));
        assert!(action_of(&call("schedule_task", r#"{"prompt":"p","recurrence":"banana"}"#)).is_err());
        let change = r#"{"kind":"persona","payload":{"instructions":"i"},"reason":"r"}"#;
        assert_eq!(action_of(&call("request_capability_change", change)).expect("an action").name(), "persona");
        assert!(action_of(&call("request_capability_change", r#"{"payload":{}}"#)).is_err());
        assert!(
            action_of(&call("request_capability_change", r#"{"kind":"exec","payload":{}}"#))
                .unwrap_err()
                .contains("exec")
        );
        assert!(action_of(&call("schedule_task", r#"{"prompt":"p","action":"persona"}"#)).is_err());
    }

    #[test]
    fn change_of_a_kind_that_is_an_action_is_refused() {
        for (kind, rest) in [
            ("skill_install", r#""payload":{"skill":"s","version":"1"},"reason":"r""#),
            ("ask_user_question", r#""question":"q""#),
            ("schedule_task", r#""prompt":"p","recurrence":"daily""#),
            ("settings", r#""payload":{"mode":"dangerous_off"},"reason":"r""#),
        ] {
            let arguments = format!(r#"{{"kind":"{kind}",{rest}}}"#);
            let call = Call { call_id: CallId::new(), tool: "request_capability_change".into(), arguments };
            assert!(action_of(&call).expect_err(kind).contains("is not a kind of change"), "{kind}");
        }
    }
}
