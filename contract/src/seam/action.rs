//! The actions that a sandbox may request from the host: a closed list, parsed strictly.
//!
//! Never maps an unknown name to a similar one, and never decides which action needs a person: the host does. See
//! [`crate::seam::socket`].

use super::change::{self, Change, ChangeKind, Payload};
use super::limits::{ENTRIES_MAX, NAME_BYTES_MAX, OPTIONS_MAX, REASON_BYTES_MAX, ROW_BYTES_MAX};
use crate::canonical;
use serde::{Deserialize, Serialize};

/// A request of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "an action is read from one row and used at once; no list holds many")]
pub enum Action {
    /// Runs a prompt later, once or repeatedly.
    ScheduleTask(ScheduleTask),
    /// Asks the person a question.
    AskUserQuestion(AskUserQuestion),
    /// Proposes a change.
    Change {
        /// The change with its payload.
        change: Change,
        /// The reason in the agent's words.
        reason: String,
    },
    /// Installs a skill by its name; the host resolves it.
    SkillInstall {
        /// The skill.
        skill: SkillInstall,
        /// The reason in the agent's words.
        reason: String,
    },
}

/// A prompt for later; never a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleTask {
    /// The text that the agent gets when the task is due.
    pub prompt: String,
    /// Time of the first run, RFC 3339; absent: the recurrence decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<String>,
    /// `hourly`, `daily`, `weekly`, a duration or a cron expression; absent: the task runs once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrence: Option<String>,
    /// Time zone of the recurrence, a name of the IANA database; absent: the zone of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Classes of calls and names of tools that a run may use beside reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may: Vec<String>,
}

/// A question for the person; never a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskUserQuestion {
    /// The question.
    pub question: String,
    /// Answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// True if the person may type another answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_freeform: bool,
}

/// The name and the version of a skill, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillInstall {
    /// Its name.
    pub skill: String,
    /// Its version.
    pub version: String,
}

/// The envelope of all actions except the two flat ones.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<P> {
    action: String,
    payload: P,
    #[serde(default)]
    reason: String,
}

/// The reason why a text is no action.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not strict JSON, or a field is missing, unknown or of the wrong type.
    #[error("malformed action: {0}")]
    Malformed(#[from] canonical::Error),
    /// A change whose payload is not of its kind.
    #[error(transparent)]
    Change(#[from] change::Error),
    /// A name that is not in the list.
    #[error("unknown action {0:?}")]
    Unknown(String),
    /// A field that is over its bound, or empty.
    #[error("action {action}: field {field} must be 1 to {max} bytes (or entries)")]
    Bounds {
        /// The action.
        action: &'static str,
        /// The field.
        field: &'static str,
        /// The bound.
        max: usize,
    },
}

impl Action {
    /// Returns the names of all actions, as in the field `action`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ["schedule_task", "ask_user_question", "skill_install"]
            .into_iter()
            .chain(ChangeKind::for_agents().map(ChangeKind::name))
    }

    /// Returns its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ScheduleTask(_) => "schedule_task",
            Self::AskUserQuestion(_) => "ask_user_question",
            Self::Change { change, .. } => change.kind().name(),
            Self::SkillInstall { .. } => "skill_install",
        }
    }

    /// Reads the content of a row of kind `system`. Strict: no default name, no near match, no unknown field.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let limits = canonical::Limits::bytes(ROW_BYTES_MAX);
        let value = canonical::parse(text.as_bytes(), limits)?;
        let name = value.get("action").and_then(|name| name.as_str()).unwrap_or_default().to_owned();
        let shape = |error| Error::Malformed(canonical::Error::Shape(canonical::said(&error)));
        let flat = |mut value: serde_json::Value| {
            if let Some(object) = value.as_object_mut() {
                object.remove("action");
            }
            value
        };
        let action = match name.as_str() {
            "schedule_task" => Self::ScheduleTask(serde_json::from_value(flat(value)).map_err(shape)?),
            "ask_user_question" => Self::AskUserQuestion(serde_json::from_value(flat(value)).map_err(shape)?),
            "skill_install" => {
                let envelope: Envelope<SkillInstall> = serde_json::from_value(value).map_err(shape)?;
                Self::SkillInstall { skill: envelope.payload, reason: envelope.reason }
            }
            other => {
                let Some(kind) = other.parse::<ChangeKind>().ok().filter(|kind| kind.is_for_agents()) else {
                    let shown: String = other.chars().take(NAME_BYTES_MAX / 4).collect();
                    return Err(Error::Unknown(shown));
                };
                let envelope: Envelope<Payload> = serde_json::from_value(value).map_err(shape)?;
                Self::Change { change: Change::parse(kind, &envelope.payload)?, reason: envelope.reason }
            }
        };
        action.check_bounds()?;
        Ok(action)
    }

    /// Returns its canonical text, which [`Action::parse`] reads back.
    pub fn to_json(&self) -> String {
        let with_name = |value: serde_json::Value| {
            let mut value = value;
            value["action"] = self.name().into();
            canonical::to_string(&value)
        };
        match self {
            Self::ScheduleTask(task) => with_name(serde_json::json!(task)),
            Self::AskUserQuestion(question) => with_name(serde_json::json!(question)),
            Self::SkillInstall { skill, reason } => {
                with_name(serde_json::json!({ "payload": skill, "reason": reason }))
            }
            Self::Change { change, reason } => {
                with_name(serde_json::json!({ "payload": change.payload(), "reason": reason }))
            }
        }
    }

    fn check_bounds(&self) -> Result<(), Error> {
        let action = self.name();
        let within = |field, bytes: usize, min: usize, max: usize| {
            if (min..=max).contains(&bytes) { Ok(()) } else { Err(Error::Bounds { action, field, max }) }
        };
        match self {
            Self::ScheduleTask(task) => {
                within("prompt", task.prompt.len(), 1, ROW_BYTES_MAX)?;
                within("run_at", task.run_at.as_ref().map_or(1, String::len), 1, NAME_BYTES_MAX)?;
                within("recurrence", task.recurrence.as_ref().map_or(1, String::len), 1, NAME_BYTES_MAX)?;
                within("zone", task.zone.as_ref().map_or(1, String::len), 1, NAME_BYTES_MAX)?;
                within("may", task.may.len(), 0, ENTRIES_MAX)?;
                task.may.iter().try_for_each(|entry| within("may", entry.len(), 1, NAME_BYTES_MAX))
            }
            Self::AskUserQuestion(question) => {
                within("question", question.question.len(), 1, REASON_BYTES_MAX)?;
                within("options", question.options.len(), 0, OPTIONS_MAX)?;
                question.options.iter().try_for_each(|option| within("options", option.len(), 1, NAME_BYTES_MAX))
            }
            Self::Change { reason, .. } => within("reason", reason.len(), 0, REASON_BYTES_MAX),
            Self::SkillInstall { skill, reason } => {
                within("reason", reason.len(), 0, REASON_BYTES_MAX)?;
                within("skill", skill.skill.len(), 1, NAME_BYTES_MAX)?;
                within("version", skill.version.len(), 1, NAME_BYTES_MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_exactly_an_action_is_refused() {
        for text in [
            "schedule_task",
            r#""schedule_task""#,
            "{}",
            r#"{"action":"Schedule_Task","prompt":"x"}"#,
            r#"{"action":"schedule_task"}"#,
            r#"{"action":"schedule_task","prompt":""}"#,
            r#"{"action":"schedule_task","prompt":"x","command":"rm"}"#,
            r#"{"action":"schedule_task","prompt":"x","action":"persona"}"#,
            r#"{"action":"ask_user_question","question":"q","options":[1]}"#,
            r#"{"action":"persona","payload":"text","reason":""}"#,
            r#"{"action":"persona","payload":{"instructions":"x"},"approved":true}"#,
            r#"{"action":"persona","payload":{"instructions":"x","enabled_tools":["run_command"]},"reason":""}"#,
            r#"{"action":"mounts","payload":{"source":"/"},"reason":""}"#,
            r#"{"action":"skill_install","payload":{"skill":"a","version":"1","persona":"evil"}}"#,
        ] {
            assert!(Action::parse(text).is_err(), "{text}");
        }
        assert!(
            matches!(Action::parse(r#"{"action":"exec","payload":{}}"#), Err(Error::Unknown(name)) if name == "exec")
        );
    }

    #[test]
    fn settings_are_no_action_of_an_agent() {
        let text = r#"{"action":"settings","payload":{"mode":"dangerous_off"},"reason":"r"}"#;
        assert!(matches!(Action::parse(text), Err(Error::Unknown(name)) if name == "settings"));
        assert!(!Action::names().any(|name| name == "settings"));
    }

    #[test]
    fn every_named_action_reads_back() {
        let payload = |kind| match kind {
            ChangeKind::Persona => serde_json::json!({"instructions": "i"}),
            ChangeKind::EnabledTools => serde_json::json!({"add": ["t"]}),
            ChangeKind::Mounts => serde_json::json!([]),
            ChangeKind::Packages => serde_json::json!({"npm": ["n"]}),
            ChangeKind::Wiring => serde_json::json!({"channel": "c", "engage": "none"}),
            ChangeKind::Permissions => serde_json::json!({"access": "members"}),
            ChangeKind::CreateAgent => serde_json::json!({"name": "n"}),
            ChangeKind::McpAccess => serde_json::json!({"server": "s"}),
            ChangeKind::McpRegister => serde_json::json!({"name": "n", "url": "https://u", "tools": []}),
            ChangeKind::Egress => serde_json::json!({"host": "h", "methods": []}),
            ChangeKind::Destinations => serde_json::json!({"name": "n", "channel": "c", "address": "a"}),
            ChangeKind::Settings => serde_json::json!({"mode": "enforce"}),
            ChangeKind::Schedule => serde_json::json!({"prompt": "p", "every": "1d"}),
            ChangeKind::Groups => serde_json::json!({"name": "n", "agents": ["a", "b"]}),
            ChangeKind::Skills => {
                let digest = crate::canonical::Digest::of(b"");
                serde_json::json!({"name": "n", "version": "1.0.0", "digest": digest})
            }
            ChangeKind::McpConfirm => serde_json::json!({"server": "s", "digest": crate::canonical::Digest::of(b"")}),
        };
        let mut actions = vec![
            Action::ScheduleTask(ScheduleTask {
                prompt: "p".into(),
                recurrence: Some("daily".into()),
                ..ScheduleTask::default()
            }),
            Action::AskUserQuestion(AskUserQuestion {
                question: "q".into(),
                options: vec!["a".into()],
                allow_freeform: true,
            }),
            Action::SkillInstall {
                skill: SkillInstall { skill: "s".into(), version: "1.0.0".into() },
                reason: "r".into(),
            },
        ];
        actions.extend(ChangeKind::for_agents().map(|kind| {
            let payload = Payload::try_from(payload(kind)).expect("an object or a list");
            Action::Change { change: Change::parse(kind, &payload).expect("of its kind"), reason: "r".into() }
        }));
        assert_eq!(actions.iter().map(Action::name).collect::<Vec<_>>(), Action::names().collect::<Vec<_>>());
        for action in actions {
            assert_eq!(Action::parse(&action.to_json()).expect("reads back"), action);
        }
    }
}
