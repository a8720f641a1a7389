//! The calls that this process sends as rows: actions for the host to judge.
//!
//! An unknown name is refused, never mapped to a similar one. Only the name of the call is added to its arguments. See
//! [`ironclaw_contract::seam::action`].

use ironclaw_contract::canonical;
use ironclaw_contract::seam::action::{self, Action};
use ironclaw_contract::seam::change::{ChangeKind, Payload};
use ironclaw_contract::seam::limits::ARGUMENTS_BYTES_MAX;
use ironclaw_contract::seam::message::Kind;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The reason why a call makes no row: a sentence for the model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request does not exist.
    #[error("there is no request {0:?}")]
    Unknown(String),
    /// The arguments are not those of the request.
    #[error("cannot read the arguments of {tool}: {source}")]
    Arguments { tool: String, source: canonical::Error },
    /// The arguments make no action.
    #[error("{0}")]
    Action(#[from] action::Error),
}

/// Arguments of `request_capability_change`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapabilityChange {
    kind: String,
    payload: Payload,
    #[serde(default)]
    reason: String,
}

/// Returns the kind and the content of the row of a call.
///
/// # Errors
/// [`Error`]; then there is no row.
pub fn row(tool: &str, arguments: &str) -> Result<(Kind, String), Error> {
    match tool {
        "schedule_task" | "ask_user_question" | "skill_install" => {
            let mut fields: serde_json::Map<String, serde_json::Value> = parse(tool, arguments)?;
            // An argument named `action` could replace the name of the call.
            if fields.insert("action".into(), tool.into()).is_some() {
                return Err(Error::Unknown("action".into()));
            }
            system(&fields)
        }
        "request_capability_change" => {
            let CapabilityChange { kind, payload, reason } = parse(tool, arguments)?;
            // The names of the other actions have tools of their own.
            if kind.parse::<ChangeKind>().is_err() && kind != "skill_install" {
                return Err(Error::Unknown(kind));
            }
            system(&serde_json::json!({ "action": kind, "payload": payload, "reason": reason }))
        }
        other => Err(Error::Unknown(other.to_owned())),
    }
}

fn parse<T: DeserializeOwned>(tool: &str, arguments: &str) -> Result<T, Error> {
    let limits = canonical::Limits::bytes(ARGUMENTS_BYTES_MAX);
    let parsed = canonical::from_slice(arguments.as_bytes(), limits);
    parsed.map_err(|source| Error::Arguments { tool: tool.to_owned(), source })
}

fn system(action: &impl Serialize) -> Result<(Kind, String), Error> {
    let action = Action::parse(&canonical::to_string(action))?;
    Ok((Kind::System, action.to_json()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_request_makes_no_row() {
        for (tool, arguments) in [
            ("exec", r#"{"command":"rm"}"#),
            ("persona", r#"{"payload":{},"reason":""}"#),
            ("Schedule_Task", r#"{"prompt":"p"}"#),
            ("schedule_task", r#"{"prompt":"p","action":"persona"}"#),
            ("schedule_task", r#"{"prompt":"p","action":"schedule_task"}"#),
            ("schedule_task", r#"{"prompt":""}"#),
            ("schedule_task", r#"{"prompt":"p","command":"c"}"#),
            ("schedule_task", r#"["p"]"#),
            ("ask_user_question", r#"{"question":"q","question":"r"}"#),
            ("skill_install", r#"{"skill":"s","version":"1","payload":{}}"#),
            ("skill_install", r#"{"skill":"","version":"1"}"#),
            ("request_capability_change", r#"{"kind":"skill_install","payload":{},"reason":""}"#),
            ("request_capability_change", r#"{"kind":"schedule_task","payload":{},"reason":""}"#),
            ("request_capability_change", r#"{"kind":"persona","payload":"text","reason":""}"#),
            (
                "request_capability_change",
                r#"{"kind":"persona","payload":{"instructions":""},"reason":"","approved":true}"#,
            ),
            (
                "request_capability_change",
                r#"{"kind":"persona","payload":{"instructions":"","mounts":[]},"reason":""}"#,
            ),
        ] {
            assert!(row(tool, arguments).is_err(), "{tool} {arguments}");
        }
    }

    #[test]
    fn every_request_becomes_the_row_of_the_contract() {
        let text = |tool: &str, arguments: &str| row(tool, arguments).expect("a row");
        assert_eq!(
            text("schedule_task", r#"{"prompt":"p","recurrence":"daily"}"#),
            (Kind::System, r#"{"action":"schedule_task","prompt":"p","recurrence":"daily"}"#.to_owned())
        );
        assert_eq!(
            text("skill_install", r#"{"payload":{"skill":"s","version":"1.0.0"}}"#).1,
            r#"{"action":"skill_install","payload":{"skill":"s","version":"1.0.0"},"reason":""}"#
        );
        for (kind, payload) in [("persona", r#"{"instructions":"i"}"#), ("mounts", "[]"), ("packages", r#"["jq"]"#)] {
            let arguments = format!(r#"{{"kind":"{kind}","payload":{payload},"reason":"r"}}"#);
            let (_, content) = text("request_capability_change", &arguments);
            assert_eq!(Action::parse(&content).expect("reads back").name(), kind);
        }
    }
}
